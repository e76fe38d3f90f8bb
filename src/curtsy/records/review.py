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

from curtsy.core.claims import Claim, Field, Rung, Source, SourceKind, Verdict
from curtsy.core.errors import UnknownRecord, UsageError, WrongState
from curtsy.core.observe import log
from curtsy.core.record import Record, Review
from curtsy.grounding import judge
from curtsy.records import extraction, locate_value
from curtsy.records import plan as plans
from curtsy.store import pages, records, reviews, sources
from curtsy.store.segments import read_page

if TYPE_CHECKING:
    from curtsy.grounding.schema import Schema
    from curtsy.records.plan import Plan
    from curtsy.store.engine import Store
    from curtsy.store.segments import SegmentStore

DECISIONS = ("approve", "reject", "correct")
_STATUS = {"approve": "published", "correct": "published", "reject": "rejected"}
_MAX_CORRECTIONS = 1000
_MAX_PROBLEMS = 5
#: characters of a value that an error repeats
_MAX_SAID = 100


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
        _check_place(plan.schema, path, [*fields, *withheld])
        fields = [one for one in fields if not _within(one.path, path)]
        withheld = [one for one in withheld if not _within(one.path, path)]
        fields += [_judged(plan.schema, leaf_path, leaf, known) for leaf_path, leaf in _leaves(path, value)]
    fields = _renumbered(plan.schema, _once(plan.schema, fields))
    if problems := plan.schema.validate(judge.assemble(plan.schema, fields)):
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
    data = judge.assemble(plan.schema, fields)
    scores = record.scores
    if plan.rubric is not None:
        from curtsy.grounding import scoring

        # A model is not asked again: its answers are to the evidence as it was.
        scores = scores | scoring.score(plan.rubric, plan.schema.name, data, fields, None)
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


def _check_place(schema: Schema, path: str, fields: list[Field]) -> None:
    """An item of a list is one that is there, or the next."""
    parts = path.split("/")
    lists = {
        "/".join(parts[:at])
        for wanted in (leaf.path.split("/") for leaf in schema.leaves)
        for at in range(1, min(len(wanted), len(parts)))
        if wanted[at] == "*" and all(a in ("*", b) for a, b in zip(wanted[:at], parts[:at], strict=True))
    }
    for above in lists:
        at = above.count("/") + 1
        there = {int(one.path.split("/")[at]) for one in fields if one.path.startswith(f"{above}/")}
        following = max(there, default=-1) + 1
        if parts[at].isdigit() and int(parts[at]) > following:
            raise UsageError(f"There is no {path} in this record: what comes next in {above} is {above}/{following}.")


def _once(schema: Schema, fields: list[Field]) -> list[Field]:
    """Of items of a list that say the same, the first."""
    seen: set[tuple[str, str]] = set()
    made = []
    for one in fields:
        above, _, _ = one.path.rpartition("/")
        once = (above, json.dumps(one.value))
        if schema.leaf_for(one.path).path.endswith("/*") and once in seen:
            continue
        seen.add(once)
        made.append(one)
    return made


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
        raise UsageError(_no_leaf(schema, path)) from None
    nothing = Source(SourceKind.TEXT, "", known.record.url, "")
    word = judge.judge(Claim(path=path, value=value, rung=Rung.PERSON, source=nothing), leaf)
    if not judge.is_grounded(word):
        raise UsageError(f"{path}: {_shortened(value)} does not fit the schema ({word.note}).")
    crawl = known.record.crawl
    texts = [
        Source(SourceKind(one.kind), pages.page_id(crawl, bytes.fromhex(one.page)), one.url, one.text)
        for one in known.sources
    ]
    before = [extraction.field_from(told) for told in (*known.record.fields, *known.record.withheld)]
    return locate_value.grounded(word, leaf, texts, before)


def _no_leaf(schema: Schema, path: str) -> str:
    """Why there is no value at a path: it is unknown, or has values below it."""
    parts = path.split("/")
    for leaf in schema.leaves:
        wanted = leaf.path.split("/")
        if len(wanted) > len(parts) and all(a in ("*", b) for a, b in zip(wanted, parts, strict=False)):
            kind = "a list" if wanted[len(parts)] == "*" else "an object"
            return f"{path} is {kind} in the schema {schema.name}: give it as JSON."
    return f"There is no {path} in the schema {schema.name}."


def _shortened(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= _MAX_SAID else f"{said[:_MAX_SAID]}... ({len(said):,} characters)"


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
    what is right. Cases that are there already are written again. One of `only` that cannot be one is told."""
    for n in only:
        dossier(store, n)
    made: dict[int, Path] = {}
    after = 0
    while True:
        with store.read() as tx:
            found = reviews.golden(tx, crawl, every or bool(only), after)
        if not found:
            if left := sorted(only - set(made)):
                raise UsageError(f"Record {left[0]} is no golden case: it must have been approved or corrected.")
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
