"""Reads an HTTP/1 response whose head has lines that libcurl refuses. No I/O.

A line without a colon and an invalid Content-Length are dropped, as browsers do; everything else is read by RFC 9112. A
malformed status line, a NUL or a carriage return within a line stay errors, as in browsers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain

_STATUS_LINE = re.compile(rb"HTTP/1\.[0-9] [0-9]{3}(?: |\Z)")
_HEADER = re.compile(rb"[^:\s][^:]*:")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_FORBIDDEN = re.compile(rb"\0|\r(?!\n|\Z)")
_LENGTH = re.compile(r"[0-9]{1,18}\Z")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\Z")
#: a longer head, or a longer line between two chunks, is no response
_MAX_HEAD_BYTES = 262_144
_MAX_CHUNK_LINE_BYTES = 8_192


class BadResponse(Exception):
    """It is not an HTTP/1 response. The message is for display."""


class RawResponse:
    """Feed it bytes: it appends the lines of the head to `lines`, as libcurl's callback gets them, and passes the body
    on. `body` returns None, or a number to end the transfer.
    """

    __slots__ = ("_at", "_body", "_chunked", "_held", "_left", "_lines", "_searched", "_step", "is_complete")

    def __init__(self, lines: list[bytes], body: Callable[[bytes], int | None]) -> None:
        self._lines = lines
        self._body = body
        #: bytes that were not used yet begin at `_at`: cutting them off after each chunk would copy the rest each time
        self._held = b""
        self._at = 0
        #: no head ends before it
        self._searched = 0
        self._chunked = False
        #: bytes of the body or chunk that are missing; None: it ends with the connection
        self._left: int | None = None
        self._step: Callable[[], bool] = self._head
        self.is_complete = False

    def feed(self, data: bytes) -> bool:
        """Whether more bytes are wanted. Raises BadResponse."""
        self._held += data
        while self._step():
            pass
        self._held, self._searched, self._at = self._held[self._at :], max(0, self._searched - self._at), 0
        return not self.is_complete

    def end(self) -> None:
        """The connection was closed. Raises EOFError if something is missing."""
        if self._step == self._pass_on and self._left is None:
            self.is_complete = True
        if not self.is_complete:
            raise EOFError("the response ends early")

    def _head(self) -> bool:
        end = _HEAD_END.search(self._held, max(self._at, self._searched))
        if end is None:
            self._searched = max(self._at, len(self._held) - 3)
            if len(self._held) - self._at > _MAX_HEAD_BYTES:
                raise BadResponse("the head is too long")
            return False
        head, self._at = self._held[self._at : end.start()], end.end()
        if _FORBIDDEN.search(head) is not None:
            raise BadResponse("a header has a NUL or a carriage return")
        first, *rest = (line.removesuffix(b"\r") for line in head.split(b"\n"))
        if _STATUS_LINE.match(first) is None:
            raise BadResponse("no status line that can be read")
        status = int(first[9:12])
        if 100 <= status < 200:
            return True
        headers = _headers(rest)
        length = _length(headers)
        kept = (name + b": " + value for name, value in headers if name.lower() != b"content-length")
        sized = () if length is None else (b"Content-Length: %d" % length,)
        self._lines += [line + b"\r\n" for line in chain((first,), kept, sized, (b"",))]
        self._chunked = any(
            name.lower() == b"transfer-encoding" and b"chunked" in value.lower() for name, value in headers
        )
        self._left = None if self._chunked else length
        self._step = self._chunk_line if self._chunked else self._pass_on
        self.is_complete = status in (204, 304) or self._left == 0
        return not self.is_complete

    def _pass_on(self) -> bool:
        data = self._held[self._at :] if self._left is None else self._held[self._at : self._at + self._left]
        self._at += len(data)
        if self._left is not None:
            self._left -= len(data)
        if data and self._body(data) is not None:
            self.is_complete = True
            return False
        if self._left != 0:
            return False
        if self._chunked:
            self._step = self._chunk_end
            return True
        self.is_complete = True
        return False

    def _chunk_line(self) -> bool:
        line = self._line()
        if line is None:
            return False
        found = _CHUNK_SIZE.match(line)
        if found is None:
            raise BadResponse("a chunk has no size")
        self._left = int(found[1], 16)
        if self._left == 0:
            # Trailers say nothing that is used.
            self.is_complete = True
            return False
        self._step = self._pass_on
        return True

    def _chunk_end(self) -> bool:
        line = self._line()
        if line is None:
            return False
        if line.strip(b"\r"):
            raise BadResponse("a chunk is longer than its size")
        self._step = self._chunk_line
        return True

    def _line(self) -> bytes | None:
        end = self._held.find(b"\n", self._at)
        if end < 0:
            if len(self._held) - self._at > _MAX_CHUNK_LINE_BYTES:
                raise BadResponse("the line before a chunk is too long")
            return None
        line, self._at = self._held[self._at : end], end + 1
        return line


def _headers(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    """The headers that are well-formed. A line that begins with a space continues the one before, even if that one was
    dropped.
    """
    found: list[tuple[bytes, bytes] | None] = []
    for line in lines:
        if line[:1] in (b" ", b"\t"):
            if found and found[-1] is not None:
                name, value = found[-1]
                found[-1] = (name, (value + b" " + line.strip()).strip())
            continue
        if _HEADER.match(line) is None:
            found.append(None)
            continue
        name, _, value = line.partition(b":")
        found.append((name.rstrip(), value.strip(b" \t")))
    return [pair for pair in found if pair is not None]


def _length(headers: list[tuple[bytes, bytes]]) -> int | None:
    """The announced length; None: no length, or not a number. Raises BadResponse if lengths contradict."""
    given = [value.decode("latin-1") for name, value in headers if name.lower() == b"content-length"]
    values = {part.strip(" \t") for value in given for part in value.split(",")}
    if len(values) > 1:
        raise BadResponse("it announces several lengths")
    numbers = [int(value) for value in values if _LENGTH.match(value)]
    return numbers[0] if numbers else None
