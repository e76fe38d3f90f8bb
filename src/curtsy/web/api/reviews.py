"""The review queue and its decisions."""

from __future__ import annotations

from contextlib import closing

from curtsy.core import clock
from curtsy.export.page_rows import segments_of
from curtsy.records import review as reviewing
from curtsy.records import review_queue
from curtsy.records.extraction import Parts
from curtsy.records.review import Decision, ReviewCase
from curtsy.records.review_undo import undo
from curtsy.store import crawls
from curtsy.web.models.records import RecordInfo, record_of
from curtsy.web.models.reviews import (
    DecideManyRequest,
    ManyReviewed,
    RecordReview,
    ReviewItem,
    ReviewRequest,
    ReviewsQuery,
    UndoBatchRequest,
    UndoRequest,
    many_of,
    review_fields,
    review_of,
)
from curtsy.web.paging import Page, decode_one, encode
from curtsy.web.problems import Problem, no_such_record
from curtsy.web.routing import Call, endpoint

_LARGEST = 2**63 - 1


@endpoint("GET", "/v1/reviews", scope="write", problems=(404,))
def list_reviews(call: Call, query: ReviewsQuery) -> Page[ReviewItem]:
    """List the records that need a decision, as a whole or in some fields, oldest first, with their withheld values.

    Filters must all match. A call examines at most 2,000 records, so `items` may be short or empty although `next` is
    not null.
    """
    n = call.crawl_n(query.crawl)
    after = decode_one(query.cursor, int, 0)
    found, following = review_queue.waiting(call.store, n, query.wanted, after, query.limit)
    with call.store.read() as tx:
        ids = crawls.ids(tx, {record.crawl for record in found})
    items = [ReviewItem.model_validate(review_fields(one, ids[one.crawl])) for one in found if one.crawl in ids]
    return Page[ReviewItem](items=items, next=encode(None if following is None else (following,)))


@endpoint("POST", "/v1/reviews/decide", scope="write")
def decide_many(call: Call, body: DecideManyRequest) -> ManyReviewed:
    """Approve or reject many records.

    Records that cannot be decided so stay as they are and are listed in `refused`. `batch` undoes the whole decision.
    """
    decision = Decision(
        decision=body.decision, who=_who(call, body.by), note=body.note, request_id=call.request_id
    )  # fmt: skip
    return many_of(review_queue.decide_many(call.store, body.ids, decision, clock.now_ms()))


@endpoint("POST", "/v1/reviews/undo", scope="write", problems=(404,))
def undo_many(call: Call, body: UndoBatchRequest) -> ManyReviewed:
    """Undo a decision about many records. A record that was decided again since stays as it is."""
    who = _who(call, body.by)
    done = review_queue.undo_many(call.store, body.batch, who, clock.now_ms(), body.note, call.request_id)
    if not done.records and not done.refused:
        raise Problem(404, "no-such-decision", "There is no decision about many records with this `batch`.")
    return many_of(done)


@endpoint("POST", "/v1/records/{id}/review/undo", scope="write", problems=(409,))
def undo_review(call: Call, id: str, body: UndoRequest) -> RecordReview:
    """Undo the last decision about a record: it is again as it was before.

    The decision stays in the list of decisions, with an entry `undo`. Selectors that a correction taught stay.
    """
    n = _find(call, id).record.n
    undo(call.store, n, _who(call, body.by), clock.now_ms(), note=body.note, request_id=call.request_id)
    return _review(call, _find(call, id))


def _who(call: Call, by: str | None) -> str:
    caller = call.caller.key_id or "this machine"
    return caller if by is None else f"{by} ({caller})"


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
    """Approve, reject or correct a record, or choose among contradicting values. Author and time are stored.

    `choose` decides about contradicted fields: each gets one of its withheld values, or none. An approved
    or corrected record is published and never replaced: a new extraction becomes a separate version.
    """
    n = _find(call, id).record.n
    decision = Decision(
        decision=body.decision,
        who=_who(call, body.by),
        note=body.note,
        correction=body.correction,
        choice=body.choice,
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
