"""Numbers in words of other languages than English: `doscientos cincuenta`, `dreiundzwanzig`, `خمسة وعشرون`.

The words are in `spelled_numbers.toml`. One word alone may mean something else in another language (`once`, `elf`,
`cent`), so it counts only on a page in its language, or in a script that is not Latin. A word that is also an article
(`un`, `ein`, `एक`) never counts alone. Spans are those of the text. No I/O; nothing raises.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

#: marks that are part of a word, but no letters to `re`: accents, Arabic vowels, Indic vowel signs, joiners
_MARKS = (
    "\u0300-\u036f\u0610-\u061a\u0640\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963"
    "\u0981-\u0983\u09bc-\u09cd\u09d7\u09e2\u09e3\u200c\u200d"
)
_TOKEN = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{_MARKS}])*")
_BETWEEN = re.compile("[ \u00a0\u202f\u00ad-]{1,2}")
#: Arabic vowel signs, the letter stretcher and joiners change nothing
_DROPPED = re.compile("[\u0610-\u061a\u0640\u064b-\u065f\u0670\u200c\u200d]")
_ALEFS = str.maketrans("أإآى", "اااي")
_MAX_WORD = 80
_TOP = 1_000


class _Part(NamedTuple):
    """A part of a number. kind: `add` a value below 1,000, `times` 100, `scale`, `ten` and `teen`, `whole`, `and`."""

    kind: str
    value: int


@dataclass(slots=True)
class _Language:
    parts: dict[str, _Part] = field(default_factory=dict)
    articles: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    glued: re.Pattern[str] | None = None
    units_first: bool = False
    vigesimal: bool = False
    #: ten and one instead of eleven
    ten_first: bool = False
    #: the joining word is a prefix: `وعشرون`
    prefix: str = ""


class SpelledNumber(NamedTuple):
    start: int
    end: int
    value: Decimal


@lru_cache(maxsize=8192)
def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFC", _DROPPED.sub("", word).translate(_ALEFS).casefold())


def _forms(text: str) -> list[list[str]]:
    return [[_folded(one) for one in forms.split("|")] for forms in text.split()]


def _language(name: str, given: dict[str, Any]) -> _Language:
    made = _Language(units_first=bool(given.get("units_first")), vigesimal=bool(given.get("vigesimal")))
    made.ten_first = bool(given.get("ten_first"))
    for key, first, by in (("units", 0, 1), ("tens", 20, 10), ("hundreds", 100, 100)):
        for at, forms in enumerate(_forms(given.get(key, ""))):
            made.parts.update(dict.fromkeys(forms, _Part("add", first + by * at)))
    for key, kind, value in (("hundred", "times", 100), ("teen", "teen", 10), ("ten", "ten", 10), ("and", "and", 0)):
        made.parts.update({form: _Part(kind, value) for forms in _forms(given.get(key, "")) for form in forms})
    for key, kind in (("scales", "scale"), ("more", "whole")):
        for one in given.get(key, "").split():
            forms, _, said = one.partition("=")
            value = 10 ** int(said) if kind == "scale" else int(said)
            made.parts.update({_folded(form): _Part(kind, value) for form in forms.split("|")})
    made.articles = frozenset(map(_folded, given.get("articles", "").split()))
    made.endings = tuple(map(_folded, given.get("endings", "").split()))
    made.prefix = "و" if name == "ar" else ""
    if given.get("glued"):
        longest = sorted(made.parts, key=len, reverse=True)
        made.glued = re.compile("|".join(map(re.escape, longest)))
    return made


_LANGUAGES = {
    name: _language(name, given)
    for name, given in tomllib.loads((Path(__file__).parent / "spelled_numbers.toml").read_text("utf-8")).items()
}
_GLUED = [name for name, one in _LANGUAGES.items() if one.glued]
#: word -> languages that have it, so that other words cost one lookup
_BY_WORD: dict[str, list[str]] = {}
for _name, _one in _LANGUAGES.items():
    for _word in _one.parts:
        _BY_WORD.setdefault(_word, []).append(_name)
#: a word with one of these beginnings may be glued
_BEGINNINGS = frozenset(word[:3] for name in _GLUED for word in _LANGUAGES[name].parts)


class _Word(NamedTuple):
    start: int
    end: int
    text: str


def spelled_numbers(text: str, language: str | None = None) -> Iterator[SpelledNumber]:
    """Yield the numbers in words; `language` is the page's."""
    own = (language or "").lower().replace("_", "-").partition("-")[0]
    if not any(_languages_of(word) for word in set(_TOKEN.findall(text))):
        return
    words = [_Word(one.start(), one.end(), _folded(one[0])) for one in _TOKEN.finditer(text)]
    at = 0
    while at < len(words):
        names = _languages_of(words[at].text)
        readings = [_read(_LANGUAGES[name], name, text, words, at, own) for name in names]
        found = max(filter(None, readings), default=None, key=itemgetter(1))
        if found is None:
            at += 1
            continue
        value, count = found
        yield SpelledNumber(words[at].start, words[at + count - 1].end, Decimal(value))
        at += count


