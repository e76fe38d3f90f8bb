"""A second check of a record's values: a model verifies values that patterns found, a second model their attribution.

A value that a model does not confirm is withheld as `disputed`, and its record waits for a person. Nothing is added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from curtsy.core.claims import Field, Rung, SourceKind, Usage, Verdict
from curtsy.extract.verification import Check, Opinion, Statement, statement
from curtsy.grounding import judge
from curtsy.grounding.schema import Schema

#: rungs whose values a model verifies, and rungs whose attribution a second model judges
_BY_PATTERN = (Rung.SELECTOR,)
_ATTRIBUTED = (Rung.SELECTOR, Rung.LLM)


class Verifier(Protocol):
    """A language model."""

    def verify(
        self, check: Check, schema: Schema, subject: str, statements: Sequence[Statement]
    ) -> tuple[Mapping[str, Opinion], Usage]: ...


@dataclass(frozen=True, slots=True)
class Checked:
    """The fields after a check, and what it cost."""

    fields: list[Field]
    usage: Usage


def checked(
    check: Check, model: Verifier, schema: Schema, subject: str, fields: Sequence[Field], texts: Mapping[str, str]
) -> Checked:
    """Withhold the values that the model does not confirm. `texts` are sources by their hash."""
    rungs = _BY_PATTERN if check is Check.VALUE else _ATTRIBUTED
    asked = list(_statements(schema, [field for field in fields if field.rung in rungs], texts))
    if not asked:
        return Checked(list(fields), Usage())
    shown = [one for one in asked if not one.addresses_a_model]
    opinions, usage = model.verify(check, schema, subject, shown) if shown else ({}, Usage())
    confirmed = {path for path, opinion in opinions.items() if opinion is Opinion.YES}
    doubted = {one.path for one in asked} - confirmed
    return Checked([_disputed(field) if field.path in doubted else field for field in fields], usage)


def _statements(schema: Schema, fields: Sequence[Field], texts: Mapping[str, str]) -> Iterator[Statement]:
    for field in fields:
        leaf = schema.leaf_for(field.path)
        evidence = next((one for one in field.evidence if one.source is SourceKind.TEXT or one.quote), None)
        if judge.is_published(field, leaf) and evidence is not None:
            text = texts.get(evidence.sha256, evidence.quote)
            inside = text[evidence.start : evidence.end] == evidence.quote
            start, end = (evidence.start, evidence.end) if inside else (0, len(evidence.quote))
            yield statement(field.path, leaf, field.value, text if inside else evidence.quote, start, end)


def _disputed(field: Field) -> Field:
    return replace(field, verdict=Verdict.UNSUPPORTED, note=judge.DISPUTED)
