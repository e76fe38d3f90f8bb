"""Conversion of values to the types of their leaves, and detection of values that only repeat the prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Any

from curtsy.grounding.dates import value_of
from curtsy.grounding.folded_text import fold, occurrences, plain
from curtsy.grounding.json_pointer import keys
from curtsy.grounding.numbers import decimal, numbers
from curtsy.grounding.schema import Leaf
from curtsy.grounding.vocabulary import NOTHING

_YES = frozenset(("true", "yes", "ja", "oui"))
_NO = frozenset(("false", "no", "nein", "non"))
_MAX_LENGTH = 20_000


class Echo(Enum):
    """How a value repeats the prompt."""

    NO = "no"
    #: it is the name or the description of its own leaf
    NAME = "name"
    #: it occurs in the prompt or the schema
    PROMPT = "prompt"


def is_nothing(value: Any) -> bool:
    """Return whether it claims nothing: null, blank, or a word such as `n/a`."""
    return value is None or (isinstance(value, str) and plain(value[:100]).strip(" .\"'<>[]()") in NOTHING)


def is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def typed(value: Any, leaf: Leaf, *, by_model: bool = True) -> tuple[Any, str]:
    """Return (the value in its leaf type, "") or (None, why not). `n/a` is a value on a page, but not from a model."""
    if is_nothing(value) if by_model else is_blank(value):
        return None, "empty"
    made: Any
    match leaf.type:
        case "integer" | "number":
            made = _number(value, leaf)
        case "boolean":
            made = _boolean(value)
        case "enum":
            made = _member(value, leaf.enum)
            return (None, "not_in_enum") if made is None else (made, "")
        case "date":
            made = _date(value)
        case _:
            made = _string(value, by_model)
            if made is None and isinstance(value, str):
                return None, "too_long"
    return (None, "wrong_type") if made is None else (made, "")


def _string(value: Any, by_model: bool) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip()
    if by_model:
        text = text.strip("*`").strip()  # models format values in bold
    return text if len(text) <= _MAX_LENGTH else None


def _number(value: Any, leaf: Leaf) -> int | float | None:
    if isinstance(value, str):
        value = _read(value, leaf)
    found = decimal(value)
    if found is None:
        return None
    if found == found.to_integral_value():
        return int(found)
    return None if leaf.type == "integer" else float(found)


def _read(text: str, leaf: Leaf) -> Any:
    """Parse a number in a text, such as `1,234`; the year of a date if the leaf is a year."""
    text = text.strip()
    found = next(iter(numbers(text)), None)
    if found is not None and found.start == 0 and found.end == len(text) and len(found.readings) == 1:
        return next(iter(found.readings))
    day = value_of(text)
    return day[0].year if day and re.search(r"year|jahr|année", f"{leaf.path} {leaf.description}".lower()) else None


def _boolean(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else None
    return True if word in _YES else False if word in _NO else None


def _member(value: Any, members: tuple[Any, ...]) -> Any:
    if any(type(value) is type(one) and value == one for one in members):
        return value
    if not isinstance(value, str):
        return None
    return next((one for one in members if isinstance(one, str) and plain(one) == plain(value)), None)


def _date(value: Any) -> str | None:
    made = value_of(value) if isinstance(value, str) else None
    if made is None or made[0].day is None:  # JSON Schema has no dates without a day
        return None
    return str(value).strip() if made[1] is not None else made[0].iso


def echo(value: Any, leaf: Leaf, prompt_texts: Sequence[str]) -> Echo:
    """Return how the value repeats the prompt. Only strings are checked; other types need a context anyway."""
    if leaf.type != "string":
        return Echo.NO
    wanted = plain(value)
    if wanted in _names(leaf):
        return Echo.NAME
    if any(next(occurrences(fold(text).text, wanted), None) for text in prompt_texts):
        return Echo.PROMPT
    return Echo.NO


def _names(leaf: Leaf) -> set[str]:
    parts = [part for part in keys(leaf.path) if part != "*"]
    names = {plain(part) for part in parts} | {plain(part.replace("_", " ").replace("-", " ")) for part in parts}
    if leaf.description:
        names |= {plain(leaf.description), plain(leaf.description).rstrip(".")}
    return names
