"""JSON Schemas for extraction: references resolved within limits, and the leaves listed.

An extractable schema is an object of named values: strings, numbers, booleans, enums and dates, nested in objects and
lists. Keywords that would change this are rejected with their place. No I/O; only references within the document are
resolved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from curtsy.core.errors import UsageError
from curtsy.grounding.json_pointer import keys, step
from curtsy.grounding.patterns import compiled

#: people write smaller schemas; one that exceeds this by its references is an attack
MAX_NODES = 5_000
MAX_DEPTH = 12
MAX_LEAVES = 200
_REFUSED = (
    *("patternProperties", "propertyNames", "dependentSchemas", "dependentRequired", "if", "then", "else", "not"),
    *("prefixItems", "contains", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"),
)
_SCALARS = ("string", "integer", "number", "boolean")
_NUMBERS = (
    *("minLength", "maxLength", "minItems", "maxItems"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
)
DATES = ("date", "date-time")
#: a schema is limited as a whole
MAX_PATTERN = 1 << 20


class Found(NamedTuple):
    """A leaf of a schema."""

    #: JSON pointer with `*` for the items of a list
    path: str
    #: string | integer | number | boolean | enum | date
    type: str
    #: it and all its parents are required
    required: bool
    schema: dict[str, Any]


def bounded(document: Any, max_bytes: int) -> dict[str, Any]:
    """Return the document if it is an object within the size limit; raise UsageError if not."""
    if not isinstance(document, dict):
        raise UsageError("a schema must be a JSON object")
    try:
        size = len(json.dumps(document))
    except RecursionError as error:
        raise UsageError("the schema is nested too deeply") from error
    except (TypeError, ValueError) as error:
        raise UsageError(f"the schema is not JSON: {error}") from error
    if size > max_bytes:
        raise UsageError(f"the schema is larger than {max_bytes:,} bytes")
    return document


# Resolving


class _Resolver:
    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._nodes = 0

    def resolve(self, schema: Any, path: str, above: tuple[str, ...] = (), depth: int = 0) -> dict[str, Any]:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise UsageError(f"the schema has more than {MAX_NODES:,} parts, counting what its references repeat")
        if depth > MAX_DEPTH:
            raise UsageError(f"{_place(path)}: the schema is nested more than {MAX_DEPTH} deep")
        if not isinstance(schema, dict):
            raise UsageError(f"{_place(path)}: a schema must be a JSON object, not {json.dumps(schema)[:40]}")
        found = dict(schema)
        found, above = self._followed(found, path, above)
        found = self._joined(found, path, above, depth)
        for keyword in _REFUSED:
            if keyword in found:
                raise UsageError(f"{_place(path)}: the keyword `{keyword}` is not supported")
        _check_keywords(found, path)
        return self._inner(found, path, above, depth)

    def _followed(
        self, found: dict[str, Any], path: str, above: tuple[str, ...]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Keywords next to a reference override those of its target."""
        while "$ref" in found:
            ref = found.pop("$ref")
            if not isinstance(ref, str) or not ref.startswith("#"):
                raise UsageError(f"{_place(path)}: only references within the document are supported, not {ref!r}")
            if ref in above:
                raise UsageError(f"{_place(path)}: {ref} refers to itself; recursive schemas are not supported")
            above = (*above, ref)
            found = {**self._target(ref, path), **found}
        return found, above

    def _target(self, ref: str, path: str) -> dict[str, Any]:
        target: Any = self._document
        for key in keys(ref[1:]):
            target = target.get(key) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            raise UsageError(f"{_place(path)}: the schema has no {ref}")
        return target

    def _joined(self, found: dict[str, Any], path: str, above: tuple[str, ...], depth: int) -> dict[str, Any]:
        """Merge `allOf` into one schema; make `anyOf` and `oneOf` of one schema and null that schema, nullable."""
        for part in _parts(found, "allOf", path):
            found = {**self.resolve(part, path, above, depth + 1), **found}
        for keyword in ("anyOf", "oneOf"):
            if keyword not in found:
                continue
            options = _parts(found, keyword, path)
            real = [one for one in options if not (isinstance(one, dict) and one.get("type") == "null")]
            if len(real) != 1:
                raise UsageError(f"{_place(path)}: `{keyword}` is supported only for one schema and null")
            inner = self.resolve(real[0], path, above, depth + 1)
            found = {**inner, **found}
            if len(real) < len(options):
                found = _nullable(found)
        return found

    def _inner(self, found: dict[str, Any], path: str, above: tuple[str, ...], depth: int) -> dict[str, Any]:
        found.pop("$defs", None)
        found.pop("definitions", None)
        if isinstance(properties := found.get("properties"), dict):
            found["properties"] = {
                name: self.resolve(schema, step(path, name), above, depth + 1) for name, schema in properties.items()
            }
        elif properties is not None:
            raise UsageError(f"{_place(path)}: `properties` is not an object")
        if "items" in found:
            found["items"] = self.resolve(found["items"], f"{path}/*", above, depth + 1)
        return found


