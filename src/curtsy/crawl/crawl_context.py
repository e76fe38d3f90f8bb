"""What a process keeps of a crawl between its pages: the scope, which links need no further look, and cookies."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from curtsy.core.model import Chain, Crawl, Kind, NewUrl
from curtsy.core.settings import Settings
from curtsy.html.links import LinkMemo
from curtsy.rules.urls import Scope, fingerprint, host_key

#: links remembered per crawl and process: about 30 MB when full
_REMEMBERED = 200_000
_MAX_COOKIES = 50
#: names that a jar remembers: a site can make up others with every page
_MAX_MET = 1_000
_MAX_COOKIE_CHARS = 4096
#: in seconds; a number of more digits is as good as none
_AGE = re.compile(r"-?[0-9]{1,12}\Z")


class CrawlContext:
    """One crawl in one process. `remember` is called only for links whose rows stand in the store."""

    def __init__(self, crawl: Crawl, settings: Settings, denies: Callable[[str], bool] = lambda _: False) -> None:
        self.crawl = crawl
        #: hosts that are on the deny list
        self._denies = denies
        self._settings = settings
        self._unit = settings.politeness_unit
        self._memo = LinkMemo(_REMEMBERED)
        #: normal URLs that need no further look: out of scope or denied, or their rows stand in the store
        self._done: set[str] = set()
        #: normal URL -> the row it would make
        self._links: dict[str, NewUrl] = {}
        #: members that this process has seen join; the store may not know them yet
        self._admitted: set[str] = set()
        self.scope = self._scope_of(crawl)
        self._sitemap_scope = _without_patterns(self.scope)
        #: origins whose sitemaps this process has committed
        self.sitemapped: set[str] = set()
        #: pages of other crawls exist: requests can be conditional
        self.revisits = False
        #: a browser is tried where plain HTML has no content worth having
        self.auto_render = crawl.render == "auto"
        #: how its pages are asked for at first
        self._page = crawl.page_kind
        #: by host, only with crawl.cookies
        self.jars: dict[str, Jar] = {}

    def _scope_of(self, crawl: Crawl) -> Scope:
        s = self._settings
        return Scope.of(
            replace(crawl, members=crawl.members | self._admitted),
            max_url_length=s.max_url_length,
            max_path_segments=s.max_path_segments,
            max_repeated_segments=s.max_repeated_segments,
        )

    def renew(self, crawl: Crawl) -> None:
        """The crawl's row changed; a link that was out of scope may be in now. Members only join: a row that was read
        before a commit of ours may come after it."""
        known = self.crawl.members
        members = crawl.members | known
        self.crawl = replace(crawl, members=members, version=max(crawl.version, self.crawl.version))
        if members != known:
            self._widen()

    def _widen(self) -> None:
        self.scope = self._scope_of(self.crawl)
        self._sitemap_scope = _without_patterns(self.scope)
        self.look_again()

    def admit(self, member: str) -> None:
        """A seed's redirects ended there: it belongs to the crawl from here on, for this process before its commit."""
        if member not in self._admitted:
            self._admitted.add(member)
            self._widen()

    def new_links(self, base_url: str, hrefs: list[str], depth: int) -> list[NewUrl]:
        """Links that may be new rows, at `depth`; most links of a page are repeats and end in one dict look-up."""
        crawl = self.crawl
        if crawl.max_depth is not None and depth > crawl.max_depth:
            return []
        found: list[NewUrl] = []
        links = self._links
        for url in self._memo.resolve_all(base_url, hrefs, self._done):
            link = links.get(url) or self._look_at(url, depth)
            if link is not None:
                if link.depth > depth:
                    link = links[url] = replace(link, depth=depth)
                found.append(link)
        return found

    def _look_at(self, url: str, depth: int) -> NewUrl | None:
        link = self.row(url, depth)
        if link is None:
            self.remember(url)
            return None
        if len(self._links) >= _REMEMBERED:
            self._links.clear()
        self._links[url] = link
        return link

    def row(self, url: str, depth: int, kind: Kind = Kind.PAGE, chain: Chain | None = None) -> NewUrl | None:
        """The row a normal URL without session ids would make, or None where it is out of scope or denied.

        What is included and excluded are pages: the sitemaps that name them need not be.
        """
        scope = self._sitemap_scope if kind is Kind.SITEMAP else self.scope
        if scope.admits(url, depth) is not None:
            return None
        link = self.any_row(url, depth, kind, chain)
        return None if self._denies(link.host) else link

    def any_row(self, url: str, depth: int, kind: Kind = Kind.PAGE, chain: Chain | None = None) -> NewUrl:
        """The row a normal URL makes, whatever the scope says."""
        if kind is Kind.PAGE:
            kind = self._page
        return NewUrl(
            crawl=self.crawl.n, fp=fingerprint(url), url=url, host=host_key(url, self._unit), kind=kind, depth=depth,
            chain=chain,
        )  # fmt: skip

    def look_again(self) -> None:
        """The deny list changed, or the scope: what was out may be in now."""
        self._links.clear()
        self._done.clear()
        self._memo.clear()

    def remember(self, url: str) -> None:
        """It needs no further look: its row stands in the store, or it is out of scope."""
        if len(self._done) >= _REMEMBERED:
            self._done.clear()
        self._done.add(url)
        self._links.pop(url, None)


