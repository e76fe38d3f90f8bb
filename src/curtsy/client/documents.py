"""What the store has, as the documents of the HTTP API."""

from __future__ import annotations

from curtsy.client.backend import Document
from curtsy.control import crawls as control
from curtsy.control import schedules as scheduling
from curtsy.control.crawl_request import options_of
from curtsy.core import clock
from curtsy.core.model import Page, Schedule
from curtsy.core.record import Record
from curtsy.core.times import timestamp
from curtsy.records import review, review_queue, serialize
from curtsy.store import crawls
from curtsy.store.engine import Store

_PAGE = (
    "id", "url", "host", "status", "depth", "content_type", "charset", "title", "language", "canonical", "sha256",
    "size", "etag", "last_modified", "unchanged", "same_as", "request_id",
)  # fmt: skip


def of_status(found: control.Status) -> Document:
    crawl, counts = found.crawl, found.counts
    options = options_of(crawl)
    return {
        "id": crawl.id, "state": crawl.state.value, "reason": crawl.reason, "lane": crawl.lane.value,
        "name": crawl.name, "tags": list(crawl.tags), "owner": crawl.owner, "schedule": found.schedule,
        "scope": crawl.scope, "pages": crawl.pages, "request_id": crawl.request_id,
        "created": timestamp(crawl.created_ms), "started": timestamp(crawl.started_ms),
        "ended": timestamp(crawl.ended_ms),
        "elapsed_s": round(crawl.elapsed_s(clock.now_ms()), 3),
        "counts": {
            "pages": counts.pages, "done": counts.done, "pending": counts.pending,
            "pending_render": counts.pending_render, "skipped": dict(counts.skipped), "failed": dict(counts.failed),
            "failed_stages": dict(counts.failed_stages),
        },
        "pages_per_s": round(found.pages_per_s, 3), "urls_per_s": round(found.urls_per_s, 3),
        "estimated_end": timestamp(found.ends_ms),
        "llm": control.usage_document(found.model),
        "options": options, "wishes": options,  # `wishes` is the deprecated name of `options`
    }  # fmt: skip


def of_record(record: Record) -> Document:
    return serialize.line(record) | {"created": timestamp(record.created_ms)}


def of_review(store: Store, known: review.ReviewCase) -> Document:
    record = known.record
    with store.read() as tx:
        crawl = crawls.ids(tx, [record.crawl]).get(record.crawl)
    names = ("decision", "who", "note", "correction", "before", "golden", "batch")
    history = [{**{name: getattr(one, name) for name in names}, "at": timestamp(one.at_ms)} for one in known.history]
    withheld = serialize.withheld(record)
    sources = [one._asdict() | {"page": f"{record.crawl}-{one.page}"} for one in known.sources]
    return of_record(record) | {"crawl": crawl, "withheld": withheld, "sources": sources, "reviews": history}


def of_many(done: review_queue.ManyDecided) -> Document:
    refused = [{"id": str(n), "detail": detail} for n, detail in done.refused]
    return {"batch": done.batch, "records": [str(n) for n in done.records], "refused": refused}


def of_selector(found: Document) -> Document:
    made = {name: value for name, value in found.items() if not name.endswith("_ms")}
    return made | {"learned": timestamp(found["learned_ms"]), "ended": timestamp(found["ended_ms"])}


def of_schedule(schedule: Schedule) -> Document:
    next_ms = schedule.next_ms if schedule.enabled else None
    return scheduling.shown(schedule) | {"next": timestamp(next_ms), "created": timestamp(schedule.created_ms)}


def of_run(outcome: scheduling.Outcome) -> Document:
    found = scheduling.outcome_document(outcome)
    return found | {name: timestamp(found[name]) for name in ("planned", "started", "ended")}


def of_page(page: Page, crawl: str) -> Document:
    fields = {name: getattr(page, name) for name in _PAGE}
    return fields | {"crawl": crawl, "fetched": timestamp(page.fetched_ms), "has_content": page.body is not None}