def _parts(found: dict[str, Any], keyword: str, path: str) -> list[Any]:
    parts = found.pop(keyword, [])
    if not isinstance(parts, list):
        raise UsageError(f"{_place(path)}: `{keyword}` is not a list")
    return parts


def _check_keywords(schema: dict[str, Any], path: str) -> None:
    for keyword in _NUMBERS:
        if keyword in schema and (isinstance(schema[keyword], bool) or not isinstance(schema[keyword], int | float)):
            raise UsageError(f"{_place(path)}: `{keyword}` is not a number")
    required = schema.get("required", [])
    if not (isinstance(required, list) and all(isinstance(name, str) for name in required)):
        raise UsageError(f"{_place(path)}: `required` is not a list of names")
    words = schema.get("enum", [""])
    if not (isinstance(words, list) and words) or any(isinstance(word, dict | list) for word in words):
        raise UsageError(f"{_place(path)}: `enum` is not a list of strings or numbers")
    if not isinstance(pattern := schema.get("pattern", ""), str):
        raise UsageError(f"{_place(path)}: `pattern` is not a string")
    try:
        compiled(pattern, max_length=MAX_PATTERN)
    except UsageError as error:  # such as a look-around, which cannot be checked in linear time
        raise UsageError(f"{_place(path)}: {error}") from error
    for least, most in (("minLength", "maxLength"), ("minItems", "maxItems"), ("minimum", "maximum")):
        if least in schema and most in schema and schema[least] > schema[most]:
            raise UsageError(f"{_place(path)}: `{least}` is larger than `{most}`, so no value is valid")


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    found = dict(schema)
    if isinstance(found.get("type"), str):
        found["type"] = [found["type"], "null"]
    if isinstance(found.get("enum"), list) and None not in found["enum"]:
        found["enum"] = [*found["enum"], None]
    return found


def _place(path: str) -> str:
    return path or "the schema"


def resolved(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without references, `allOf` and nullable alternatives; raise UsageError if unsupported."""
    try:
        return _Resolver(document).resolve(document, "")
    except RecursionError as error:
        raise UsageError("the schema is nested too deeply") from error


# Leaves


def leaves(schema: dict[str, Any], open_objects: bool = False) -> list[Found]:
    """Return all leaves of a resolved schema; with `open_objects`, objects without `properties` are ignored."""
    if kind_of(schema) != "object" or not schema.get("properties"):
        raise UsageError('the schema must be an object with named values: {"type": "object", "properties": {...}}')
    found = list(_leaves(schema, "", True, open_objects))
    if len(found) > MAX_LEAVES:
        raise UsageError(f"the schema has more than {MAX_LEAVES} values")
    return found


def kind_of(schema: Mapping[str, Any]) -> str | None:
    """Return its type, ignoring null."""
    kind = schema.get("type")
    kinds = [one for one in (kind if isinstance(kind, list) else [kind]) if one != "null"]
    if len(kinds) == 1 and kinds[0] is not None:
        return str(kinds[0])
    if not kinds or kinds == [None]:
        return "object" if "properties" in schema else "array" if "items" in schema else None
    return None


def _leaves(schema: dict[str, Any], path: str, required: bool, open_objects: bool) -> Iterator[Found]:
    kind = kind_of(schema)
    if "enum" in schema or "const" in schema:
        yield Found(path, "enum", required, schema)
    elif kind == "object":
        yield from _object_leaves(schema, path, required, open_objects)
    elif kind == "array":
        if "items" not in schema:
            raise UsageError(f"{_place(path)}: a list needs `items`")
        yield from _leaves(schema["items"], f"{path}/*", required and schema.get("minItems", 0) > 0, open_objects)
    elif kind in _SCALARS:
        dated = kind == "string" and schema.get("format") in DATES
        yield Found(path, "date" if dated else str(kind), required, schema)
    else:
        raise UsageError(f"{_place(path)}: a value needs exactly one `type` of {', '.join(_SCALARS)}, array, object")


def _object_leaves(schema: dict[str, Any], path: str, required: bool, open_objects: bool) -> Iterator[Found]:
    properties = schema.get("properties") or {}
    if isinstance(schema.get("additionalProperties"), dict) or not properties:
        if open_objects:
            return
        raise UsageError(f"{_place(path)}: an object needs `properties`; maps with arbitrary names are not supported")
    named = schema.get("required") or []
    if unknown := [name for name in named if name not in properties]:
        raise UsageError(f"{_place(path)}: `required` names {', '.join(unknown)}, which `properties` lacks")
    for name, inner in properties.items():
        if name == "*" or not name:
            raise UsageError(f"{_place(path)}: invalid name of a value: {name!r}")
        yield from _leaves(inner, step(path, name), required and name in named, open_objects)
