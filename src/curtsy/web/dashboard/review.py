"""Review: a record beside the text that it was made from, with each value's evidence marked in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from flask import Response, request

from curtsy.core.errors import UsageError
from curtsy.store import dashboard_queries
from curtsy.web.api import reviews
from curtsy.web.dashboard import words
from curtsy.web.dashboard.site import ROWS, Visit, filled, valid, view
from curtsy.web.models.records import EvidenceInfo, FieldInfo, RecordInfo
from curtsy.web.models.reviews import DossierInfo, ReviewRequest, ReviewsQuery, SourceInfo, WithheldInfo

#: of one source that are shown; evidence beyond is shown as its quote only
_MOST_TEXT = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value of the record."""

    #: names it on the page: its evidence is marked under this name
    id: str
    path: str
    #: as it is shown, and filled into the form
    text: str
    rung: str
    verdict: str
    evidence: Sequence[EvidenceInfo]
    withheld: bool
    note: str = ""
    claimed_quote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Some text of a source, and the values that it is evidence of."""

    text: str
    of: tuple[str, ...] = ()
    #: it is the first piece of these
    first_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A source with its evidence marked."""

    source: SourceInfo
    pieces: tuple[Piece, ...]
    cut: bool


@view("GET", "/review", scope="write")
def review(visit: Visit) -> Response:
    query = visit.asked(ReviewsQuery, "crawl", "schema", "cursor", limit=ROWS)
    found = reviews.list_reviews(visit.call(query))
    crawl = None if query.crawl is None else visit.call().crawl(query.crawl)
    with visit.store.read() as tx:
        waiting, decided = dashboard_queries.review_queue(tx, None if crawl is None else crawl.n)
    return visit.page("review_queue.html", found=found, waiting=waiting, decided=decided, asked=query)


@view("GET", "/review/<id>")
def record(visit: Visit, id: str) -> Response:
    """Whoever may not review sees what is published."""
    call = visit.call()
    found: RecordInfo = reviews.record_review(call, id) if visit.may("write") else reviews.record(call, id)
    crawl = request.args.get("crawl", "").strip() or None
    limit = None if crawl is None else call.crawl(crawl).n
    with visit.store.read() as tx:
        before, behind = dashboard_queries.beside(tx, int(found.id), limit)
        waiting, decided = dashboard_queries.review_queue(tx, limit)
    values = values_of(found)
    sources = [marked(one, values) for one in found.sources] if isinstance(found, DossierInfo) else []
    sources.sort(key=lambda one: (one.source.kind != "text", -sum(bool(piece.of) for piece in one.pieces)))
    return visit.page(
        "review.html", record=found, values=values, sources=sources, before=before, behind=behind, waiting=waiting,
        decided=decided, crawl=crawl, history=found.reviews if isinstance(found, DossierInfo) else [],
    )  # fmt: skip


@view("POST", "/review/<id>", scope="write")
def decide(visit: Visit, id: str) -> Response:
    found = reviews.record_review(visit.call(), id)
    decision = request.form.get("decision", "")
    crawl = filled("crawl")
    limit = None if crawl is None else visit.call().crawl(crawl).n
    wish: dict[str, Any] = {"decision": decision, "note": filled("note") or "", "golden": "golden" in request.form}
    if decision == "correct":
        wish["correction"] = _correction(values_of(found))
        if not wish["correction"]:
            raise UsageError("Nothing was changed: write the right value into a field, or approve the record.")
    reviews.review(visit.call(body=valid(ReviewRequest, "form", wish)), id)
    with visit.store.read() as tx:
        before, behind = dashboard_queries.beside(tx, int(found.id), limit)
    done = {"approve": "Approved", "reject": "Rejected", "correct": "Corrected"}[decision]
    following = behind or before
    more = urlencode({"decided": found.id} | ({"crawl": crawl} if crawl else {}))
    return visit.go(f"/review{'' if following is None else f'/{following}'}?{more}", f"{done}: record {found.id}.")


def _correction(values: Sequence[Value]) -> dict[str, Any]:
    """Path -> the right value, of the fields that were changed; an emptied one says that there is none."""
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
    """A number, a list or a truth value if it is written as one; else the words."""
    if not text:
        return None
    try:
        found = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(found, str) else found


def _no_number(word: str) -> Any:
    """NaN and Infinity are words here: JSON does not have them."""
    raise ValueError(word)


def values_of(found: RecordInfo) -> list[Value]:
    """What is withheld, which is what a reviewer must look at, then what is published."""
    withheld = found.withheld if isinstance(found, DossierInfo) else []
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


def marked(source: SourceInfo, values: Sequence[Value]) -> Marked:
    """The text cut wherever evidence begins or ends."""
    text = words.inert(source.text[:_MOST_TEXT])
    spans = [
        (max(0, one.start), min(len(text), one.end), value.id)
        for value in values
        for one in value.evidence
        if one.page == source.page and one.sha256 == source.sha256 and one.source == source.kind
    ]
    spans = [span for span in spans if span[0] < span[1]]
    edges = sorted({0, len(text), *(edge for begin, end, _ in spans for edge in (begin, end))})
    pieces: list[Piece] = []
    seen: set[str] = set()
    for begin, end in pairwise(edges):
        of = tuple(dict.fromkeys(id for first, last, id in spans if first <= begin and end <= last))
        pieces.append(Piece(text=text[begin:end], of=of, first_of=tuple(id for id in of if id not in seen)))
        seen.update(of)
    return Marked(source=source, pieces=tuple(pieces), cut=len(source.text) > _MOST_TEXT)
