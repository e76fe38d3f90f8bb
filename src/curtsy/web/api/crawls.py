"""Crawls: made, looked at, paused, resumed, cancelled."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from curtsy.control import crawls as control
from curtsy.control import uploads
from curtsy.control.crawl_request import CrawlRequest, crawl_of
from curtsy.control.uploads import Part, Sender
from curtsy.core.model import Crawl, CrawlState
from curtsy.store import crawls
from curtsy.web.models.crawls import (
    Accepted,
    CrawlsQuery,
    CrawlStatus,
    CrawlSummary,
    NewCrawl,
    check_offered,
    status_of,
    summary_of,
)
from curtsy.web.ndjson import Upload
from curtsy.web.paging import Page, decode, page
from curtsy.web.problems import Mistake, Problem
from curtsy.web.routing import NDJSON, Call, check_id, endpoint

_KEY = re.compile(r"[!-~]{1,255}")
_PLACE = "body.seeds.{}"


@endpoint(
    "POST",
    "/v1/crawls",
    scope="write",
    body=NewCrawl,
    streams={
        NDJSON: "The first line is the crawl without its seeds, as a JSON object (`{}` will do); every other line is a "
        'seed: `"https://example.com/"` or `{"url": "https://example.com/"}`.'
    },
    headers={
        "Idempotency-Key": "A name of your choice for this crawl, remembered for 24 hours. The same key and body give "
        "the same crawl; an upload that broke off goes on when it is sent again."
    },
    answers={202: Accepted},
    problems=(409,),
    tags=("crawls",),
)
def submit(call: Call) -> Accepted:
    """Make a crawl.

    It is stored before the answer; workers take it up at once. Seeds that cannot be crawled are refused: the problem
    names the first 20. For very many seeds send NDJSON, which is stored while it arrives: an upload that breaks off
    without an Idempotency-Key is cancelled, one with a key can be sent again within an hour.
    """
    key = _idempotency_key(call)
    wish, wishes, parts = _ndjson(call) if call.media_type == NDJSON else _json(call)
    check_offered(wish, call.settings, "line 1" if call.media_type == NDJSON else "body")
    crawl = crawl_of(wish, call.settings, call.request_id)
    sender = Sender(caller=call.key.key or "local", key=key, wishes=wishes)
    begin, end = call.bridge.listing()
    id = uploads.receive(call.store, call.settings, crawl, parts, sender, begin)
    end()
    return Accepted(id=id, request_id=call.request_id)


def _idempotency_key(call: Call) -> str | None:
    key = call.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        mistake = Mistake(where="header.Idempotency-Key", message="1 to 255 visible ASCII characters")
        raise Problem(422, "invalid-request", "The Idempotency-Key cannot be used.", errors=[mistake])
    return key


def _json(call: Call) -> tuple[CrawlRequest, str, Iterator[Part]]:
    new: NewCrawl = call.body
    seeds = uploads.checked(new.seeds, call.settings, _PLACE)  # all, before anything is written
    digest = uploads.digest_of(new.model_dump_json().encode())
    wish = CrawlRequest(**new.model_dump(exclude={"seeds"}, by_alias=True))
    return wish, digest, uploads.in_parts(seeds, _PLACE, digest)


def _ndjson(call: Call) -> tuple[CrawlRequest, str, Iterator[Part]]:
    assert call.stream is not None
    length = call.headers.get("content-length", "")
    upload = Upload(call.stream, int(length) if length.isdigit() else None)
    return upload.wish, upload.wishes, upload.parts()


@endpoint("GET", "/v1/crawls", scope="read", query=CrawlsQuery, answers={200: Page[CrawlSummary]}, tags=("crawls",))
def list_crawls(call: Call) -> Page[CrawlSummary]:
    """List crawls, newest first."""
    query: CrawlsQuery = call.query
    position = decode(query.cursor, int)
    states = () if query.state is None else (CrawlState(query.state),)
    with call.store.read() as tx:
        found = crawls.list_all(tx, query.limit + 1, states, None if position is None else position[0])
    whole = page(found, query.limit, lambda crawl: (crawl.n,))
    return Page[CrawlSummary](items=[summary_of(crawl) for crawl in whole.items], next=whole.next)


@endpoint("GET", "/v1/crawls/{id}", scope="read", answers={200: CrawlStatus}, tags=("crawls",))
def crawl(call: Call, id: str) -> CrawlStatus:
    """How far a crawl is: state, counts, rate, estimated end. The id may be its beginning, or `last`."""
    return _status(call, id)


@endpoint("POST", "/v1/crawls/{id}/pause", scope="write", answers={200: CrawlStatus}, problems=(409,), tags=("crawls",))
def pause(call: Call, id: str) -> CrawlStatus:
    """Stop asking for pages of a crawl: no request of it leaves later than 2 s from now."""
    return _changed(call, id, control.pause)


@endpoint(
    "POST", "/v1/crawls/{id}/resume", scope="write", answers={200: CrawlStatus}, problems=(409,), tags=("crawls",)
)
def resume(call: Call, id: str) -> CrawlStatus:
    """Let a paused crawl go on."""
    return _changed(call, id, control.resume)


@endpoint(
    "POST", "/v1/crawls/{id}/cancel", scope="write", answers={200: CrawlStatus}, problems=(409,), tags=("crawls",)
)
def cancel(call: Call, id: str) -> CrawlStatus:
    """End a crawl within 2 s, for good. What was fetched stays; open URLs count as skipped."""
    return _changed(call, id, control.cancel)


def _changed(call: Call, id: str, change: Callable[..., Coroutine[Any, Any, Crawl]]) -> CrawlStatus:
    found = call.crawl(id)
    services = call.services
    call.wait(change(services, call.store, found.id))
    return _status(call, found.id)


def _status(call: Call, id: str) -> CrawlStatus:
    check_id(id)
    return status_of(control.status(call.store, id))
