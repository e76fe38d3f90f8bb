"""JSON pointers (RFC 6901), and the span of a pointer's value in the text of a JSON document."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_BLANK = re.compile(r"[ \t\n\r]*")
_decoder = json.JSONDecoder(strict=False)


class ValueSpan(NamedTuple):
    """A value in a JSON text; the span of a string excludes its quotation marks."""

    start: int
    end: int
    value: Any


def keys(pointer: str) -> list[str]:
    """Return the keys of a pointer.

    >>> keys("/a~1b/0")
    ['a/b', '0']
    """
    return [unescaped(key) for key in pointer.split("/")[1:]]


def unescaped(key: str) -> str:
    return key.replace("~1", "/").replace("~0", "~")


def escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def step(pointer: str, key: str) -> str:
    """Append a key to a pointer.

    >>> step("/a", "b/c")
    '/a/b~1c'
    """
    return f"{pointer}/{escaped(key)}"


def value_at(data: Any, pointer: str) -> Any:
    """Return the value at a pointer into parsed JSON, or None."""
    for key in keys(pointer):
        if isinstance(data, list):
            data = data[int(key)] if key.isdigit() and int(key) < len(data) else None
        else:
            data = data.get(key) if isinstance(data, Mapping) else None
    return data


def find(text: str, pointer: str) -> ValueSpan | None:
    """Return `None` if the text is not JSON, or has no value there."""
    try:
        at = _after_blank(text, 0)
        for key in keys(pointer):
            inner = _member(text, at, key) if text[at] == "{" else _item(text, at, key)
            if inner is None:
                return None
            at = inner
        value, end = _decoder.raw_decode(text, at)
    except (ValueError, IndexError, RecursionError):
        return None
    return ValueSpan(at + 1, end - 1, value) if isinstance(value, str) else ValueSpan(at, end, value)


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _member(text: str, at: int, key: str) -> int | None:
    at = _after_blank(text, at + 1)
    found: int | None = None
    while text[at] == '"':
        name, at = _decoder.raw_decode(text, at)
        at = _after_blank(text, _after_blank(text, at) + 1)
        if name == key:
            found = at  # the last of duplicate names counts, as in json.loads
        at = _after_blank(text, _decoder.raw_decode(text, at)[1])
        if text[at] != ",":
            break
        at = _after_blank(text, at + 1)
    return found


def _item(text: str, at: int, key: str) -> int | None:
    if text[at] != "[" or not key.isdigit():
        return None
    at = _after_blank(text, at + 1)
    for _ in range(int(key)):
        if text[at] == "]":
            return None
        at = _after_blank(text, _decoder.raw_decode(text, at)[1])
        if text[at] != ",":
            return None
        at = _after_blank(text, at + 1)
    return None if text[at] == "]" else at
