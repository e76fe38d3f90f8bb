"""The links of a page, and the URLs of sitemaps and feeds. No I/O; bad content never raises."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field

from curtsy.content.charset import charset_of, decode
from curtsy.content.document import Document, refresh_target
from curtsy.rules.folding import strip_session
from curtsy.rules.urls import normalise

_BLANK = "\t\n\f\r "
_LINK_RELATIONS = frozenset(("next", "canonical", "alternate"))
#: a path that the URL standard leaves as it is: no query, no dots that mean folders, nothing to escape
_PLAIN_LINK = re.compile(r"/?(?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*/)*(?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)?")
#: an absolute URL that the URL standard leaves as it is: no port that may be a default, no label that may be punycode
_PLAIN_URL = re.compile(
    r"https?://(?:[a-z0-9](?:-?[a-z0-9])*\.)+[a-z]{2,}(?::[1-5]?[1-9][0-9]{3})?/(?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*/)*"
    r"(?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)?"
)
_UTF = frozenset(("utf-8", "utf-16le", "utf-16be", "replacement"))


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
    if document.charset not in _UTF:
        return [href if href.isascii() else _with_encoded_query(href, document.charset) for href in found]
    return list(found)


def _nofollow(rel: str | None) -> bool:
    return rel is not None and "nofollow" in rel.lower().split()


def _with_encoded_query(href: str, charset: str) -> str:
    """The URL standard: a query is encoded in the encoding of its page."""
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

    def resolve_all(self, base_url: str, links: Iterable[str], done: Container[str] = ()) -> list[str]:
        """The folded URLs of a page's links, in order, each once; what cannot be crawled is left out.

        So are URLs that are `done`, permanently: from then on, their links cost one table lookup.
        """
        origin, folder = _prefixes(base_url)
        of_origin, of_folder, of_all = self._table(origin), self._table(folder), self._table("")
        # A base that may be glued in front of plain links as it is: http(s), without credentials.
        is_plain = origin is not folder and "@" not in origin
        # In a folder of the root "../x" is "/x".
        below_root = is_plain and folder.count("/") == 4
        found: dict[str, None] = {}
        for href in _without_fragments(links):
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
        """What was done is to be looked at again."""
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


def _without_fragments(links: Iterable[str]) -> Iterable[str]:
    """The links, each once, without the fragments that their URLs lose anyway: a manual links to many parts of a page.

    The URL parser removes white space at the end of a link, but not before a fragment: such a link stays whole.
    """
    return dict.fromkeys(
        href if (cut := href.find("#")) < 0 or (cut and href[cut - 1] <= " ") else href[:cut] for href in links
    )


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


@dataclass(slots=True)
class SitemapContent:
    """The URLs of a sitemap as written: not normalized, in order, each once."""

    urls: list[str] = field(default_factory=list)
    #: further sitemaps, from a sitemap index
    sitemaps: list[str] = field(default_factory=list)


_CHUNK_BYTES = 1 << 20
#: what has no end after this many bytes is dropped: nothing we look for is that long
_MAX_OPEN_BYTES = 4 << 20
_MAX_SITEMAP_URL_BYTES = 8_192
_SITEMAP_ROOT = re.compile(rb"<(?:([A-Za-z_][\w.-]*):)?([A-Za-z_][\w.-]*)(?=[\s/>])")
_MARKUP = re.compile(rb"<!--|<!\[CDATA\[")
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6}));")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_FEEDS = frozenset((b"rss", b"rdf", b"feed"))
_FEED_ITEM = re.compile(rb"<(?:[\w.-]+:)?(?:item|entry)[\s>]")
_FEED_LINK = re.compile(rb"<link(?:\s[^<>]*)?>([^<]*)<")
_ATOM_LINK = re.compile(rb"<(?:[\w.-]+:)?link\s([^<>]*)>")
_ATTRIBUTE = re.compile(rb"""(?<![\w:.-])([\w:.-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_TEXT_URL = re.compile(rb"^[\t ]*(https?://[^\s<>]+)[\t ]*\r?$", re.IGNORECASE | re.MULTILINE)


def sitemap(body: bytes, limit: int, max_bytes: int = 50_000_000) -> SitemapContent:
    """XML sitemap or index, text sitemap, RSS or Atom feed, gzipped or not, told apart by content.

    Reads at most `max_bytes` after decompression and keeps at most `limit` URLs. Nothing is expanded but the five
    entities of XML and character references; broken content yields what could be read.
    """
    content = SitemapContent()
    chunks = _chunks(body, max_bytes)
    start = next(chunks, b"")
    charset = charset_of(start[:1024], "application/xml")
    if charset.startswith("utf-16"):
        start = decode(b"".join((start, *chunks)), charset).encode()
        chunks, charset = iter(()), "utf-8"
    start = start.removeprefix(b"\xef\xbb\xbf")
    kind, prefix = _kind_of(start)
    read = _reader(kind, prefix)
    if read is None:
        return content
    if kind in _FEEDS and (item := _FEED_ITEM.search(start)) is not None:
        start = start[item.start() :]  # the links before it are those of the feed itself
    into = content.sitemaps if kind == b"sitemapindex" else content.urls
    known: dict[str, None] = {}
    for piece in _pieces(start, chunks) if kind else _lines(start, chunks):
        for raw in read(piece):
            if len(raw) <= _MAX_SITEMAP_URL_BYTES and (url := _unescape(raw.decode(charset, "replace")).strip()):
                known[url] = None
                if len(known) >= limit:
                    into.extend(known)
                    return content
    into.extend(known)
    return content


def _chunks(body: bytes, max_bytes: int) -> Iterator[bytes]:
    """The body in pieces, decompressed if it is gzip (twice if it was compressed twice)."""
    chunks: Iterator[bytes] = (body[at : at + _CHUNK_BYTES] for at in range(0, len(body), _CHUNK_BYTES))
    for _ in range(2):
        first = next(chunks, b"")
        chunks = _gunzip(first, chunks) if first.startswith(b"\x1f\x8b") else _chain(first, chunks)
    left = max_bytes
    for chunk in chunks:
        yield chunk[:left]
        left -= len(chunk)
        if left <= 0:
            return


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _gunzip(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    unzip = zlib.decompressobj(31)
    for chunk in _chain(first, rest):
        while chunk:
            try:
                data = unzip.decompress(chunk, _CHUNK_BYTES)
            except zlib.error:
                return
            if data:
                yield data
            chunk = unzip.unconsumed_tail
            if unzip.eof:
                chunk = unzip.unused_data
                if not chunk.startswith(b"\x1f\x8b"):
                    return
                unzip = zlib.decompressobj(31)


def _kind_of(start: bytes) -> tuple[bytes, bytes]:
    """(local name of the root element, its prefix with colon); no name: a text file."""
    if start.lstrip()[:1] != b"<":
        return b"", b""
    for found in _SITEMAP_ROOT.finditer(start[:65_536]):
        return found[2].lower(), (found[1] + b":" if found[1] else b"")
    return b"urlset", b""


def _reader(kind: bytes, prefix: bytes) -> Callable[[bytes], Iterable[bytes]] | None:
    if kind in (b"urlset", b"sitemapindex"):
        name = re.escape(prefix) + b"loc"
        return re.compile(rb"<" + name + rb"(?:\s[^<>]*)?>([^<]*)<").findall
    readers: dict[bytes, Callable[[bytes], Iterable[bytes]]] = {
        b"": _TEXT_URL.findall,
        b"rss": _FEED_LINK.findall,
        b"rdf": _FEED_LINK.findall,
        b"feed": _atom_links,
    }
    return readers.get(kind)


def _atom_links(piece: bytes) -> Iterator[bytes]:
    for found in _ATOM_LINK.finditer(piece):
        attributes = {name: double or single for name, double, single in _ATTRIBUTE.findall(found[1])}
        if attributes.get(b"rel", b"alternate") == b"alternate" and b"href" in attributes:
            yield attributes[b"href"]


def _lines(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The text in pieces that end with a line."""
    rest = b""
    for chunk in _chain(start, chunks):
        rest += chunk
        cut = rest.rfind(b"\n") + 1
        yield rest[:cut]
        rest = rest[cut:] if len(rest) - cut <= _MAX_OPEN_BYTES else b""
    yield rest


def _pieces(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The XML in pieces that end within a closing tag, so that no element we read is cut; without comments."""
    rest = b""
    for chunk in _chain(start, chunks):
        clean, rest = _without_comments(rest + chunk)
        cut = clean.rfind(b"</")
        if cut >= 0:
            yield clean[: cut + 1]
            rest = clean[cut:] + rest
        else:
            rest = clean + rest
        if len(rest) > _MAX_OPEN_BYTES:
            rest = b""
    yield _without_comments(rest)[0]


def _without_comments(data: bytes) -> tuple[bytes, bytes]:
    """(data without comments and with CDATA as escaped text, the rest that begins with one not closed yet)"""
    clean: list[bytes] = []
    at = 0
    while (found := _MARKUP.search(data, at)) is not None:
        is_comment = found[0] == b"<!--"
        end = data.find(b"-->" if is_comment else b"]]>", found.end())
        clean.append(data[at : found.start()])
        if end < 0:
            return b"".join(clean), data[found.start() :]
        if not is_comment:
            clean.append(data[found.end() : end].replace(b"&", b"&amp;").replace(b"<", b"&lt;"))
        at = end + 3
    if not clean:
        return data, b""
    clean.append(data[at:])
    return b"".join(clean), b""


def _unescape(text: str) -> str:
    return _ENTITY.sub(_entity, text) if "&" in text else text


def _entity(found: re.Match[str]) -> str:
    if found[1]:
        return _ENTITIES[found[1]]
    number = int(found[2]) if found[2] else int(found[3], 16)
    return chr(number) if number < 0xD800 or 0xDFFF < number < 0x110000 else "\ufffd"
