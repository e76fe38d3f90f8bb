"""A model's server with files and batches, as OpenAI's API has them. It counts every question that it is paid for.

A batch is worked on as soon as it is created: `hold` delays its end, `answer` gives the words for a request body. What
was paid is in `paid`: custom ids in the order in which batches took them, and direct questions in `asked`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any


class BatchServer:
    def __init__(self) -> None:
        self.answer: Callable[[dict[str, Any]], Any] = lambda _: {}
        #: `completed`, or the status with which batches end without results
        self.ends_as = "completed"
        self.held = False
        #: custom ids of results that are left out
        self.lost: set[str] = set()
        self.refuses_batches = False
        self.files: dict[str, tuple[str, bytes]] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.paid: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.finish = "stop"
        self._numbers = count(1)
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with server._lock:
                    server._post(self, self.path, body)

            def do_GET(self) -> None:
                with server._lock:
                    server._get(self, self.path)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> BatchServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(10)

    def _post(self, handler: BaseHTTPRequestHandler, path: str, body: bytes) -> None:
        if path == "/v1/files":
            _send(handler, 200, self._upload(handler.headers["Content-Type"], body))
        elif path == "/v1/batches":
            if self.refuses_batches:
                _send(handler, 404, {"error": {"message": "no such path"}})
            else:
                _send(handler, 200, self._create(json.loads(body)))
        elif found := re.fullmatch(r"/v1/batches/(\w+)/cancel", path):
            self.batches[found[1]]["status"] = "cancelled"
            _send(handler, 200, self.batches[found[1]])
        else:
            document = json.loads(body)
            self.asked.append(document)
            _send(handler, 200, self._completion(document))

    def _get(self, handler: BaseHTTPRequestHandler, path: str) -> None:
        path, _, query = path.partition("?")
        if found := re.fullmatch(r"/v1/files/(\w+)/content", path):
            _send(handler, 200, self.files[found[1]][1])
        elif found := re.fullmatch(r"/v1/batches/(\w+)", path):
            _send(handler, 200, self._settled(self.batches[found[1]]))
        elif path == "/v1/batches":
            _send(handler, 200, self._listed(query))
        else:
            _send(handler, 404, {"error": {"message": "no such path"}})

    def _listed(self, query: str) -> dict[str, Any]:
        """Newest first, two per page: a client must turn pages."""
        newest = list(reversed(self.batches.values()))
        after = re.search(r"after=(\w+)", query)
        start = 0 if after is None else 1 + [one["id"] for one in newest].index(after[1])
        return {"object": "list", "data": newest[start : start + 2], "has_more": start + 2 < len(newest)}

    def _upload(self, kind: str, body: bytes) -> dict[str, Any]:
        message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
        (part,) = [one for one in message.iter_parts() if one.get_filename()]  # type: ignore[attr-defined]
        id = f"file{next(self._numbers)}"
        self.files[id] = (part.get_filename(), part.get_payload(decode=True))
        return {"id": id, "object": "file", "purpose": "batch", "filename": part.get_filename(), "bytes": len(body),
                "created_at": 0, "status": "processed"}  # fmt: skip

    def _create(self, given: dict[str, Any]) -> dict[str, Any]:
        id = f"batch{next(self._numbers)}"
        lines = [json.loads(line) for line in self.files[given["input_file_id"]][1].splitlines()]
        if self.ends_as == "completed":
            self.paid += [line["custom_id"] for line in lines]
        done = [
            {"id": f"r{at}", "custom_id": line["custom_id"], "error": None,
             "response": {"status_code": 200, "request_id": "q", "body": self._completion(line["body"])}}
            for at, line in enumerate(lines) if line["custom_id"] not in self.lost
        ]  # fmt: skip
        self.files[f"out{id}"] = ("out.jsonl", "".join(json.dumps(one) + "\n" for one in done).encode())
        self.batches[id] = {
            "id": id, "object": "batch", "endpoint": given["endpoint"], "completion_window": "24h", "created_at": 0,
            "input_file_id": given["input_file_id"], "status": "in_progress", "metadata": given.get("metadata"),
        }  # fmt: skip
        return self.batches[id]

    def _settled(self, batch: dict[str, Any]) -> dict[str, Any]:
        if not self.held and batch["status"] == "in_progress":
            batch["status"] = self.ends_as
            if self.ends_as == "completed":
                batch["output_file_id"] = f"out{batch['id']}"
        return batch

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        said = self.answer(body)
        words = said if isinstance(said, str) else json.dumps(said)
        choice = {"index": 0, "finish_reason": self.finish, "message": {"role": "assistant", "content": words}}
        usage = {"prompt_tokens": 100, "completion_tokens": 20}
        return {"object": "chat.completion", "choices": [choice], "usage": usage}


def _send(handler: BaseHTTPRequestHandler, status: int, said: Any) -> None:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
