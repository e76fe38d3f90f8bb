"""Where the threshold for near copies lies: precision and recall over the labelled long texts, at every threshold.

    python tests/golden/calibrate.py

Three measures are compared: likeness of characters (partial ratio), likeness of words in their order, and the latter
with what `ground_near` asks for besides: no figure, qualifier or word of weight of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from grounding_cases import cases
from rapidfuzz import fuzz

from curtsy.grounding.folded_text import fold, plain
from curtsy.grounding.near_copies import NEAR, find_near, nearest
from curtsy.tinyweb import facts

THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


@dataclass(frozen=True)
class Pair:
    """A value, a source, and whether a reader finds the value stated in it."""

    value: str
    source: str
    same: bool


@dataclass(frozen=True)
class Row:
    threshold: float
    precision: float
    recall: float


def labelled() -> list[Pair]:
    """By hand: copies, changed facts, paraphrases."""
    return [Pair(str(case.claim.value), case.claim.source.text, case.expected["same"]) for case in cases("long")]


def of_others(count: int = 40) -> list[Pair]:
    """Claims of organisations of the tiny web against those of the next: the same sentences with other figures."""
    told = [facts.truth(facts.org_host(number)).sustainability_claims for number in range(count)]
    pairs = []
    for own, others in pairwise(told):
        page = "\n".join(f"{claim.text}." for claim in others)
        pairs += [Pair(claim.text, page, claim.text in page) for claim in own]
    return pairs


def by_characters(pair: Pair) -> float:
    return fuzz.partial_ratio(plain(pair.value), plain(pair.source)) / 100


def by_words(pair: Pair) -> float:
    return nearest(fold(pair.source), plain(pair.value))


def by_words_guarded(pair: Pair) -> float:
    """The likeness of words, 0 where the value says otherwise."""
    folded = fold(pair.source)
    near = find_near(folded, plain(pair.value), 0, len(folded.text), threshold=0)
    return nearest(folded, plain(pair.value)) if near else 0.0


def table(pairs: Sequence[Pair], measure: Callable[[Pair], float]) -> list[Row]:
    measured = [(measure(pair), pair.same) for pair in pairs]
    positive = sum(pair.same for pair in pairs)
    rows = []
    for threshold in THRESHOLDS:
        taken = [same for likeness, same in measured if likeness >= threshold]
        rows.append(
            Row(threshold, sum(taken) / len(taken) if taken else 1.0, sum(taken) / positive if positive else 1.0)
        )
    return rows


MEASURES = {"characters": by_characters, "words": by_words, "words, guarded": by_words_guarded}


def main() -> None:
    for title, pairs in (("labelled", labelled()), ("labelled, and claims of others", labelled() + of_others())):
        print(f"{title}: {len(pairs)} pairs, {sum(pair.same for pair in pairs)} of them the same (P, R)")
        tables = [table(pairs, measure) for measure in MEASURES.values()]
        print("threshold  " + "  ".join(f"{name:>16}" for name in MEASURES))
        for rows in zip(*tables, strict=True):
            mark = " <" if rows[0].threshold == NEAR else ""
            cells = "  ".join(f"{row.precision:>9.2f} {row.recall:>6.2f}" for row in rows)
            print(f"{rows[0].threshold:>9.2f}  {cells}{mark}")


if __name__ == "__main__":
    main()
