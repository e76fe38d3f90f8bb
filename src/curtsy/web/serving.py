"""`curtsy serve`: gunicorn with threads. After SIGTERM, requests in flight may finish."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import sys
import threading
import time
from http import HTTPStatus
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException

from curtsy.core import tracing
from curtsy.core.errors import UsageError
from curtsy.core.model import new_id
from curtsy.core.observe import announce, log
from curtsy.core.settings import Settings
from curtsy.web.auth import is_loopback
from curtsy.web.backend_thread import BackendThread
from curtsy.web.factory import create_app
from curtsy.web.problems import MEDIA_TYPE, of_status
from curtsy.web.request_heads import INCOMPLETE, HeadWorker

#: requests in flight have this long to finish after SIGTERM
GRACE_S = 20
#: a process without a heartbeat for this long is replaced
_HUNG_S = 60
_KEEP_ALIVE_S = 15
#: a client that sends more slowly than this on average, after `api_timeout_s`, is dropped: bytes per second
_SLOWEST = 10_000
#: connections of one process without a thread
_WAITING = 1000
#: thread switch interval: an upload keeps one thread busy
_SWITCH_S = 0.001


class LimitedSocket:
    """A client's socket that drops clients which send too slowly, so that they cannot occupy threads.

    Only the time spent waiting for the client counts.
    """

    def __init__(self, connection: socket.socket, patience_s: float) -> None:
        self._connection, self._patience_s = connection, patience_s
        self.begin()

    def begin(self) -> None:
        """Start a new request."""
        self._waited_s, self._received = 0.0, 0

    def recv(self, size: int) -> bytes:
        since = time.monotonic()
        data = self._connection.recv(size)
        self._waited_s += time.monotonic() - since
        self._received += len(data)
        if self._waited_s > self._patience_s + self._received / _SLOWEST:
            raise ConnectionResetError(errno.ECONNRESET, "the client sends too slowly")
        return data


class Threads(HeadWorker):
    """A server process. Its event streams end at shutdown."""

    def handle(self, conn: Any) -> Any:
        if conn.initialized:
            conn.parser.unreader.sock.begin()
        else:
            conn.init()
            conn.parser.unreader.sock = LimitedSocket(conn.sock, self.patience_s)
        return super().handle(conn) if self.take_head(conn) else INCOMPLETE

    def init_process(self) -> None:
        sys.setswitchinterval(_SWITCH_S)
        tracing.begin(_backend_of(self.app.wsgi()).settings, "api")
        self.patience_s = _backend_of(self.app.wsgi()).settings.api_timeout_s
        threading.Thread(target=_backend_of(self.app.wsgi()).warm, name="warm", daemon=True).start()
        super().init_process()

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Any) -> None:
        """Malformed or oversized requests never reach the application: answer with a problem document here."""
        if not isinstance(exc, ParseException):
            super().handle_error(req, client, addr, exc)
            return
        status = 431 if isinstance(exc, LimitRequestHeaders) else 414 if isinstance(exc, LimitRequestLine) else 400
        problem = of_status(status).document(new_id())
        log("api_refused", status=status, error=type(exc).__name__, request_id=problem.request_id)
        body = problem.model_dump_json(exclude_none=True).encode()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nConnection: close\r\nContent-Type: {MEDIA_TYPE}\r\n"
            f"X-Request-Id: {problem.request_id}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with contextlib.suppress(OSError):
            client.sendall(head.encode() + body)

    def handle_exit(self, sig: Any, frame: Any) -> None:
        _backend_of(self.app.wsgi()).events.close()
        super().handle_exit(sig, frame)
        self.method_queue.defer(self.hurry)


class Logger:
    """Sends gunicorn's messages to our log."""

    def __init__(self, _config: Any) -> None:
        pass

    def debug(self, message: str, *_args: Any, **_: Any) -> None:
        """Without the arguments, which may come from a client."""
        log("server", level="debug", message=str(message))

    def info(self, message: str, *args: Any, **_: Any) -> None:
        log("server", level="debug", message=_formatted(message, args))

    def warning(self, message: str, *args: Any, **_: Any) -> None:
        log("server", level="warning", message=_formatted(message, args))

    def error(self, message: str, *args: Any, **_: Any) -> None:
        log("server", level="error", message=_formatted(message, args))

    critical = error

    def exception(self, message: str, *args: Any, **_: Any) -> None:
        log("server", level="error", message=_formatted(message, args), error=repr(sys.exc_info()[1]))

    def log(self, _level: Any, message: str, *args: Any, **_: Any) -> None:
        self.debug(message, *args)

    def access(self, *_: Any) -> None:
        """The application logs its own answers."""

    def reopen_files(self) -> None:
        pass

    def close_on_exec(self) -> None:
        pass


def _formatted(message: object, args: tuple[Any, ...]) -> str:
    try:
        return str(message) % args if args else str(message)
    except (TypeError, ValueError):
        return str(message)


class Server(BaseApplication):  # type: ignore[misc]
    """The parent process: it owns the socket and restarts processes that died."""

    def __init__(self, settings: Settings, host: str, port: int, processes: int, threads: int) -> None:
        self._settings, self._host, self._port = settings, host, port
        self._processes, self._threads = processes, threads
        super().__init__()

    def load_config(self) -> None:
        name = f"[{self._host}]" if ":" in self._host else self._host
        for key, value in {
            "bind": f"{name}:{self._port}",
            "workers": self._processes,
            "threads": self._threads,
            "worker_class": Threads,
            "worker_connections": self._threads + _WAITING,
            "preload_app": True,
            "timeout": _HUNG_S,
            "graceful_timeout": GRACE_S,
            "keepalive": _KEEP_ALIVE_S,
            "logger_class": Logger,
            "control_socket_disable": True,
            "proc_name": "curtsy-serve",
            "limit_request_line": 8190,
            "limit_request_fields": 64,
            "forwarded_allow_ips": "",
            "when_ready": self._ready,
            "worker_exit": _leave,
        }.items():
            self.cfg.set(key, value)

    def load(self) -> Flask:
        return create_app(self._settings, host=self._host)

    def _ready(self, arbiter: Any) -> None:
        for listener in arbiter.LISTENERS:
            _limit_silence(listener.sock, self._settings.api_timeout_s)
        port = arbiter.LISTENERS[0].getsockname()[1]
        name = f"[{self._host}]" if ":" in self._host else self._host
        announce(f"Serving on http://{name}:{port}/ (dashboard; API reference at /docs)")
        if not is_loopback(self._host):
            announce("Every request needs a key: `curtsy keys create` creates one.")


def _limit_silence(listener: socket.socket, seconds: float) -> None:
    """Drop clients that neither send nor receive for this long; accepted sockets inherit the option."""
    limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def _backend_of(app: Flask) -> BackendThread:
    found: BackendThread = app.extensions["curtsy"]
    return found


def _leave(_arbiter: Any, worker: Any) -> None:
    """Runs in the process that exits."""
    if worker.app.callable is not None and worker.pid == os.getpid():
        _backend_of(worker.app.callable).close()
        tracing.end()


def serve(settings: Settings, host: str, port: int, processes: int, threads: int) -> None:
    """Serve until SIGTERM or SIGINT."""
    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            pass  # fail at once: gunicorn would retry for seconds
    except OSError as error:
        raise UsageError(f"Cannot listen on {host}:{port}: {error.strerror}. Choose another --port.") from error
    Server(settings, host, port, processes, threads).run()
