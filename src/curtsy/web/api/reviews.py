"""The review queue, and what people decide."""

from __future__ import annotations

from curtsy.core import clock
from curtsy.records import review as reviewing
from curtsy.records.review import Decision, Dossier
from curtsy.store import crawls, records
from curtsy.web.models.records import RecordInfo, record_of
from curtsy.web.models.reviews import DossierInfo, ReviewItem, ReviewRequest, ReviewsQuery, dossier_of, item_of
from curtsy.web.paging import Page, decode, encode
from curtsy.web.problems import Problem
from curtsy.web.routing import Call, endpoint

_LARGEST = 2**63 - 1


@endpoint(
    "GET",
    "/v1/reviews",
    scope="write",
    query=ReviewsQuery,
    answers={200: Page[ReviewItem]},
    problems=(404,),
    tags=("reviews",),
)
def list_reviews(call: Call) -> Page[ReviewItem]:
    """List the records that wait for a person, oldest first, with the values that are withheld of them.

    With `schema` an answer may hold few items, or none, although `next` is not null.
    """
    query: ReviewsQuery = call.query
    n = None if query.crawl is None else call.crawl(query.crawl).n
    position = decode(query.cursor, int)
    with call.store.read() as tx:
        found, _ = records.chunk(tx, n, 0 if position is None else position[0], query.limit + 1, statuses=("held",))
        ids = crawls.ids(tx, {record.crawl for record in found})
    more = len(found) > query.limit
    shown = [one for one in found[: query.limit] if query.schema_name in (None, one.schema) and one.crawl in ids]
    items = [item_of(Dossier(record=one, sources=(), history=()), ids[one.crawl]) for one in shown]
    return Page[ReviewItem](items=items, next=encode(found[query.limit - 1].n) if more else None)


@endpoint("GET", "/v1/records/{id}", scope="read", answers={200: RecordInfo}, tags=("records",))
def record(call: Call, id: str) -> RecordInfo:
    """A record with its evidence. One that is not published is shown to the scope `write` only."""
    found = _dossier(call, id).record
    if found.status != "published" and not call.key.may("write"):
        raise _unknown()
    return record_of(found)


@endpoint("GET", "/v1/records/{id}/review", scope="write", answers={200: DossierInfo}, tags=("reviews",))
def record_review(call: Call, id: str) -> DossierInfo:
    """All that a reviewer needs: the record, what is withheld, the texts that evidence stands in, every decision."""
    return _shown(call, _dossier(call, id))


@endpoint(
    "POST",
    "/v1/records/{id}/review",
    scope="write",
    body=ReviewRequest,
    answers={200: DossierInfo},
    problems=(409,),
    tags=("reviews",),
)
def review(call: Call, id: str) -> DossierInfo:
    """Approve, reject or correct a record; who and when is kept with the decision.

    An approved or corrected record is published and never replaced: a new extraction becomes a version beside it.
    """
    wish: ReviewRequest = call.body
    n = _dossier(call, id).record.n
    asking = call.key.key or "this machine"
    decision = Decision(
        decision=wish.decision,
        who=asking if wish.by is None else f"{wish.by} ({asking})",
        note=wish.note,
        correction=wish.correction,
        golden=wish.golden,
        request_id=call.request_id,
    )
    reviewing.decide(call.store, n, decision, clock.now_ms())
    return _shown(call, _dossier(call, id))


def _dossier(call: Call, id: str) -> Dossier:
    if not (id.isascii() and id.isdigit() and len(id) < 20 and int(id) <= _LARGEST):
        raise _unknown()
    return reviewing.dossier(call.store, int(id))


def _shown(call: Call, known: Dossier) -> DossierInfo:
    with call.store.read() as tx:
        crawl = crawls.ids(tx, [known.record.crawl]).get(known.record.crawl)
    if crawl is None:
        raise _unknown()
    return dossier_of(known, crawl)


def _unknown() -> Problem:
    return Problem(404, "no-such-record", "There is no record of that id. GET /v1/crawls/{id}/records lists them.")
