"""The claims of one record, judged one by one, become its fields: one winner per leaf, lists merged and renumbered.

Items of a list are told apart by where they were read (rung, page, number there). Two that say the same are one, with
the evidence of both; items that are objects are one if they agree in a value and contradict each other in none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from curtsy.evidence import Claim, Evidence, Field, Verdict
from curtsy.ground_near import same_text
from curtsy.ground_text import plain
from curtsy.schemas import Schema


class Judged(NamedTuple):
    claim: Claim
    field: Field


class _Entry(NamedTuple):
    """A judged claim; `wanted` and `path` are the leaf's path and its own, part by part, from where we look on."""

    judged: Judged
    wanted: tuple[str, ...]
    path: tuple[str, ...]


#: path within the item -> field
_Item = dict[tuple[str, ...], Field]


def merged(schema: Schema, judged: Sequence[Judged]) -> list[Field]:
    """In the order of the schema's leaves."""
    entries = [_Entry(one, _parts(schema.leaf_for(one.claim.path).path), _parts(one.claim.path)) for one in judged]
    fields = _merged(entries)
    order = {leaf.path: at for at, leaf in enumerate(schema.leaves)}
    made = [replace(field, path="/" + "/".join(path)) for path, field in fields]
    # Stable: items and alternatives keep their order.
    return sorted(made, key=lambda field: order[schema.leaf_for(field.path).path])


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")[1:])


def _merged(entries: Sequence[_Entry]) -> list[tuple[tuple[str, ...], Field]]:
    single: dict[tuple[str, ...], list[Field]] = {}
    lists: dict[tuple[str, ...], list[_Entry]] = {}
    for entry in entries:
        if "*" in entry.wanted:
            lists.setdefault(entry.wanted[: entry.wanted.index("*")], []).append(entry)
        else:
            single.setdefault(entry.path, []).append(entry.judged.field)
    found = [(path, field) for path, fields in single.items() for field in _winner(fields)]
    for prefix, members in lists.items():
        found.extend(_list(prefix, members))
    return found


def _winner(fields: Sequence[Field]) -> list[Field]:
    """The first grounded one with the evidence of those that agree; without one, the withheld ones."""
    first = next((field for field in fields if _grounded(field)), None)
    if first is None:
        return _distinct(fields)
    agreeing = [field for field in fields if field is not first and _grounded(field) and same_value(field, first)]
    return [_joined(first, agreeing)]


def _grounded(field: Field) -> bool:
    return field.verdict is not Verdict.UNSUPPORTED


def _distinct(fields: Sequence[Field]) -> list[Field]:
    kept: list[Field] = []
    for field in fields:
        if not any(same_value(field, other) for other in kept):
            kept.append(field)
    return kept


def same_value(one: Field, other: Field) -> bool:
    """They say the same, however written."""
    left, right = one.value, other.value
    if isinstance(left, str) and isinstance(right, str):
        return _bare(left) == _bare(right) or same_text(_bare(left), _bare(right))
    return type(left) is type(right) and bool(left == right)


@lru_cache(maxsize=1024)
def _bare(text: str) -> str:
    return plain(text).strip(" .,;:!?\"'")


def _joined(field: Field, others: Iterable[Field]) -> Field:
    evidence: dict[Evidence, None] = dict.fromkeys(field.evidence)
    for other in others:
        evidence |= dict.fromkeys(other.evidence)
    return replace(field, evidence=tuple(evidence))


# Lists


def _list(prefix: tuple[str, ...], entries: Sequence[_Entry]) -> list[tuple[tuple[str, ...], Field]]:
    at = len(prefix)
    groups: dict[Any, list[_Entry]] = {}
    for entry in entries:
        source = entry.judged.claim.source
        key = (entry.judged.claim.rung, source.page, source.url, entry.path[at])
        groups.setdefault(key, []).append(entry._replace(wanted=entry.wanted[at + 1 :], path=entry.path[at + 1 :]))
    if all(len(entry.wanted) == at + 1 for entry in entries):
        # Bare values: claims of the same number are items of their own, not rivals.
        items: list[_Item] = [{(): entry.judged.field} for entry in entries]
    else:
        items = [dict(_merged(group)) for group in groups.values()]
    items = _united(items)
    return [((*prefix, str(number), *path), field) for number, item in enumerate(items) for path, field in item.items()]


def _united(items: Sequence[_Item]) -> list[_Item]:
    """Items that say the same are one; those with a grounded value come first."""
    kept: list[_Item] = []
    for item in sorted(items, key=lambda item: not any(_grounded(field) for field in item.values())):
        twin = next((other for other in kept if _same_item(other, item)), None)
        if twin is None:
            kept.append(dict(item))
        else:
            _unite(twin, item)
    return kept


def _same_item(one: _Item, other: _Item) -> bool:
    shared = [path for path in one if path in other]
    agreed = [path for path in shared if same_value(one[path], other[path])]
    return bool(agreed) and len(agreed) == len(shared)


def _unite(item: _Item, other: _Item) -> None:
    for path, field in other.items():
        own = item.get(path)
        if own is None or (_grounded(field) and not _grounded(own)):
            item[path] = field
        elif _grounded(field):
            item[path] = _joined(own, (field,))
