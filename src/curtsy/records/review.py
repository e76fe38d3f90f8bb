"""Review of records: approve, reject, correct, or choose among contradicting values.

A decision is one transaction: the new state of the record, and the review with reviewer, time and previous data. If a
corrected value is found in the record's sources, that place becomes its evidence.

    held       approve, correct -> published    reject -> rejected
    published  its contradicted fields wait; approve, correct and choose decide about them, and it stays published

`choose` publishes a held record if nothing else holds it back (docs/decisions/0168-contradicted-fields.md).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from curtsy.core.claims import Claim, Field, Rung, Source, SourceKind, Verdict, without_nul
from curtsy.core.errors import UnknownRecord, UsageError, WrongState
from curtsy.core.observe import log
from curtsy.core.record import Record, Review
from curtsy.core.text_layout import EMPTY_LAYOUT, TextLayout
from curtsy.grounding import judge, scoring
from curtsy.grounding.contradictions import CONTRADICTED
from curtsy.grounding.schema import Leaf, Schema
from curtsy.records import extraction, locate_value, selector_learning
from curtsy.records import plan as plans
from curtsy.records.corrected_paths import (
    check_place,
    is_within,
    leaves_of,
    no_leaf,
    put_in,
    renumbered,
    without_duplicates,
)
from curtsy.records.extraction import Parts
from curtsy.records.plan import Plan
from curtsy.records.review_undo import snapshot
from curtsy.store import pages, records, reviews, sources
from curtsy.store.engine import Store

DECISIONS = ("approve", "reject", "correct", "choose")
_STATUS = {"approve": "published", "correct": "published", "reject": "rejected"}
_MAX_CORRECTIONS = 1000
_MAX_PROBLEMS = 5
#: characters of a value that an error message repeats
_MAX_SHOWN = 100
#: of the candidates that it lists
_MAX_LISTED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A reviewer's decision on a record."""

    #: `approve` | `reject` | `correct` | `choose`
    decision: str
    who: str
    note: str = ""
    #: JSON pointer -> the right value; None: no value
    correction: dict[str, Any] | None = None
    #: JSON pointer of a contradicted field -> one of its values; None: none of them
    choice: dict[str, Any] | None = None
    #: make it a golden case
    golden: bool = False
    request_id: str = ""
    #: id of the decision about many records that it belongs to
    batch: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewCase:
    """Everything that a reviewer needs to see of a record."""

    record: Record
    sources: tuple[sources.Source, ...]
    history: tuple[Review, ...]
    #: sha256 of a source -> its layout, where the stored page still gives the same text
    layouts: Mapping[str, TextLayout] = field(default_factory=dict)


def review_case(store: Store, n: int) -> ReviewCase:
    with store.read() as tx:
        record = records.get(tx, n)
        if record is None:
            raise unknown(n)
        return ReviewCase(record=record, sources=tuple(sources.of(tx, n)), history=tuple(reviews.of(tx, n)))


def decide(store: Store, n: int, decision: Decision, now_ms: int, parts: Parts | None = None) -> Record:
    """Return the record after the decision. Every decision is kept, also when another follows.

    With `parts`, the evidence of corrected values has what only the stored pages tell: pages of documents, boxes,
    labels, visibility. Selectors are learned from the corrected values.
    """
    if decision.decision not in DECISIONS:
        raise UsageError(f"Unknown decision: {decision.decision!r}. Use one of: {', '.join(DECISIONS)}.")
    if (decision.correction is not None) != (decision.decision == "correct"):
        raise UsageError("Give corrected values with the decision `correct`, and only with it.")
    if (decision.choice is not None) != (decision.decision == "choose"):
        raise UsageError("Give chosen values with the decision `choose`, and only with it.")
    if not decision.who.strip():
        raise UsageError("A decision needs the name of the reviewer.")
    _check_words(decision)
    known = review_case(store, n)
    if decision.correction and parts is not None:
        known = replace(known, layouts=_layouts(parts, known))
    plan = plans.of_hashes(store, known.record.schema, known.record.schema_hash, _rubric_of(known.record))
    made: Record = store.run(_decide, known, plan, decision, now_ms)
    log("record_reviewed", level="info", record=n, decision=decision.decision, who=decision.who)
    if decision.correction and parts is not None and plan is not None and not _is_made_by_function(plan):
        selector_learning.teach(parts.store, parts.segments, parts.settings, plan.schema, known.record, made, now_ms)
    return made


