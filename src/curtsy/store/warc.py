"""WARC 1.1 by hand: warcio's writer costs as much as all other work for a page. Its reader verifies our records in
tests.

Each record is a gzip member of its own. Bodies are decoded, so `Content-Encoding` and `Transfer-Encoding` are renamed
`X-Archive-Orig-*` and `Content-Length` is that of the stored body. A body that arrived as gzip is stored as it arrived;
reading its record decodes it, so that nothing else sees the difference (decision 174). Per fetched URL: request,
metadata, resource (the screenshot of a browser's visit, if requested), response (or revisit), in this order: so the end
of the response is the end of all records of the URL. The document that a browser made of a page is its response; the
metadata says so.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from curtsy import __version__
from curtsy.core import clock
from curtsy.core.errors import Damaged
from curtsy.core.model import BodyRef, Page, hot_value
from curtsy.store.gzip_members import BROKEN, compressed, content, data_size, partly_stored, stored

_GZIP = 31
#: behind every record
_END = b"\r\n\r\n"
_RENAMED = frozenset({"content-encoding", "transfer-encoding"})
_PAYLOAD_DIGEST = "WARC-Payload-Digest"
#: in its place where the body is stored as gzip, which has another digest
_DECODED_DIGEST = "X-Decoded-Payload-Digest"
_DECODED_LINE, _PAYLOAD_LINE = f"\r\n{_DECODED_DIGEST}: ".encode(), f"\r\n{_PAYLOAD_DIGEST}: ".encode()
_CODING_LINE = re.compile(rb"\r\n(?=content-encoding:)", re.IGNORECASE)
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_PROFILE = "http://netpreserve.org/warc/1.1/revisit/"
#: characters that end a header line, for at least some readers
_BREAKERS = str.maketrans({"\r": " ", "\n": " ", "\0": " ", "\x0b": " ", "\x0c": " "})

Headers = Sequence[tuple[str, str]]


@hot_value()
class WarcItem:
    """One answered request, to be written."""

    url: str
    fetched_ms: int
    status: int
    #: as received, latin-1
    headers: Headers
    #: after content decoding
    body: bytes
    #: hex digest of the body
    sha256: str
    #: the body as it arrived, one gzip member: it is stored in its place; empty: the body is stored
    gzipped: bytes = b""
    #: request line and headers as sent, without credentials
    request_head: bytes = b""
    address: str | None = None
    #: `http/1.1`, `h2`; empty if unknown
    protocol: str = ""
    #: facts for the metadata record: crawl, depth, ...
    facts: Headers = ()
    #: (URL, fetched_ms) of the page whose body is the same: a revisit record is written, without the body
    same_as: tuple[str, int] | None = None
    #: why the body is incomplete: `length`, `time`, `disconnect`
    truncated: str | None = None
    #: PNG of a browser's visit: a resource record under `urn:view:<url>`
    picture: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WarcRecord:
    """One record, read back."""

    #: response, revisit, request, metadata, warcinfo
    type: str
    url: str | None
    #: the WARC headers by lower-case name
    fields: dict[str, str]
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def warcinfo(name: str) -> bytes:
    """The first record of a segment."""
    body = (
        f"software: Curtsy/{__version__}\r\nformat: WARC File Format 1.1\r\n"
        "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n"
        "robots: obey\r\n"
    ).encode()
    fields = (
        f"WARC/1.1\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: {_ids.take()[0]}\r\n"
        f"WARC-Date: {warc_date(clock.now_ms())}\r\nWARC-Filename: {name}\r\n"
        f"Content-Type: application/warc-fields\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return with_block_digest(_member(fields.encode(), body))


class Packed(NamedTuple):
    """The records of an item, compressed."""

    #: request, metadata, resources
    before: bytes
    #: the response or revisit record
    response: bytes


def records(item: WarcItem) -> Packed:
    response_id, request_id, metadata_id = _ids.take()
    date = warc_date(item.fetched_ms)
    target = _line(item.url)
    shared = f"WARC-Target-URI: {target}\r\nWARC-Date: {date}\r\n"
    address = f"WARC-IP-Address: {item.address}\r\n" if item.address else ""
    before = b""
    if item.request_head:
        block = item.request_head if item.request_head.endswith(b"\r\n\r\n") else item.request_head + b"\r\n\r\n"
        fields = (
            f"WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: {request_id}\r\n{shared}{address}"
            f"WARC-Concurrent-To: {response_id}\r\nContent-Type: application/http;msgtype=request\r\n"
            f"Content-Length: {len(block)}\r\n\r\n"
        )
        before = _member(fields.encode(), block)
    if item.facts:
        block = _lines(item.facts).encode("utf-8", "replace") + b"\r\n"
        fields = (
            f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: {metadata_id}\r\n{shared}"
            f"WARC-Concurrent-To: {response_id}\r\nContent-Type: application/warc-fields\r\n"
            f"Content-Length: {len(block)}\r\n\r\n"
        )
        before += _member(fields.encode(), block)
    if item.picture is not None:
        before += _resource("view", "image/png", item.picture, f"{response_id[:-2]}3>", response_id, target, date)
    return Packed(before, _response(item, response_id, shared + address))


def _resource(what: str, kind: str, data: bytes, own_id: str, response_id: str, target: str, date: str) -> bytes:
    fields = (
        f"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: {own_id}\r\n"
        f"WARC-Target-URI: urn:{what}:{target}\r\nWARC-Date: {date}\r\nWARC-Concurrent-To: {response_id}\r\n"
        f"WARC-Payload-Digest: sha256:{hashlib.sha256(data).hexdigest()}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    return _member(fields.encode(), data)


def _response(item: WarcItem, record_id: str, shared: str) -> bytes:
    kind, extra, gzipped = "response", "", item.gzipped
    body = gzipped or item.body
    if item.same_as is not None:
        kind, body, gzipped = "revisit", b"", b""
        profile = "server-not-modified" if item.status == 304 else "identical-payload-digest"
        extra = (
            f"WARC-Profile: {_PROFILE}{profile}\r\nWARC-Refers-To-Target-URI: {_line(item.same_as[0])}\r\n"
            f"WARC-Refers-To-Date: {warc_date(item.same_as[1])}\r\n"
        )
    if item.truncated:
        extra += f"WARC-Truncated: {item.truncated}\r\n"
    if item.protocol:
        extra += f"WARC-Protocol: {item.protocol}\r\n"
    head = _http_head(item, gzipped)
    digest = _DECODED_DIGEST if gzipped else _PAYLOAD_DIGEST
    fields = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {record_id}\r\n{shared}{extra}"
        f"{digest}: sha256:{item.sha256}\r\nContent-Type: application/http;msgtype=response\r\n"
        f"Content-Length: {len(head) + len(body)}\r\n\r\n"
    ).encode()
    # All parts are joined at once: a body is copied once.
    return partly_stored(fields + head, gzipped, _END) if gzipped else compressed(b"".join((fields, head, body, _END)))


def _http_head(item: WarcItem, gzipped: bytes) -> bytes:
    length = str(len(item.body))
    known_lines = _known_coded_lines if gzipped else _known_lines
    if len(known_lines) > _MAX_KNOWN_LINES:
        known_lines.clear()
    lines = [f"HTTP/1.1 {item.status} {_PHRASES.get(item.status, 'Unknown')}\r\n"]
    for pair in item.headers:
        line = known_lines.get(pair)
        if line is None:
            line = _head_line(pair, coded=bool(gzipped))
            if len(line) <= _MAX_KNOWN_BYTES:
                known_lines[pair] = line
        if line:
            lines.append(line)
        elif pair[1].strip() != length:
            lines.append(_lines([("X-Archive-Orig-" + pair[0], pair[1])]))
    # A revisit (and an answer to HEAD or 304) has no body of its own; its length would mislead readers.
    lines.append(f"Content-Length: {len(gzipped) or length}\r\n\r\n" if item.same_as is None else "\r\n")
    return "".join(lines).encode("latin-1", "replace")


#: most headers are the same from page to page: their lines are cached
_known_lines: dict[tuple[str, str], str] = {}
_known_coded_lines: dict[tuple[str, str], str] = {}
_MAX_KNOWN_LINES, _MAX_KNOWN_BYTES = 4096, 200


def _head_line(pair: tuple[str, str], *, coded: bool) -> str:
    """A header as it is stored; empty for a length, which is that of the stored body."""
    name, value = pair
    low = name.lower()
    if low == "content-length":
        return ""
    renamed = low in _RENAMED and not (coded and low == "content-encoding")
    return _lines([("X-Archive-Orig-" + name, value) if renamed else pair])


def _lines(pairs: Headers) -> str:
    """Header lines; no value sent by the server can begin another line."""
    text = "".join([f"{name}: {value}\r\n" for name, value in pairs])
    if text.count("\n") == text.count("\r") == len(pairs) and "\0" not in text:
        return text
    return "".join([f"{_line(name).replace(':', '')}: {_line(value)}\r\n" for name, value in pairs])


def _line(value: str) -> str:
    return value.translate(_BREAKERS) if not value.isprintable() else value


class _Ids:
    """UUIDs of version 4: the first part is random per process, the rest counts up from a random number.

    The last digit tells the records of one response apart.
    """

    def __init__(self) -> None:
        self.draw()

    def draw(self) -> None:
        digits = os.urandom(16).hex()
        self._start = f"<urn:uuid:{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-"
        self._next = int(digits[20:31], 16)

    def take(self) -> tuple[str, str, str]:
        """Three unique ids."""
        stem = f"{self._start}{self._next:011x}"
        self._next = (self._next + 1) & 0xFFFFFFFFFFF
        return stem + "0>", stem + "1>", stem + "2>"


_ids = _Ids()
os.register_at_fork(after_in_child=_ids.draw)


@lru_cache(64)
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def warc_date(ms: int) -> str:
    return f"{_second(ms // 1000)}.{ms % 1000:03}Z"


#: records are searched in parts of this number of bytes
_PART = 16_384


def blank(length: int) -> bytes:
    """An empty record of exactly this length, which replaces deleted records.

    A gzip member of stored blocks with padded content: the records that follow keep their places.
    """
    fields = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: {_ids.take()[0]}\r\n"
        f"WARC-Date: {warc_date(clock.now_ms())}\r\nContent-Type: text/plain\r\nContent-Length: "
    )
    # The length has ten digits whatever it is.
    padding = data_size(length) - len(fields) - 10 - 4 - len(_END)
    if padding < 0:
        raise ValueError(f"{length} bytes are too few for a record")
    return stored(f"{fields}{padding:010}\r\n\r\n".encode() + b" " * padding + _END)


def begins(data: bytes) -> int:
    """The offset in these complete records at which those of the next response begin: its request, metadata and
    screenshot.
    """
    start = at = 0
    view = memoryview(data)
    while at < len(data):
        member, head = zlib.decompressobj(_GZIP), b""
        try:
            while not member.eof and at < len(data):
                part = view[at : at + _PART]
                found = member.decompress(part)
                head = head or found
                at += len(part) - len(member.unused_data)
        except zlib.error as error:
            raise Damaged(f"A stored record cannot be decompressed: {error}.") from error
        if not member.eof:
            raise Damaged("A stored record is incomplete.")
        kind = head.partition(b"WARC-Type: ")[2].partition(b"\r\n")[0]
        if kind not in (b"request", b"metadata", b"resource"):
            start = at
    return start


def with_block_digest(member: bytes) -> bytes:
    """The record with a digest of its whole block, for files that leave this deployment.

    Stored records have only a digest of their body: a second pass over every body would cost 5 % of a crawl's CPU.
    """
    head, _, rest = _opened(member).partition(b"\r\n\r\n")
    digest = hashlib.sha256(rest[: -len(_END)]).hexdigest()
    return compressed(b"%s\r\nWARC-Block-Digest: sha256:%s\r\n\r\n%s" % (head, digest.encode(), rest))


def revisit(record: WarcRecord, page: Page) -> bytes:
    """A record that says: the response of this page was the same as in `record`, which another crawl stored."""
    item = WarcItem(
        url=page.url, fetched_ms=page.fetched_ms, status=page.status, headers=record.headers, body=b"",
        sha256=page.sha256 or "", same_as=(record.url or page.url, ms_of(record.fields.get("warc-date", ""))),
    )  # fmt: skip
    shared = f"WARC-Target-URI: {_line(page.url)}\r\nWARC-Date: {warc_date(page.fetched_ms)}\r\n"
    return with_block_digest(_response(item, _ids.take()[0], shared))


def ms_of(date: str) -> int:
    """The inverse of `warc_date`."""
    return round(datetime.fromisoformat(date).timestamp() * 1000)


def _member(fields: bytes, block: bytes) -> bytes:
    return compressed(fields + block + _END)


def _opened(member: bytes) -> bytes:
    """The bytes of a stored record with its body decoded: what would be stored if the body had not arrived as gzip."""
    try:
        data = content(member)
        end = data.find(b"\r\n\r\n")
        head = data[:end]
        return _decoded(head, data[end + 4 :]) if _DECODED_LINE in head else data
    except BROKEN as error:
        raise Damaged(f"A stored record cannot be decompressed: {error}.") from error


def _decoded(fields: bytes, block: bytes) -> bytes:
    http, _, coded = block.removesuffix(_END).partition(b"\r\n\r\n")
    body = content(coded)
    http = _with_length(_CODING_LINE.sub(b"\r\nX-Archive-Orig-", http, count=1), len(body)) + b"\r\n\r\n"
    fields = _with_length(fields.replace(_DECODED_LINE, _PAYLOAD_LINE), len(http) + len(body))
    return b"".join((fields, b"\r\n\r\n", http, body, _END))


def _with_length(head: bytes, length: int) -> bytes:
    """These header lines with another Content-Length, which is the last one."""
    return b"%s\r\nContent-Length: %d" % (head.rpartition(b"\r\n")[0], length)


def read(member: bytes, ref: BodyRef | None = None) -> WarcRecord:
    """Read one record from its gzip member; Damaged, with its location, if it is incomplete or its digest differs."""
    try:
        return _read(member)
    except Damaged as error:
        if ref is None:
            raise
        raise Damaged(f"{error} It is in segment {ref.segment} at byte {ref.offset}.") from error


def _read(member: bytes) -> WarcRecord:
    head, _, rest = _opened(member).partition(b"\r\n\r\n")
    fields = {name.lower(): value for name, value in _pairs(head.decode("utf-8", "replace"))}
    told = fields.get("content-length", "")
    length = int(told) if told.isdecimal() else -1
    if not head.startswith(b"WARC/1.") or length < 0 or rest[length:] != _END:
        raise Damaged("A stored record is incomplete or not a WARC record.")
    block, status = rest[:length], 0
    headers: tuple[tuple[str, str], ...] = ()
    if fields.get("content-type", "").startswith("application/http"):
        http, _, block = block.partition(b"\r\n\r\n")
        lines = http.decode("latin-1")
        headers = _pairs(lines)
        word = lines.partition("\r\n")[0].split(" ")
        status = int(word[1]) if len(word) > 1 and word[1].isdigit() else 0
    kind = fields.get("warc-type", "")
    digest = fields.get("warc-payload-digest")
    if kind == "response" and digest and digest != f"sha256:{hashlib.sha256(block).hexdigest()}":
        raise Damaged(f"The stored body of {fields.get('warc-target-uri')} does not have its digest {digest}.")
    return WarcRecord(
        type=kind, url=fields.get("warc-target-uri"), fields=fields, status=status, headers=headers, body=block
    )


def _pairs(head: str) -> tuple[tuple[str, str], ...]:
    lines = head.split("\r\n")[1:]
    return tuple((name, value.strip(" ")) for name, colon, value in (line.partition(":") for line in lines) if colon)
