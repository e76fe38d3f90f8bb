"""Crawls: create, list, follow, pause, resume, cancel."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from curtsy.control import crawls as control
from curtsy.control import seeds as seed_check
from curtsy.control import uploads
from curtsy.control.crawl_request import CrawlRequest, crawl_of
from curtsy.control.crawls import Status
from curtsy.control.uploads import Part, Sender
from curtsy.core.model import INTERRUPTED, Counts, Crawl, CrawlState
from curtsy.store import crawls, schedules
from curtsy.store.crawls import CrawlFilter
from curtsy.web.events import MOST_STREAMS
from curtsy.web.models.crawls import (
    Accepted,
    CrawlDescription,
    CrawlsQuery,
    CrawlStatus,
    CrawlSummary,
    NewCrawl,
    check_offered,
    check_polite,
    status_of,
)  # fmt: skip
from curtsy.web.models.fields import fill
from curtsy.web.ndjson import Upload
from curtsy.web.paging import Page, decode_one, page
from curtsy.web.problems import Mistake, Problem
from curtsy.web.routing import NDJSON, Call, Media, Stream, check_id, endpoint

_KEY = re.compile(r"[!-~]{1,255}")
_PLACE = "body.seeds.{}"
_SSE = "text/event-stream"


@endpoint(
    "POST",
    "/v1/crawls",
    scope="write",
    streams={
        NDJSON: "The first line is the crawl without its seeds, as a JSON object (`{}` is enough). Every other line is "
        'a seed: `"https://example.com/"` or `{"url": "https://example.com/"}`.'
    },
    headers={
        "Idempotency-Key": "Your name for this crawl, remembered for 24 hours. The same key and body return the same "
        "crawl; an interrupted upload continues when you send it again."
    },
    status=202,
    problems=(409,),
)
def submit(call: Call, body: NewCrawl | None) -> Accepted:
    """Create a crawl.

    It is stored before the answer, and workers start it at once. Seeds that cannot be crawled are refused; the problem
    lists the first 20. Send very many seeds as NDJSON, which is stored while it arrives. An interrupted upload without
    an Idempotency-Key is canceled; with a key it can be sent again within an hour.
    """
    key = _idempotency_key(call)
    options, digest, parts = _ndjson(call) if body is None else _json(call, body)
    check_offered(options, call.settings, "line 1" if body is None else "body")
    check_polite(options, call.settings, call.caller)
    crawl = crawl_of(options, call.settings, call.request_id, owner=call.caller.key_id)
    sender = Sender(caller=call.caller.key_id or "local", key=key, options=digest)
    begin, end = call.backend.listing()
    id = uploads.receive(call.store, call.settings, crawl, parts, sender, begin)
    end()
    return Accepted(id=id, request_id=call.request_id)


def _idempotency_key(call: Call) -> str | None:
    key = call.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        mistake = Mistake(where="header.Idempotency-Key", message="1 to 255 visible ASCII characters")
        raise Problem(422, "invalid-request", "The Idempotency-Key is invalid.", errors=[mistake])
    return key


def _json(call: Call, body: NewCrawl) -> tuple[CrawlRequest, str, Iterator[Part]]:
    seeds = seed_check.checked(body.seeds, call.settings, _PLACE)  # all of them, before anything is written
    digest = uploads.digest_of(body.model_dump_json().encode())
    options = CrawlRequest(**body.model_dump(exclude={"seeds"}, by_alias=True))
    return options, digest, uploads.in_parts(seeds, _PLACE, digest)


def _ndjson(call: Call) -> tuple[CrawlRequest, str, Iterator[Part]]:
    assert call.stream is not None
    length = call.headers.get("content-length", "")
    upload = Upload(call.stream, int(length) if length.isdigit() else None)
    return upload.options, upload.digest, upload.parts()


@endpoint("GET", "/v1/crawls", scope="read", problems=(404,))
def list_crawls(call: Call, query: CrawlsQuery) -> Page[CrawlSummary]:
    """List crawls, newest first.

    `q`, `tag`, `owner`, `schedule` and `state` must all match. With `state`, `items` may be short although `next` is
    not null.
    """
    before = decode_one(query.cursor, int)
    attended = control.attended(call.settings)
    with call.store.read() as tx:
        wanted = CrawlFilter(
            states=_stored_states(query.state), search=query.q, tag=query.tag,
            owner=query.owner, schedule=None if query.schedule is None else call.schedule(query.schedule).n,
            newest_runs=query.runs == "newest",
        )  # fmt: skip
        found = crawls.list_all(tx, query.limit + 1, before=before, wanted=wanted)
        names = schedules.names(tx, [one.schedule for one in found])
        shown = {one.n: _shown(tx, one, attended) for one in found}
    listed = page(
        CrawlSummary, found, query.limit, lambda crawl: crawl.n,
        lambda crawl: fill(CrawlSummary, crawl, schedule=names.get(crawl.schedule or 0), **shown[crawl.n]),
    )  # fmt: skip
    kept = [one for one in listed.items if query.state in (None, one.state)]
    return listed.model_copy(update={"items": kept})


def _stored_states(state: str | None) -> tuple[CrawlState, ...]:
    """`interrupted` is not stored: it is how a crawl is shown that no process works on."""
    if state is None:
        return ()
    return (CrawlState.RUNNING, CrawlState.EXTRACTING) if state == INTERRUPTED else (CrawlState(state),)


def _shown(tx: Any, crawl: Crawl, attended: bool) -> dict[str, str | None]:
    """State and reason of a crawl in a list. Counts are read only where they matter."""
    unsure = not attended and crawl.state in (CrawlState.RUNNING, CrawlState.EXTRACTING)
    counts = crawls.counts(tx, crawl.n) if unsure else Counts()
    status = Status(crawl=crawl, counts=counts, pages_per_s=0.0, urls_per_s=0.0, ends_ms=None)
    return {"state": status.shown_state(attended), "reason": status.shown_reason}


@endpoint("GET", "/v1/crawls/{id}", scope="read")
def crawl(call: Call, id: str) -> CrawlStatus:
    """Progress of a crawl: state, counts, rate, estimated end. The id may be its beginning, or `last`."""
    check_id(id)
    return status_of(control.status(call.store, id), control.attended(call.settings))


@endpoint("PATCH", "/v1/crawls/{id}", scope="write")
def describe_crawl(call: Call, id: str, body: CrawlDescription) -> CrawlStatus:
    """Change the name or the tags of a crawl, in any state."""
    found = call.crawl(id)
    call.store.run(crawls.describe, found.n, body.model_dump(exclude_unset=True))
    return crawl(call, found.id)


@endpoint("POST", "/v1/crawls/{id}/pause", scope="write", problems=(409,))
def pause(call: Call, id: str) -> CrawlStatus:
    """Pause a crawl. It sends its last request within 2 s."""
    return _change(call, id, control.pause)


@endpoint("POST", "/v1/crawls/{id}/resume", scope="write", problems=(409,))
def resume(call: Call, id: str) -> CrawlStatus:
    """Resume a paused crawl."""
    return _change(call, id, control.resume)


@endpoint("POST", "/v1/crawls/{id}/cancel", scope="write", problems=(409,))
def cancel(call: Call, id: str) -> CrawlStatus:
    """End a crawl within 2 s, permanently. Fetched pages stay; open URLs count as skipped."""
    return _change(call, id, control.cancel)


def _change(call: Call, id: str, change: Callable[..., Coroutine[Any, Any, Crawl]]) -> CrawlStatus:
    found = call.crawl(id)
    services = call.services
    call.wait(change(services, call.store, found.id))
    return crawl(call, found.id)


@endpoint(
    "GET",
    "/v1/crawls/{id}/events",
    scope="read",
    answers={200: Media(type=_SSE, description="Events `state` and `progress`; the data is a CrawlStatus")},
    headers={"Last-Event-ID": "The last event that you received: it is not sent again."},
)
def events(call: Call, id: str) -> Stream:
    """Follow a crawl (server-sent events).

    The server sends an event when counts or state change, at most once a second. The stream ends with the crawl, and
    after 5 minutes: reconnect with Last-Event-ID. If too many clients are connected (503), poll `GET /v1/crawls/{id}`.
    """
    found = call.crawl(id)
    if not call.backend.events.reserve():
        raise Problem(
            503,
            "too-many-streams",
            f"{MOST_STREAMS} clients follow crawls on this server already. Poll GET /v1/crawls/{found.id} instead.",
            headers={"Retry-After": "30"},
        )
    chunks = call.backend.events.stream(found.n, call.headers.get("last-event-id"))
    return Stream(chunks=chunks, media_type=_SSE, headers={"X-Accel-Buffering": "no"})
