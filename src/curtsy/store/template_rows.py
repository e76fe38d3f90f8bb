"""Templates, their pages and selectors as values, and what happens on a page."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple


class TemplateRow(NamedTuple):
    """A template; JSON is decoded."""

    n: int
    schema_hash: str
    schema: str
    host: str
    shape: str
    skeleton: tuple[str, ...]
    #: digest of a place -> [fields that were absent, fields whose value was there]
    known: Mapping[str, tuple[Sequence[str], Sequence[str]]]
    #: field -> number of pages without it
    absent: Mapping[str, int]
    pages: int
    asked: int
    next_try: int
    revision: int
    behind: int
    created_ms: int
    seen_ms: int
    #: value of `pages` at the last check by the model
    checked: int


class Kind(NamedTuple):
    """What a template is for: a schema, a host, a URL shape, a skeleton."""

    schema_hash: str
    schema: str
    host: str
    shape: str
    #: digest of the skeleton
    skeleton_key: str
    skeleton: Collection[str]


class SelectorRow(NamedTuple):
    """A learned selector."""

    n: int
    template: int
    leaf: str
    place: Mapping[str, Any]
    state: str
    examples: int
    tested: int
    found: int
    used: int
    missed: int
    learned_ms: int
    ended_ms: int | None
    why: str


class PageRow(NamedTuple):
    """A page of a template."""

    crawl: int
    page: str
    template: int
    teaches: bool
    absent: tuple[str, ...]
    at_ms: int


class Reading(NamedTuple):
    """What the model, or a person, read on a page."""

    crawl: int
    page: str
    #: digest of a place -> fields whose value is there; all places of the page
    places: Mapping[str, Collection[str]]
    #: fields that the page does not state
    absent: Collection[str]
    at_ms: int


class NewSelector(NamedTuple):
    leaf: str
    place: Mapping[str, Any]
    examples: int
    tested: int
    found: int


class Outcome(NamedTuple):
    """What the selectors of a template did on a page."""

    #: their values count
    used: Collection[int] = ()
    #: they found nothing, but the page states their field
    missed: Collection[int] = ()
    #: to retire, and why
    wrong: Mapping[int, str] = {}
    #: older templates of the shape, which the page does not fit
    older: Collection[int] = ()


def template_of(row: Any) -> TemplateRow:
    values = dict(row._mapping)
    known = {key: (tuple(absent), tuple(found)) for key, (absent, found) in json.loads(row.known).items()}
    values |= {"skeleton": tuple(json.loads(row.skeleton)), "known": known, "absent": json.loads(row.absent)}
    return TemplateRow(**values)


def selector_of(row: Any) -> SelectorRow:
    return SelectorRow(**{**row._mapping, "place": json.loads(row.place)})


def page_of(row: Any) -> PageRow:
    return PageRow(**{**row._mapping, "teaches": bool(row.teaches), "absent": tuple(json.loads(row.absent))})


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace").decode()
