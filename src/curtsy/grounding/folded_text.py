"""Text normalization (folding) for comparison, with a mapping back to the characters of the source.

`fold` removes differences without meaning: case, compatibility forms (`ﬁ`, `m²`, full width), quotation marks, dashes,
spaces, invisible characters, words broken at the end of a line. Accents are kept, composed or not: `Müller` is not
`Muller`. No I/O; nothing raises for any text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

#: longer texts are folded once for all claims about them
_KEPT_FROM = 4_000
_MAX_TABLE = 50_000
#: characters before and after a value in which a copyright sign makes its line a copyright line
_COPYRIGHT_BEFORE, _COPYRIGHT_AFTER = 160, 80
_MAX_OCCURRENCES, _MAX_TRIES = 50, 2_000

_QUOTES = dict.fromkeys("‘’‚‛′‵`´ʼʹ＇", "'") | dict.fromkeys("“”„‟«»‹›″‶〝〞＂", '"')
#: beside signs of trade marks: the vowels of Arabic and Hebrew and the letter stretcher, which few pages write
_SILENT = frozenset(
    "™®℠\u0640\ufe00\ufe01\ufe02\ufe03\ufe04\ufe05\ufe06\ufe07\ufe08\ufe09\ufe0a\ufe0b\ufe0c\ufe0d\ufe0e\ufe0f"
).union(map(chr, (*range(0x064B, 0x0653), 0x0670, *range(0x0591, 0x05BE), *range(0x05BF, 0x05C8))))
#: letters that capitals, or careless writers, replace by others
_LETTERS = {"İ": "i", "ı": "i", "ё": "е", "Ё": "е"}
# A hyphen at the end of a line, within a word.
_BROKEN_WORD = "[-\u2010\u00ad](?<=[^\\W\\d_].)[ \t]*\r?\n[ \t]*(?=[a-zà-öø-ÿ])"

#: letters whose accents are not kept, with their accents
_ACCENTED = "[IiеЕ\u0370-\u03ff\u1f00-\u1fff][\u0300-\u0345]+"

#: scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_WORD = re.compile(r"[^\W_]+(?:['’\-.&][^\W_]+)*")

_COPYRIGHT = re.compile(
    r"©|℗|\(c\)\s*(?:\d{4}|by\b|copyright)|\bcopyright\b|\bcopr\.|\ball rights reserved|\balle rechte vorbehalten"
    r"|\btous droits réservés|\btodos los derechos reservados|\btutti i diritti riservati"
    r"|\btodos os direitos reservados|\balle rechten voorbehouden|\bmed ensamrätt",
    re.IGNORECASE,
)


class _Table(dict[int, str]):
    """Code point -> its folded form, filled on demand."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _folded_char(chr(code))
        return folded


def _folded_char(char: str) -> str:
    category = unicodedata.category(char)
    if char.isspace() or category in ("Cc", "Zs", "Zl", "Zp"):
        return " "
    if category == "Cf" or char in _SILENT:
        return ""
    if char in _QUOTES:
        return _QUOTES[char]
    if category == "Pd" or char == "−":
        return "-"
    if "가" <= char <= "힣":  # NFKD would decompose these syllables into letters
        return char
    if char in _LETTERS:
        return _LETTERS[char]
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    if "\u0370" <= char <= "\u03ff" or "\u1f00" <= char <= "\u1fff":  # Greek capitals have no accents
        plain = "".join(one for one in plain if not unicodedata.combining(one))
    return plain.replace(" ", "").replace("⁄", "/") or char


_table = _Table()


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text, and the origin of each of its characters."""

    source: str
    text: str
    #: its pieces: their beginnings here and in the source, and whether they map as a unit or character by character
    begins: tuple[int, ...]
    origins: tuple[int, ...]
    units: tuple[bool, ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of text[start:end] in the source; source characters are never split."""
        at = bisect_right(self.begins, start) - 1
        first = self.origins[at] + (0 if self.units[at] else start - self.begins[at])
        at = bisect_right(self.begins, max(end - 1, 0)) - 1
        if self.units[at]:
            return first, self.origins[at + 1] if at + 1 < len(self.origins) else len(self.source)
        return first, self.origins[at] + end - self.begins[at]

    def place(self, offset: int) -> int:
        """Return the position here of an offset in the source; within a unit, its beginning."""
        if offset >= len(self.source):
            return len(self.text)
        at = bisect_right(self.origins, offset) - 1
        return self.begins[at] + (0 if self.units[at] else offset - self.origins[at])


def fold(text: str) -> Folded:
    """Return the folded text."""
    return _kept(text) if len(text) >= _KEPT_FROM else _fold(text)


def plain(text: str) -> str:
    """Return the folded string, for comparing whole strings."""
    return fold(text).text.strip()


@lru_cache(maxsize=12)
def _kept(text: str) -> Folded:
    return _fold(text)


