"""Hosts whose bodies, framing or heads are broken or too large."""

from __future__ import annotations

import gzip
import itertools
import struct
import zlib

from curtsy.tinyweb.answers import HTML, After, Answer, Headers, Pages, Script, head, reply
from curtsy.tinyweb.faults.registry import body_of, fault, ordinary

BOMB_MB = 100
LARGE_BYTES = 50_000_000
_BLOCK = (b"<p>" + b"This body has no end in sight. " * 33 + b"</p>\n") * 64
_LOST = "failed connection_lost|failed bad_response|failed host_unreachable"


def _body(title: str) -> bytes:
    return body_of(title, "/one", words="A page with a fault. " * 60)


def _raw(headers: Headers, body: bytes, after: After = After.KEEP) -> Answer:
    return Answer(status=200, wire=head(200, (("Content-Type", HTML), *headers)) + body, after=after)


@fault(
    "body-truncated",
    "/cut promises more bytes than it sends, and closes",
    "incomplete: retried, then a dead letter; the part is never kept as a page",
    ends={"/": "done", "/two": "done", "/cut": _LOST},
)
def _truncated() -> Pages:
    body = _body("Cut")
    cut = _raw((("Content-Length", str(len(body))),), body[: len(body) // 2], After.CLOSE)
    return ordinary("/cut") | {"/cut": cut}


@fault(
    "length-too-long",
    "/long promises 1,000 bytes more than it sends and keeps the connection open",
    "timeout; retried, then a dead letter",
    ends={"/": "done", "/one": "done", "/two": "done", "/long": "failed timeout|failed host_unreachable"},
)
def _too_long() -> Pages:
    body = _body("Long")
    return ordinary("/long") | {"/long": _raw((("Content-Length", str(len(body) + 1000)),), body, After.HANG)}


@fault(
    "length-too-short",
    "/short sends 500 bytes more than it promises",
    "exactly the promised bytes are read, the rest is never taken for the next answer",
    ends={"/": "done", "/short": "done"},
)
def _too_short() -> Pages:
    body = _body("Short")
    return ordinary("/short") | {"/short": _raw((("Content-Length", str(len(body) - 500)),), body)}


@fault(
    "length-odd",
    "Content-Length given twice alike, twice differently, negative, and as a word",
    "alike is done; the others are done or dead letters bad_response, without a hang",
    ends={
        "/": "done",
        "/alike": "done",
        "/different": "done|failed bad_response",
        "/negative": "done|failed bad_response",
        "/word": "done|failed bad_response",
    },
)
def _odd_lengths() -> Pages:
    body = _body("Odd")
    size = str(len(body))
    return ordinary("/alike", "/different", "/negative", "/word") | {
        "/alike": _raw((("Content-Length", size), ("Content-Length", size)), body, After.CLOSE),
        "/different": _raw((("Content-Length", size), ("Content-Length", "7")), body, After.CLOSE),
        "/negative": _raw((("Content-Length", "-5"),), body, After.CLOSE),
        "/word": _raw((("Content-Length", "many"),), body, After.CLOSE),
    }


def _chunks(body: bytes, size: int = 1000) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


@fault(
    "chunked",
    "bodies in chunks, one with extensions and trailers, one beside a Content-Length",
    "all are done",
    ends={"/": "done", "/plain": "done", "/extended": "done"},
)
def _chunked() -> Pages:
    body = _chunks(_body("Chunks"))
    chunked = ("Transfer-Encoding", "chunked")
    extended = body.replace(b"\r\n", b";name=value\r\n", 1) + b"0\r\nX-Trailer: yes\r\n\r\n"
    both = _raw((chunked, ("Content-Length", "5")), body + b"0\r\n\r\n", After.CLOSE)
    return ordinary("/plain", "/extended", "/both") | {
        "/plain": _raw((chunked,), body + b"0\r\n\r\n"),
        "/extended": _raw((chunked,), extended),
        "/both": both,
    }


@fault(
    "chunked-broken",
    "a chunk size that is no number, one beyond all bounds, and a body without its last chunk",
    "retried, then dead letters; bounded memory",
    ends={"/": "done", "/size": _LOST, "/huge": f"{_LOST}|failed timeout", "/unfinished": _LOST},
)
def _chunked_broken() -> Pages:
    body = _chunks(_body("Chunks"))
    chunked: Headers = (("Transfer-Encoding", "chunked"),)
    return ordinary("/size", "/huge", "/unfinished") | {
        "/size": _raw(chunked, body + b"zz\r\nwhat\r\n0\r\n\r\n", After.CLOSE),
        "/huge": _raw(chunked, body + b"ffffffffffffffffff\r\nwhat", After.CLOSE),
        "/unfinished": _raw(chunked, body, After.CLOSE),
    }


def _encoded(coding: str, body: bytes) -> Answer:
    return reply(200, body, HTML, (("Content-Encoding", coding),))


@fault(
    "gzip",
    "bodies in gzip, in deflate as zlib, in deflate without its wrapper, and in no coding at all called identity",
    "all are done",
    ends={"/": "done", "/gzip": "done", "/zlib": "done", "/identity": "done"},
)
def _gzip() -> Pages:
    body = _body("Packed")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return ordinary("/gzip", "/zlib", "/raw", "/identity") | {
        "/gzip": _encoded("gzip", gzip.compress(body, mtime=0)),
        "/zlib": _encoded("deflate", zlib.compress(body)),
        "/raw": _encoded("deflate", packer.compress(body) + packer.flush()),
        "/identity": _encoded("identity", body),
    }


@fault(
    "gzip-broken",
    "plain HTML called gzip, gzip cut off in the middle, gzip with a wrong checksum, and an unknown coding",
    "no crash: dead letters bad_response (or done where the client can still read it)",
    ends={"/": "done", "/plain": _LOST, "/cut": _LOST, "/checksum": _LOST},
)
def _gzip_broken() -> Pages:
    body = _body("Packed")
    packed = gzip.compress(body, mtime=0)
    return ordinary("/plain", "/cut", "/checksum", "/unknown") | {
        "/plain": _encoded("gzip", body),
        "/cut": _encoded("gzip", packed[: len(packed) // 2]),
        "/checksum": _encoded("gzip", packed[:-8] + b"\0\0\0\0" + packed[-4:]),
        "/unknown": _encoded("zigzag", body),
    }


def _bomb(megabytes: int) -> bytes:
    """Zeros in gzip, a thousandth of their size, built without compressing all of them."""
    zeros = bytes(1_000_000)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    # After a full flush the compressor has no state, so one block can be repeated.
    block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(megabytes):
        checksum = zlib.crc32(zeros, checksum)
    start = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    return start + block * megabytes + packer.flush() + struct.pack("<II", checksum, megabytes * len(zeros))


@fault(
    "gzip-bomb",
    f"/bomb is {BOMB_MB} MB of zeros in {BOMB_MB} KB of gzip",
    "aborted at the limit after decompression: skipped too_large, memory bounded",
    ends={"/": "done", "/bomb": "skipped too_large"},
)
def _gzip_bomb() -> Pages:
    return ordinary("/bomb") | {"/bomb": _encoded("gzip", _bomb(BOMB_MB))}


@fault(
    "endless",
    "/endless sends chunks without end, as fast as they are read; /endless-plain the same until the client closes",
    "aborted at the limit: skipped too_large",
    ends={"/": "done", "/endless": "skipped too_large", "/endless-plain": "skipped too_large"},
)
def _endless() -> Pages:
    chunk = b"%x\r\n%s\r\n" % (len(_BLOCK), _BLOCK)
    start = head(200, (("Content-Type", HTML), ("Transfer-Encoding", "chunked")))
    plain = head(200, (("Content-Type", HTML), ("Connection", "close")))
    return ordinary("/endless", "/endless-plain") | {
        "/endless": lambda _: Script(status=200, steps=itertools.chain((start,), itertools.repeat(chunk))),
        "/endless-plain": lambda _: Script(status=200, steps=itertools.chain((plain,), itertools.repeat(_BLOCK))),
    }


@fault(
    "body-50mb",
    "/large is 50 MB of HTML with a correct Content-Length",
    "aborted at the limit, or not read at all: skipped too_large",
    ends={"/": "done", "/large": "skipped too_large"},
)
def _large() -> Pages:
    start = head(200, (("Content-Type", HTML), ("Content-Length", str(LARGE_BYTES))))
    whole, rest = divmod(LARGE_BYTES, len(_BLOCK))
    return ordinary("/large") | {
        "/large": lambda _: Script(
            status=200, steps=itertools.chain((start,), itertools.repeat(_BLOCK, whole), (_BLOCK[:rest],))
        )
    }


@fault(
    "empty",
    "/empty is a 200 with no body, /blank one with white space only",
    "both are done",
    ends={"/": "done", "/empty": "done", "/blank": "done"},
)
def _empty() -> Pages:
    return ordinary("/empty", "/blank") | {"/empty": reply(200, b""), "/blank": reply(200, b" \r\n\t\n")}


@fault(
    "head-odd",
    "heads with a line without colon, a folded line, bytes beyond ASCII, a repeated header and no reason phrase",
    "no crash; readable ones are done",
    ends={"/": "done", "/repeated": "done"},
)
def _head_odd() -> Pages:
    body = _body("Odd head")
    length = f"Content-Type: text/html\r\nContent-Length: {len(body)}\r\n".encode()

    def said(first: bytes, lines: bytes) -> Answer:
        return Answer(status=200, wire=first + b"\r\n" + lines + length + b"\r\n" + body, after=After.CLOSE)

    return ordinary("/no-colon", "/folded", "/latin1", "/repeated", "/no-reason") | {
        "/no-colon": said(b"HTTP/1.1 200 OK", b"This line has none\r\n"),
        "/folded": said(b"HTTP/1.1 200 OK", b"X-Folded: one\r\n  two\r\n"),
        "/latin1": said(b"HTTP/1.1 200 D'accord \xe9", b"X-Name: caf\xe9\r\n"),
        "/repeated": said(b"HTTP/1.1 200 OK", b"X-Same: 1\r\nX-Same: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"),
        "/no-reason": said(b"HTTP/1.1 200", b""),
    }


@fault(
    "head-huge",
    "/line has a header line of 1 MB, /lines has 20,000 header lines",
    "a limit ends it: dead letters bad_response, memory bounded",
    ends={"/": "done", "/line": _LOST, "/lines": _LOST},
)
def _head_huge() -> Pages:
    line = b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 1_000_000 + b"\r\nContent-Length: 0\r\n\r\n"
    lines = b"HTTP/1.1 200 OK\r\n" + b"X-More: and more, and more\r\n" * 20_000 + b"Content-Length: 0\r\n\r\n"
    return ordinary("/line", "/lines") | {
        "/line": Answer(status=200, wire=line, after=After.CLOSE),
        "/lines": Answer(status=200, wire=lines, after=After.CLOSE),
    }


@fault(
    "not-http",
    "/old answers without a status line, /garbage with random bytes, /other with another protocol",
    "dead letters bad_response",
    ends={"/": "done", "/old": _LOST, "/garbage": _LOST, "/other": _LOST},
)
def _not_http() -> Pages:
    return ordinary("/old", "/garbage", "/other") | {
        "/old": Answer(status=0, wire=b"<p>As it was in 1991.</p>", after=After.CLOSE),
        "/garbage": Answer(status=0, wire=bytes(range(256)) * 4, after=After.CLOSE),
        "/other": Answer(status=0, wire=b"220 mail.tinyweb.test ESMTP ready\r\n", after=After.CLOSE),
    }
