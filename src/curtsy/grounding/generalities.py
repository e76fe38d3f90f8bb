"""Texts that are no statement of an organization about itself: facts about the world, and lines of fragments.

    is_general     `Forests cover 31 % of our planet`, `Recycled paper saves 60 percent of water`
    is_own_han     whether a Chinese sentence is about the organization: `我们`, or a deed without a subject
    fragments      the parts of a line such as `Alder · Member of the Guild · Design by Pixelbarn`; empty if it has none

The words are in `subject.toml`. Pure.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from curtsy.grounding.patterns import compiled

_WORDS: dict[str, str] = tomllib.loads((Path(__file__).parent / "subject.toml").read_text("utf-8"))
_SEPARATOR = re.compile(r"\s[·|•‧]\s")
_DASH = re.compile(r"\s[–—]\s")
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+")
_HAN = re.compile(r"[\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
#: dashes in a sentence come in pairs, so that lines with them need a word of credits besides
_MIN_DASHED = 3
#: words after the first one in which the verb is: `Recycled paper saves`
_NEAR = 4
#: what precedes a deed without a subject: `自2019年起`
_TIME = re.compile(
    r"^(?:[自从於于在]?\s?\d{4}\s?年(?:\d{1,2}月)?(?:以来|以後|起|开始|至今|底|初)?|目前|现在|今年|去年)[，,、]?"
)


def is_general(text: str) -> bool:
    """Return whether a text is about the world, a country or things in general, and has no sign of the organization."""
    if _HAN.search(text):
        if _unspaced("our_world_unspaced").search(text):
            return True
        return _unspaced("world_unspaced").search(text) is not None and not _unspaced("marks_unspaced").search(text)
    if _any("of_world").search(text):
        return True
    words = _WORD.findall(text.partition(":")[0])
    is_note = _any("deeds").search(" ".join(words[:1])) is not None
    if is_note and ":" in text and 1 < len(words) <= _NEAR:
        return True  # `Recycled glass: 30 percent less energy`
    return is_note and any(_any("properties").search(word) for word in words[2:_NEAR])


def is_own_han(text: str, names: Sequence[str]) -> bool:
    if any(name in text for name in names) or _unspaced("marks_unspaced").search(text):
        return True
    return _unspaced("deeds_unspaced").search(_TIME.sub("", text)) is not None


def fragments(text: str) -> list[str]:
    parts = [one for one in _SEPARATOR.split(text) if _LETTER.search(one)]
    if len(parts) > 1:
        return parts
    parts = [one for one in _DASH.split(text) if _LETTER.search(one)]
    is_credit = _any("credits").search(text) is not None or _unspaced("credits_unspaced").search(text) is not None
    return parts if len(parts) >= _MIN_DASHED and is_credit else []


@cache
def _any(name: str) -> Any:
    words = "".join(line.strip() for line in _WORDS[name].splitlines()).strip("|")
    edge = r"[^\p{L}\p{N}]"
    return compiled(rf"(?:^|{edge})(?:{words})(?:{edge}|$)", max_length=8_000, case_sensitive=False)


@cache
def _unspaced(name: str) -> Any:
    return compiled(_WORDS[name])
