"""What was made of a crawl's pages, and what changed since another crawl."""

from __future__ import annotations

from curtsy.control import changes
from curtsy.store import records
from curtsy.web.models.records import (
    Changes,
    ChangesQuery,
    RecordInfo,
    RecordsQuery,
    change_of,
    record_of,
)
from curtsy.web.paging import Page, decode, encode, page
from curtsy.web.problems import Mistake, Problem
from curtsy.web.routing import Call, endpoint


@endpoint(
    "GET",
    "/v1/crawls/{id}/records",
    scope="read",
    query=RecordsQuery,
    answers={200: Page[RecordInfo]},
    tags=("records",),
)
def crawl_records(call: Call, id: str) -> Page[RecordInfo]:
    """The published records of a crawl that names a schema, in the order they were stored.

    Records that nobody may rely on yet are `held`: GET /v1/reviews lists them.
    """
    query: RecordsQuery = call.query
    crawl = call.crawl(id)
    status = query.status or "published"
    if status != "published" and not call.key.may("write"):
        raise Problem(403, "scope-missing", f"This key may not do that: `{status}` records need the scope write.")
    position = decode(query.cursor, int)
    with call.store.read() as tx:
        found, _ = records.chunk(
            tx,
            crawl.n,
            0 if position is None else position[0],
            query.limit + 1,
            query.low_confidence,
            (status,),
            None if query.every_schema else crawl.schema_hash,
        )
    whole = page(found, query.limit, lambda record: (record.n,))
    return Page[RecordInfo](items=[record_of(record) for record in whole.items], next=whole.next)


@endpoint("GET", "/v1/crawls/{id}/changes", scope="read", query=ChangesQuery, answers={200: Changes}, tags=("records",))
def crawl_changes(call: Call, id: str) -> Changes:
    """What changed since another crawl: the run before it in its schedule, or the one named by `against`.

    `gone` is said of a page that was there and is 404 or 410 now, or that no link leads to any more; `unread` of one
    that this crawl did not get to read.
    """
    query: ChangesQuery = call.query
    against = None if query.against is None else call.crawl(query.against).id
    report = changes.report_of(call.store, call.crawl(id).id, against)
    position = decode(query.cursor, str, int)
    if position is not None and position[0] not in ("now", "before"):
        mistake = Mistake(where="query.cursor", message="not a cursor of this list")
        raise Problem(422, "invalid-cursor", "The cursor is not of this list. Begin without one.", errors=[mistake])
    after = changes.FIRST if position is None else (position[0], position[1])
    found, following = changes.chunk(call.store, report, query.kind, after, query.limit)
    return Changes(
        crawl=report.crawl.id,
        against=report.against.id,
        counts=changes.counts(call.store, report) if position is None else None,
        items=[change_of(change) for change in found],
        next=None if following is None else encode(*following),
    )
