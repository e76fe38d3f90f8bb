"""Judge extraction against a truth file: labeled pages, what they state, and decoys.

    load      cases of a JSONL or TOML file
    judge     run the extraction of each case without a model, and count by field
    below     the floors that a report does not reach

A value is right if it equals the true one; wrong values that the case lists as decoys are `misattributed`. A value
without a span that holds its quote is `unsupported`. Nothing is fetched or stored.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curtsy.core.claims import Field, Source
from curtsy.core.errors import UsageError
from curtsy.extract import record_claims
from curtsy.grounding import judge as grounding
from curtsy.grounding import schema as schemas
from curtsy.grounding.schema import Schema
from curtsy.records.evaluation import Tally

#: values in the report, per kind of mistake
_MAX_LISTED = 500
_KEYS = frozenset(("id", "schema", "pages", "url", "html", "truth", "decoys", "fields", "why"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Pages of one record, and what they state."""

    id: str
    schema: Schema
    #: (URL, HTML)
    pages: tuple[tuple[str, str], ...]
    #: leaf -> its true values; empty: the pages do not state it
    truth: Mapping[str, tuple[Any, ...]]
    #: leaf -> values that are about something else
    decoys: Mapping[str, tuple[Any, ...]]
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A published value that is not true, or has no valid span."""

    case: str
    path: str
    value: Any
    quote: str
    why: str


@dataclass(slots=True)
class Report:
    cases: int = 0
    fields: dict[str, Tally] = field(default_factory=dict)
    wrong: list[Mistake] = field(default_factory=list)
    #: those of `wrong` that the case lists as decoys
    misattributed: int = 0
    unsupported: list[Mistake] = field(default_factory=list)
    #: (case, leaf, value)
    missed: list[tuple[str, str, Any]] = field(default_factory=list)

    @property
    def total(self) -> Tally:
        every = self.fields.values()
        return Tally(*(sum(getattr(one, name) for one in every) for name in ("right", "wrong", "missed")))

    def as_json(self) -> dict[str, Any]:
        return {
            "cases": self.cases,
            "total": _tally(self.total),
            "fields": {path: _tally(one) for path, one in self.fields.items()},
            "misattributed": self.misattributed,
            "wrong": [_mistake(one) for one in self.wrong[:_MAX_LISTED]],
            "unsupported": [_mistake(one) for one in self.unsupported[:_MAX_LISTED]],
            "missed": [{"case": one, "path": path, "value": value} for one, path, value in self.missed[:_MAX_LISTED]],
        }


def _tally(one: Tally) -> dict[str, Any]:
    return {
        "right": one.right, "wrong": one.wrong, "missed": one.missed,
        "precision": None if one.precision is None else round(one.precision, 4),
        "recall": None if one.recall is None else round(one.recall, 4),
    }  # fmt: skip


def _mistake(one: Mistake) -> dict[str, Any]:
    return {"case": one.case, "path": one.path, "value": one.value, "quote": one.quote, "why": one.why}


# Reading


def load(path: Path) -> list[Case]:
    """Return the cases of a truth file: one JSON object per line, or a TOML file with `[[case]]`."""
    try:
        text = path.read_text("utf-8")
        top, many = _parsed(path, text)
    except OSError as error:
        raise UsageError(f"the truth file {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"the truth file {path} is not valid: {error}") from error
    if not many:
        expected = "a [[case]] for each case" if path.suffix == ".toml" else "a JSON object per line"
        raise UsageError(f"the truth file {path} has no cases: it needs {expected}")
    known: dict[str, Schema] = {}
    return [_case({**top, **one}, number, path, known) for number, one in enumerate(many, 1)]


def _parsed(path: Path, text: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if path.suffix == ".toml":
        document = tomllib.loads(text)
        many = document.pop("case", [])
        return document, many
    return {}, [json.loads(line) for line in text.splitlines() if line.strip()]


def _case(one: Any, number: int, path: Path, known: dict[str, Schema]) -> Case:
    name = str(one.get("id", number)) if isinstance(one, dict) else str(number)
    try:
        if not isinstance(one, dict):
            raise UsageError("not an object")
        if unknown := sorted(set(one) - _KEYS):
            raise UsageError(f"unknown key {unknown[0]!r}. Known keys: {', '.join(sorted(_KEYS))}")
        schema = _schema(one.get("schema"), path.parent, known)
        pages = one.get("pages") or [{"url": one.get("url"), "html": one.get("html")}]
        return Case(
            id=name, schema=schema, why=str(one.get("why", "")),
            pages=tuple((str(page["url"]), str(page["html"])) for page in pages),
            truth=_truth(schema, one.get("truth") or {}, one.get("fields") or ()),
            decoys={_leaf(schema, key): _many(value) for key, value in (one.get("decoys") or {}).items()},
        )  # fmt: skip
    except UsageError as error:
        raise UsageError(f"{path.name}, case {name}: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path.name}, case {name}: a page needs `url` and `html`, `truth` is a table") from error


def _schema(spec: Any, folder: Path, known: dict[str, Schema]) -> Schema:
    key = json.dumps(spec, sort_keys=True)
    if key not in known:
        known[key] = schemas.inline(spec) if isinstance(spec, dict) else schemas.load(str(spec), folder=folder)
    return known[key]


def _truth(schema: Schema, given: Mapping[str, Any], fields: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Fields that are judged in every case of a file are not stated where a case does not name them."""
    found: dict[str, tuple[Any, ...]] = {_leaf(schema, name): () for name in fields}
    return found | {_leaf(schema, name): _many(value) for name, value in given.items()}


