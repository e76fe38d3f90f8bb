"""JSON-LD in `<script type="application/ld+json">`, as found. What is not valid JSON is repaired where that is safe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborNode

from curtsy.content.structured.json_repair import repaired
from curtsy.content.structured.things import MAX_ITEMS
from curtsy.core.claims import without_nul

_MAX_LENGTH = 1 << 20
#: lists within lists
_MAX_LISTS = 8
_TYPES = frozenset(("application/ld+json", "application/json+ld"))


def read(root: LexborNode) -> list[dict[str, Any]]:
    """Return one entry per object; `repaired` names what was repaired to read it."""
    found: list[dict[str, Any]] = []
    for script in root.css("script[type]"):
        kind = (script.attributes.get("type") or "").partition(";")[0].strip().lower()
        if kind in _TYPES and len(found) < MAX_ITEMS:
            found += _entries(script.text())
    return found[:MAX_ITEMS]


def _entries(source: str) -> Iterator[dict[str, Any]]:
    if len(source) > _MAX_LENGTH:
        return
    values, repairs = _parsed(source)
    for item in _objects(values, 0):
        entry: dict[str, Any] = {"kind": "json-ld", "data": item}
        yield entry | {"repaired": list(repairs)} if repairs else entry


def _parsed(source: str) -> tuple[list[Any], tuple[str, ...]]:
    repairs: tuple[str, ...] = ()
    try:
        values = [json.loads(source)]
    except (ValueError, RecursionError):
        values, repairs = repaired(source)
    # HTML has no U+0000, but an escape in JSON may be one.
    return without_nul(values) if repairs or "\\u0000" in source else values, repairs


def _objects(values: list[Any], depth: int) -> Iterator[dict[str, Any]]:
    for value in values:
        if isinstance(value, dict):
            if value:
                yield value
        elif isinstance(value, list) and depth < _MAX_LISTS:
            yield from _objects(value, depth + 1)
