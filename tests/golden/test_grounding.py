"""Grounding gives the labelled cases the verdicts that a person gave them."""

from __future__ import annotations

import pytest
from grounding_cases import Case, cases

from curtsy import ground
from curtsy.evidence import Verdict

ALL = cases()


def test_there_are_many_cases_and_each_has_its_name() -> None:
    assert len(ALL) >= 250
    assert len({case.id for case in ALL}) == len(ALL)


@pytest.mark.parametrize("case", ALL, ids=[case.id for case in ALL])
def test_a_claim_gets_the_verdict_of_its_label(case: Case) -> None:
    field = ground.judge(case.claim, case.leaf, prompt_texts=case.prompts)
    expected = case.expected
    assert (field.verdict, field.note) == (expected["verdict"], expected.get("note", field.note))
    assert field.path == case.claim.path
    if field.verdict is not Verdict.UNSUPPORTED:
        assert field.value == expected.get("becomes", expected["value"] if not _is_read(case) else field.value)
    assert bool(field.evidence) == (field.verdict is not Verdict.UNSUPPORTED and field.note != "person")
    for one in field.evidence:
        assert case.claim.source.text[one.start : one.end] == one.quote
        assert one.quote.strip()
        assert one.sha256 == case.claim.source.sha256
        assert one.quote == expected.get("quoted", one.quote)
        assert one.start == expected.get("at", one.start)


def _is_read(case: Case) -> bool:
    """A number written as text becomes a number."""
    return case.leaf.type in ("integer", "number") and isinstance(case.claim.value, str)