def _leaf(schema: Schema, name: str) -> str:
    path = name if name.startswith("/") else "/" + name.replace(".", "/")
    for leaf in schema.leaves:
        if leaf.path in (path, f"{path}/*"):
            return leaf.path
    raise UsageError(f"the schema {schema.name} has no value {name}")


def _many(value: Any) -> tuple[Any, ...]:
    every = value if isinstance(value, list) else [value]
    return tuple(one for one in every if one not in (None, ""))


# Judging


def judge(cases: Sequence[Case]) -> Report:
    """Extract each case without a model, and compare."""
    report = Report()
    for case in cases:
        report.cases += 1
        fields, sources = extracted(case)
        _count(report, case, fields, sources)
    return report


def extracted(case: Case) -> tuple[list[Field], dict[str, Source]]:
    """Return the published fields of a case, and the sources by their hash."""
    pages = [
        record_claims.sources_of(str(number), url, html.encode(), "text/html; charset=utf-8")
        for number, (url, html) in enumerate(case.pages)
    ]
    if case.schema.per == "site":
        chosen = record_claims.choose(case.schema, [(page.url, page.title) for page in pages])
        pages = [page for url in chosen for page in pages if page.url == url]
    extraction = record_claims.extract(case.schema, pages)
    fields = grounding.settle(case.schema, extraction.claims)
    sources = {claim.source.sha256: claim.source for claim in extraction.claims}
    return [one for one in fields if grounding.is_published(one, case.schema.leaf_for(one.path))], sources


def _count(report: Report, case: Case, fields: Sequence[Field], sources: Mapping[str, Source]) -> None:
    left = {path: list(values) for path, values in case.truth.items()}
    for one in fields:
        path = case.schema.leaf_for(one.path).path
        if not _has_span(one, sources):
            report.unsupported.append(_made(case, one))
        if path not in left:
            continue
        tally = report.fields.setdefault(path, Tally())
        same = next((true for true in left[path] if equal(one.value, true)), None)
        if same is not None:
            left[path].remove(same)
            tally.right += 1
        else:
            tally.wrong += 1
            report.wrong.append(_made(case, one))
            report.misattributed += any(equal(one.value, decoy) for decoy in case.decoys.get(path, ()))
    for path, values in left.items():
        report.fields.setdefault(path, Tally()).missed += len(values)
        report.missed += [(case.id, path, value) for value in values]


def _made(case: Case, one: Field) -> Mistake:
    quote = one.evidence[0].quote if one.evidence else ""
    return Mistake(case=case.id, path=one.path, value=one.value, quote=quote, why=case.why)


def _has_span(one: Field, sources: Mapping[str, Source]) -> bool:
    return any(
        span.sha256 in sources and sources[span.sha256].text[span.start : span.end] == span.quote != ""
        for span in one.evidence
    )


def equal(value: Any, true: Any) -> bool:
    """Return whether two values are the same: numbers by their value, texts without regard to case, space and the
    mark at the end."""
    if isinstance(value, int | float) and isinstance(true, int | float):
        return abs(float(value) - float(true)) < 1e-9
    return _plain(value) == _plain(true)


def _plain(value: Any) -> str:
    """A statement may be listed with the mark at its end."""
    return " ".join(str(value).casefold().split()).strip(" .!?。！？")


# Floors


def below(report: Report, floors: Mapping[str, Any]) -> list[str]:
    """Return the floors that a report does not reach: `precision`, `recall`, `wrong` (at most), and `[fields]`."""
    found = list(_below("total", report.total, floors))
    for name, wanted in (floors.get("fields") or {}).items():
        path = next((one for one in report.fields if one.strip("/*").replace("/", ".") == name), "")
        found += _below(name, report.fields.get(path, Tally()), wanted)
    if len(report.wrong) > floors.get("wrong", len(report.wrong)):
        found.append(f"{len(report.wrong)} wrong values, at most {floors['wrong']}")
    if report.unsupported:
        found.append(f"{len(report.unsupported)} values without a valid span")
    return found


def _below(name: str, tally: Tally, wanted: Mapping[str, Any]) -> Iterator[str]:
    for measure in ("precision", "recall"):
        floor, value = wanted.get(measure), getattr(tally, measure)
        if floor is not None and (value is None or value < floor):
            yield f"{measure} of {name} is {0.0 if value is None else value:.3f}, its floor is {floor}"
