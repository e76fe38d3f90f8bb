"""Content codings, decoded while the body streams in, so that the size limit applies to the decoded body.

libcurl could do this, but it accepts a gzip stream that ends early; a truncated page must never be stored as complete.
This is also cheaper: isal inflates about twice as fast as zlib.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

import brotli
from isal import isal_zlib

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ACCEPT_ENCODING = "gzip, br, zstd, deflate"

_ERRORS: tuple[Any, ...] = (isal_zlib.error, zstd.ZstdError, EOFError, ValueError)

#: a response with more nested codings is treated as an attack
_MAX_STACK = 5
#: a gzip stream is kept if the decoded body has this many times its size: ours has a third of most pages
_SAVED = 2
#: bytes that are kept before anything was decoded
_KEPT_EARLY = 65_536


class TooLarge(Exception):
    """The decoded body is over the limit."""


class BadCoding(Exception):
    """The bytes are not what Content-Encoding says."""


class Decoder(Protocol):
    """Decodes one coding."""

    def feed(self, data: bytes, limit: int) -> bytes:
        """The decoded `data`. Raises TooLarge if it is over `limit` bytes, BadCoding if it cannot be decoded."""

    def complete(self) -> bool:
        """Whether the stream is complete, or empty."""

    def gzipped(self) -> bytes:
        """The bytes that were fed, if they are one complete gzip member that was to be kept and saves space."""


class _KeepsNothing:
    def gzipped(self) -> bytes:
        return b""


class _Framed(_KeepsNothing):
    """gzip, deflate and zstd: objects with zlib's interface, one for each concatenated member."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._stream: Any = None
        self._head = b""
        self._members = 0
        #: bytes follow the last member
        self._padded = False

    def feed(self, data: bytes, limit: int) -> bytes:
        out = []
        while data:
            if self._stream is None and not self._open(data):
                break
            data, self._head = self._head + data, b""
            try:
                piece = self._stream.decompress(data, limit + 1)
            except _ERRORS as error:
                raise BadCoding(f"{self._coding}: {error}") from error
            limit -= len(piece)
            if limit < 0:
                raise TooLarge
            out.append(piece)
            data = self._rest()
        return out[0] if len(out) == 1 else b"".join(out)

    def _open(self, data: bytes) -> bool:
        """Begins a member; False while there are too few bytes to decide, or after the last member (padding)."""
        head = self._head + data
        if self._members and not self._is_member(head):
            self._padded = True
            return False
        if self._coding == "deflate" and len(head) < 2:
            self._head = head
            return False
        self._stream = self._new(head)
        return True

    def _is_member(self, head: bytes) -> bool:
        magic = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}.get(self._coding)
        return magic is not None and head.startswith(magic)

    def _new(self, head: bytes) -> Any:
        if self._coding == "zstd":
            return zstd.ZstdDecompressor()
        if self._coding == "gzip":
            return isal_zlib.decompressobj(wbits=31)
        # By the RFC, "deflate" means zlib, but many servers send it raw: the two header bytes decide.
        is_zlib = head[0] & 0x0F == 8 and (head[0] << 8 | head[1]) % 31 == 0
        return isal_zlib.decompressobj(wbits=15 if is_zlib else -15)

    def _rest(self) -> bytes:
        if not self._stream.eof:
            return b""
        rest: bytes = self._stream.unused_data
        self._stream = None
        self._members += 1
        return rest

    def complete(self) -> bool:
        return self._stream is None and not self._head


class _Kept(_Framed):
    """gzip whose bytes are kept as well."""

    def __init__(self) -> None:
        super().__init__("gzip")
        self._fed: list[bytes] | None = []
        self._size = self._decoded = 0

    def feed(self, data: bytes, limit: int) -> bytes:
        decoded = super().feed(data, limit)
        self._size += len(data)
        self._decoded += len(decoded)
        if self._fed is not None:
            self._fed.append(data)
            # A stream may be longer than what it decodes to, without end.
            if self._size > self._decoded // _SAVED + _KEPT_EARLY:
                self._fed = None
        return decoded

    def gzipped(self) -> bytes:
        single = self.complete() and self._members == 1 and not self._padded
        if self._fed is None or not single or self._size * _SAVED > self._decoded:
            return b""
        return b"".join(self._fed)


class _Brotli(_KeepsNothing):
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self._begun = False

    def feed(self, data: bytes, limit: int) -> bytes:
        if self._begun and self._stream.is_finished():
            return b""
        self._begun = True
        out = []
        while True:
            try:
                piece = self._stream.process(data, output_buffer_limit=limit + 1)
            except brotli.error as error:
                raise BadCoding(f"br: {error}") from error
            limit -= len(piece)
            if limit < 0:
                raise TooLarge
            out.append(piece)
            if self._stream.is_finished() or self._stream.can_accept_more_data():
                return out[0] if len(out) == 1 else b"".join(out)
            data = b""

    def complete(self) -> bool:
        return not self._begun or self._stream.is_finished()


class _Stack(_KeepsNothing):
    """Nested codings, outermost first."""

    def __init__(self, decoders: list[Decoder]) -> None:
        self._decoders = decoders

    def feed(self, data: bytes, limit: int) -> bytes:
        for decoder in self._decoders:
            data = decoder.feed(data, limit)
        return data

    def complete(self) -> bool:
        return all(decoder.complete() for decoder in self._decoders)


def decoder_for(content_encoding: str, keep_gzip: bool = False) -> Decoder | None:
    """The decoder for a Content-Encoding value; None if there is nothing to decode. `keep_gzip`: if the value is only
    gzip, it keeps the bytes as well.

    An unknown coding (`utf-8` and `none` occur on real sites) leaves the body unchanged, as in browsers.
    """
    if keep_gzip and content_encoding.strip().lower() == "gzip":
        return _Kept()
    words = [word.strip().lower() for word in content_encoding.split(",")]
    codings = [word.removeprefix("x-") for word in words if word not in ("", "identity")]
    if not codings or any(coding not in ("gzip", "deflate", "br", "zstd") for coding in codings):
        return None
    if len(codings) > _MAX_STACK:
        raise BadCoding(f"{len(codings)} nested content codings")
    decoders: list[Decoder] = [_Brotli() if coding == "br" else _Framed(coding) for coding in reversed(codings)]
    return decoders[0] if len(decoders) == 1 else _Stack(decoders)
