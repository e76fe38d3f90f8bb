"""Asking a language model whether a value is right: does its quote state it, and is it about the subject of the record?

    Statement   a value with its quote and the text around it
    Opinion     what a model says about a statement
    questions   the prompts for some statements; like all prompts, with the page's words between unguessable marks

A model can only raise a doubt. It never adds a value, and a value without evidence stays withheld.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from curtsy.extract import prompts
from curtsy.extract.answers import NotJson
from curtsy.extract.prompts import Prompt
from curtsy.grounding.schema import Leaf, Schema

#: characters of a quote and of the text on each side of it
_MAX_QUOTE, _AROUND = 500, 200
_MAX_VALUE = 300


class Check(StrEnum):
    VALUE = "verify"  # does the quote state this value of the field?
    ATTRIBUTION = "attribution"  # is it a statement about the subject of the record?


class Opinion(StrEnum):
    YES = "yes"
    NO = "no"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Statement:
    """A value as the page states it."""

    #: of the value in the record
    path: str
    leaf: Leaf
    value: Any
    quote: str
    before: str = ""
    after: str = ""

    @property
    def addresses_a_model(self) -> bool:
        """Such a quote is not shown, so no model confirms it."""
        return prompts.speaks_to_a_model(f"{self.before}{self.quote}{self.after}")


def statement(path: str, leaf: Leaf, value: Any, text: str, start: int, end: int) -> Statement:
    """Return the statement at a span of a text."""
    end = min(end, start + _MAX_QUOTE)
    return Statement(
        path, leaf, value, text[start:end], text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    )


def prompt(check: Check, schema: Schema, subject: str, statements: Sequence[Statement]) -> Prompt:
    """Return the prompt for these statements, numbered from 1. `subject` is the URL of the page or site."""
    content = "\n\n".join(_shown(number, one) for number, one in enumerate(statements, 1))
    mark = prompts.mark_of(content)
    about = f"Record: {schema.description or schema.name} of {prompts.plain(subject)}"
    names = ", ".join(keys(statements))
    shown = f"Mark {mark}: the statements begin.\n{content}\nMark {mark}: the statements end."
    user = f"{about}\n\n{shown}\n\nAnswer: {names}"
    return Prompt(prompts.text(check.value).format(mark=mark), user, content)


def form(statements: Sequence[Statement]) -> dict[str, Any]:
    """Return the JSON Schema of the answer."""
    parts = {name: {"enum": [one.value for one in Opinion]} for name in keys(statements)}
    return {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}


def read(said: Any, statements: Sequence[Statement]) -> dict[str, Opinion]:
    """Return path -> opinion; a missing or unknown one is unsure. Raises ValueError if no key is known."""
    known = list(keys(statements))
    if not isinstance(said, dict) or not set(said) & set(known):
        raise NotJson(f"the object must have the keys {', '.join(known)}")
    return {one.path: _opinion(said.get(name)) for name, one in zip(known, statements, strict=True)}


def keys(statements: Sequence[Statement]) -> Iterator[str]:
    return (f"s{number}" for number in range(1, len(statements) + 1))


def digest(check: Check) -> str:
    """Identifies the wording: answers to another one are not comparable."""
    return hashlib.sha256(prompts.text(check.value).encode()).hexdigest()[:12]


def _opinion(said: Any) -> Opinion:
    word = str(said).strip().casefold().rstrip(".")
    return Opinion(word) if word in ("yes", "no") else Opinion.UNSURE


def _shown(number: int, one: Statement) -> str:
    name = one.leaf.path[1:].replace("/*", "").replace("/", ".")
    described = f" ({one.leaf.description})" if one.leaf.description else ""
    value = prompts.plain(str(one.value))[:_MAX_VALUE]
    words = prompts.plain(f"{one.before}[[{one.quote}]]{one.after}")
    return f"s{number}. {name}{described}: {value}\nText, with the quote in double brackets: {words}"