def _without_patterns(scope: Scope) -> Scope:
    return replace(scope, include=(), exclude=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cookie:
    name: str
    value: str
    host: str
    #: hosts below that one get it too
    wide: bool
    path: str
    secure: bool
    #: seconds since 1970; None: kept as long as the jar
    until_s: float | None

    def goes_to(self, host: str, path: str, *, safe: bool) -> bool:
        near = host == self.host or (self.wide and host.endswith(f".{self.host}"))
        below = path == self.path or path.startswith(self.path if self.path.endswith("/") else f"{self.path}/")
        return near and below and (safe or not self.secure)


class Jar:
    """The cookies of one unit of politeness, as RFC 6265 has them; bad lines are passed over."""

    def __init__(self) -> None:
        self._cookies: dict[tuple[str, str, str], _Cookie] = {}
        self._met: set[str] = set()

    def take(self, url: str, lines: Iterable[str], now_s: float | None = None) -> None:
        """What a response from there sets and removes, by its Set-Cookie lines."""
        now_s = time.time() if now_s is None else now_s
        for line in lines:
            cookie = _cookie_of(url, line, now_s)
            if cookie is None:
                continue
            key = (cookie.name, cookie.host, cookie.path)
            if len(self._met) < _MAX_MET:
                self._met.add(cookie.name)
            self._cookies.pop(key, None)
            if cookie.until_s is None or cookie.until_s > now_s:
                self._cookies[key] = cookie
        while len(self._cookies) > _MAX_COOKIES:
            del self._cookies[next(iter(self._cookies))]

    def knows(self, name: str) -> bool:
        """It has, or had, a cookie of that name: what it says of it is newer than what others remember."""
        return name in self._met

    def pairs(self, url: str, now_s: float | None = None) -> list[tuple[str, str]]:
        """(name, value) of what a request there takes along, the closest path first."""
        now_s = time.time() if now_s is None else now_s
        at = urlsplit(url)
        host, path, safe = at.hostname or "", at.path or "/", at.scheme == "https"
        found = [
            cookie
            for cookie in self._cookies.values()
            if (cookie.until_s is None or cookie.until_s > now_s) and cookie.goes_to(host, path, safe=safe)
        ]
        found.sort(key=lambda cookie: -len(cookie.path))
        return [(cookie.name, cookie.value) for cookie in found]


def _cookie_of(url: str, line: str, now_s: float) -> _Cookie | None:
    pair, *rest = line.split(";")
    name, equals, value = (part.strip() for part in pair.partition("="))
    if not (equals and name) or len(pair) > _MAX_COOKIE_CHARS or not pair.isprintable():
        return None
    said = {key.strip().lower(): word.strip() for key, _, word in (part.partition("=") for part in rest)}
    at = urlsplit(url)
    host, domain = at.hostname or "", said.get("domain", "").lstrip(".").lower()
    if domain and host != domain and not ("." in domain and host.endswith(f".{domain}")):
        return None
    path = said.get("path", "")
    return _Cookie(
        name=name, value=value, host=domain or host, wide=bool(domain),
        path=path if path.startswith("/") else at.path.rpartition("/")[0] or "/",
        secure="secure" in said, until_s=_expiry(said, now_s),
    )  # fmt: skip


def _expiry(said: dict[str, str], now_s: float) -> float | None:
    """Max-Age counts before Expires; what cannot be read is as if it were not there."""
    age = said.get("max-age", "")
    if _AGE.match(age):
        return now_s + int(age)
    try:
        return parsedate_to_datetime(said["expires"]).timestamp()
    except (KeyError, ValueError, TypeError, IndexError, OverflowError, OSError):
        return None
