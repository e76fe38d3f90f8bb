"""Statements that contradict each other: two founding years, two prices. None of them is published.

Each statement comes from a place: a page, and the step that read it there (structured data by its entry, a selector, a
learned selector, the model). Two places contradict each other if no value of the one agrees with a value of the other:
a product whose data list three offers does not contradict the visible price of one of them.

Only values that cannot be written in two true ways are compared: numbers, dates, enums, booleans, codes of currencies,
and short names that a site states once (`headquarters`). Longer texts may differ in form and still be true. A site may
have several telephone numbers: only those are compared that structured data of its pages give as the one of the
organization. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import lru_cache
from typing import Any, NamedTuple

from curtsy.core.claims import Claim, Field, Rung, SourceKind, Verdict
from curtsy.grounding.folded_text import plain
from curtsy.grounding.json_pointer import keys
from curtsy.grounding.near_copies import same_text
from curtsy.grounding.schema import Leaf, Schema

#: note of values that another statement contradicts
CONTRADICTED = "contradicted"
_EXACT = frozenset(("integer", "number", "date", "enum", "boolean"))
#: texts that have one form
_CODES = frozenset(("currency",))
#: texts of which a site has several, or which the rules for names decide
_NOT_COMPARED = frozenset(
    ("name", "title", "headline", "email", "mail", "phone", "telephone", "fax", "url", "website", "link", "homepage",
     "address", "contact", "author", "authors", "language", "description", "logo", "image")
)  # fmt: skip
_PHONE = frozenset(("phone", "telephone"))
#: numbers of departments: a site has several
_DEPARTMENT = re.compile(r"/(?:contactPoint|department|employee|member|subOrganization|location)", re.IGNORECASE)
_NO_DIGIT = re.compile(r"\D+")
#: digits that tell two numbers apart, without the codes before them
_OWN_DIGITS = 7
#: a place with this many values lists variants; readers return no more
_MANY = 3
_NAME_WORDS = 4
#: characters between two names that are written side by side: `Oslo, Norway`
_BESIDE = 6
#: round figures agree with exact ones that differ by at most this share
_ROUNDING = 0.05
_YEARS = range(1500, 2101)
_TIMED = re.compile(r"\d[T ]\d\d:?\d\d")
_LETTERS = re.compile(r"[^\W\d_]+")


def _words(leaf: Leaf) -> set[str]:
    return {part for key in keys(leaf.path) for part in re.split(r"[_\-]", key.lower())}


def _is_phone(schema: Schema, leaf: Leaf) -> bool:
    return schema.per == "site" and leaf.type == "string" and not leaf.many and bool(_words(leaf) & _PHONE)


class JudgedClaim(NamedTuple):
    claim: Claim
    field: Field


def is_compared(schema: Schema, leaf: Leaf) -> bool:
    """Return whether statements about this leaf can contradict each other."""
    if leaf.many:
        return False
    named = _words(leaf)
    if leaf.type in _EXACT or named & _CODES:
        return True
    return schema.per == "site" and leaf.type == "string" and not leaf.long and not named & _NOT_COMPARED


def rivals(schema: Schema, judged: Sequence[JudgedClaim]) -> dict[str, list[list[Field]]]:
    """Return path -> the contradicting values, each with the fields that agree in it; all are withheld."""
    found: dict[str, list[JudgedClaim]] = {}
    for one in judged:
        leaf = schema.leaf_for(one.claim.path)
        if one.field.verdict is not Verdict.UNSUPPORTED and (is_compared(schema, leaf) or _is_phone(schema, leaf)):
            found.setdefault(one.claim.path, []).append(one)
    return {path: _withheld(many) for path, many in found.items() if _are_contradicting(schema, path, many)}


def _are_contradicting(schema: Schema, path: str, many: Sequence[JudgedClaim]) -> bool:
    if any(one.field.rung is Rung.PERSON for one in many):
        return False  # a person has decided
    leaf = schema.leaf_for(path)
    if _is_phone(schema, leaf):
        return _are_contradicting_numbers(many)
    places = list(_places(schema, many).values())
    places = [one for one in places if len(distinct([each.field for each in one])) < _MANY]
    return any(_contradict(leaf, one, other) for at, one in enumerate(places) for other in places[at + 1 :])


def _are_contradicting_numbers(many: Sequence[JudgedClaim]) -> bool:
    """A page that states two numbers agrees with both."""
    pages: dict[tuple[str, str], set[str]] = {}
    for one in many:
        source = one.claim.source
        if source.kind is SourceKind.STRUCTURED and not _DEPARTMENT.search(source.locator):
            digits = _NO_DIGIT.sub("", str(one.field.value))
            pages.setdefault((source.page, source.url), set()).add(digits[-_OWN_DIGITS:])
    stated = [numbers for numbers in pages.values() if len(numbers) < _MANY]
    return any(not one & other for at, one in enumerate(stated) for other in stated[at + 1 :])


def _places(schema: Schema, many: Sequence[JudgedClaim]) -> dict[Any, list[JudgedClaim]]:
    """A site states a value once, and so does a model: each of their claims is a place of its own."""
    found: dict[Any, list[JudgedClaim]] = {}
    for number, one in enumerate(many):
        source = one.claim.source
        entry = source.locator.split("/", 2)[1:2] if source.kind is SourceKind.STRUCTURED else ()
        alone = number if schema.per == "site" or one.claim.rung is Rung.LLM else -1
        found.setdefault((one.claim.rung, source.page, source.url, *entry, alone), []).append(one)
    return found


def _contradict(leaf: Leaf, one: Sequence[JudgedClaim], other: Sequence[JudgedClaim]) -> bool:
    return not any(_agree(leaf, left, right) for left in one for right in other)


def _agree(leaf: Leaf, one: JudgedClaim, other: JudgedClaim) -> bool:
    left, right = one.field.value, other.field.value
    if same_value(one.field, other.field):
        return True
    if leaf.type == "date":
        timed = any(_TIMED.search(each.claim.quote or "") for each in (one, other))
        return _same_day(str(left)[:10], str(right)[:10], timed=timed)
    if leaf.type == "integer":
        return _rounds(left, right) or _rounds(right, left)
    if leaf.type == "number":
        return isinstance(left, int | float) and isinstance(right, int | float) and float(left) == float(right)
    if leaf.type == "string":
        return not _are_other_names(one, other)
    return False


def _same_day(one: str, other: str, *, timed: bool) -> bool:
    """A day agrees with its month. A time of day may be in another time zone, where it is the day before or after."""
    if one.startswith(other) or other.startswith(one):
        return True
    try:
        days = abs((date.fromisoformat(one) - date.fromisoformat(other)).days)
    except ValueError:
        return False
    return days <= 1 and timed


def _rounds(value: Any, exact: Any) -> bool:
    """`1,200 employees` agrees with 1,187; years are never rounded."""
    if not isinstance(value, int) or not isinstance(exact, int) or value in _YEARS or value % 100:
        return False
    return abs(value - exact) <= _ROUNDING * abs(value)


def _are_other_names(one: JudgedClaim, other: JudgedClaim) -> bool:
    left, right = str(one.field.value), str(other.field.value)
    words = [_LETTERS.findall(plain(text)) for text in (left, right)]
    if not all(0 < len(many) <= _NAME_WORDS for many in words) or set(words[0]) & set(words[1]):
        return False
    if any(char.isdigit() for char in left + right) or len({_script(left), _script(right)}) > 1:
        return False
    texts = [each.claim.source.text for each in (one, other) if each.claim.source.kind is SourceKind.TEXT]
    return not any(_is_beside(text, left, right) for text in texts)


def _script(text: str) -> str:
    first = next((char for char in text if char.isalpha()), "a")
    return unicodedata.name(first, "LATIN").split()[0]


def _is_beside(text: str, one: str, other: str) -> bool:
    """A page that writes `Oslo, Norway` says that one is part of the other."""
    for first, second in ((one, other), (other, one)):
        at = text.find(first)
        while at >= 0:
            end = at + len(first)
            if second in text[end : end + _BESIDE + len(second)]:
                return True
            at = text.find(first, end)
    return False


def _withheld(many: Sequence[JudgedClaim]) -> list[list[Field]]:
    fields = [replace(one.field, verdict=Verdict.UNSUPPORTED, note=CONTRADICTED) for one in many]
    groups: list[list[Field]] = []
    for field in fields:
        own = next((group for group in groups if same_value(group[0], field)), None)
        if own is None:
            groups.append([field])
        else:
            own.append(field)
    return groups


def distinct(fields: Sequence[Field]) -> list[Field]:
    """Return one field for each value."""
    kept: list[Field] = []
    for field in fields:
        if not any(same_value(field, other) for other in kept):
            kept.append(field)
    return kept


def same_value(one: Field, other: Field) -> bool:
    """Return whether the values are the same, ignoring their form."""
    left, right = one.value, other.value
    if isinstance(left, str) and isinstance(right, str):
        return _bare(left) == _bare(right) or same_text(_bare(left), _bare(right))
    return type(left) is type(right) and bool(left == right)


@lru_cache(maxsize=1024)
def _bare(text: str) -> str:
    return plain(text).strip(" .,;:!?\"'")
