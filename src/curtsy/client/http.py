"""The HTTP client of the API. Problem documents become errors with one line."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from curtsy.core import secret_files
from curtsy.core.errors import CurtsyError, RefusedSeeds, Unavailable, UnknownCrawl, UploadHeld, UsageError

_TIMEOUT_S = 60.0
#: an interrupted upload is retried for this long: a server that was killed holds it for 15 s
_PATIENCE_S = 40.0
_PAUSE_S = 1.0
#: bytes of a download in memory
_BLOCK = 256 * 1024


class _Disconnected(Unavailable):
    """The server disconnected during a request."""


class Client:
    """One server. `key` is an API key; None on the machine itself."""

    def __init__(self, url: str, key: str | None = None) -> None:
        self._parts = _address(url)
        if key is not None and not _valid_in_header(key):
            raise UsageError("The API key has invalid characters. Copy it again, without spaces and line ends.")
        self._url, self._key = url, key
        self._timeout_s = _TIMEOUT_S

    def within(self, seconds: float) -> Client:
        """A client of the same server with a shorter timeout."""
        made = copy(self)
        made._timeout_s = min(seconds, _TIMEOUT_S)
        return made

    def get(self, path: str, **query: Any) -> Any:
        return self._request("GET", with_query(path, query))

    def post(self, path: str, body: Any = None) -> Any:
        return self._request("POST", path, None if body is None else json.dumps(body).encode())

    def patch(self, path: str, body: Any) -> Any:
        return self._request("PATCH", path, json.dumps(body).encode())

    def delete(self, path: str, **query: Any) -> Any:
        return self._request("DELETE", with_query(path, query))

    def items(self, path: str, **query: Any) -> Iterator[Any]:
        """Every item of a list, page by page."""
        cursor: str | None = None
        while True:
            page = self.get(path, **query, cursor=cursor)
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def submit(self, options: dict[str, Any], seeds: Iterable[str], key: str | None = None) -> str:
        """Submit a crawl; its id, or that of the crawl with the same Idempotency-Key.

        An interrupted upload is sent again; the server continues where it stopped.
        """
        listed = seeds if isinstance(seeds, list | tuple) else list(seeds)
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key or os.urandom(16).hex()}
        end: float | None = None
        while True:
            try:
                return str(self._request("POST", "/v1/crawls", _lines(options, listed), headers)["id"])
            except (Unavailable, UploadHeld) as error:
                if end is None and isinstance(error, _Disconnected):
                    end = time.monotonic() + _PATIENCE_S
                if end is None or time.monotonic() > end:
                    raise
            time.sleep(_PAUSE_S)

    def _request(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        return self.read(*self.exchange(method, path, body, headers or {}))

    def exchange(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """(status, body) of one answer."""
        with self._response(method, path, body, headers) as answer:
            return answer.status, answer.read()

    @contextmanager
    def stream(self, method: str, path: str, headers: Mapping[str, str]) -> Iterator[http.client.HTTPResponse]:
        """A response that is read while it arrives; a problem is raised at once."""
        with self._response(method, path, None, {"Accept": "*/*", **headers}) as answer:
            if answer.status >= 400:
                self.read(answer.status, answer.read())
            yield answer

    def blocks(self, path: str, headers: Mapping[str, str] | None = None, /, **query: Any) -> Iterator[bytes]:
        """The body of a download, in blocks as it arrives."""
        # The reader of these blocks may fail to write them: its errors must not look like errors of the server.
        with self.stream("GET", with_query(path, query), headers or {}) as answer:
            while block := answer.read(_BLOCK):
                yield block

    @contextmanager
    def _response(
        self, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        sent = {"Accept": "application/json"} | ({"Content-Type": "application/json"} if body is not None else {})
        for name, value in headers.items():
            if not _valid_in_header(value):
                raise UsageError(f"Invalid value of {name}: use printable ASCII characters only.")
        sent |= headers
        if self._key:
            sent["Authorization"] = f"Bearer {self._key}"
        connection = self._connection()
        kind = Unavailable
        try:
            connection.connect()
            kind = _Disconnected
            connection.request(method, quote(self._parts.path.rstrip("/")) + path, body, sent)
            yield connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            why = str(error) or type(error).__name__
            raise kind(f"The API at {self._url} does not respond: {why}. Is `curtsy serve` running?") from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(
                host, port, timeout=self._timeout_s, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(host, port, timeout=self._timeout_s)

    def read(self, status: int, body: bytes, accepted: Collection[int] = ()) -> Any:
        """The document of a response; a problem is raised as an error."""
        try:
            found = json.loads(body) if body else None
        except ValueError:
            raise Unavailable(f"{self._url} is not a Curtsy API (status {status}).") from None
        if status < 400 or status in accepted:
            return found
        raise _error(status, found if isinstance(found, dict) else {})


def with_query(path: str, query: Mapping[str, Any]) -> str:
    """The path with the values that are given; booleans as in JSON."""
    values = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None
    }
    return f"{path}?{urlencode(values)}" if values else path


def key_from_environment() -> str | None:
    """CURTSY_API_KEY, or the content of CURTSY_API_KEY_FILE, without a line end."""
    return (secret_files.variable("CURTSY_API_KEY") or "").strip() or None


def word(text: str) -> str:
    """A part of a path. An empty part would address another resource, such as a list."""
    if not isinstance(text, str):
        raise UsageError(f"An id or name must be str, not {text!r:.60} ({type(text).__name__}).")
    if not text:
        raise UsageError("An id or name is empty: give that of a crawl, a schedule or a host.")
    return quote(text, safe="")


def _address(url: str) -> SplitResult:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host = parts.hostname or ""
        host.encode("idna")  # as the resolver encodes it
        fits = parts.scheme in ("http", "https") and host and host.isprintable() and " " not in host
        fits = fits and parts.port != 0
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise UsageError(f"Invalid API address: {url!r}. Write it as http://127.0.0.1:8080.")
    return parts


def _valid_in_header(value: str) -> bool:
    """Whether it is valid in a header."""
    return isinstance(value, str) and value.isascii() and value.isprintable()


def _error(status: int, problem: dict[str, Any]) -> CurtsyError:
    detail = problem.get("detail") or f"The API returned status {status}."
    if str(problem.get("type", "")).endswith("refused-seeds"):
        refused = [(_seed(mistake["where"]), mistake["message"]) for mistake in problem.get("errors") or ()]
        wrong = "; ".join(f"{where}: {why}" for where, why in refused)
        return RefusedSeeds(refused, f"{detail} {wrong}." if wrong else detail)
    if str(problem.get("type", "")).endswith("no-such-crawl"):
        return UnknownCrawl(detail)
    if str(problem.get("type", "")).endswith("upload-under-way"):
        return UploadHeld(detail)
    if status >= 500 or status == 429:
        return Unavailable(f"{detail} (request {problem.get('request_id', 'unknown')})")
    return UsageError(detail)


def _seed(where: str) -> str:
    """`line 2` of an upload (line 1 has the options) and `body.seeds.0` are `seed 0`."""
    number = where.rpartition("." if where.startswith("body.seeds.") else " ")[2]
    if not number.isdecimal():
        return where
    return f"seed {int(number) - 2 if where.startswith('line ') else int(number)}"


def _lines(options: dict[str, Any], seeds: Iterable[str]) -> Iterator[bytes]:
    """An NDJSON body in blocks."""
    block = [json.dumps(options)]
    for seed in seeds:
        block.append(json.dumps(seed))
        if len(block) >= 1000:
            yield "\n".join([*block, ""]).encode()
            block = []
    if block:
        yield "\n".join([*block, ""]).encode()
