"""Who does something in a sentence, and whether it was done: rules for statements of an organization about itself.

    why_not_own         why a sentence is not such a statement: `other_subject`, `quotation`, `question`,
                        `hypothetical`, `plan`, `negated`, `failure`, `past`, `no_deed`; empty if it is one
    why_against         `failure` or `negated`, if the organization says so of itself
    why_not_asserted    the same, where the subject of the sentence is known
    is_failure          a fine, an accident, emissions that rose

The words are in `attribution.toml`, in English, German, French, Spanish, Italian, Dutch, Japanese and Chinese.
`subject` decides who is the subject.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from time import gmtime
from typing import Any

from curtsy.grounding.own_names import names_in, names_like
from curtsy.grounding.patterns import compiled
from curtsy.grounding.subject import is_anaphor, is_organization, is_other_name, is_own_subject

__all__ = [
    "AGAINST", "introduces_other", "is_ahead", "is_anaphor", "is_failure", "is_organization", "is_other_name",
    "is_own", "is_past", "lowers", "names_in", "names_like", "why_against", "why_not_asserted", "why_not_own",
]  # fmt: skip

_WORDS: dict[str, str] = tomllib.loads((Path(__file__).parent / "attribution.toml").read_text("utf-8"))
#: reasons that speak against the organization itself
AGAINST = ("failure", "negated")
_MAX_SENTENCE = 1_000
_QUOTES = ("“", "„", "«", "»", '"', "「", "『", "‘", "›")
#: a quotation after a colon
_SAID = re.compile(r"[:：]\s?[“„«»\"「『]")
#: three words or more between quotation marks
_QUOTED = re.compile(r"[“„«»\"]\s?\w+(?:[ ,'’-]{1,2}\w+){2,40}[ ,.!]{0,2}[”“»«\"]|[「『][^」』]{8,200}[」』]")
#: what stands before a colon: who speaks, or a topic
_SPEAKER = re.compile(r"([^:：.!?]{3,80})[:：] ")
#: what is said of a name: `Brenholt, whose workshop`
_NAME_CLAUSE = re.compile(
    r"(?<!^)\b(?!LEDs?\b)[A-ZÀ-ÖØ-Þ][\w'’&-]{2,30}, (?:whose|which|who|where|dont|qui|cuy[ao]s?)\b"
)
#: characters after `says` in which its subject is: `says our director`
_NEAR_SPEAKER = 20
_CLAUSE = re.compile(r"[,;、]\s?(?!\d)")
_FROM_TO = re.compile(
    r"\b(?:from|von|de|desde|da|van) (\d[\d.,]{0,11})[^\d,;]{0,20}? (?:to|auf|à|a|naar) (\d[\d.,]{0,11})|"
    r"(\d[\d.,]{0,11})\D{0,4}から(\d[\d.,]{0,11})",
    re.IGNORECASE,
)
#: words at the beginning of a sentence in which its subject is
#: not an amount (`2,035 tonnes`, `2040 kg`)
_YEAR = re.compile(
    r"(?<![\d.,])(20\d\d)(?!\d|[.,]\d|\s?(?:%|percent|prozent|tonn|tons|kg|kwh|mwh|gwh|trees|bäume|本|トン))",
    re.IGNORECASE,
)
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
    return compiled("|".join(parts), max_length=16_000, case_sensitive=False)


@cache
def _others_act() -> Any:
    """`Our customers saved`: others are the subject, at the beginning of the sentence."""
    others = _WORDS["others"].replace("\n", "").strip("|")
    subjects = _WORDS["subjects"].replace("\n", "").strip("|")
    unspaced = _WORDS["others_unspaced"]
    return compiled(
        rf"{_LEAD}(?:{_OUR}\s+(?:[\p{{L}}-]+\s+){{0,2}}(?:{others})(?:[^\p{{L}}]|$)|(?:{others})\s|(?:{subjects})(?:[^\p{{L}}]|$)"
        rf"|.{{0,6}}(?:{unspaced}))",
        max_length=16_000,
        case_sensitive=False,
    )


def why_not_own(sentence: str, names: Sequence[str] = ()) -> str:
    """Return why a sentence is not a statement of an organization about what it is or did; empty if it is one.

    `names` are names of the organization.
    """
    whole = " ".join(sentence[:_MAX_SENTENCE].split())
    if _is_said_by_others(whole) or _has_other_speaker(whole, names):
        return "quotation"
    text = stated(whole)
    if reason := why_not_asserted(text, names):
        return reason
    if not is_own_subject(text, names) or _is_deed_of_object(text):
        return "other_subject"
    if _is_consumption(text):
        return "no_deed"
    return "quotation" if _any("rumors").search(whole) else ""


def why_against(sentence: str, names: Sequence[str] = ()) -> str:
    """Return `failure` or `negated` for a statement of the organization that it failed, or did not do something."""
    reason = why_not_own(sentence, names)
    return reason if reason in AGAINST and is_own_subject(stated(" ".join(sentence.split())), names) else ""


def stated(text: str) -> str:
    """Return what a sentence states: `steel makers cut` of `We have read that steel makers cut`."""
    found = _any("reporting").search(text)
    return text[found.end() :].lstrip() if found is not None else text


def _is_deed_of_object(text: str) -> bool:
    """`We sell kilns that save 40 percent of gas`, `we asked Cafe Rosa, and they saved 30 percent`: the figure is in a
    clause about what or whom the organization deals with."""
    named = _NAME_CLAUSE.search(text)
    dealing = _any("dealings").search(text)
    rest = "" if dealing is None else text[dealing.end() - 1 :]
    found = _any("relatives").search(rest)
    if named is None and found is None:
        return False
    clause = text[named.end() :] if named is not None else rest[found.end() - 1 :]
    return any(char.isdigit() for char in clause) and not _any("own").search(clause)


def _is_consumption(text: str) -> bool:
    """`We emitted 300 tonnes of CO2`: a figure about a burden, and nothing that was done about it."""
    if not _any("consumption").search(text) or _any("thrift").search(text):
        return False
    return _any("burdens").search(text) is not None or _any("energy").search(text) is not None


def _is_said_by_others(text: str) -> bool:
    """`We planted trees, says the rancher`, `a client tells us that we`; not `our director says that we`."""
    found = _any("saying").search(text)
    if found is None:
        return _says("hearsay_unspaced", text)
    before, after = text[: found.start()], text[found.end() - 1 :]
    speaker = after[:_NEAR_SPEAKER] if before.endswith(",") else before
    return not _any("own").search(speaker) or _any("others").search(speaker) is not None


def _has_other_speaker(text: str, names: Sequence[str]) -> bool:
    """`Cafe Rosa: we saved 40 kg`, `the Clay Trust, which we support: we exist`; not `Energy Use: we saved`."""
    lead = _SPEAKER.match(text)
    if lead is None or not _any("own").search(text[lead.end() : lead.end() + _NEAR_SPEAKER]):
        return False
    return is_other_name(lead[1], names)


def _says(name: str, text: str) -> bool:
    return compiled(_WORDS[name]).search(text) is not None


def why_not_asserted(sentence: str, names: Sequence[str] = ()) -> str:
    """Return why a sentence does not state that something is so or was done, or who else did it."""
    text = " ".join(sentence[:_MAX_SENTENCE].split())
    if text.startswith(_QUOTES) or _SAID.search(text) or _QUOTED.search(text):
        return "quotation"
    if _is_said_by_others(text) or _any("rumors").search(text):
        return "quotation"
    if text.endswith(("?", "？")):
        return "question"
    if _do_others_act(text, names):
        return "other_subject"
    text = _any("relinquished").sub(" ", _any("spared").sub(" ", text))
    for name, reason in (
        ("hypothetical", "hypothetical"),
        ("plans", "plan"),
        ("negations", "negated"),
        ("past", "past"),
        ("errors", "failure"),
    ):
        if _any(name).search(text):
            return reason
    if is_ahead(text):
        return "plan"
    return "failure" if is_failure(text) else ""


def _do_others_act(text: str, names: Sequence[str]) -> bool:
    """`The city cut`, unless the organization is the city."""
    found = _others_act().search(text)
    if found is not None and not any(name.casefold() in found[0].casefold() for name in names if name):
        return True
    return any(_any(name).search(text) for name in ("helping", "dealing")) or _is_thanks(text)


def is_ahead(text: str) -> bool:
    """Return whether a year in it has not begun: `from 2031 on, our plants run on hydrogen`."""
    return any(int(found[1]) > gmtime().tm_year for found in _YEAR.finditer(text))


def _is_thanks(text: str) -> bool:
    """`Thanks to our app, hotels save water`, not `thanks to our heat pump, we save gas`."""
    found = _any("thanks").search(text)
    return found is not None and not _any("first_persons").search(text[found.end() - 1 :])


def is_failure(text: str) -> bool:
    """Return whether a sentence states a failure: a fine, an accident, emissions that rose."""
    text = " ".join(text[:_MAX_SENTENCE].split())
    if _any("failures").search(text):
        return True
    return any(_is_worse(clause) for clause in _CLAUSE.split(text))


def _is_worse(clause: str) -> bool:
    """Emissions that rose, a recycling rate that fell, by a verb or by two figures: `from 20 to 31 tonnes`."""
    change = _change(clause)
    if _any("goods").search(clause):
        return change < 0 or _any("only").search(clause) is not None or _any("falls").search(clause) is not None
    rise = change > 0 or _any("rises").search(clause) is not None
    return rise and _any("burdens").search(clause) is not None and not _any("relief").search(clause)


def _change(clause: str) -> float:
    """Return the difference of two figures, `from 20 to 31`; 0 for none and for years."""
    found = _FROM_TO.search(clause)
    if found is None:
        return 0.0
    first, last = (_figure(one) for one in found.groups() if one is not None)
    return 0.0 if first > 1_900 and last > 1_900 else last - first


def _figure(text: str) -> float:
    """Both figures are written alike, so that the separators matter little."""
    plain = re.sub(r"[.,](?=\d{3}(?!\d))", "", text).replace(",", ".")
    return float(".".join(plain.split(".")[:2]))


def introduces_other(text: str) -> bool:
    """`Brenholt is our oldest client`, `our landlord is Merton Estates`: the next sentence may be about it."""
    return _any("others").search(text) is not None and _any("copulas").search(text) is not None


def is_past(text: str) -> bool:
    """Return whether it speaks of what has ended: `our former address`."""
    return _any("past").search(" ".join(text[:_MAX_SENTENCE].split())) is not None


def lowers(text: str) -> bool:
    """Return whether a sentence speaks against its organization: a denial or a failure."""
    return is_failure(text) or (is_own(text) and why_not_own(text) == "negated")


def is_own(text: str) -> bool:
    """Return whether the organization speaks of itself."""
    return bool(_any("own").search(text))
