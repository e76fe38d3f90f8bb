"""Pages that follow what happens: events say that something changed, and the page fetches its live part anew."""

from __future__ import annotations

import time
from collections.abc import Iterator

from flask import Response, request

from curtsy.web.backend_thread import BackendThread
from curtsy.web.dashboard.overview import glance_of
from curtsy.web.dashboard.site import Visit, view
from curtsy.web.events import STREAM_S
from curtsy.web.problems import Problem

_LOOK_S = 2.0
_HEADERS = {"X-Accel-Buffering": "no"}
_SSE = "text/event-stream"


class Watching:
    """One stream of the overview. Its place is free again when it is closed."""

    def __init__(self, bridge: BackendThread) -> None:
        self._bridge = bridge
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield b"retry: 3000\n\n"
        told = ""
        end = time.monotonic() + STREAM_S
        while time.monotonic() < end:
            digest = glance_of(self._bridge).digest
            # A comment notices whoever went away.
            yield f"event: progress\nid: {digest}\ndata: {digest}\n\n".encode() if digest != told else b": same\n\n"
            told = digest
            if self._bridge.events.wait_closed(_LOOK_S):
                return

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._bridge.events.give_back()


@view("GET", "/overview/events")
def overview_events(visit: Visit) -> Response:
    _take(visit)
    return Response(Watching(visit.bridge), headers=_HEADERS, content_type=_SSE)


@view("GET", "/crawls/<id>/events")
def crawl_events(visit: Visit, id: str) -> Response:
    """The stream of the API, for a browser that has a session and no key."""
    found = visit.call().crawl(id)
    _take(visit)
    following = visit.bridge.events.stream(found.n, request.headers.get("Last-Event-ID"))
    return Response(following, headers=_HEADERS, content_type=_SSE)


def _take(visit: Visit) -> None:
    if not visit.bridge.events.take():
        raise Problem(503, "too-many-streams", "Too many follow already: the page asks now and then instead.")
