"""Numbers in English words: `twenty-five`, `two hundred`, `one hundred and twenty thousand`, `three million`.

No I/O; nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from curtsy.grounding.vocabulary import ONES, TENS

_ONES = {word: value for value, word in enumerate(ONES)}
_TENS = {word: 20 + 10 * at for at, word in enumerate(TENS)}
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
#: words that multiply the number before them
_TIMES = {"hundred": 100, "dozen": 12}
_TOKEN = re.compile(r"[a-z]+", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:[ \u00a0\u202f]|-)")
#: `fifty-person` is a count; `one-time` and `two-thirds` are not
_COUNTED = re.compile(
    r"-(?:acre|bed|day|employee|foot|hour|kilometre|kilometer|man|member|metre|meter|mile|minute|month|page|people|person|"
    r"room|seat|storey|story|strong|week|woman|year)s?\b",
    re.IGNORECASE,
)
_FIRST = re.compile(rf"\b(?:{'|'.join((*_ONES, *_TENS))}|an?(?= (?:hundred|dozen|thousand|million|billion)\b))\b", re.I)


class NumberInWords(NamedTuple):
    """A number in words: its span, its value, and its value without the scale at its end."""

    start: int
    end: int
    value: Decimal
    scale: str | None
    unscaled: Decimal


def numbers_in_words(text: str) -> Iterator[NumberInWords]:
    """Yield all of them, each as long as possible."""
    at = 0
    while found := _FIRST.search(text, at):
        reading = _Reading(found[0].lower(), found.end())
        while reading.extend(text):
            pass
        at = reading.end
        following = _next(text, at)[0]
        alone = text[at : at + 1] != "-" or _COUNTED.match(text, at)
        # The value of `ten thousand million` is larger.
        if alone and following not in _SCALES and following not in _TIMES:
            yield NumberInWords(found.start(), at, Decimal(reading.value), reading.scale, Decimal(reading.unscaled))


class _Reading:
    """A partly parsed number: complete thousands, and the part below the next scale."""

    def __init__(self, word: str, end: int) -> None:
        self.end = end
        self._done = 0
        self._below = _ONES.get(word, _TENS.get(word, 1))
        #: the lowest place in use: 1 after `five`, 10 after `twenty`, 100 after `hundred`
        self._place = 10 if word in _TENS else 1
        self._least_scale = 15
        self.scale: str | None = None
        self.unscaled = self._below

    @property
    def value(self) -> int:
        return self._done + self._below

    def extend(self, text: str) -> bool:
        """Take the next word if it belongs to this number."""
        word, end = _next(text, self.end)
        if word == "and" and self._place >= 100:
            word, end = _next(text, end)
            if word not in _ONES and word not in _TENS:
                return False
        if not self._take(word):
            return False
        self.end = end
        return True

    def _take(self, word: str) -> bool:
        before = self.value
        if word in _TIMES and 0 < self._below < 100 and self._place <= 10:
            self._below, self._place = self._below * _TIMES[word], 100
        elif word in _SCALES and self._below and _SCALES[word] < self._least_scale:
            self._least_scale = _SCALES[word]
            self._done, self._below, self._place = self._done + self._below * 10**self._least_scale, 0, 1000
            self.scale, self.unscaled = word, before if before < 1000 else self.value
            return True
        elif word in _TENS and self._place >= 100:
            self._below, self._place = self._below + _TENS[word], 10
        elif word in _ONES and 0 < _ONES[word] < self._place and (_ONES[word] < 10 or self._place >= 100):
            self._below, self._place = self._below + _ONES[word], 1
        else:
            return False
        self.scale, self.unscaled = None, self.value
        return True


def _next(text: str, at: int) -> tuple[str, int]:
    """Return the next word and its end."""
    gap = _BETWEEN.match(text, at)
    found = _TOKEN.match(text, gap.end()) if gap else None
    return (found[0].lower(), found.end()) if found else ("", at)
