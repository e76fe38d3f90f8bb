"""How reliable a published value is, as a number from 0 to 1 that orders values for a reader. It is not a probability.

Each way to find a value leaves a doubt. Every further place that states the same value in the same role halves it:
another page, or another kind of source of the same page. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from curtsy.core.claims import Rung, Verdict

#: with one place
_DOUBT = {
    Rung.PERSON: 0.0,
    Rung.STRUCTURED: 0.1,
    Rung.LEARNED: 0.15,
    Rung.SELECTOR: 0.2,
    Rung.LLM: 0.3,
    Rung.FUNCTION: 0.3,
}
#: a judgment is less reliable than a value that its quote contains
_MORE = {Verdict.SUPPORTED: 1.0, Verdict.DERIVED: 1.2, Verdict.JUDGED: 1.5}


def of_field(rung: str, verdict: str, evidence: Iterable[dict[str, Any]]) -> float:
    """Return the confidence of a value; 0 if it is withheld.

    >>> of_field("structured", "supported", [{"url": "/a", "source": "structured"}])
    0.9
    >>> of_field("structured", "supported", [{"url": at, "source": "structured"} for at in ("/a", "/b", "/c")])
    0.975
    """
    if verdict == Verdict.UNSUPPORTED:
        return 0.0
    places = {(one.get("page"), one.get("url"), one.get("source")) for one in evidence}
    doubt = _DOUBT[Rung(rung)] * _MORE[Verdict(verdict)] * 0.5 ** max(0, len(places) - 1)
    return round(1 - doubt, 4)
