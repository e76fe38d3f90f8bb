"""Nouns for kinds of organizations: which words of a text may mean the organization with a name.

    is_kind      whether a word is such a noun: `hotel`
    is_kind_of   whether a word is in a name, or means the same as a word there
    head_of      such a noun at the end of a compound

The words are in `kinds.toml`. Pure.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_MIN_NAME = 4
#: letters of the last part of a compound
_MIN_HEAD = 5


def is_kind(word: str) -> bool:
    return word.casefold() in _kinds()


def is_kind_of(word: str, names: Sequence[str]) -> bool:
    """Return whether a word is in one of the names, or means the same as a word there.

    >>> is_kind_of("hotel", ["The Heron Inn"]), is_kind_of("mill", ["The Heron Inn"])
    (True, False)
    """
    said, kinds = word.casefold(), _kinds()
    own = {
        one.casefold()
        for name in names
        for one in _WORD.findall(name)
        if len(one) >= _MIN_NAME or one.casefold() in kinds
    }
    if said in own or (len(said) >= _MIN_HEAD and any(one.endswith(said) for one in own)):
        return True  # `Schule` of `Musikschule`
    return said in kinds and any(kinds[said] == kinds[one] for one in own if one in kinds)


@lru_cache(maxsize=4096)
def head_of(word: str) -> str:
    """`verein` of `Schützenverein`; the word itself if it has no such part."""
    said = word.casefold()
    return max((kind for kind in _kinds() if len(kind) >= _MIN_HEAD and said.endswith(kind)), key=len, default=said)


@cache
def _kinds() -> dict[str, int]:
    """Words for a kind of organization, with the number of their line."""
    lines = enumerate(_listed().splitlines())
    return {word: number for number, line in lines for word in line.split("|") if word}


def _listed() -> str:
    found: dict[str, str] = tomllib.loads((Path(__file__).parent / "kinds.toml").read_text("utf-8"))
    return found["kinds"]
