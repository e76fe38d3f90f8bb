"""Merge the judged claims of one record into its fields: one winner per leaf, lists merged and renumbered.

Items of a list are distinguished by their origin (rung, page, number there). Two equal items become one, with the
evidence of both. Items that are objects become one if they contradict each other in no value, and either agree in an
identifying value (a name, an address) or one has no values beyond the other. A shared currency or job title is not
enough. Items that one page lists side by side become one only if they are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from curtsy.core.claims import Evidence, Field, Verdict
from curtsy.grounding import contradictions
from curtsy.grounding.contradictions import JudgedClaim, distinct, same_value
from curtsy.grounding.schema import Schema


class _Entry(NamedTuple):
    """A judged claim; `wanted` and `path` are the remaining parts of the leaf's path and of its own."""

    judged: JudgedClaim
    wanted: tuple[str, ...]
    path: tuple[str, ...]


#: path within the item -> field
_Item = dict[tuple[str, ...], Field]
#: where an item was read: items of the same origin are listed there side by side
_Origin = tuple[Any, ...]
_IDENTIFYING = re.compile(
    r"(?:^|[_\-\s])(?:name|title|headline|question|label|id|identifier|number|url|link|website|homepage|email|mail|phone|"
    r"telephone|sku|gtin|ean|isbn|issn|doi)$|(?:Name|Title|Id|Url|Email|Phone)$"
)


def merged(schema: Schema, judged: Sequence[JudgedClaim]) -> list[Field]:
    """Return the fields in the order of the schema's leaves."""
    entries = [_Entry(one, _parts(schema.leaf_for(one.claim.path).path), _parts(one.claim.path)) for one in judged]
    contested = contradictions.rivals(schema, judged)
    fields = _merged(entries)
    fields = [one for one in fields if f"/{'/'.join(one[0])}" not in contested]
    fields += [(_parts(path), _joined(one[0], one[1:])) for path, many in contested.items() for one in many]
    order = {leaf.path: at for at, leaf in enumerate(schema.leaves)}
    made = [replace(field, path="/" + "/".join(path)) for path, field in fields]
    # The sort is stable: items and alternatives keep their order.
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
    """Return the first grounded field with the evidence of those that agree; without one, the withheld fields."""
    first = next((field for field in fields if _grounded(field)), None)
    if first is None:
        return distinct(fields)
    agreeing = [field for field in fields if field is not first and _grounded(field) and same_value(field, first)]
    return [_joined(first, agreeing)]


def _grounded(field: Field) -> bool:
    return field.verdict is not Verdict.UNSUPPORTED


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
        # Plain values: claims with the same number are separate items, not alternatives.
        items = _united([({(): entry.judged.field}, ()) for entry in entries])
    else:
        items = _united([(dict(_merged(group)), key[:-1]) for key, group in groups.items()])
    return [((*prefix, str(number), *path), field) for number, item in enumerate(items) for path, field in item.items()]


def _united(items: Sequence[tuple[_Item, _Origin]]) -> list[_Item]:
    """Merge equal items; those with a grounded value come first."""
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
    return len(shared) in (len(one), len(other)) or any(path and _IDENTIFYING.search(path[-1]) for path in shared)


def _unite(item: _Item, other: _Item) -> None:
    for path, field in other.items():
        own = item.get(path)
        if own is None or (_grounded(field) and not _grounded(own)):
            item[path] = field
        elif _grounded(field):
            item[path] = _joined(own, (field,))