def _layouts(parts: Parts, known: ReviewCase) -> dict[str, TextLayout]:
    cited = {one.page for one in known.sources if one.kind == SourceKind.TEXT.value}
    read = [extraction.page_sources(parts, known.record.crawl, page) for page in sorted(cited)]
    return {one.text.sha256: one.text.layout for one in read if one is not None}


def _check_words(decision: Decision) -> None:
    """A lone surrogate (half a character) cannot be stored, and in PostgreSQL no U+0000."""
    for name, text in (("note", decision.note), ("name", decision.who), *_values(decision).items()):
        try:
            dumped = json.dumps(text, ensure_ascii=False)
            dumped.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{name}: the text contains a lone surrogate and cannot be stored.") from None
        if "\\u0000" in dumped and without_nul(text) != text:
            raise UsageError(f"{name}: the text contains U+0000 and cannot be stored.")


def _values(decision: Decision) -> dict[str, Any]:
    return decision.correction or decision.choice or {}


def _rubric_of(record: Record) -> str | None:
    version = record.scores.get("version")
    return None if version is None else f"rubric-{version}"


def _decide(tx: Any, known: ReviewCase, plan: Plan | None, decision: Decision, now_ms: int) -> Record:
    record = records.get(tx, known.record.n, lock=True)
    if record is None:
        raise unknown(known.record.n)
    if record.status == "superseded":
        raise WrongState(f"Record {record.n} was superseded by a later version. Review that version.")
    before = record.data
    replaced = records.replaced_by(tx, record) if decision.decision != "reject" else []
    undo = snapshot(record, replaced)
    status = _STATUS.get(decision.decision, record.status)
    if _values(decision) and record.data != known.record.data:
        raise WrongState(f"Record {record.n} has changed since you opened it. Open it again.")
    if decision.correction is not None:
        record = _corrected(record, known, plan, decision.correction)
    elif decision.choice is not None:
        record = _chosen(record, known, plan, decision.choice)
        status = record.status
    elif decision.decision == "approve":
        record = replace(record if plan is None else _validated(_approved(record, plan), plan), contradicted=())
    record = replace(record, status=status, reviewed_ms=now_ms)
    records.decided(tx, record)
    reviews.add(
        tx,
        Review(
            record=record.n, crawl=record.crawl, decision=decision.decision, who=decision.who.strip(), at_ms=now_ms,
            note=decision.note, correction=_values(decision) or None, before=before, golden=decision.golden,
            request_id=decision.request_id, undo=undo, batch=decision.batch,
        ),
    )  # fmt: skip
    return record


# Contradicted fields


def _chosen(record: Record, known: ReviewCase, plan: Plan | None, choice: dict[str, Any]) -> Record:
    """Publish the chosen values. A held record is published, too, if nothing else holds it back."""
    if not choice:
        raise UsageError("A choice must have at least one field.")
    if plan is None:
        raise UsageError(f"The schema {record.schema!r} of this record no longer exists. Approve or reject the record.")
    if record.status == "rejected":
        raise WrongState(f"Record {record.n} was rejected. Undo that decision first.")
    fields = [extraction.field_from(data) for data in record.fields]
    withheld = [extraction.field_from(data) for data in record.withheld]
    for path, value in choice.items():
        candidates = [one for one in withheld if one.path == path and one.note == CONTRADICTED]
        if not candidates:
            raise UsageError(f"Record {record.n} has no contradicting values at {path}. Use the decision `correct`.")
        if value is not None:
            fields.append(_candidate(plan.schema, path, value, candidates, known))
            withheld = [one for one in withheld if one.path != path]
    made = _made_of(record, plan, fields, withheld)
    made = replace(made, contradicted=tuple(path for path in record.contradicted if path not in choice))
    if record.status == "published":
        return _validated(made, plan)
    return replace(made, status="held" if _holds_back(made, plan, fields, withheld) else "published")


