"""Review: a record next to its source text, with the evidence of each value highlighted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from flask import Response, request

from curtsy.core.errors import UsageError
from curtsy.core.text_layout import Part
from curtsy.records import review_queue
from curtsy.records.review_queue import MOST_AT_ONCE
from curtsy.store import dashboard_queries
from curtsy.web.api import reviews
from curtsy.web.dashboard import words
from curtsy.web.dashboard.site import ROWS, PageRequest, filled, valid, view
from curtsy.web.models.records import BoxInfo, EvidenceInfo, FieldInfo, PartInfo, RecordInfo
from curtsy.web.models.reviews import (
    DecideManyRequest,
    ManyReviewed,
    RecordReview,
    ReviewItem,
    ReviewRequest,
    ReviewsQuery,
    SourceInfo,
    UndoBatchRequest,
    UndoRequest,
    WithheldInfo,
)

#: query parameters that select the queue
FILTERS = ("crawl", "schema", "needs", "reason", "host", "field", "min_confidence", "max_confidence")
#: why records are held, for the list of choices (docs/explanation/records.md)
REASONS = ("thin", "empty", "unsupported", "contradicted", "disputed", "judged", "invalid", "reviewed_before")
_BATCH = re.compile(r"[0-9a-f-]{36}")
#: characters of one source that are shown; later evidence appears only as its quote
_MOST_TEXT = 200_000
#: pages of PDF files that are shown as pictures
_MOST_PICTURES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value of the record."""

    #: the HTML id, which links it to its evidence
    id: str
    path: str
    #: for display and as the initial value of the form field
    text: str
    rung: str
    verdict: str
    evidence: Sequence[EvidenceInfo]
    withheld: bool
    note: str = ""
    claimed_quote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a source, and the values that it is evidence for."""

    text: str
    of: tuple[str, ...] = ()
    #: values whose first piece this is
    first_of: tuple[str, ...] = ()
    #: the part of a document in which the evidence begins: `sheet 2 (Key facts)`
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A source with its evidence highlighted."""

    source: SourceInfo
    pieces: tuple[Piece, ...]
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedBox:
    """A place on the picture of a page, and the values that it is evidence for."""

    box: BoxInfo
    of: str
    #: the first box of its value
    is_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePicture:
    """A page of a PDF with its evidence marked."""

    page: str
    url: str
    number: int
    width: float
    height: float
    boxes: tuple[MarkedBox, ...]


@view("GET", "/review", scope="write")
def review(req: PageRequest) -> Response:
    query = req.query(ReviewsQuery, *FILTERS, "cursor", limit=ROWS)
    found = reviews.list_reviews(req.call(), query)
    crawl = None if query.crawl is None else req.call().crawl(query.crawl)
    with req.store.read() as tx:
        waiting, decided = dashboard_queries.review_queue(tx, None if crawl is None else crawl.n)
    return req.render(
        "review_queue.html", found=found, waiting=waiting, decided=decided, asked=query, queue=queue_of(request.args),
        batch=_batch(), reasons=REASONS,
    )  # fmt: skip


def queue_of(given: Mapping[str, str]) -> dict[str, str]:
    """The filters of the queue, from a query or a form."""
    return {name: value for name in FILTERS if (value := given.get(name, "").strip())}


def _query(given: Mapping[str, str]) -> ReviewsQuery:
    return valid(ReviewsQuery, "query", queue_of(given))


def _batch() -> str | None:
    given = request.args.get("batch", "")
    return given if _BATCH.fullmatch(given) else None


@view("GET", "/review/<id>")
def record(req: PageRequest, id: str) -> Response:
    """Without the scope `write`, only published records are shown."""
    call = req.call()
    found: RecordInfo = reviews.record_review(call, id) if req.may("write") else reviews.record(call, id)
    query = _query(request.args)
    limit = call.crawl_n(query.crawl)
    before, behind = review_queue.beside(req.store, int(found.id), limit, query.wanted)
    with req.store.read() as tx:
        waiting, decided = dashboard_queries.review_queue(tx, limit)
    values = values_of(found)
    sources = [marked(one, values) for one in found.sources] if isinstance(found, RecordReview) else []
    sources.sort(key=lambda one: (one.source.kind != "text", -sum(bool(piece.of) for piece in one.pieces)))
    return req.render(
        "review.html", record=found, values=values, disputes=disputes_of(found, values), sources=sources,
        pictures=pictures_of(values), before=before, behind=behind, waiting=waiting, decided=decided,
        queue=queue_of(request.args),
        history=found.reviews if isinstance(found, RecordReview) else [],
    )  # fmt: skip


