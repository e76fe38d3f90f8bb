"""Paths of corrected values: places in lists, values below a path, fields below it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from curtsy.core.claims import Field
from curtsy.core.errors import UsageError
from curtsy.grounding.json_pointer import escaped
from curtsy.grounding.schema import Schema


def renumbered(schema: Schema, fields: list[Field]) -> list[Field]:
    """Number the items of lists without gaps, in the order of the data."""
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
    """Yield (list, index) for each list that contains a leaf."""
    parts, wanted = path.split("/"), schema.leaf_for(path).path.split("/")
    for at, part in enumerate(wanted):
        if part == "*":
            yield "/".join(parts[:at]), int(parts[at])


def check_place(schema: Schema, path: str, fields: list[Field]) -> None:
    """A list index must exist, or be the next one."""
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
            raise UsageError(f"This record has no {path}. The next item of {above} is {above}/{following}.")


def without_duplicates(schema: Schema, fields: list[Field]) -> list[Field]:
    """Keep the first of equal items of a list."""
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


def is_within(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")


def leaves_of(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a value; a missing value has no leaves."""
    if value is None:
        return
    inner: Iterator[tuple[str, Any]]
    if isinstance(value, dict):
        inner = ((escaped(name), one) for name, one in value.items())
    elif isinstance(value, list):
        inner = ((str(place), one) for place, one in enumerate(value))
    else:
        yield path, value
        return
    for name, one in inner:
        yield from leaves_of(f"{path}/{name}", one)


def no_leaf(schema: Schema, path: str) -> str:
    """Say why a path has no value: it is unknown, or has values below it."""
    parts = path.split("/")
    for leaf in schema.leaves:
        wanted = leaf.path.split("/")
        if len(wanted) > len(parts) and all(a in ("*", b) for a, b in zip(wanted, parts, strict=False)):
            kind = "a list" if wanted[len(parts)] == "*" else "an object"
            return f"{path} is {kind} in the schema {schema.name}. Give it as JSON."
    return f"The schema {schema.name} has no {path}."


def put_in(data: dict[str, Any], correction: dict[str, Any]) -> dict[str, Any]:
    """For records that functions made: replace values of top-level names."""
    made = dict(data)
    for path, value in correction.items():
        name = path.removeprefix("/")
        if not path.startswith("/") or "/" in name or name not in data:
            raise UsageError(f"This record has no {path}.")
        made[name] = value
    return made
