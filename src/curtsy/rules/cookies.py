"""Every cookie rule: the jar of a crawl and host (RFC 6265), and the cookies that a redirect chain carries. No I/O.

A crawl keeps jars only with its option `cookies`. Without it, cookies live as long as one chain of redirects: some
sites redirect until their cookie comes back.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from curtsy.core.model import Chain, hot_value
from curtsy.core.outcome import Outcome
from curtsy.rules.urls import origin

_MAX_COOKIES = 50
#: cookie names that a jar remembers: a site can invent new ones with every page
_MAX_NAMES = 1_000
_MAX_COOKIE_CHARS = 4096
_MAX_CHAIN_COOKIES = 20
#: seconds; a longer number is treated as invalid
_AGE = re.compile(r"-?[0-9]{1,12}\Z")


@hot_value()
class _Cookie:
    name: str
    value: str
    host: str
    #: subdomains of the host receive it too
    subdomains: bool
    path: str
    secure: bool
    #: seconds since 1970; None: as long as the jar
    until_s: float | None

    def matches(self, host: str, path: str, *, https: bool) -> bool:
        same_host = host == self.host or (self.subdomains and host.endswith(f".{self.host}"))
        below = path == self.path or path.startswith(self.path if self.path.endswith("/") else f"{self.path}/")
        return same_host and below and (https or not self.secure)


class CookieJar:
    """The cookies of one crawl on one host. Invalid Set-Cookie lines are ignored."""

    def __init__(self) -> None:
        self._cookies: dict[tuple[str, str, str], _Cookie] = {}
        self._names: set[str] = set()

    def store(self, url: str, lines: Iterable[str], now_s: float | None = None) -> None:
        """Applies the Set-Cookie lines of a response from this URL."""
        now_s = time.time() if now_s is None else now_s
        for line in lines:
            cookie = _parse(url, line, now_s)
            if cookie is None:
                continue
            key = (cookie.name, cookie.host, cookie.path)
            if len(self._names) < _MAX_NAMES:
                self._names.add(cookie.name)
            self._cookies.pop(key, None)
            if cookie.until_s is None or cookie.until_s > now_s:
                self._cookies[key] = cookie
        while len(self._cookies) > _MAX_COOKIES:
            del self._cookies[next(iter(self._cookies))]

    def knows(self, name: str) -> bool:
        """The jar has, or had, a cookie of this name: its value is newer than that of a redirect chain."""
        return name in self._names

    def pairs(self, url: str, now_s: float | None = None) -> list[tuple[str, str]]:
        """(name, value) of every cookie that a request to this URL sends, the longest path first."""
        now_s = time.time() if now_s is None else now_s
        at = urlsplit(url)
        host, path, https = at.hostname or "", at.path or "/", at.scheme == "https"
        found = [
            cookie
            for cookie in self._cookies.values()
            if (cookie.until_s is None or cookie.until_s > now_s) and cookie.matches(host, path, https=https)
        ]
        found.sort(key=lambda cookie: -len(cookie.path))
        return [(cookie.name, cookie.value) for cookie in found]


def cookie_header(chain: Chain | None, jar: CookieJar | None, url: str) -> str | None:
    """The `Cookie` header of a request: from the chain and the jar. The jar wins for a name that both know."""
    pairs = [pair for pair in chain_pairs(chain, url) if not (jar is not None and jar.knows(pair.partition("=")[0]))]
    if jar is not None:
        pairs += [f"{name}={value}" for name, value in jar.pairs(url)]
    return "; ".join(pairs) or None


def chain_pairs(chain: Chain | None, url: str) -> tuple[str, ...]:
    """`name=value` of the chain's cookies. They go only to the origin that set them, or to its https twin."""
    if chain is None or not chain.cookies or chain.cookie_host is None:
        return ()
    here = origin(url)
    is_twin = here.startswith("https://") and chain.cookie_host == "http://" + here.removeprefix("https://")
    return chain.cookies if here == chain.cookie_host or is_twin else ()


def next_cookies(chain: Chain, outcome: Outcome) -> tuple[tuple[str, ...], str | None]:
    """(cookies, the origin that set them) of the next request of the chain."""
    new = set_cookies(outcome)
    if not new:
        return chain.cookies, chain.cookie_host
    here = origin(outcome.url)
    kept = chain.cookies if chain.cookie_host == here else ()
    names = {pair.partition("=")[0] for pair in new}
    return (*(pair for pair in kept if pair.partition("=")[0] not in names), *new)[-_MAX_CHAIN_COOKIES:], here


def brings_cookie(outcome: Outcome, chain: Chain | None) -> bool:
    """The response sets a cookie that the chain did not have."""
    known = chain.cookies if chain is not None else ()
    return any(pair not in known for pair in set_cookies(outcome))


def set_cookies(outcome: Outcome) -> tuple[str, ...]:
    """`name=value` of each cookie that the response sets; the last of a name wins, deletions are left out."""
    pairs: dict[str, str] = {}
    for line in outcome.header_all("set-cookie"):
        pair, *attributes = (part.strip() for part in line.split(";"))
        name, equals, value = pair.partition("=")
        if equals and name and len(pair) <= _MAX_COOKIE_CHARS and pair.isprintable():
            pairs.pop(name, None)
            if not any(_deletes(attribute) for attribute in attributes):
                pairs[name] = f"{name.strip()}={value.strip()}"
    return tuple(pairs.values())[:_MAX_CHAIN_COOKIES]


def _deletes(attribute: str) -> bool:
    name, _, value = attribute.lower().partition("=")
    return name.strip() == "max-age" and (value.strip() == "0" or value.strip().startswith("-"))


def _parse(url: str, line: str, now_s: float) -> _Cookie | None:
    pair, *rest = line.split(";")
    name, equals, value = (part.strip() for part in pair.partition("="))
    if not (equals and name) or len(pair) > _MAX_COOKIE_CHARS or not pair.isprintable():
        return None
    attributes = {key.strip().lower(): word.strip() for key, _, word in (part.partition("=") for part in rest)}
    at = urlsplit(url)
    host, domain = at.hostname or "", attributes.get("domain", "").lstrip(".").lower()
    if domain and host != domain and not ("." in domain and host.endswith(f".{domain}")):
        return None
    path = attributes.get("path", "")
    return _Cookie(
        name=name, value=value, host=domain or host, subdomains=bool(domain),
        path=path if path.startswith("/") else at.path.rpartition("/")[0] or "/",
        secure="secure" in attributes, until_s=_expiry(attributes, now_s),
    )  # fmt: skip


def _expiry(attributes: dict[str, str], now_s: float) -> float | None:
    """Max-Age counts before Expires; a value that cannot be parsed is ignored."""
    age = attributes.get("max-age", "")
    if _AGE.match(age):
        return now_s + int(age)
    try:
        return parsedate_to_datetime(attributes["expires"]).timestamp()
    except (KeyError, ValueError, TypeError, IndexError, OverflowError, OSError):
        return None
