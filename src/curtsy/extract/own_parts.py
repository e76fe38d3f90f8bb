"""Whether the place of a fact or a contact says that it is the organization's own, or leaves open whose it is.

    of_others   parts below `What others do`, `Hotel Rosa`
    of_plans    parts below `Goals`, `Setbacks`
    is_head_office, is_branch   which of several offices a heading names
    lead_in     the line before a statement that announces it: `Our customers report:`
    unclear     parts below headings that name another thing: `Where to stay`, `The mill`, `Cafe Rosa`
    names_none  whether the words before a contact are labels only: `Call us on`, not `Taxi:`

A labeled value says whose it is by its place. A list of words for others is never complete, so these are lists of
words for the organization's own. They are in `own_parts.toml`. Sentences with a subject are not judged here.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from curtsy.extract import foreign_parts
from curtsy.grounding import attribution, subject
from curtsy.grounding.patterns import compiled
from curtsy.rules.urls import registrable_domain

_WORDS: dict[str, str] = tomllib.loads((Path(__file__).parent / "own_parts.toml").read_text("utf-8"))
_WORD = re.compile(r"[^\W\d_]+")
_MIN_NAME = 4
_MAX_NAME = 5
_SHORT_LINE = re.compile(r"^[^\n\t:：.,!?\d]{4,40}[:：]?$", re.MULTILINE)
#: words of a line that only names an office, and characters below it
_MAX_OFFICE = 4
_MAX_BELOW = 400
_MAX_TEXT = 100_000
#: lines of a list below the line that announces it
_MAX_LINES = 8


_Sections = Sequence[tuple[str, int, int]]


def unclear(sections: _Sections, own: str) -> foreign_parts.Spans:
    """Return the parts whose headings name another thing than the organization with this domain."""
    return foreign_parts.Spans((start, end) for text, start, end in sections if not is_neutral(text, own))


def of_others(sections: _Sections, own: str) -> foreign_parts.Spans:
    """Return the parts below headings such as `What others do`, or that are the name of another body: `Hotel Rosa`."""
    return foreign_parts.Spans(
        (start, end) for text, start, end in sections if announces_others(text) or is_body(text, own)
    )


def of_plans(sections: _Sections) -> foreign_parts.Spans:
    """Return the parts below headings such as `Goals`, `Setbacks`."""
    return foreign_parts.Spans((start, end) for text, start, end in sections if announces_plans(text))


def announces_others(text: str) -> bool:
    return _any("others").search(text) is not None or compiled(_WORDS["others_unspaced"]).search(text) is not None


def announces_plans(text: str) -> bool:
    return _any("ahead").search(text) is not None or compiled(_WORDS["ahead_unspaced"]).search(text) is not None


def is_head_office(text: str) -> bool:
    """Return whether a heading names the main one of several offices."""
    return _any("head_offices").search(text) is not None or _unspaced("head_offices_unspaced").search(text) is not None


def is_branch(text: str) -> bool:
    """`Truro branch`, not `Head office and branches`."""
    found = _any("branches").search(text) is not None or _unspaced("branches_unspaced").search(text) is not None
    return found and not is_head_office(text)


def offices(text: str) -> list[tuple[str, int, int]]:
    """Return the lines that only name an office, `Head office`, each with the lines below it to the next such line."""
    lines = [one for one in _SHORT_LINE.finditer(text[:_MAX_TEXT]) if len(one[0].split()) <= _MAX_OFFICE]
    named = [one for one in lines if is_head_office(one[0]) or is_branch(one[0])]
    ends = [*(one.start() for one in named), len(text)][1:]
    return [(one[0], one.start(), min(end, one.end() + _MAX_BELOW)) for one, end in zip(named, ends, strict=False)]


def announces_interview(text: str) -> bool:
    return (
        _any("interviews").search(text) is not None or compiled(_WORDS["interviews_unspaced"]).search(text) is not None
    )


def is_unspaced_body(text: str) -> bool:
    """`森田農園`, `森田さん`"""
    return compiled(_WORDS["bodies_unspaced"]).search(text) is not None


def is_topic(word: str) -> bool:
    """Return whether a word of a heading is no name: `Packaging`, `Abfall`."""
    return _topic().search(word) is not None or subject.is_known(word)


def lead_in(text: str, line: int) -> str:
    """Return the line that ends with a colon before a line, or before the list with the line; empty without one.

    >>> lead_in("Our customers report:\\nWe saved gas.", 22)
    'Our customers report:'
    """
    end = line - 1
    for _ in range(_MAX_LINES):
        start = text.rfind("\n", 0, max(end, 0)) + 1
        said = text[start : max(end, 0)].strip()
        if said.endswith((":", "：")):
            return said
        if said.endswith((".", "!", "?", "。")) or start == 0:
            return ""
        end = start - 1
    return ""


def is_body(heading: str, own: str) -> bool:
    """`The Clay Museum`, `Hotel Rosa`; not `Our museum`, nor a name of the site."""
    words = _WORD.findall(heading)
    if len(words) > _MAX_NAME or any(names_site(word, own) for word in words) or attribution.is_own(heading):
        return False
    return _any("bodies").search(heading) is not None and sum(word[0].isupper() for word in words) > 1


def is_neutral(heading: str, own: str) -> bool:
    """Return whether a heading may have facts or contacts of the organization with this domain below it.

    >>> is_neutral("Visit us", "alder"), is_neutral("Alder in figures", "alder"), is_neutral("The mill", "alder")
    (True, True, False)
    """
    said = " ".join(heading.split())
    if not _WORD.search(said) or _any("headings").search(said) or compiled(_WORDS["unspaced"]).search(said):
        return True
    return any(names_site(word, own) for word in _WORD.findall(said))


def names_none(text: str, own: str) -> bool:
    """Return whether all words are labels, or repeat the domain."""
    if compiled(_WORDS["unspaced"]).search(text):
        return True
    return all(_label().search(word) or names_site(word, own) for word in _WORD.findall(text))


def names_site(word: str, own: str) -> bool:
    said = _squeezed(word)
    return len(said) >= _MIN_NAME and said in own


def site_label(url: str) -> str:
    host = urlsplit(url).hostname or ""
    return _squeezed((registrable_domain(host) or host.removeprefix("www.")).partition(".")[0])


def _unspaced(name: str) -> Any:
    return compiled(_WORDS[name])


@cache
def _any(name: str) -> Any:
    edge = r"[^\p{L}\p{N}]"
    return compiled(rf"(?:^|{edge})(?:{_listed(name)})(?:{edge}|$)", max_length=8_000, case_sensitive=False)


@cache
def _topic() -> Any:
    return compiled(rf"^(?:{_listed('topics')}|{_listed('labels')})$", max_length=16_000, case_sensitive=False)


@cache
def _label() -> Any:
    return compiled(rf"^(?:{_listed('headings')}|{_listed('labels')})$", max_length=12_000, case_sensitive=False)


def _listed(name: str) -> str:
    return "".join(line.strip() for line in _WORDS[name].splitlines()).strip("|")


def _squeezed(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in plain if char.isalnum())
