"""What people decide of records: approve, reject, correct; and corrections as golden cases.

A decision is one transaction: the record as it is from here on, and the review with who, when and what it was before.
A correction is a person's word: where the value stands in the record's sources, it gets that place as its evidence.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curtsy import extraction, ground, plans
from curtsy.errors import UnknownRecord, UsageError, WrongState
from curtsy.evidence import Claim, Field, Rung, Source, SourceKind, Verdict
from curtsy.observe import log
from curtsy.record import Record, Review
from curtsy.store import pages, records, reviews, sources
from curtsy.store.segments import read_page

if TYPE_CHECKING:
    from curtsy.plans import Plan
    from curtsy.schemas import Schema
    from curtsy.store.engine import Store
    from curtsy.store.segments import SegmentStore

DECISIONS = ("approve", "reject", "correct")
_STATUS = {"approve": "published", "correct": "published", "reject": "rejected"}
_MAX_CORRECTIONS = 1000
_MAX_PROBLEMS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a person says of a record."""

    #: `approve` | `reject` | `correct`
    decision: str
    who: str
    note: str = ""
    #: JSON pointer -> the right value; None: there is none
    correction: dict[str, Any] | None = None
    #: it shall become a golden case
    golden: bool = False
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """All that a reviewer needs to see of a record."""

    record: Record
    sources: tuple[sources.Source, ...]
    history: tuple[Review, ...]


def dossier(store: Store, n: int) -> Dossier:
    with store.read() as tx:
        record = records.get(tx, n)
        if record is None:
            raise unknown(n)
        return Dossier(record=record, sources=tuple(sources.of(tx, n)), history=tuple(reviews.of(tx, n)))


def decide(store: Store, n: int, decision: Decision, now_ms: int) -> Record:
    """The record as it is from here on. Every decision is kept, also when another follows."""
    if decision.decision not in DECISIONS:
        raise UsageError(f"{decision.decision!r} is no decision. Use one of: {', '.join(DECISIONS)}.")
    if (decision.correction is not None) != (decision.decision == "correct"):
        raise UsageError("A correction says which values are right; other decisions say none.")
    if not decision.who.strip():
        raise UsageError("A decision needs somebody who made it.")
    _check_words(decision)
    known = dossier(store, n)
    plan = plans.of_hashes(store, known.record.schema, known.record.schema_hash, _rubric_of(known.record))
    made: Record = store.run(_decide, known, plan, decision, now_ms)
    log("record_reviewed", level="info", record=n, decision=decision.decision, who=decision.who)
    return made


