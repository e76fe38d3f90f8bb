"""The JSON Schema of a language model's answer, and how claims are read from an answer.

The answer has the form of the record, but each leaf is null or an object with a quote and a value. The quote comes
first: a model that copies words before it gives a value stays closer to them.

    {"name": {"quote": "Green Leaf Ltd makes paper", "value": "Green Leaf Ltd"}, "contact": {"email": null}}

Small models fail at copying: in the style VALUE they give values only, and the values are located afterwards. The
schema uses only what every server's grammar supports: objects, arrays, null, enum, plain types.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from curtsy.grounding.json_pointer import step, unescaped
from curtsy.grounding.schema import Leaf

#: items of a list in one answer; a model that repeats itself never ends a list
MAX_ITEMS = 12
#: longer values are ignored
MAX_VALUE_CHARS = 4000
#: limits for grammars of small models, in characters
_BOUNDED_QUOTE, _BOUNDED_VALUE, _BOUNDED_LONG, _BOUNDED_ITEMS = 160, 60, 160, 3
#: texts that models write instead of null
_NOTHING = frozenset(
    ("", "null", "none", "n/a", "na", "nil", "unknown", "not found", "not stated", "not given", "not specified",
     "not available", "not mentioned", "not provided", "undefined", "-", "?", "[]", "{}")
)  # fmt: skip


class Style(StrEnum):
    QUOTE = "quote"  # the words that state it, then the value
    VALUE = "value"  # only the value


@dataclass(frozen=True, slots=True)
class Found:
    """The answer for one leaf."""

    path: str
    value: Any
    quote: str | None


class WrongShape(ValueError):
    """The answer is JSON of the wrong form; the message is sent back to the model."""


@dataclass(slots=True)
class _Node:
    leaf: Leaf | None = None
    items: _Node | None = None
    parts: dict[str, _Node] = field(default_factory=dict)


def schema_of(leaves: Sequence[Leaf], style: Style = Style.QUOTE, *, bounded: bool = False) -> Any:
    """Return the JSON Schema of the answer. `bounded` adds lengths, which some servers' strict mode rejects."""

    def build(node: _Node) -> dict[str, Any]:
        if node.leaf is not None:
            return {"anyOf": [{"type": "null"}, _said(node.leaf, style, bounded)]}
        if node.items is not None:
            item = node.items
            within = _said(item.leaf, style, bounded) if item.leaf is not None else build(item)
            limit = {"maxItems": _BOUNDED_ITEMS} if bounded else {}
            return {"type": "array", "items": within, **limit}
        return _object({name: build(part) for name, part in node.parts.items()})

    return build(_tree(leaves))


def read(answer: Any, leaves: Sequence[Leaf]) -> list[Found]:
    """Return the values of the answer, in the order of the leaves; WrongShape if it has none of the leaves.

    An empty object means that nothing was found. Accepts a value without its quote, a number as text, and one value
    instead of a list.
    """
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    if not isinstance(answer, dict):
        raise WrongShape(f"the answer must be a JSON object, not {_kind(answer)}")
    tree = _tree(leaves)
    if answer and not set(answer) & set(tree.parts):
        raise WrongShape(f"the object must have the keys {', '.join(tree.parts)}")
    return list(_walk(tree, answer, ""))


def _tree(leaves: Sequence[Leaf]) -> _Node:
    root = _Node()
    for leaf in leaves:
        node = root
        for part in leaf.path.split("/")[1:]:
            if part == "*":
                node.items = node.items or _Node()
                node = node.items
            else:
                node = node.parts.setdefault(unescaped(part), _Node())
        node.leaf = leaf
    return root


def _object(parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}


def _said(leaf: Leaf, style: Style, bounded: bool) -> dict[str, Any]:
    if style is Style.VALUE:
        return _value(leaf, bounded)
    limit = {"maxLength": _BOUNDED_QUOTE} if bounded else {}
    return _object({"quote": {"type": "string", **limit}, "value": _value(leaf, bounded)})


def _value(leaf: Leaf, bounded: bool) -> dict[str, Any]:
    if leaf.enum:
        return {"enum": list(leaf.enum)}
    if leaf.type in ("integer", "number", "boolean"):
        return {"type": leaf.type}
    limit = {"maxLength": _BOUNDED_LONG if leaf.long else _BOUNDED_VALUE} if bounded else {}
    return {"type": "string", **limit}


def _walk(node: _Node, said: Any, path: str) -> Iterator[Found]:
    if node.leaf is not None:
        if (found := _found(node.leaf, said, path)) is not None:
            yield found
    elif node.items is not None:
        listed = said if isinstance(said, list) else [said]
        number = 0
        for one in listed[:MAX_ITEMS]:
            inner = list(_walk(node.items, one, f"{path}/{number}"))
            number += bool(inner)
            yield from inner
    elif isinstance(said, dict):
        for name, part in node.parts.items():
            yield from _walk(part, said.get(name), step(path, name))


def _found(leaf: Leaf, said: Any, path: str) -> Found | None:
    quote = None
    if isinstance(said, dict):
        quote, said = said.get("quote"), said.get("value")
    value = _typed(leaf, said)
    words = quote.strip() if isinstance(quote, str) else ""
    return None if value is None else Found(path, value, words or None)


def _typed(leaf: Leaf, said: Any) -> Any:
    """Return the value in the leaf's type; `None` if it is missing. Other values stay text: grounding judges them."""
    if isinstance(said, str):
        said = said.strip()
        if said.casefold().rstrip(".") in _NOTHING or len(said) > MAX_VALUE_CHARS:
            return None
        return _number(leaf, said)
    if said is None or isinstance(said, (dict, list)) or (isinstance(said, float) and not math.isfinite(said)):
        return None
    if isinstance(said, bool):
        return said if leaf.type in ("boolean", "enum") else None
    if leaf.type == "integer" and isinstance(said, float):
        return int(said) if said.is_integer() else said
    return str(said) if leaf.type in ("string", "date") else said


def _number(leaf: Leaf, said: str) -> Any:
    plain = said.isascii() and len(said) < 20
    if leaf.type == "boolean" and said.casefold() in ("true", "yes", "false", "no"):
        return said.casefold() in ("true", "yes")
    if leaf.type in ("integer", "number") and plain and said.removeprefix("-").isdigit():
        return int(said)
    if leaf.type == "number" and plain and said.removeprefix("-").replace(".", "", 1).isdigit():
        return float(said)
    return said


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", bool: "true or false", type(None): "null"}.get(type(value), "a number")


def form_of(leaves: Sequence[Leaf]) -> str:
    """A description of the form, for servers that do not enforce a schema."""

    def build(node: _Node) -> str:
        if node.leaf is not None:
            return f'{{"quote": "...", "value": {_word(node.leaf)}}}'
        if node.items is not None:
            return f"[{build(node.items)}, ...]"
        return "{" + ", ".join(f'"{name}": {build(part)}' for name, part in node.parts.items()) + "}"

    return build(_tree(leaves))


def _word(leaf: Leaf) -> str:
    if leaf.enum:
        return " or ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in leaf.enum)
    return {"integer": "integer", "number": "number", "boolean": "true or false", "date": '"YYYY-MM-DD"'}.get(
        leaf.type, '"..."'
    )
