"""Folding: URLs that a server answers alike become one URL of the crawl. No I/O.

A URL is folded when it enters the crawl, so its row, its request, its scope and its robots rules all concern the folded
URL. The setting `fold` names the rules (docs/decisions/0067-which-urls-are-equivalent.md):

    escapes      `%7Ea` is `~a` and `%c3` is `%C3`: RFC 3986 says that these are the same
    empty_query  `/a?` is `/a`
    sessions     a session id in the path or the query is removed; only from links
    tracking     parameters that only count visitors are removed: the setting `tracking_parameters`
    order        parameters are sorted by name; those of one name keep their order
    index        `/a/index.html` is `/a/`

Two URLs are requested unfolded: a redirect to a URL that folds into its own chain, and a canonical URL that folds into
its own page. A query that is signed is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from curtsy.core.fold_rules import FOLD_RULES

if TYPE_CHECKING:
    from curtsy.core.settings import Settings

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
#: an escape; or a "%" that escapes nothing, with the escapes whose digits would make one of it
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|%[0-9A-Fa-f]?(?:%[0-9A-Fa-f]{2}){1,2}")
_ESCAPES = {
    f"%{high}{low}": chr(byte) if (byte := int(high + low, 16)) in _UNRESERVED else f"%{byte:02X}"
    for high in "0123456789ABCDEFabcdef"
    for low in "0123456789ABCDEFabcdef"
}
#: escapes that the rule `escapes` changes: those of unreserved characters, and those with lower-case digits
_FOLDED_ESCAPE = re.compile(
    r"%(?:2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee]|[0-9A-F][a-f]|[a-f][0-9A-Fa-f])"
)

#: parameters by which servers check that the URL is unchanged
_SIGNATURES = frozenset(
    (
        *("signature", "sig", "sign", "hmac", "hash", "token", "jwt", "digest", "checksum", "md5", "sha1", "sha256"),
        *("x-amz-signature", "x-goog-signature", "x-oss-signature", "x-cos-signature", "q-signature", "key-pair-id"),
        *("oauth_signature", "urlsignature", "request_signature", "auth_key", "__token__", "hdnts", "hdnea", "hdntl"),
    )
)

# Session ids: the first names never mean anything else; the second also name sections and stories, so their value
# must look like a token too.
_SESSION_NAMES = frozenset(
    (
        *("jsessionid", "phpsessid", "phpsession", "sessid", "sessionid", "session_id", "session-id", "cfid"),
        *("cftoken", "cfsessionid", "zenid", "oscsid", "xtcsid", "plentyshop_session", "jservsessionid", "wosid"),
        "sidsession",
    )
)
_SESSION_MAYBE = frozenset(("sid", "session", "sess", "s", "ssid", "psession"))
_SESSION_HINT = re.compile(r"(?i)sess|[?&;]s(?:id)?=|sid=|cfid|cftoken|zenid|/\([a-z]\(")
_SESSION_TOKEN = re.compile(r"(?=.*[0-9])[0-9A-Za-z_-]{16,}\Z")
_SESSION_PATH = re.compile(r"(?i);(?:jsessionid|phpsessid|sessionid|sid|jservsessionid)=[^/;?]*")
_SESSION_SEGMENT = re.compile(r"(?i)/\((?:[a-z]\([0-9a-z]{20,}\))+\)(?=/)")
#: `/.;sid=1/` names a file; without its session id it would name a folder
_DOTS = re.compile(r"/\.\.?(?:/|\Z)")

_INDEX = re.compile(r"(?i)/(?:index\.(?:html?|php|aspx?|jsp)|default\.(?:html?|aspx?))\Z")

Rule = Callable[[str], str]


class Folding:
    """The rules of one deployment. `links` folds links, `named` what a user or a server named: seeds and redirects."""

    __slots__ = ("_names", "_parts", "links", "named")

    def __init__(self, rules: Iterable[str], tracking: Iterable[str]) -> None:
        wanted = frozenset(rules)
        names = [name.lower() for name in tracking]
        self._names = frozenset(name for name in names if not name.endswith("*"))
        self._parts = tuple(name[:-1] for name in names if name.endswith("*"))
        every: dict[str, Rule] = {
            "escapes": _fold_escapes, "sessions": strip_session, "tracking": self._strip_tracking,
            "order": _sort_query, "index": _strip_index, "empty_query": _strip_empty_query,
        }  # fmt: skip
        steps = [(name, every[name]) for name in FOLD_RULES if name in wanted]
        self.links = _Steps(steps)
        self.named = _Steps([step for step in steps if step[0] != "sessions"])

    @staticmethod
    def of(settings: Settings) -> Folding:
        return _folding(settings.fold, settings.tracking_parameters)

    def is_contradicted(self, url: str, canonical: str) -> bool:
        """The canonical URL of a page was folded into the page's URL: the removed part may matter.

        Another spelling of the same characters does not count: many sites write escapes in lower case.
        """
        return canonical != url and self.links(canonical) == url and _strip_empty_query(_fold_escapes(canonical)) != url

    def _strip_tracking(self, url: str) -> str:
        return _filtered(url, self._is_tracking)

    def _is_tracking(self, pair: str) -> bool:
        name = pair.partition("=")[0].lower()
        return name in self._names or (bool(self._parts) and name.startswith(self._parts))


@lru_cache(maxsize=16)
def _folding(rules: tuple[str, ...], tracking: tuple[str, ...]) -> Folding:
    return Folding(rules, tracking)


class _Steps:
    """Rules in their order. Called with a normal URL, returns the folded one; folding it again changes nothing."""

    __slots__ = ("_index", "_rules", "_steps")

    def __init__(self, steps: Sequence[tuple[str, Rule]]) -> None:
        self._steps = steps
        self._rules = [rule for _, rule in steps]
        self._index = any(rule is _strip_index for rule in self._rules)

    def __call__(self, url: str) -> str:
        if "?" not in url and "%" not in url and ";" not in url and "/(" not in url and not self._index:
            return url
        if "?" in url and is_signed(url):
            return url
        for rule in self._rules:
            url = rule(url)
        return url

    def changed_by(self, url: str) -> list[str]:
        """The names of the rules that change the URL."""
        if is_signed(url):
            return []
        names = []
        for name, rule in self._steps:
            before, url = url, rule(url)
            if url != before:
                names.append(name)
        return names


def is_signed(url: str) -> bool:
    """Does its query have a parameter that signs it? Such a URL must be requested as it is written."""
    query = url.partition("?")[2]
    return "=" in query and any(pair.partition("=")[0].lower() in _SIGNATURES for pair in query.split("&"))


def strip_session(url: str) -> str:
    """A normal URL without session ids, so that a site that puts a new one into every link is still finite."""
    if _SESSION_HINT.search(url) is None:
        return url
    path, mark, query = url.partition("?")
    stripped = _SESSION_SEGMENT.sub("", _SESSION_PATH.sub("", path))
    if _DOTS.search(stripped) is None:
        path = stripped
    return _filtered(path + mark + query, _is_session)


def _is_session(pair: str) -> bool:
    name, _, value = pair.partition("=")
    name = name.lower()
    if name in _SESSION_NAMES or name.startswith("aspsessionid"):
        return True
    return name in _SESSION_MAYBE and _SESSION_TOKEN.match(value) is not None


def _filtered(url: str, is_dropped: Callable[[str], bool]) -> str:
    """The URL without some parameters; without any, its `?` goes too. A URL that has none of them stays as it is."""
    path, _, query = url.partition("?")
    if not query:
        return url
    pairs = query.split("&")
    kept = [pair for pair in pairs if not is_dropped(pair)]
    if len(kept) == len(pairs):
        return url
    return f"{path}?{'&'.join(kept)}" if kept else path


def _fold_escapes(url: str) -> str:
    if "%" not in url or _FOLDED_ESCAPE.search(url) is None:
        return url
    return _ESCAPE.sub(_unescaped, url)


def _unescaped(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0], found[0])


def _sort_query(url: str) -> str:
    path, _, query = url.partition("?")
    if "&" not in query:
        return url
    return f"{path}?{'&'.join(sorted(query.split('&'), key=_name))}"


def _name(pair: str) -> str:
    return pair.partition("=")[0]


def _strip_index(url: str) -> str:
    path, mark, query = url.partition("?")
    found = _INDEX.search(path)
    return url if found is None else f"{path[: found.start() + 1]}{mark}{query}"


def _strip_empty_query(url: str) -> str:
    return url[:-1] if url[-1] == "?" and url.find("?") == len(url) - 1 else url