def _candidate(schema: Schema, path: str, value: Any, candidates: list[Field], known: ReviewCase) -> Field:
    """Return the candidate with this value as a person's choice, with all its evidence."""
    found = next((one for one in candidates if type(one.value) is type(value) and one.value == value), None)
    if found is None:
        listed = ", ".join(json.dumps(one.value, ensure_ascii=False) for one in candidates)[:_MAX_LISTED]
        raise UsageError(f"{path}: {_shortened(value)} is not one of {listed}. Use the decision `correct`.")
    checked = _checked(schema, path, value, known)
    rule = checked.note if checked.verdict is Verdict.DERIVED else ""
    note = "; ".join(one for one in (rule, f"chosen, from {found.rung.value}") if one)
    return replace(checked, evidence=found.evidence, note=note)


def _holds_back(record: Record, plan: Plan, fields: list[Field], withheld: list[Field]) -> bool:
    """Return whether the record needs a decision as a whole, also with the chosen values."""
    words = int(record.confidence.get("words") or 0)
    return (
        records.REVIEWED_BEFORE in record.confidence.get("reasons", ())
        or judge.confidence(plan.schema, [*fields, *withheld], words).low
        or bool(plan.schema.validate(record.data))
    )


# Corrections


def _corrected(record: Record, known: ReviewCase, plan: Plan | None, correction: dict[str, Any]) -> Record:
    if not 0 < len(correction) <= _MAX_CORRECTIONS:
        raise UsageError(f"A correction must have 1 to {_MAX_CORRECTIONS} values.")
    if plan is None:
        raise UsageError(f"The schema {record.schema!r} of this record no longer exists. Approve or reject the record.")
    if _is_made_by_function(plan):
        return _corrected_facts(record, known, plan, correction)
    fields = [extraction.field_from(data) for data in record.fields]
    withheld = [extraction.field_from(data) for data in record.withheld]
    for path, value in correction.items():
        check_place(plan.schema, path, [*fields, *withheld])
        fields = [one for one in fields if not is_within(one.path, path)]
        withheld = [one for one in withheld if not is_within(one.path, path)]
        fields += [_checked(plan.schema, leaf_path, leaf, known) for leaf_path, leaf in leaves_of(path, value)]
    fields = renumbered(plan.schema, without_duplicates(plan.schema, fields))
    if problems := plan.schema.validate(judge.assemble(plan.schema, fields)):
        raise UsageError(f"The corrected record does not match its schema: {'; '.join(problems[:_MAX_PROBLEMS])}.")
    made = _made_of(record, plan, fields, withheld)
    return replace(made, contradicted=tuple(one for one in made.contradicted if not _is_decided(one, correction)))


def _is_made_by_function(plan: Plan) -> bool:
    return not plan.schema.leaves or plan.function is not None


def _corrected_facts(record: Record, known: ReviewCase, plan: Plan, correction: dict[str, Any]) -> Record:
    """Correct a record that a function made: a person's values replace the evidence of the previous ones."""
    data = put_in(record.data, correction)
    if problems := plan.schema.validate(data):
        raise UsageError(f"The corrected record does not match its schema: {'; '.join(problems[:_MAX_PROBLEMS])}.")
    fields = [extraction.field_from(one) for one in record.fields]
    for path, value in correction.items():
        before = [one for one in fields if is_within(one.path, path)]
        fields = [one for one in fields if not is_within(one.path, path)]
        given = enumerate(value) if isinstance(value, list) else [("", value)]
        paths = [(path if at == "" else f"{path}/{at}", one) for at, one in given if one is not None]
        fields += [_placed(one_path, one, known, before) for one_path, one in paths]
    by_person = {one.path.split("/")[1] for one in fields if one.rung is Rung.PERSON}
    rungs = {Rung.FUNCTION.value: len(data) - len(by_person), Rung.PERSON.value: len(by_person)}
    return replace(record, data=data, fields=tuple(map(extraction.field_of, fields)), rungs=rungs)


