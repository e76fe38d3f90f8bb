"""The review queue and its decisions."""

from __future__ import annotations

from contextlib import closing

from curtsy.core import clock
from curtsy.export.page_rows import segments_of
from curtsy.records import review as reviewing
from curtsy.records.extraction import Parts
from curtsy.records.review import Decision, ReviewCase
from curtsy.store import crawls, records
from curtsy.web.models.records import RecordInfo, record_of
from curtsy.web.models.reviews import RecordReview, ReviewItem, ReviewRequest, ReviewsQuery, review_fields, review_of
from curtsy.web.paging import Page, decode_one, encode
from curtsy.web.problems import no_such_record
from curtsy.web.routing import Call, endpoint

_LARGEST = 2**63 - 1


@endpoint("GET", "/v1/reviews", scope="write", problems=(404,))
def list_reviews(call: Call, query: ReviewsQuery) -> Page[ReviewItem]:
    """List the records that need a decision, oldest first, with their withheld values.

    Filters must all match. A call examines at most 2,000 records, so `items` may be short or empty although `next` is
    not null.
    """
    n = call.crawl_n(query.crawl)
    after = decode_one(query.cursor, int, 0)
    with call.store.read() as tx:
        found, _ = records.chunk(tx, n, after, query.limit + 1, statuses=("held",))
        ids = crawls.ids(tx, {record.crawl for record in found})
    shown = [one for one in found[: query.limit] if query.schema_name in (None, one.schema) and one.crawl in ids]
    items = [ReviewItem.model_validate(review_fields(one, ids[one.crawl])) for one in shown]
    following = (found[query.limit - 1].n,) if len(found) > query.limit else None
    return Page[ReviewItem](items=items, next=encode(following))


@endpoint("GET", "/v1/records/{id}", scope="read", tag="records")
def record(call: Call, id: str) -> RecordInfo:
    """A record with its evidence. A record that is not published needs the scope `write`."""
    found = _find(call, id).record
    if found.status != "published" and not call.caller.may("write"):
        raise no_such_record()
    return record_of(found)


@endpoint("GET", "/v1/records/{id}/review", scope="write")
def record_review(call: Call, id: str) -> RecordReview:
    """Everything a reviewer needs: the record, its withheld values, the texts with the evidence, all decisions."""
    return _review(call, _find(call, id))


@endpoint("POST", "/v1/records/{id}/review", scope="write", problems=(409,))
def review(call: Call, id: str, body: ReviewRequest) -> RecordReview:
    """Approve, reject or correct a record. The decision is stored with its author and time.

    An approved or corrected record is published and never replaced: a new extraction becomes a separate version.
    """
    n = _find(call, id).record.n
    caller = call.caller.key_id or "this machine"
    decision = Decision(
        decision=body.decision,
        who=caller if body.by is None else f"{body.by} ({caller})",
        note=body.note,
        correction=body.correction,
        golden=body.golden,
        request_id=call.request_id,
    )
    with closing(segments_of(call.settings)) as segments:
        parts = Parts(call.settings, call.store, segments)
        reviewing.decide(call.store, n, decision, clock.now_ms(), parts)
    return _review(call, _find(call, id))


def _find(call: Call, id: str) -> ReviewCase:
    if not (id.isascii() and id.isdigit() and len(id) < 20 and int(id) <= _LARGEST):
        raise no_such_record()
    return reviewing.review_case(call.store, int(id))


def _review(call: Call, known: ReviewCase) -> RecordReview:
    with call.store.read() as tx:
        crawl = crawls.ids(tx, [known.record.crawl]).get(known.record.crawl)
    if crawl is None:
        raise no_such_record()
    return review_of(known, crawl)
