"""The confidence of a value rises with the number of places that state it."""

from __future__ import annotations

import pytest

from curtsy.core.claims import Rung, Verdict
from curtsy.grounding.field_confidence import of_field


def place(page: str, source: str = "text") -> dict[str, str]:
    return {"page": page, "url": f"https://a.test/{page}", "source": source}


def test_each_further_page_or_kind_of_source_halves_the_doubt() -> None:
    once = of_field("selector", "supported", [place("a")])
    assert once == 0.8
    assert of_field("selector", "supported", [place("a"), place("a")]) == once
    assert of_field("selector", "supported", [place("a"), place("b")]) == 0.9
    assert of_field("selector", "supported", [place("a"), place("b"), place("a", "structured")]) == 0.95


@pytest.mark.parametrize("rung", list(Rung))
def test_every_rung_and_verdict_has_a_confidence(rung: Rung) -> None:
    found = [of_field(rung, one, [place("a")]) for one in (Verdict.SUPPORTED, Verdict.DERIVED, Verdict.JUDGED)]
    assert found == sorted(found, reverse=True)
    assert of_field(rung, Verdict.UNSUPPORTED, [place("a")]) == 0.0
    assert 0.5 < found[-1] <= found[0] <= 1.0
