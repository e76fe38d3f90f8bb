"""Where a value that a person gave stands: not wherever its digits happen to be."""

from __future__ import annotations

import pytest

from curtsy.core.claims import Field, Rung, Source, SourceKind, Verdict
from curtsy.grounding.schema import Leaf
from curtsy.records import locate_value

TEXT = "In 2019 Alpha was acquired by Beta. Today it has 2019 employees in Oslo."
SOURCE = Source(SourceKind.TEXT, "p", "http://alder.test/", TEXT)


@pytest.mark.parametrize(
    ("leaf", "quote"),
    [
        (Leaf(path="/employees", type="integer"), "Today it has 2019 employees in Oslo."),
        (
            Leaf(path="/staff", type="integer", description="How many are employed"),
            "Today it has 2019 employees in Oslo.",
        ),
        (Leaf(path="/acquired", type="integer"), "In 2019 Alpha was acquired by Beta."),
        (Leaf(path="/trees", type="integer"), None),
    ],
)
def test_a_number_stands_in_a_sentence_that_has_a_word_of_what_it_counts(leaf: Leaf, quote: str | None) -> None:
    word = Field(path=leaf.path, value=2019, rung=Rung.PERSON, verdict=Verdict.JUDGED, note="person")
    found = locate_value.grounded(word, leaf, [SOURCE], [])
    assert [one.quote for one in found.evidence] == ([] if quote is None else [quote])
    assert found.value == 2019
