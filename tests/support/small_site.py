"""A small website in this process whose pages and memory a test holds in its hands."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as the site saw it; header names in lower case."""

    host: str
    path: str
    headers: dict[str, str]
    method: str = "GET"
    body: bytes = b""
    #: of this process's monotonic clock
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Say:
    """One answer."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html"),)


def linking(*links: str, title: str = "Page") -> Say:
    anchors = "".join(f'<a href="{link}">x</a>' for link in links)
    return Say(f"<!doctype html><title>{title}</title>{anchors}".encode())


Answer = Say | Callable[[Asked], Say]


@dataclass(slots=True)
class SmallSite:
    """`with SmallSite({"/": linking("/a")}) as site`: answers for any host name; everything else is 404."""

    pages: Mapping[str, Answer]
    address: str = "127.0.0.1"
    asked: list[Asked] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None
    _thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.server_address[1])

    @property
    def resolve_rule(self) -> str:
        return f"*.small.test=127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        return [one.path for one in self.asked if one.path != "/robots.txt"]

    def _answer(self, asked: Asked) -> Say:
        self.asked.append(asked)
        found = self.pages.get(asked.path, Say(b"Not found.", 404))
        return found if isinstance(found, Say) else found(asked)

    def __enter__(self) -> SmallSite:
        self._server = _Server((self.address, 0), _handler(self._answer))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asks may be gone before the answer is said."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _handler(answer: Callable[[Asked], Say]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            said = answer(Asked(headers.get("host", ""), self.path, headers, self.command, body))
            self.send_response(said.status)
            for name, value in said.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(said.body)))
            self.end_headers()
            self.wfile.write(said.body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