def _fold(text: str) -> Folded:
    if len(_table) > _MAX_TABLE:
        _table.clear()
    pieces: list[str] = []
    begins: list[int] = []
    origins: list[int] = []
    units: list[bool] = []
    here = there = 0

    def add(piece: str, origin: int, unit: bool) -> None:
        nonlocal here
        begins.append(here)
        origins.append(origin)
        units.append(unit)
        pieces.append(piece)
        here += len(piece)

    for found in _irregular(text).finditer(text):
        start, end = found.span()
        if start > there:
            add(text[there:start].translate(_table), there, False)
        add(_folded_unit(found[0]), start, True)
        there = end
    if there < len(text) or not pieces:
        add(text[there:].translate(_table), there, False)
    return Folded(text, "".join(pieces), tuple(begins), tuple(origins), tuple(units))


def _folded_unit(unit: str) -> str:
    if len(unit) == 1:
        return _table[ord(unit)]
    if unit[0].isalpha():
        return unicodedata.normalize("NFC", unit).translate(_table).replace("i\u0307", "i")
    if unit[0] in "-\u2010\u00ad" and "\n" in unit and not unit.strip("-\u2010\u00ad \t\r\n"):
        return ""
    return " " if any(_table[ord(char)] == " " for char in unit) else ""


def _irregular(text: str) -> re.Pattern[str]:
    """Return a pattern for everything in the text that does not fold to exactly one character."""
    if text.isascii():
        return _ASCII
    folds = {char: _table[ord(char)] for char in set(text)}
    gaps = "".join(sorted(char for char, folded in folds.items() if folded in (" ", "")))
    odd = "".join(sorted(char for char, folded in folds.items() if len(folded) != 1))
    return _pattern(gaps, odd, any("\u0300" <= char <= "\u0345" for char in folds))


@lru_cache(maxsize=64)
def _pattern(gaps: str, odd: str, accents: bool) -> re.Pattern[str]:
    parts = [_ACCENTED, _BROKEN_WORD] if accents else [_BROKEN_WORD]
    if gaps:
        parts.append(f"[{re.escape(gaps)}]{{2,}}")
    if odd:
        parts.append(f"[{re.escape(odd)}]")
    return re.compile("|".join(parts))


_ASCII = re.compile(_BROKEN_WORD + "|[\x00-\x20\x7f]{2,}")


# Words


def words(text: str) -> list[str]:
    """Return runs of letters and digits; text without spaces is split into pairs of characters."""
    found: list[str] = []
    for word in _WORD.findall(text):
        if _UNSPACED.search(word):
            found.extend(word[at : at + 2] for at in range(0, len(word), 2))
        else:
            found.append(word)
    return found


def count_words(text: str) -> int:
    """Count words that contain letters."""
    return sum(any(char.isalpha() for char in word) for word in words(text))


def _joined(before: str, after: str) -> bool:
    """Return whether there is no word boundary between the two characters."""
    if unicodedata.category(after)[0] == "M":
        return True
    if not (before.isalnum() or unicodedata.category(before)[0] == "M") or not after.isalnum():
        return False
    return not (_UNSPACED.match(before) or _UNSPACED.match(after))


def is_whole(text: str, start: int, end: int) -> bool:
    """Return whether text[start:end] splits no word and no number."""
    if start > 0 and _joined(text[start - 1], text[start]):
        return False
    if end < len(text) and _joined(text[end - 1], text[end]):
        return False
    before = start > 1 and text[start].isdigit() and text[start - 1] in ".," and text[start - 2].isdigit()
    after = end + 1 < len(text) and text[end - 1].isdigit() and text[end] in ".," and text[end + 1].isdigit()
    return not (before or after)


def occurrences(text: str, part: str, lo: int = 0, hi: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the first spans of `part` as whole words between `lo` and `hi` of `text`; both are folded."""
    if not part:
        return
    at, found = text.find(part, lo, hi), 0
    for _ in range(_MAX_TRIES):
        if at < 0 or found == _MAX_OCCURRENCES:
            return
        if is_whole(text, at, at + len(part)):
            yield at, at + len(part)
            found += 1
        at = text.find(part, at + 1, hi)


def needles(value: str) -> list[str]:
    """Return what to search: the folded value, and the value without punctuation that a copy may have added."""
    whole = plain(value)
    bare = whole.strip(" .,;:!?\"'*_`")
    return [whole, bare] if bare and bare != whole else [whole]


# Context of a value


def is_copyright(source: str, start: int, end: int) -> bool:
    """Return whether source[start:end] is in a copyright line."""
    first = max(source.rfind("\n", 0, start) + 1, start - _COPYRIGHT_BEFORE)
    last = source.find("\n", end)
    last = min(last if last >= 0 else len(source), end + _COPYRIGHT_AFTER)
    return _COPYRIGHT.search(source, first, last) is not None


def line_start(text: str, at: int) -> int:
    """Return where the line or table cell begins that contains `at` of a source."""
    return max(text.rfind("\n", 0, at), text.rfind("\t", 0, at)) + 1