@lru_cache(maxsize=8192)
def _languages_of(word: str) -> Sequence[str]:
    word = _folded(word)
    if (known := _BY_WORD.get(word)) is not None:
        return known
    if len(word) > 3 and word[:3] in _BEGINNINGS:
        return _GLUED
    for name in ("bn",):
        if any(word.endswith(one) and word[: -len(one)] in _LANGUAGES[name].parts for one in _LANGUAGES[name].endings):
            return (name,)
    return ()


def _read(
    language: _Language, name: str, text: str, words: Sequence[_Word], at: int, own: str
) -> tuple[int, int] | None:
    """Return the value of the number that begins at this word, and how many words it has."""
    reading = _Reading(language)
    count = taken = size = 0
    while at + count < len(words):
        word = words[at + count]
        if count and _BETWEEN.fullmatch(text, words[at + count - 1].end, word.start) is None:
            break
        parts = _parts(language, word.text)
        if not parts or not reading.take_all(parts):
            break
        count += 1
        if parts[-1].kind != "and":
            taken, size = count, size + sum(one.kind != "and" for one in parts)
    if not taken or reading.value is None:
        return None
    if size == 1:
        first = words[at].text
        if first in language.articles or (own != name and first[0] < "\u0250"):
            return None
    return reading.value, taken


def _parts(language: _Language, word: str) -> list[_Part]:
    found = language.parts.get(word)
    if found is not None:
        return [found]
    if language.prefix and word.startswith(language.prefix) and (found := language.parts.get(word[1:])):
        return [_Part("and", 0), found]
    for ending in language.endings:
        if word.endswith(ending) and (found := language.parts.get(word[: -len(ending)])):
            return [found]
    return _unglued(language, word) if language.glued is not None and len(word) <= _MAX_WORD else []


def _unglued(language: _Language, word: str) -> list[_Part]:
    assert language.glued is not None
    found: list[_Part] = []
    at = 0
    while at < len(word):
        part = language.glued.match(word, at)
        if part is None:
            return []
        found.append(language.parts[part[0]])
        at = part.end()
    return found


class _Reading:
    """A partly parsed number: what is complete above the last scale, and the part below the next one."""

    def __init__(self, language: _Language) -> None:
        self._language = language
        self._done: int = 0
        self._below: int = 0
        #: the lowest place in use: 1 after `five`, 10 after `twenty`, 100 after `two hundred`
        self._place: int = _TOP
        self._least_scale: int = 10**15
        self._said = False
        self._joined = False

    @property
    def value(self) -> int | None:
        return self._done + self._below if self._said else None

    def take_all(self, parts: Sequence[_Part]) -> bool:
        """Take all parts of a word, or none."""
        before = (self._done, self._below, self._place, self._least_scale, self._said, self._joined)
        if all(self._take(one) for one in parts):
            return True
        self._done, self._below, self._place, self._least_scale, self._said, self._joined = before
        return False

    def _take(self, part: _Part) -> bool:
        if part.kind == "and":
            taken = self._said and not self._joined
            self._joined = True
            return taken
        taken = self._number(part)
        self._said, self._joined = True, False
        return taken

    def _number(self, part: _Part) -> bool:
        last = self._below % 100
        match part.kind:
            case "add":
                return self._add(part.value, last)
            case "times":
                if self._below >= 100 or (self._below and self._place > 10):
                    return False
                self._below, self._place = (self._below or 1) * 100, 100
            case "ten" | "teen":
                if not 0 < last < 10 or self._place != 1:
                    return False
                made = last * 10 if part.kind == "ten" else last + 10
                self._below, self._place = self._below - last + made, 10 if part.kind == "ten" else 1
            case "whole":
                if self._place < _TOP or part.value >= self._least_scale:
                    return False
                self._done, self._place = self._done + part.value, _TOP if part.value >= _TOP else 100
            case "scale":
                return self._scale(part.value)
        return True

    def _add(self, value: int, last: int) -> bool:
        if self._language.vigesimal and value == 20 and last == 4 and self._place == 1:
            self._below, self._place = self._below - 4 + 80, 20  # quatre-vingt
            return True
        backwards = self._language.units_first and self._place == 1 and 0 < last < 10
        if backwards and (value % 10 == 0 and 10 <= value < 100) and (self._joined or value == 10):
            self._below, self._place = self._below + value, 1
            return True
        if self._language.vigesimal and 7 <= value <= 9 and last in (10, 70, 90) and self._place == 1:
            self._below += value  # dix-neuf
            return True
        needed = 10 if value < 10 else 100 if value < 100 else _TOP
        if self._language.vigesimal and 10 <= value < 20 and last in (60, 80) and self._place >= 10:
            needed = 10
        if self._place < needed:
            return False
        self._below += value
        is_ten = value % 10 == 0 and (value >= 20 or (value == 10 and self._language.ten_first))
        self._place = 100 if value >= 100 else 10 if is_ten else 1
        return True

    def _scale(self, value: int) -> bool:
        if value < self._least_scale and (self._below or not self._said):
            self._done += (self._below or 1) * value
        elif self._least_scale == 1_000 and value > 1_000 and not self._below:
            self._done *= value  # mil millones
        else:
            return False
        self._below, self._place, self._least_scale = 0, _TOP, value
        return True
