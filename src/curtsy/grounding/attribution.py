"""Who does something in a sentence, and whether it was done: rules for statements of an organization about itself.

    why_not_own    why a sentence is not such a statement: `other_subject`, `quotation`, `hypothetical`, `plan`,
                   `negated`, `failure`, `past`; empty if it may be one
    is_failure     a fine, an accident, emissions that rose

The words are in `attribution.toml`, in English, German, French, Spanish, Italian, Dutch, Japanese and Chinese. Pure.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from curtsy.grounding.patterns import compiled

_WORDS: dict[str, str] = tomllib.loads((Path(__file__).parent / "attribution.toml").read_text("utf-8"))
_MAX_SENTENCE = 1_000
_QUOTES = ("“", "„", "«", '"', "「", "『", "‘")
#: a quotation after a colon
_SAID = re.compile(r"[:：]\s?[“„«\"「『]")
#: words at the beginning of a sentence in which its subject is
_LEAD = r"^\W*(?:(?:in|since|last|im|seit|en|desde|nel|dal|depuis|durant|während|during)\b[^,]{0,30},\s*)?"
_OUR = (
    r"(?:our|one of our|some of our|most of our|many of our|a|unsere?[nrs]?|einer unserer|nos|notre|un de nos|"
    r"nuestr[oa]s?|i nostri|onze)"
)


@cache
def _any(name: str) -> Any:
    """Return a pattern for one of the words."""
    spaced = _WORDS[name].replace("\n", "").strip("|")
    parts = [rf"(?:^|[^\p{{L}}\p{{N}}])(?:{spaced})(?:[^\p{{L}}\p{{N}}]|$)"]
    if f"{name}_unspaced" in _WORDS:
        parts.append(_WORDS[f"{name}_unspaced"])
    return compiled("|".join(parts), max_length=8_000, case_sensitive=False)


@cache
def _others_act() -> Any:
    """`Our customers saved`: others are the subject, at the beginning of the sentence."""
    others = _WORDS["others"].replace("\n", "").strip("|")
    subjects = _WORDS["subjects"].replace("\n", "").strip("|")
    unspaced = _WORDS["others_unspaced"]
    return compiled(
        rf"{_LEAD}(?:{_OUR}\s+(?:[\p{{L}}-]+\s+){{0,2}}(?:{others})(?:[^\p{{L}}]|$)|(?:{others})\s|(?:{subjects})(?:[^\p{{L}}]|$)"
        rf"|.{{0,6}}(?:{unspaced}))",
        max_length=8_000,
        case_sensitive=False,
    )


def why_not_own(sentence: str) -> str:
    """Return why a sentence is not a statement of an organization about what it is or did; empty if it may be."""
    text = " ".join(sentence[:_MAX_SENTENCE].split())
    if text.startswith(_QUOTES) or _SAID.search(text):
        return "quotation"
    if _others_act().search(text) or _any("helping").search(text) or _any("dealing").search(text) or _is_thanks(text):
        return "other_subject"
    for name, reason in (
        ("hypothetical", "hypothetical"),
        ("plans", "plan"),
        ("negations", "negated"),
        ("past", "past"),
    ):
        if _any(name).search(text):
            return reason
    return "failure" if is_failure(text) else ""


def _is_thanks(text: str) -> bool:
    """`Thanks to our app, hotels save water`, not `thanks to our heat pump, we save gas`."""
    found = _any("thanks").search(text)
    return found is not None and not _any("first_persons").search(text[found.end() - 1 :])


def is_failure(text: str) -> bool:
    """Return whether a sentence states a failure: a fine, an accident, emissions that rose."""
    text = " ".join(text[:_MAX_SENTENCE].split())
    if _any("failures").search(text):
        return True
    return bool(_any("rises").search(text) and _any("burdens").search(text) and not _any("relief").search(text))


def lowers(text: str) -> bool:
    """Return whether a sentence speaks against its organization: a denial or a failure."""
    return is_failure(text) or (is_own(text) and why_not_own(text) == "negated")


def is_own(text: str) -> bool:
    """Return whether the organization speaks of itself."""
    return bool(_any("own").search(text))
