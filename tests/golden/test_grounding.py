"""Grounding gives the labelled cases the verdicts that a person gave them."""

from __future__ import annotations

import calibrate
import pytest
from grounding_cases import Case, cases

from curtsy.core.claims import Verdict
from curtsy.grounding import judge
from curtsy.grounding.near_copies import NEAR

ALL = cases()


def test_there_are_many_cases_and_each_has_its_name() -> None:
    assert len(ALL) >= 300
    assert len({case.id for case in ALL}) == len(ALL)


@pytest.mark.parametrize("case", ALL, ids=[case.id for case in ALL])
def test_a_claim_gets_the_verdict_of_its_label(case: Case) -> None:
    field = judge.judge(case.claim, case.leaf, prompt_texts=case.prompts)
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


# The floors below only rise.


def test_no_value_is_published_that_a_person_labelled_unsupported() -> None:
    published = [
        case
        for case in ALL
        if judge.judge(case.claim, case.leaf, prompt_texts=case.prompts).verdict is not Verdict.UNSUPPORTED
    ]
    wrong = [
        case.id for case in published if case.expected["verdict"] == "unsupported" or case.expected.get("same") is False
    ]
    assert wrong == []


def test_the_threshold_for_near_copies_is_where_the_labelled_cases_put_it() -> None:
    pairs = calibrate.labelled() + calibrate.of_others()
    guarded = {row.threshold: row for row in calibrate.table(pairs, calibrate.by_words_guarded)}
    assert guarded[NEAR].precision == 1.0
    assert guarded[NEAR].recall >= 0.84
    # Below it nothing is gained; above it copies are lost.
    assert {guarded[at].precision for at in (0.6, 0.7, 0.75)} == {1.0}
    assert guarded[0.6].recall == guarded[NEAR].recall
    assert guarded[0.9].recall < guarded[NEAR].recall


def test_likeness_alone_does_not_tell_copies_from_changed_facts() -> None:
    pairs = calibrate.labelled()
    for measure in (calibrate.by_characters, calibrate.by_words):
        assert max(row.precision for row in calibrate.table(pairs, measure)) < 0.7
