"""The claims of one record, judged one by one, become its fields: one winner per leaf, lists merged and renumbered.

Items of a list are told apart by where they were read (rung, page, number there). Two that say the same are one, with
the evidence of both. Items that are objects are one if they contradict each other in nothing, and agree in what tells
items apart (a name, an address), or one says no more than the other: what stands beside a shared currency or a shared
job title is another thing's. Items that one page lists side by side are one only if they are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from curtsy.core.claims import Claim, Evidence, Field, Verdict
from curtsy.grounding.folded_text import plain
from curtsy.grounding.near_copies import same_text
from curtsy.grounding.schema import Schema


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
#: where an item was read: items of the same place are listed there side by side
_Origin = tuple[Any, ...]
_TELLS_APART = re.compile(
    r"(?:^|[_\-\s])(?:name|title|headline|question|label|id|identifier|number|url|link|website|homepage|email|mail|phone|"
    r"telephone|sku|gtin|ean|isbn|issn|doi)$|(?:Name|Title|Id|Url|Email|Phone)$"
)


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
        items = _united([({(): entry.judged.field}, ()) for entry in entries])
    else:
        items = _united([(dict(_merged(group)), key[:-1]) for key, group in groups.items()])
    return [((*prefix, str(number), *path), field) for number, item in enumerate(items) for path, field in item.items()]


def _united(items: Sequence[tuple[_Item, _Origin]]) -> list[_Item]:
    """Items that say the same are one; those with a grounded value come first."""
    kept: list[tuple[_Item, set[_Origin]]] = []
    for item, origin in sorted(items, key=lambda one: not any(_grounded(field) for field in one[0].values())):
        twin = next((one for one in kept if _same_item(one[0], item, beside=bool(origin) and origin in one[1])), None)
        if twin is None:
            kept.append((dict(item), {origin}))
        else:
            _unite(twin[0], item)
            twin[1].add(origin)
    return [item for item, _ in kept]


def _same_item(one: _Item, other: _Item, *, beside: bool) -> bool:
    """`beside`: they were read side by side."""
    shared = one.keys() & other.keys()
    if not shared or not all(same_value(one[path], other[path]) for path in shared):
        return False
    if beside:
        return len(shared) == len(one) == len(other)
    return len(shared) in (len(one), len(other)) or any(path and _TELLS_APART.search(path[-1]) for path in shared)


def _unite(item: _Item, other: _Item) -> None:
    for path, field in other.items():
        own = item.get(path)
        if own is None or (_grounded(field) and not _grounded(own)):
            item[path] = field
        elif _grounded(field):
            item[path] = _joined(own, (field,))
