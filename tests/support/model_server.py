"""A language model's server that does what a test tells it: answers, or fails as real ones do.

Each request takes the next of `script`; when that is used up, `answer` (what was asked for -> the model's words).
    int                   that status, with an error document
    (int, dict)           the same, with headers
    "hang"                sends nothing until it is closed
    "drip"                a byte now and then, for ever
    "cut"                 the connection ends in the middle of the body
    bytes                 that body, with status 200
    str                   a completion with those words
    dict                  a completion with that as JSON
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ModelServer:
    def __init__(self) -> None:
        self.script: list[Any] = []
        self.answer: Callable[[dict[str, Any]], Any] = lambda _: {}
        #: parameters that lead to a 400 naming them
        self.unknown: tuple[str, ...] = ()
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.finish = "stop"
        self.usage: dict[str, int] | None = {"prompt_tokens": 100, "completion_tokens": 20}
        self.released = threading.Event()
        self.arrived = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.headers.append(dict(self.headers))
                server.asked.append(body)
                server.arrived.set()
                server._respond(self, body)

            def do_GET(self) -> None:
                server.headers.append(dict(self.headers))
                _send(self, 200, json.dumps({"data": [{"id": "one"}, {"id": "two"}]}).encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(10)

    def _respond(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        for name in self.unknown:
            if name in body or body.get("response_format", {}).get("type") == name:
                return _send(handler, 400, json.dumps({"error": {"message": f"{name} is not supported"}}).encode())
        step = self.script.pop(0) if self.script else self.answer(body)
        if isinstance(step, tuple):
            return _send(handler, step[0], b'{"error": {"message": "no"}}', step[1])
        if isinstance(step, int):
            return _send(handler, step, b'{"error": {"message": "no"}}')
        if step in ("hang", "drip", "cut"):
            return self._trouble(handler, step)
        if isinstance(step, bytes):
            return _send(handler, 200, step)
        words = step if isinstance(step, str) else json.dumps(step)
        return _send(handler, 200, json.dumps(self._completion(words)).encode())

    def _completion(self, words: str) -> dict[str, Any]:
        choice = {"index": 0, "finish_reason": self.finish, "message": {"role": "assistant", "content": words}}
        return {"object": "chat.completion", "choices": [choice]} | ({"usage": self.usage} if self.usage else {})

    def _trouble(self, handler: BaseHTTPRequestHandler, step: str) -> None:
        handler.close_connection = True
        if step == "hang":
            self.released.wait(60)
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        handler.wfile.write(b'{"choices": [')
        while step == "drip" and not self.released.wait(0.05):
            try:
                handler.wfile.write(b" ")
            except OSError:
                return


def _send(handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    handler.send_response(status)
    for name, value in {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)
