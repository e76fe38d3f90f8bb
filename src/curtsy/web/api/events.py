"""Progress of a crawl as server-sent events."""

from __future__ import annotations

from curtsy.web.events import MOST_STREAMS
from curtsy.web.problems import Problem
from curtsy.web.routing import Call, Media, Stream, endpoint

_SSE = "text/event-stream"


@endpoint(
    "GET",
    "/v1/crawls/{id}/events",
    scope="read",
    answers={200: Media(type=_SSE, description="Events `state` and `progress`; the data is a CrawlStatus")},
    headers={"Last-Event-ID": "The last event that you have: it is not sent again."},
    tags=("crawls",),
)
def events(call: Call, id: str) -> Stream:
    """Follow a crawl (server-sent events).

    An event comes when counts or state have changed, at most once a second; the stream ends with the crawl, and after
    5 minutes: ask again with Last-Event-ID. Where too many follow already (503), ask `GET /v1/crawls/{id}` instead.
    """
    found = call.crawl(id)
    if not call.bridge.events.take():
        raise Problem(
            503,
            "too-many-streams",
            f"{MOST_STREAMS} clients follow crawls here already. Ask GET /v1/crawls/{found.id} now and then instead.",
            headers={"Retry-After": "30"},
        )
    chunks = call.bridge.events.stream(found.n, call.headers.get("last-event-id"))
    return Stream(chunks=chunks, media_type=_SSE, headers={"X-Accel-Buffering": "no"})
