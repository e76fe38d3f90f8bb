"""The links of a page. No I/O; bad content never raises."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING

from curtsy.content.head import refresh_target
from curtsy.content.page_scan import without_fragment
from curtsy.rules.folding import strip_session
from curtsy.rules.urls import normalise

if TYPE_CHECKING:
    from curtsy.content.document import Document

_BLANK = "\t\n\f\r "
_LINK_RELATIONS = frozenset(("next", "canonical", "alternate"))
#: a path that the URL standard leaves as it is: no query, no dots that mean folders, nothing to escape
_PLAIN_LINK = re.compile(r"/?(?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*/)*(?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)?")
#: an absolute URL that the URL standard leaves as it is: no port that may be a default, no label that may be punycode
_PLAIN_URL = re.compile(
    r"https?://(?:[a-z0-9](?:-?[a-z0-9])*\.)+[a-z]{2,}(?::[1-5]?[1-9][0-9]{3})?/(?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*/)*"
    r"(?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)?"
)
_UTF = frozenset(("utf-8", "utf-16le", "utf-16be", "utf-32le", "utf-32be", "replacement"))


def hrefs(document: Document) -> list[str]:
    """Raw link targets in document order, each once; none from a page that says nofollow.

    From a, area, iframe, frame, link (next, canonical, alternate) and meta refresh; not from those with rel=nofollow.
    """
    if document.robots_nofollow:
        return []
    found: dict[str, None] = {}
    for tag, attributes in zip(document.tags, document.attributes, strict=True):
        if tag == "a" or tag == "area":
            href = attributes.get("href")
            if "rel" in attributes and _nofollow(attributes["rel"]):
                continue
        elif tag == "link":
            relations = (attributes.get("rel") or "").lower().split()
            if _LINK_RELATIONS.isdisjoint(relations) or "nofollow" in relations or "stylesheet" in relations:
                continue
            href = attributes.get("href")
        elif tag == "iframe" or tag == "frame":
            href = attributes.get("src")
        elif tag == "meta":
            href = refresh_target(attributes)
        else:
            continue
        if href:
            found[href.strip(_BLANK)] = None
    found.pop("", None)
    return with_encoded_queries(list(found), document.charset)


def _nofollow(rel: str | None) -> bool:
    return rel is not None and "nofollow" in rel.lower().split()


def with_encoded_queries(links: list[str], charset: str) -> list[str]:
    """The links of a page in this encoding. The URL standard: a query is encoded in the encoding of its page."""
    if charset in _UTF:
        return links
    return [href if href.isascii() else _with_encoded_query(href, charset) for href in links]


def _with_encoded_query(href: str, charset: str) -> str:
    rest, hash_mark, fragment = href.partition("#")
    path, mark, query = rest.partition("?")
    if not mark or query.isascii():
        return href
    encoded = "".join(char if char.isascii() else _in_charset(char, charset) for char in query)
    return f"{path}?{encoded}{hash_mark}{fragment}"


def _in_charset(char: str, charset: str) -> str:
    try:
        return "".join(f"%{octet:02X}" for octet in char.encode(charset))
    except (UnicodeError, LookupError):
        return f"%26%23{ord(char)}%3B"


class LinkMemo:
    """Remembers what links resolve to: most links of a site's pages are the same.

    A link that names its scheme means the same everywhere, one that begins with "/" on all pages of an origin, and a
    plain relative one on all pages of a folder; others (queries, fragments, odd schemes) are resolved each time.
    """

    __slots__ = ("_fold", "_limit", "_size", "_tables")

    #: longer links are not worth remembering
    MAX_LENGTH = 1_000

    def __init__(self, limit: int = 100_000, fold: Callable[[str], str] = strip_session) -> None:
        self._limit = limit
        self._fold = fold
        self._size = 0
        self._tables: dict[str, dict[str, str | None]] = {}

    def resolve(self, base_url: str, href: str) -> str | None:
        """The folded URL, or None where it cannot be crawled."""
        key = self._key(href, *_prefixes(base_url))
        if key is None:
            return self._resolve(base_url, href)
        table = self._table(key)
        try:
            return table[href]
        except KeyError:
            return self._learn(table, base_url, href, None)

    def resolve_all(self, base_url: str, links: Sequence[str], done: Container[str] = ()) -> list[str]:
        """The folded URLs of a page's links, in order, each once; what cannot be crawled is left out.

        So are URLs that are `done`, permanently: from then on, their links cost one table lookup.
        """
        origin, folder = _prefixes(base_url)
        of_origin, of_folder, of_all = self._table(origin), self._table(folder), self._table("")
        # A base that can be prepended to plain links: http(s), without credentials.
        is_plain = origin is not folder and "@" not in origin
        # In a folder of the root "../x" is "/x".
        below_root = is_plain and folder.count("/") == 4
        found: dict[str, None] = {}
        for href in without_fragments(links):
            if href[:1] == "/":
                table, key = of_origin, origin
            elif href in of_folder:
                table, key = of_folder, folder
            elif below_root and href[:3] == "../" and href[3:4].isalnum():
                table, key, href = of_origin, origin, href[2:]
            elif href[:4] == "http" and href.startswith(("http://", "https://")):
                table, key = of_all, ""
            elif href and self._key(href, origin, folder) is not None:
                table, key = of_folder, folder
            else:
                url = self._resolve(base_url, href)
                if url is not None and url not in done:
                    found[url] = None
                continue
            try:
                url = table[href]
            except KeyError:
                url = self._learn(table, base_url, href, key if is_plain else None)
            if url is None:
                continue
            if url not in done:
                found[url] = None
            elif href in table:
                table[href] = None
        return list(found)

    def clear(self) -> None:
        """URLs that were done are returned again."""
        self._tables.clear()
        self._size = 0

    @staticmethod
    def _key(href: str, origin: str, folder: str) -> str | None:
        """The part of the base that a link depends on: empty if all bases share its table, None for the whole base."""
        if href.startswith("/"):
            return origin
        if href.startswith(("http://", "https://")):
            return ""
        if ":" in href or href[:1] <= " " or href[0] in "?#\\":
            return None
        return folder

    def _table(self, key: str) -> dict[str, str | None]:
        table = self._tables.get(key)
        if table is None:
            if self._size >= self._limit:
                self.clear()
            table = self._tables[key] = {}
            self._size += 1
        return table

    def _resolve(self, base_url: str, href: str) -> str | None:
        url = normalise(href, base_url)
        return None if url is None else self._fold(url)

    def _learn(self, table: dict[str, str | None], base_url: str, href: str, prefix: str | None) -> str | None:
        url = None if prefix is None else _glued(prefix, href)
        url = self._resolve(base_url, href) if url is None else self._fold(url)
        if len(href) <= self.MAX_LENGTH:
            if self._size >= self._limit:
                self.clear()
            table[href] = url
            self._size += 1
        return url


def without_fragments(links: Sequence[str]) -> Sequence[str]:
    """The links without their fragments (`page_scan.without_fragment`), each once."""
    if "#" not in "".join(links):
        return links
    return list(dict.fromkeys([without_fragment(href) if "#" in href else href for href in links]))


def _prefixes(base_url: str) -> tuple[str, str]:
    """(origin, folder) of a base; both the whole base where it is not an http URL."""
    start = base_url.find("://") + 3
    slash = base_url.find("/", start)
    if slash < 0 or not base_url.startswith("http"):
        return base_url, base_url
    path = base_url.partition("#")[0].partition("?")[0]
    return base_url[:slash], path[: path.rfind("/") + 1]


def _glued(prefix: str, href: str) -> str | None:
    """The URL of a plain link after its origin or folder; None if the URL parser must decide."""
    if href.startswith("../") and prefix.endswith("/"):
        # One folder up, but never above the root.
        prefix = prefix[: max(prefix.rfind("/", 0, -1), prefix.index("/", 8)) + 1]
        href = href[3:]
    if href.startswith("http"):
        return href if _PLAIN_URL.fullmatch(href) is not None else None
    return prefix + href if _PLAIN_LINK.fullmatch(href) is not None else None