@view("POST", "/review/<id>", scope="write")
def decide(req: PageRequest, id: str) -> Response:
    found = reviews.record_review(req.call(), id)
    decision = request.form.get("decision", "")
    query = _query(request.form)
    limit = req.call().crawl_n(query.crawl)
    body: dict[str, Any] = {"decision": decision, "note": filled("note") or "", "golden": "golden" in request.form}
    if decision == "correct":
        body["correction"] = _correction(values_of(found))
        if not body["correction"]:
            raise UsageError("Nothing was changed. Enter the right value in a field, or approve the record.")
    if decision == "choose":
        body["choice"] = _choice(found)
        if not body["choice"]:
            raise UsageError("Nothing was chosen. Select one of the values of a field, or none of them.")
    reviews.review(req.call(), id, valid(ReviewRequest, "form", body))
    before, behind = review_queue.beside(req.store, int(found.id), limit, query.wanted)
    done = {"approve": "Approved", "reject": "Rejected", "correct": "Corrected", "choose": "Chosen"}[decision]
    following = behind or before
    more = urlencode({"decided": found.id, **queue_of(request.form)})
    return req.redirect(f"/review{'' if following is None else f'/{following}'}?{more}", f"{done}: record {found.id}.")


@view("POST", "/review/<id>/undo", scope="write")
def undo_decision(req: PageRequest, id: str) -> Response:
    done = reviews.undo_review(req.call(), id, valid(UndoRequest, "form", {"note": filled("note") or ""}))
    queue = queue_of(request.form)
    where = f"/review/{done.id}{'?' + urlencode(queue) if queue else ''}"
    return req.redirect(where, f"Undone: record {done.id} is {done.status} again.")


@view("POST", "/review/many", scope="write")
def decide_many(req: PageRequest) -> Response:
    """First a preview; the page with it submits the decision."""
    queue, decision = queue_of(request.form), request.form.get("decision", "")
    if decision not in ("approve", "reject"):
        raise UsageError("Choose approve or reject.")
    if request.form.get("really") != "yes":
        found = _selected(req, queue)
        if not found:
            raise UsageError("Select the records to decide about.")
        return req.render("review_many.html", found=found, decision=decision, queue=queue, most=MOST_AT_ONCE)
    ids = [int(id) for id in request.form.getlist("ids") if id.isdecimal() and len(id) < 19]
    body = {"decision": decision, "ids": ids, "note": filled("note") or ""}
    done = reviews.decide_many(req.call(), valid(DecideManyRequest, "form", body))
    verb = {"approve": "Approved", "reject": "Rejected"}[decision]
    return _told(req, f"{verb}: {words.count(len(done.records), 'record')}.", done, {**queue, "batch": done.batch})


@view("POST", "/review/undo", scope="write")
def undo_many(req: PageRequest) -> Response:
    body = valid(UndoBatchRequest, "form", {"batch": filled("batch") or ""})
    done = reviews.undo_many(req.call(), body)
    return _told(req, f"Undone: {words.count(len(done.records), 'record')}.", done, queue_of(request.form))


def _told(req: PageRequest, text: str, done: ManyReviewed, query: dict[str, str]) -> Response:
    """The queue with a note, which says why some records stay as they are."""
    if done.refused:
        first = done.refused[0]
        text += f" {words.count(len(done.refused), 'record')} not changed; record {first.id}: {first.detail}"
    return req.redirect(f"/review{'?' + urlencode(query) if query else ''}", text[:1000])


def _selected(req: PageRequest, queue: dict[str, str]) -> list[ReviewItem]:
    """The held records that were selected; with `which=all`, all that match the filters, up to a limit."""
    query = valid(ReviewsQuery, "query", {**queue, "limit": MOST_AT_ONCE})
    if request.form.get("which") == "all":
        return reviews.list_reviews(req.call(), query).items
    wanted = set(request.form.getlist("ids"))
    return [one for one in reviews.list_reviews(req.call(), query).items if one.id in wanted]


