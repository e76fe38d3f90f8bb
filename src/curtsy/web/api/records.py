"""The records of a crawl, and what changed since another crawl."""

from __future__ import annotations

from curtsy.control import changes
from curtsy.store import records
from curtsy.web.models.fields import fill
from curtsy.web.models.records import ChangeInfo, Changes, ChangesQuery, RecordInfo, RecordsQuery, record_of
from curtsy.web.paging import Page, decode, decode_one, encode, invalid_cursor, page
from curtsy.web.problems import Problem
from curtsy.web.routing import Call, endpoint


@endpoint("GET", "/v1/crawls/{id}/records", scope="read")
def crawl_records(call: Call, id: str, query: RecordsQuery) -> Page[RecordInfo]:
    """The published records of a crawl with a schema, in the order in which they were stored.

    Records that need a decision are `held`: GET /v1/reviews lists them.
    """
    crawl = call.crawl(id)
    status = query.status or "published"
    if status != "published" and not call.caller.may(scope := "write"):
        raise Problem(403, "scope-missing", f"This key needs the scope {scope} to read `{status}` records.")
    after = decode_one(query.cursor, int, 0)
    schema_hash = None if query.every_schema else crawl.schema_hash
    with call.store.read() as tx:
        found, _ = records.chunk(
            tx, crawl.n, after, query.limit + 1, query.low_confidence, (status,), schema_hash
        )  # fmt: skip
    return page(RecordInfo, found, query.limit, lambda record: record.n, record_of)


@endpoint("GET", "/v1/crawls/{id}/changes", scope="read")
def crawl_changes(call: Call, id: str, query: ChangesQuery) -> Changes:
    """What changed since another crawl: the previous run of its schedule, or the crawl given by `against`.

    A `gone` page now answers 404 or 410, or no link leads to it any more. This crawl did not read an `unread` page.
    """
    against = None if query.against is None else call.crawl(query.against).id
    report = changes.report_of(call.store, call.crawl(id).id, against)
    position = decode(query.cursor, str, int)
    if position is not None and position[0] not in ("now", "before"):
        raise invalid_cursor()
    after = changes.FIRST if position is None else (position[0], position[1])
    found, following = changes.chunk(call.store, report, query.kind, after, query.limit)
    return Changes(
        crawl=report.crawl.id,
        against=report.against.id,
        counts=changes.counts(call.store, report) if position is None else None,
        items=[fill(ChangeInfo, change, why=change.why or None) for change in found],
        next=encode(following),
    )
