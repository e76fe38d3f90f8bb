"""An HTTP/1.1 server for many hosts on one port, with answers that are prepared in advance.

The Host header selects the site. The server must not be the bottleneck of a measurement: a request for a known page
costs one dictionary lookup, one write to the socket and one line of the log.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from typing import cast

from curtsy.tinyweb.accesslog import FLUSH_S, AccessLog
from curtsy.tinyweb.answers import After, Answer, Request, Script, head, text
from curtsy.tinyweb.web import CONTROL, Site, Web

MAX_HEAD_BYTES = 65536
_time_ns = time.time_ns
#: offsets in struct tcp_info: milliseconds since the last data, and since any packet; kernel ticks of 1 to 10 ms
_TCP_INFO = getattr(socket, "TCP_INFO", None)
_SINCE_DATA, _SINCE_ANYTHING, _INFO_BYTES = 52, 56, 60
#: for data that is read sooner after its arrival, our own clock is more exact
_LATE_MS = 20


class Connection(asyncio.Protocol):
    """One client connection: requests are answered one after the other."""

    __slots__ = (
        "_answering", "_buffer", "_ended", "_fd", "_hold_us", "_host", "_loop", "_method", "_number", "_paused",
        "_script", "_sent", "_server", "_socket", "_start", "_status", "_target", "_transport", "_turn", "_whole",
    )  # fmt: skip

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = server.loop
        self._buffer = b""
        self._answering = False
        self._paused = False
        self._turn = 0
        #: when the client closed its side
        self._ended: int | None = None
        self._script: Iterator[bytes | float] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._fd: int = transport.get_extra_info("socket").fileno()
        # Only for getsockopt: the descriptor belongs to the transport.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=self._fd)
        # With a limit of 0, resume_writing is called when the very last byte has gone to the socket.
        self._transport.set_write_buffer_limits(0)
        self._server.connections += 1
        self._number = self._server.connections
        self._server.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._socket.detach()
        self._server.open.discard(self)
        if self._answering:
            self._log(self._ended or _time_ns())

    def eof_received(self) -> bool:
        self._ended = self._arrival(_SINCE_ANYTHING)
        return False

    def _arrival(self, since: int) -> int:
        """Return when the last data arrived: a process that was not scheduled reads it later."""
        now = _time_ns()
        if _TCP_INFO is not None:
            info = self._socket.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _INFO_BYTES)
            ago_ms = int.from_bytes(info[since : since + 4], sys.byteorder)
            if ago_ms >= _LATE_MS:
                return now - ago_ms * 1_000_000
        return now

    def data_received(self, data: bytes) -> None:
        if self._answering:
            self._buffer += data
            return
        start = self._arrival(_SINCE_DATA)
        if not self._buffer and data.find(b"\r\n\r\n") == len(data) - 4:
            self._request(data, start)
        else:
            self._buffer += data
            self._next(start)

    def _next(self, start: int | None = None) -> None:
        """Take requests from the buffer, one at a time."""
        while not self._answering and self._buffer and not self._transport.is_closing():
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > MAX_HEAD_BYTES or not self._buffer[:1].isalpha():
                    # A TLS handshake, or not a request.
                    self._transport.abort()
                return
            request, self._buffer = self._buffer[: end + 4], self._buffer[end + 4 :]
            self._request(request, start or _time_ns())
            start = None

    def _request(self, data: bytes, start: int) -> None:
        self._start = start
        self._turn += 1
        self._status = self._sent = self._hold_us = 0
        parts = data[: data.find(b"\r\n")].split(b" ")
        at = data.find(b"\r\nHost: ")
        host = data[at + 8 : data.find(b"\r\n", at + 8)] if at >= 0 else _host(data)
        site = self._server.sites.get(host) or self._server.site(host)
        self._answering = True
        self._host = site.name if site.name == host.decode("latin-1") else _log_name(host)
        if len(parts) != 3:
            self._method, self._target = "-", "-"
            self._answer(text("Bad request.\n", 400), last=True)
            return
        method, target, version = parts
        self._method = method.decode("latin-1")
        self._target = _printable(target)
        found = site.pages.get(target)
        if found is None:
            found = site.find(target.decode("latin-1"))
        if isinstance(found, Answer):
            answer = found
        else:
            request = Request(self._host, self._method, self._target, data, self._server.port, self._turn)
            said = found(request)
            if isinstance(said, Script):
                self._begin(said)
                return
            answer = said
        if answer.etag is not None or answer.modified_s is not None:
            answer = _conditional(answer, data)
        self._answer(answer, last=version != b"HTTP/1.1" or b"onnection: close" in data)

    def _answer(self, answer: Answer, *, last: bool = False) -> None:
        self._status = answer.status
        if answer.hold_s:
            self._hold_us = _time_ns() // 1000 + int(answer.hold_s * 1_000_000)
        self._whole = answer.after if not last else After.CLOSE
        wire = answer.wire if self._method != "HEAD" else answer.head
        if self._write(wire):
            self._finish()

    def _write(self, data: bytes) -> bool:
        """Return True if all of it was written to the socket at once, so that the end of a request is exact."""
        self._sent += len(data)
        try:
            written = os.write(self._fd, data)
        except BlockingIOError:
            written = 0
        except OSError:
            self._transport.abort()
            return False
        if written == len(data):
            return True
        self._transport.write(memoryview(data)[written:])
        return not self._paused

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._answering:
            if self._script is not None:
                self._loop.call_soon(self._step)
            else:
                self._finish()

    def _begin(self, script: Script) -> None:
        self._status = script.status
        self._whole = script.after
        self._script = iter(script.steps)
        self._step()

    def _step(self) -> None:
        if not self._answering or self._script is None or self._transport.is_closing():
            return
        step = next(self._script, None)
        if step is None:
            self._script = None
            self._finish()
        elif isinstance(step, bytes):
            if self._write(step):
                self._loop.call_soon(self._step)
        else:
            self._loop.call_later(step, self._step)

    def _finish(self) -> None:
        if self._whole is After.HANG:
            return
        self._log(_time_ns())
        if self._whole is After.CLOSE:
            self._transport.close()
        elif self._whole is After.RESET:
            _reset(self._fd)
            self._transport.abort()
        elif self._buffer:
            self._loop.call_soon(self._next)

    def _log(self, end: int) -> None:
        self._answering = False
        if self._host != CONTROL:
            self._server.log.lines.append(
                (
                    self._host, self._method, self._target, self._status, self._start // 1000, end // 1000,
                    self._number, self._sent, self._hold_us,
                )
            )  # fmt: skip

    def give_up(self) -> None:
        """End a request in flight, because the server is stopping."""
        if self._answering:
            self._log(_time_ns())


class Server:
    """Serves a web on one port until `close`."""

    def __init__(self, web: Web, log: AccessLog, loop: asyncio.AbstractEventLoop) -> None:
        self.web = web
        self.log = log
        self.loop = loop
        self.port = 0
        self.connections = 0
        self.open: set[Connection] = set()
        self.sites: dict[bytes, Site] = {}
        self._listener: asyncio.Server | None = None
        web.control = {"/flush": self._flushed}

    async def start(self, address: str = "127.0.0.1", port: int = 0) -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        self.port = listener.getsockname()[1]
        factory: Callable[[], Connection] = lambda: Connection(self)  # noqa: E731
        self._listener = await self.loop.create_server(factory, sock=listener, backlog=4096)
        # Freeze what is ready: pauses of the garbage collector would appear as delays in the log.
        gc.collect()
        gc.freeze()
        self._tick()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.open):
            connection.give_up()
        self.log.close()

    def site(self, host: bytes) -> Site:
        """Return the site of a Host header, cached for the next request with the same spelling."""
        site = self.web.site(_log_name(host))
        if len(self.sites) < 100_000:
            self.sites[host] = site
        return site

    def _tick(self) -> None:
        self.log.flush()
        self.loop.call_later(FLUSH_S, self._tick)

    def _flushed(self, request: Request) -> Answer:
        self.log.flush()
        return text("flushed\n")


def _host(data: bytes) -> bytes:
    for line in data.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"host":
            return value.strip()
    return b"-"


def _printable(data: bytes) -> str:
    """Escape separators of the log's fields and lines."""
    return data.decode("latin-1").replace("\t", "%09").replace("\n", "%0A").replace("\r", "%0D")


