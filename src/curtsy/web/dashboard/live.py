"""Live updates: an event says that something changed, and the page reloads its live part."""

from __future__ import annotations

import time
from collections.abc import Iterator

from flask import Response, request

from curtsy.web.backend_thread import BackendThread
from curtsy.web.dashboard.overview import current
from curtsy.web.dashboard.site import PageRequest, view
from curtsy.web.events import STREAM_S
from curtsy.web.problems import Problem

_QUERY_S = 2.0
_HEADERS = {"X-Accel-Buffering": "no"}
_SSE = "text/event-stream"


class OverviewStream:
    """One stream of the overview. Closing it releases its reservation."""

    def __init__(self, backend: BackendThread) -> None:
        self._backend = backend
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield b"retry: 3000\n\n"
        sent = ""
        end = time.monotonic() + STREAM_S
        while time.monotonic() < end:
            digest = current(self._backend).digest
            # The comment detects a disconnected client.
            yield f"event: progress\nid: {digest}\ndata: {digest}\n\n".encode() if digest != sent else b": same\n\n"
            sent = digest
            if self._backend.events.wait_closed(_QUERY_S):
                return

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._backend.events.release()


@view("GET", "/overview/events")
def overview_events(req: PageRequest) -> Response:
    _reserve(req)
    return Response(OverviewStream(req.backend), headers=_HEADERS, content_type=_SSE)


@view("GET", "/crawls/<id>/events")
def crawl_events(req: PageRequest, id: str) -> Response:
    """The stream of the API, for a browser with a session instead of a key."""
    found = req.call().crawl(id)
    _reserve(req)
    following = req.backend.events.stream(found.n, request.headers.get("Last-Event-ID"))
    return Response(following, headers=_HEADERS, content_type=_SSE)


def _reserve(req: PageRequest) -> None:
    if not req.backend.events.reserve():
        raise Problem(503, "too-many-streams", "Too many clients are connected: the page polls instead.")