def disputes_of(found: RecordInfo, values: Sequence[Value]) -> dict[str, list[Value]]:
    """Path -> the contradicting values, of fields that need a decision."""
    return {path: [one for one in values if one.withheld and one.path == path] for path in found.contradicted}


def _choice(found: RecordReview) -> dict[str, Any]:
    """Path -> the chosen value or None, for fields with a selection."""
    by_id = {f"w{n}": one for n, one in enumerate(found.withheld)}
    given = {path: request.form.get(f"choice:{path}") for path in found.contradicted}
    return {path: by_id[id].value if id in by_id else None for path, id in given.items() if id is not None}


def _correction(values: Sequence[Value]) -> dict[str, Any]:
    """Path -> the right value, for changed fields; an emptied field removes the value."""
    changed: dict[str, Any] = {}
    for value in values:
        given = request.form.get(f"value:{value.path}")
        if given is None:
            continue
        given = given.strip()
        before = "" if value.withheld else value.text
        if given != before:
            changed[value.path] = _read(given)
    return changed


def _read(text: str) -> Any:
    """JSON if the text is a number, list, object or boolean; else the text itself."""
    if not text:
        return None
    try:
        found = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(found, str) else found


def _no_number(word: str) -> Any:
    """NaN and Infinity are text: JSON does not have them."""
    raise ValueError(word)


def values_of(found: RecordInfo) -> list[Value]:
    """First the withheld values, which need a decision, then the published ones."""
    withheld = found.withheld if isinstance(found, RecordReview) else []
    doubtful = [_value(f"w{n}", one, True) for n, one in enumerate(withheld)]
    return doubtful + [_value(f"v{n}", one, False) for n, one in enumerate(found.fields)]


def _value(id: str, one: FieldInfo, withheld: bool) -> Value:
    text = one.value if isinstance(one.value, str) else json.dumps(one.value, ensure_ascii=False)
    return Value(
        id=id,
        path=one.path,
        text=text,
        rung=one.rung,
        verdict=one.verdict,
        evidence=one.evidence,
        withheld=withheld,
        note=one.note if isinstance(one, WithheldInfo) else "",
        claimed_quote=one.claimed_quote if isinstance(one, WithheldInfo) else None,
    )


def pictures_of(values: Sequence[Value]) -> list[PagePicture]:
    """The pages of PDF files with evidence, in the order of the values."""
    found: dict[tuple[str, int], list[tuple[EvidenceInfo, BoxInfo, Value]]] = {}
    for value in values:
        for one in value.evidence:
            for box in one.boxes:
                if box.width > 0 and box.height > 0:
                    found.setdefault((one.page, box.page), []).append((one, box, value))
    seen: set[str] = set()
    made = []
    for (page, number), places in list(found.items())[:_MOST_PICTURES]:
        boxes = []
        for _, box, value in places:
            boxes.append(MarkedBox(box=box, of=value.id, is_first=value.id not in seen))
            seen.add(value.id)
        evidence, first, _ = places[0]
        made.append(
            PagePicture(
                page=page, url=evidence.url, number=number, width=first.width, height=first.height, boxes=tuple(boxes)
            )
        )
    return made


def marked(source: SourceInfo, values: Sequence[Value]) -> Marked:
    """Split the text wherever evidence starts or ends."""
    text = words.inert(source.text[:_MOST_TEXT])
    cited = [
        (one, value.id)
        for value in values
        for one in value.evidence
        if one.page == source.page and one.sha256 == source.sha256 and one.source == source.kind
    ]
    spans = [(max(0, one.start), min(len(text), one.end), id) for one, id in cited]
    spans = [span for span in spans if span[0] < span[1]]
    parts = {one.start: _named(one.part) for one, _ in cited if one.part is not None}
    edges = sorted({0, len(text), *(edge for begin, end, _ in spans for edge in (begin, end))})
    pieces: list[Piece] = []
    seen: set[str] = set()
    for begin, end in pairwise(edges):
        of = tuple(dict.fromkeys(id for first, last, id in spans if first <= begin and end <= last))
        first_of, part = tuple(id for id in of if id not in seen), parts.get(begin, "") if of else ""
        pieces.append(Piece(text=text[begin:end], of=of, first_of=first_of, part=part))
        seen.update(of)
    return Marked(source=source, pieces=tuple(pieces), cut=len(source.text) > _MOST_TEXT)


def _named(part: PartInfo) -> str:
    return str(Part(part.kind, part.number, part.label))
