"""Every URL of a crawl as a table: its state, why, where it redirects to, who named it, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, CrawlState, Kind, Request, UrlState
from curtsy.export.tables import Table, iso
from curtsy.store import failures, pages, queues, requests, url_queries, urls
from curtsy.store.engine import Store
from curtsy.store.urls import UrlRow

COLUMNS = {
    "url": "string!",
    "state": "string!",
    "reason": "string",
    "detail": "string",
    "status": "int32",
    "redirect_target": "string",
    "referrer": "string",
    "depth": "int32!",
    "kind": "string!",
    "host": "string!",
    "attempts": "int32!",
    "added_at": "timestamp!",
    "requested_at": "timestamp",
    "settled_at": "timestamp",
    "retry_at": "timestamp",
    "page": "string",
    "lastmod": "string",
    "priority": "double",
    "crawl": "string!",
}
_KINDS = {Kind.PAGE: "page", Kind.BROWSER: "page", Kind.SITEMAP: "sitemap", Kind.ROBOTS: "robots"}
_ENDED = (CrawlState.FINISHED, CrawlState.CANCELLED, CrawlState.EXTRACTING, CrawlState.DELETING)


def tables(store: Store, crawl: Crawl) -> list[Table]:
    """The table of a crawl; UsageError if it has no URL."""
    with store.read() as tx:
        if not urls.chunk(tx, crawl.n, limit=1):
            raise UsageError(f"Crawl {crawl.id} has no URLs. Check its seeds with: curtsy status {crawl.id}")
    return [Table("urls", COLUMNS, partial(_rows, store, crawl))]


def _rows(store: Store, crawl: Crawl) -> Iterator[dict[str, Any]]:
    after = 0
    while True:
        with store.read() as tx:
            found = urls.chunk(tx, crawl.n, after)
            keys = [(crawl.n, row.fp) for row in found]
            named = url_queries.addresses(tx, {(crawl.n, row.found_on) for row in found if row.found_on is not None})
            stored = pages.get_many(tx, keys)
            asked = requests.under(tx, [row.fence for row in found if row.fence])
            letters = failures.details(tx, [row.fence for row in found if row.state == UrlState.FAILED])
            hosts = {(crawl.n, row.host) for row in found if row.state == UrlState.OPEN}
            silent = queues.get(tx, hosts)
        if not found:
            return
        for row in found:
            state, reason, detail = _state(row, crawl, silent)
            page = stored.get((crawl.n, row.fp))
            request = asked.get(row.fence)
            yield _row(row, request) | {
                "state": state,
                "reason": reason or None,
                "detail": letters.get(row.fence) or detail or None,
                "status": page.status if page is not None else _status(request),
                "referrer": None if row.found_on is None else named.get((crawl.n, row.found_on)),
                "page": None if page is None else page.id,
                "crawl": crawl.id,
            }
        after = found[-1].seq


def _row(row: UrlRow, request: Request | None) -> dict[str, Any]:
    return dict.fromkeys(COLUMNS) | {
        "url": row.url,
        "redirect_target": row.target,
        "depth": row.depth,
        "kind": _KINDS[Kind(row.kind)],
        "host": row.host,
        "attempts": row.attempts,
        "added_at": iso(row.added_ms),
        "requested_at": None if request is None else iso(request.start_ms),
        "settled_at": iso(row.settled_ms),
        "retry_at": iso(row.retry_ms) if row.state == UrlState.OPEN else None,
        "lastmod": row.lastmod,
        "priority": row.priority,
    }


def _state(row: UrlRow, crawl: Crawl, silent: Mapping[tuple[int, str], queues.Queue]) -> tuple[str, str, str]:
    """State, reason and detail as `status` counts them: an open URL of a dead host is failed, of an ended crawl it is
    skipped."""
    if row.state != UrlState.OPEN:
        return row.state, row.reason, ""
    queue = silent.get((crawl.n, row.host))
    if queue is not None and queue.state == "dead":
        return UrlState.FAILED.value, queue.reason, queue.detail
    if crawl.state in _ENDED:
        return UrlState.SKIPPED.value, crawl.reason or crawl.state.value, ""
    return row.state, row.reason, ""


def _status(request: Request | None) -> int | None:
    return None if request is None or request.status == 0 else request.status