def _placed(path: str, value: Any, known: ReviewCase, before: list[Field]) -> Field:
    """A person's value; a text has its place in the sources if it is found there."""
    field = Field(path=path, value=value, rung=Rung.PERSON, verdict=Verdict.JUDGED, note="person")
    if not isinstance(value, str) or not value.strip():
        return field
    return locate_value.grounded(field, Leaf(path=path, type="string"), _texts(known), before)


def _is_decided(path: str, correction: dict[str, Any]) -> bool:
    return any(is_within(path, given) for given in correction)


def _approved(record: Record, plan: Plan) -> Record:
    """Approved judgments become the reviewer's; unsupported values stay withheld."""
    withheld = [extraction.field_from(data) for data in record.withheld]
    judged = [one for one in withheld if one.verdict is Verdict.JUDGED]
    if not judged:
        return record
    fields = [extraction.field_from(data) for data in record.fields]
    fields += [replace(one, rung=Rung.PERSON, note=f"approved, from {one.rung.value}") for one in judged]
    return _made_of(record, plan, renumbered(plan.schema, fields), [one for one in withheld if one not in judged])


def _validated(record: Record, plan: Plan) -> Record:
    if problems := plan.schema.validate(record.data):
        shown = "; ".join(problems[:_MAX_PROBLEMS])
        raise UsageError(f"Record {record.n} does not match its schema: {shown}. Correct or reject it.")
    return record


def _made_of(record: Record, plan: Plan, fields: list[Field], withheld: list[Field]) -> Record:
    data = judge.assemble(plan.schema, fields)
    scores = record.scores
    if plan.rubric is not None:
        # A model is not called again: its answers concern the previous evidence.
        scores = scores | scoring.score(plan.rubric, plan.schema.name, data, fields, None)
    return replace(
        record,
        data=data,
        fields=tuple(extraction.field_of(one) for one in fields),
        withheld=tuple(extraction.field_of(one) for one in withheld),
        rungs=dict(Counter(one.rung.value for one in fields)),
        scores=scores,
    )


def _checked(schema: Schema, path: str, value: Any, known: ReviewCase) -> Field:
    """Return a reviewer's value, with its place in the sources if it is found there."""
    try:
        leaf = schema.leaf_for(path)
    except KeyError:
        raise UsageError(no_leaf(schema, path)) from None
    nothing = Source(SourceKind.TEXT, "", known.record.url, "")
    field = judge.judge(Claim(path=path, value=value, rung=Rung.PERSON, source=nothing), leaf)
    if not judge.is_grounded(field):
        raise UsageError(f"{path}: {_shortened(value)} does not match the schema ({field.note}).")
    before = [extraction.field_from(data) for data in (*known.record.fields, *known.record.withheld)]
    return locate_value.grounded(field, leaf, _texts(known), before)


def _texts(known: ReviewCase) -> list[Source]:
    crawl = known.record.crawl
    return [
        Source(
            SourceKind(one.kind),
            pages.page_id(crawl, bytes.fromhex(one.page)),
            one.url,
            one.text,
            layout=known.layouts.get(one.sha256, EMPTY_LAYOUT),
        )
        for one in known.sources
    ]


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}... ({len(text):,} characters)"


def unknown(n: int) -> UnknownRecord:
    return UnknownRecord(f"Unknown record: {n}. `curtsy review list` lists the records that wait for a review.")
