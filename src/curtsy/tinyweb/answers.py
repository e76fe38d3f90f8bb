"""The server's answers: complete answers as bytes, or scripted ones with bytes and pauses."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

REASONS = {
    200: "OK", 204: "No Content", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
    307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
    404: "Not Found", 410: "Gone", 429: "Too Many Requests", 451: "Unavailable For Legal Reasons",
    500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip

HTML = "text/html; charset=utf-8"

Headers = tuple[tuple[str, str], ...]


class After(Enum):
    """What happens to the connection after the answer."""

    KEEP = "keep"
    CLOSE = "close"
    RESET = "reset"
    #: send nothing more and wait until the client closes
    HANG = "hang"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete answer, head and body."""

    status: int
    wire: bytes
    after: After = After.KEEP
    etag: bytes | None = None
    #: Last-Modified, in seconds since 1970
    modified_s: int | None = None
    #: the pause that the answer asks for (Retry-After)
    hold_s: float = 0.0

    @property
    def head(self) -> bytes:
        return self.wire[: self.wire.find(b"\r\n\r\n") + 4]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """An answer in steps: bytes are written (and drained), numbers are pauses in seconds."""

    status: int
    steps: Iterable[bytes | float]
    after: After = After.KEEP


@dataclass(slots=True)
class Request:
    """One request, for handlers."""

    host: str
    method: str
    target: str
    head: bytes
    #: the server's port, for answers that refer to the server itself
    port: int
    #: 1 for the first request of its connection
    turn: int
    _headers: dict[str, str] | None = field(default=None, repr=False)

    def header(self, name: str) -> str | None:
        """The value of a header line (lower-case name), or None."""
        if self._headers is None:
            self._headers = dict(_header_lines(self.head))
        return self._headers.get(name)


Handler = Callable[[Request], "Answer | Script"]
#: path (with query) -> its answer; "*" answers every other path
Pages = dict[str, "Answer | Handler"]


def _header_lines(head: bytes) -> Iterator[tuple[str, str]]:
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip().lower(), value.strip()


def head(status: int, headers: Headers) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {status} {REASONS.get(status, 'Odd')}\r\n{lines}\r\n".encode()


def reply(
    status: int,
    body: bytes,
    content_type: str | None = HTML,
    headers: Headers = (),
    *,
    after: After = After.KEEP,
    hold_s: float = 0.0,
) -> Answer:
    """Return a valid answer with a correct Content-Length."""
    typed: Headers = (("Content-Type", content_type),) if content_type is not None else ()
    lines = (*typed, ("Content-Length", str(len(body))), *headers)
    return Answer(status=status, wire=head(status, lines) + body, after=after, hold_s=hold_s)


def tagged(body: bytes, content_type: str = HTML, headers: Headers = (), *, version: str | None = None) -> Answer:
    """Return a 200 with an ETag (of its version, or else of its bytes); the server answers 304 to If-None-Match."""
    etag = f'"{zlib.crc32(body if version is None else version.encode()):08x}"'
    answer = reply(200, body, content_type, (("ETag", etag), *headers))
    return Answer(status=200, wire=answer.wire, etag=etag.encode())


def text(body: str | bytes, status: int = 200, content_type: str = "text/plain; charset=utf-8") -> Answer:
    return reply(status, body.encode() if isinstance(body, str) else body, content_type)


def html(body: str, status: int = 200, headers: Headers = ()) -> Answer:
    return reply(status, body.encode(), HTML, headers)


def redirect(location: str, status: int = 302, headers: Headers = ()) -> Answer:
    return reply(status, b"Moved.\n", "text/plain", (("Location", location), *headers))


NOT_FOUND = reply(404, b"<!doctype html><title>Not found</title><p>There is nothing here.</p>")
