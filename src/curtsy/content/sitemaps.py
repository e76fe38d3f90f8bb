"""The URLs of sitemaps and feeds. No I/O; bad content never raises."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from curtsy.content.charset import charset_of, decode, media_type


class Listing(NamedTuple):
    """What a sitemap says about a URL."""

    #: W3C date or time, as written
    lastmod: str | None
    #: 0 to 1
    priority: float | None


@dataclass(slots=True)
class SitemapContent:
    """The URLs of a sitemap or feed as written: not normalized, in order, each once."""

    urls: list[str] = field(default_factory=list)
    #: further sitemaps, from a sitemap index
    sitemaps: list[str] = field(default_factory=list)
    #: of the URLs that it says something about
    listings: dict[str, Listing] = field(default_factory=dict)


#: (URL, lastmod, priority), as written; empty: it says nothing
Found = tuple[bytes, bytes, bytes]
Reader = Callable[[Iterator[bytes]], Iterator[Found]]

#: the entry has a link, so its id is not used
_LINKED = b"linked"
_CHUNK_BYTES = 1 << 20
#: an element without an end after this many bytes is dropped: no valid one is that long
_MAX_OPEN_BYTES = 4 << 20
_MAX_SITEMAP_URL_BYTES = 8_192
_SITEMAP_ROOT = re.compile(rb"<(?:([A-Za-z_][\w.-]*):)?([A-Za-z_][\w.-]*)(?=[\s/>])")
_MARKUP = re.compile(rb"<!--|<!\[CDATA\[")
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6}));")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_FEEDS = frozenset((b"rss", b"rdf", b"feed"))
_FEED_ITEM = re.compile(rb"<(?:[\w.-]+:)?(?:item|entry)[\s>]")
_RSS_ELEMENT = re.compile(rb"<(link|guid)((?:\s[^<>]*)?)>([^<]*)(?=<)")
_ATOM_ELEMENT = re.compile(rb"<(?:[\w.-]+:)?(entry|link|id)((?:\s[^<>]*)?)>([^<]*)")
_LASTMOD = re.compile(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?:T[0-9:.]{4,20}(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?\Z")
_PRIORITY = re.compile(r"(?:0?\.[0-9]{1,6}|[01](?:\.[0-9]{0,6})?)\Z")
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
    known: dict[str, Listing | None] = {}
    for raw, lastmod, priority in read(_pieces(start, chunks) if kind else _lines(start, chunks)):
        if len(raw) <= _MAX_SITEMAP_URL_BYTES and (url := _unescape(raw.decode(charset, "replace")).strip()):
            known[url] = _listing(lastmod, priority) if lastmod or priority else known.get(url)
            if len(known) >= limit:
                break
    (content.sitemaps if kind == b"sitemapindex" else content.urls).extend(known)
    if kind == b"urlset":
        content.listings.update((url, listing) for url, listing in known.items() if listing is not None)
    return content


def kind_of_xml(content_type: str | None, body: bytes) -> str | None:
    """`sitemap` or `feed` for XML that is one, by its root element; None for everything else."""
    kind = media_type(content_type)
    if not (kind in ("text/xml", "application/xml") or kind.endswith("+xml")) or kind == "application/xhtml+xml":
        return None
    root = _kind_of(body[:65_536].removeprefix(b"\xef\xbb\xbf"))[0] if b"<" in body[:65_536] else b""
    if root in (b"urlset", b"sitemapindex"):
        return "sitemap"
    return "feed" if root in _FEEDS else None


def _listing(lastmod: bytes, priority: bytes) -> Listing | None:
    date, rank = (part[:64].decode("ascii", "replace").strip() for part in (lastmod, priority))
    found = Listing(
        date if _LASTMOD.match(date) else None, min(1.0, float(rank)) if _PRIORITY.match(rank) else None
    )  # fmt: skip
    return None if found == (None, None) else found


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


def _reader(kind: bytes, prefix: bytes) -> Reader | None:
    if kind in (b"urlset", b"sitemapindex"):
        name = re.escape(prefix) + rb"(url|loc|lastmod|priority)"
        pattern = re.compile(rb"<" + name + rb"(?:\s[^<>]*)?>([^<]*)(?=<)")
        return lambda pieces: _listed(pieces, pattern)
    return {b"": _written, b"rss": _of_rss, b"rdf": _of_rss, b"feed": _of_atom}.get(kind)


def _listed(pieces: Iterator[bytes], pattern: re.Pattern[bytes]) -> Iterator[Found]:
    loc = lastmod = priority = b""
    for name, value in (pair for piece in pieces for pair in pattern.findall(piece)):
        if name == b"lastmod":
            lastmod = value
        elif name == b"priority":
            priority = value
        else:
            if loc:
                yield loc, lastmod, priority
            if loc or name == b"url":
                lastmod = priority = b""
            loc = value if name == b"loc" else b""
    if loc:
        yield loc, lastmod, priority


def _written(pieces: Iterator[bytes]) -> Iterator[Found]:
    for piece in pieces:
        for url in _TEXT_URL.findall(piece):
            yield url, b"", b""


def _of_rss(pieces: Iterator[bytes]) -> Iterator[Found]:
    """Links, and guids that are links: without `isPermaLink` a guid is one."""
    for name, attributes, value in (found for piece in pieces for found in _RSS_ELEMENT.findall(piece)):
        if name == b"link" or (_is_url(value) and _values(attributes).get(b"isPermaLink", b"true") == b"true"):
            yield value, b"", b""


def _of_atom(pieces: Iterator[bytes]) -> Iterator[Found]:
    """Alternate links; the id of an entry that has none, if it is a URL."""
    id = b""
    for name, attributes, value in (found for piece in pieces for found in _ATOM_ELEMENT.findall(piece)):
        if name == b"link":
            values = _values(attributes)
            if values.get(b"rel", b"alternate") == b"alternate" and b"href" in values:
                yield values[b"href"], b"", b""
                id = _LINKED
        elif name == b"entry":
            if _is_url(id):
                yield id, b"", b""
            id = b""
        elif id != _LINKED:
            id = value
    if _is_url(id):
        yield id, b"", b""


def _values(attributes: bytes) -> dict[bytes, bytes]:
    return {name: double or single for name, double, single in _ATTRIBUTE.findall(attributes)}


def _is_url(value: bytes) -> bool:
    return value.lstrip()[:8].lower().startswith((b"http://", b"https://"))


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