def _check_words(decision: Decision) -> None:
    """Half of a character (a lone surrogate) is nothing that can be stored."""
    for name, said in (("note", decision.note), ("name", decision.who), *(decision.correction or {}).items()):
        try:
            json.dumps(said, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise UsageError(f"{name}: the text has half a character (a lone surrogate) and cannot be kept.") from None


def _rubric_of(record: Record) -> str | None:
    version = record.scores.get("version")
    return None if version is None else f"rubric-{version}"


def _decide(tx: Any, known: Dossier, plan: Plan | None, decision: Decision, now_ms: int) -> Record:
    record = records.get(tx, known.record.n, lock=True)
    if record is None:
        raise unknown(known.record.n)
    if record.status == "superseded":
        raise WrongState(f"Record {record.n} has been superseded by a later version: review that one.")
    before = record.data
    if decision.correction is not None:
        if record.data != known.record.data:
            raise WrongState(f"Record {record.n} was changed meanwhile: look at it again.")
        record = _corrected(record, known, plan, decision.correction)
    elif decision.decision == "approve" and plan is not None:
        record = _fitting(_approved(record, plan), plan)
    record = replace(record, status=_STATUS[decision.decision], reviewed_ms=now_ms)
    records.decided(tx, record)
    reviews.add(
        tx,
        Review(
            record=record.n, crawl=record.crawl, decision=decision.decision, who=decision.who.strip(), at_ms=now_ms,
            note=decision.note, correction=decision.correction, before=before, golden=decision.golden,
            request_id=decision.request_id,
        ),
    )  # fmt: skip
    return record


# Corrections


def _corrected(record: Record, known: Dossier, plan: Plan | None, correction: dict[str, Any]) -> Record:
    if not 0 < len(correction) <= _MAX_CORRECTIONS:
        raise UsageError(f"A correction names 1 to {_MAX_CORRECTIONS} values.")
    if plan is None:
        raise UsageError(f"The schema {record.schema!r} of this record is not there any more: approve or reject it.")
    if not plan.schema.leaves or plan.function is not None:
        return replace(record, data=_put_in(record.data, correction))
    fields = [extraction.field_from(told) for told in record.fields]
    withheld = [extraction.field_from(told) for told in record.withheld]
    for path, value in correction.items():
        fields = [one for one in fields if not _within(one.path, path)]
        withheld = [one for one in withheld if not _within(one.path, path)]
        fields += [_judged(plan.schema, leaf_path, leaf, known) for leaf_path, leaf in _leaves(path, value)]
    fields = _renumbered(plan.schema, fields)
    if problems := plan.schema.validate(ground.assemble(plan.schema, fields)):
        raise UsageError(f"The corrected record does not fit its schema: {'; '.join(problems[:_MAX_PROBLEMS])}.")
    return _made_of(record, plan, fields, withheld)


def _approved(record: Record, plan: Plan) -> Record:
    """Judgements that waited for a person are that person's now; what nothing supports stays withheld."""
    withheld = [extraction.field_from(told) for told in record.withheld]
    judged = [one for one in withheld if one.verdict is Verdict.JUDGED]
    if not judged:
        return record
    fields = [extraction.field_from(told) for told in record.fields]
    fields += [replace(one, rung=Rung.PERSON, note=f"approved, from {one.rung.value}") for one in judged]
    return _made_of(record, plan, _renumbered(plan.schema, fields), [one for one in withheld if one not in judged])


def _fitting(record: Record, plan: Plan) -> Record:
    if problems := plan.schema.validate(record.data):
        told = "; ".join(problems[:_MAX_PROBLEMS])
        raise UsageError(f"Record {record.n} does not fit its schema: {told}. Correct or reject it.")
    return record


def _made_of(record: Record, plan: Plan, fields: list[Field], withheld: list[Field]) -> Record:
    data = ground.assemble(plan.schema, fields)
    scores = record.scores
    if plan.rubric is not None:
        from curtsy import score

        # A model is not asked again: its answers are to the evidence as it was.
        scores = scores | score.score(plan.rubric, plan.schema.name, data, fields, None)
    return replace(
        record,
        data=data,
        fields=tuple(extraction.field_of(one) for one in fields),
        withheld=tuple(extraction.field_of(one) for one in withheld),
        rungs=dict(Counter(one.rung.value for one in fields)),
        scores=scores,
    )


def _renumbered(schema: Schema, fields: list[Field]) -> list[Field]:
    """Items of lists count without gaps, as they stand in the data."""
    places: dict[str, set[int]] = {}
    for one in fields:
        for prefix, number in _numbers(schema, one.path):
            places.setdefault(prefix, set()).add(number)
    order = {prefix: {old: new for new, old in enumerate(sorted(found))} for prefix, found in places.items()}
    made = []
    for one in fields:
        parts = one.path.split("/")
        for prefix, number in _numbers(schema, one.path):
            parts[prefix.count("/") + 1] = str(order[prefix][number])
        made.append(replace(one, path="/".join(parts)))
    return made


def _numbers(schema: Schema, path: str) -> Iterator[tuple[str, int]]:
    """(the list, place in it) of each list that a leaf stands in."""
    parts, wanted = path.split("/"), schema.leaf_for(path).path.split("/")
    for at, part in enumerate(wanted):
        if part == "*":
            yield "/".join(parts[:at]), int(parts[at])


def _within(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The leaves that a value of the record consists of; a missing one has none."""
    if value is None:
        return
    inner: Iterator[tuple[str, Any]]
    if isinstance(value, dict):
        inner = ((name.replace("~", "~0").replace("/", "~1"), one) for name, one in value.items())
    elif isinstance(value, list):
        inner = ((str(place), one) for place, one in enumerate(value))
    else:
        yield path, value
        return
    for name, one in inner:
        yield from _leaves(f"{path}/{name}", one)


def _judged(schema: Schema, path: str, value: Any, known: Dossier) -> Field:
    """A person's word, with the place where it stands if it stands in a source."""
    try:
        leaf = schema.leaf_for(path)
    except KeyError:
        raise UsageError(f"There is no {path} in the schema {schema.name}.") from None
    crawl = known.record.crawl
    best: Field | None = None
    for one in known.sources:
        page = pages.page_id(crawl, bytes.fromhex(one.page))
        source = Source(SourceKind(one.kind), page, one.url, one.text)
        field = ground.judge(Claim(path=path, value=value, rung=Rung.PERSON, source=source), leaf)
        if field.evidence:
            return field
        best = best if best is not None and ground.is_grounded(best) else field
    if best is None:
        nothing = Source(SourceKind.TEXT, "", known.record.url, "")
        best = ground.judge(Claim(path=path, value=value, rung=Rung.PERSON, source=nothing), leaf)
    if not ground.is_grounded(best):
        raise UsageError(f"{path}: {value!r} does not fit the schema ({best.note}).")
    return best


def _put_in(data: dict[str, Any], correction: dict[str, Any]) -> dict[str, Any]:
    """For schemas without leaves: values at top-level names."""
    made = dict(data)
    for path, value in correction.items():
        name = path.removeprefix("/")
        if not path.startswith("/") or "/" in name or name not in data:
            raise UsageError(f"There is no {path} in this record.")
        made[name] = value
    return made


def unknown(n: int) -> UnknownRecord:
    return UnknownRecord(f"There is no record {n} here. `curtsy review list` shows those that wait.")


# Golden cases


def export_golden(
    store: Store, segments: SegmentStore, out: Path, *, crawl: int | None = None, every: bool = False,
    only: frozenset[int] = frozenset(),
) -> list[Path]:  # fmt: skip
    """A folder for each reviewed record that shall be a golden case: its pages as they were stored, its schema, and
    what is right. Cases that are there already are written again."""
    made: dict[int, Path] = {}
    after = 0
    while True:
        with store.read() as tx:
            found = reviews.golden(tx, crawl, every or bool(only), after)
        if not found:
            return list(made.values())
        for review in found:
            if (not only or review.record in only) and review.record not in made:
                case = _case(store, segments, review.record, out)
                if case is not None:
                    made[review.record] = case
        after = found[-1].n


def _case(store: Store, segments: SegmentStore, n: int, out: Path) -> Path | None:
    known = dossier(store, n)
    record = known.record
    plan = plans.of_hashes(store, record.schema, record.schema_hash)
    if record.status != "published" or plan is None:
        return None
    folder = out / f"{_word(plan.schema.name)}-{n}"
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    cited = {one.page: one.url for one in known.sources} or (
        {record.subject: record.url} if record.kind == "page" else {}
    )
    for place, (fp, url) in enumerate(sorted(cited.items(), key=lambda item: item[1])):
        with store.read() as tx:
            page = pages.get(tx, record.crawl, bytes.fromhex(fp))
            body = None if page is None else read_page(tx, segments, page)
        if page is None or body is None:
            continue
        (folder / f"page-{place}.html").write_bytes(body.body)
        listed.append({"url": url, "content_type": page.content_type, "body": f"page-{place}.html"})
    last = known.history[-1]
    case = {
        "schema": plan.schema.dump(),
        "pages": listed,
        "expected": record.data,
        "review": {"decision": last.decision, "who": last.who, "at_ms": last.at_ms, "note": last.note},
    }
    (folder / "case.json").write_text(json.dumps(case, ensure_ascii=False, indent=2) + "\n", "utf-8")
    return folder


def _word(name: str) -> str:
    return "".join(sign if sign.isalnum() else "-" for sign in name).strip("-")[:60] or "record"