def _log_name(host: bytes) -> str:
    """Return the unit of politeness: lower case, without a default port and a trailing dot."""
    name = _printable(host).lower().removesuffix(":80").removesuffix(":443")
    return name.replace(".:", ":").removesuffix(".") or "-"


def _conditional(answer: Answer, data: bytes) -> Answer:
    if b"\r\nIf-" not in data and b"\r\nif-" not in data:
        return answer
    request = Request("", "", "", data, 0, 0)
    match, since = request.header("if-none-match"), request.header("if-modified-since")
    if match is not None:
        tags = [tag.strip().removeprefix("W/") for tag in match.split(",")]
        fresh = answer.etag is not None and (answer.etag.decode().removeprefix("W/") in tags or "*" in tags)
    else:
        fresh = since is not None and answer.modified_s is not None and _epoch_s(since) >= answer.modified_s
    if not fresh:
        return answer
    kept = tuple((k, v) for k, v in _validators(answer))
    return Answer(status=304, wire=head(304, kept))


def _validators(answer: Answer) -> Iterator[tuple[str, str]]:
    for line in answer.head.decode("latin-1").split("\r\n")[1:]:
        name, _, value = line.partition(": ")
        if name.lower() in ("etag", "last-modified", "cache-control", "x-robots-tag"):
            yield name, value


def _epoch_s(date: str) -> float:
    try:
        return parsedate_to_datetime(date).timestamp()
    except ValueError:
        return 0.0


def _reset(fd: int) -> None:
    """Make the next close send RST: the option belongs to the socket, so a duplicate can set it."""
    with socket.socket(fileno=os.dup(fd)) as twin:
        twin.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
