"""Whether a value follows from a passage of its source, by the rules of its type.

    string      stands in it as it is, or folded; an e-mail address, a telephone number, a web address, a date, a
                quantity by what they amount to; a list of parts if all stand close together; a long text as a near copy
    integer,    is one of the numbers in it, however written
    number
    date        is one of the dates in it, no more exact than stated, nor its time of day and its zone
    boolean,    is somebody's judgement of it
    enum

What is so short that it may stand anywhere by chance (bare numbers, years, under four characters) counts only among
three other words and outside a copyright line, unless a key or a selector has named it. What is denied right before is
not said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from curtsy.core.claims import Verdict
from curtsy.grounding.dates import Day, Stated, dates, times, value_of
from curtsy.grounding.folded_text import (
    Folded,
    count_words,
    fold,
    is_copyright,
    is_hedged,
    is_negated,
    needles,
    occurrences,
    plain,
)
from curtsy.grounding.near_copies import find_near
from curtsy.grounding.numbers import Number, decimal, is_of_others, numbers, quantity, states
from curtsy.grounding.schema import Leaf

OTHER_WORDS = 3
_MIN_LETTERS = 4
#: characters that the parts of a value (`Bergen, Norway`) may be spread over
_PARTS_REACH = 80
_CONTEXT = 80
_MAX_READ = 4_000
_YEARS = range(1000, 2101)

_EMAIL = re.compile(r"(?<![\w.+\-])[\w.+\-]{1,64}@[\w\-]+(?:\.[\w\-]+)+")
_SPELT_EMAIL = re.compile(
    r"(?<![\w.+\-])([\w.+\-]{1,64})\s*(?:@|[\[({]\s*(?:at|ät)\s*[\])}]|\s(?:at|AT)\s)\s*([\w\-]+(?:\s*(?:\.|[\[({]\s*(?:dot|punkt)\s*[\])}]|\s(?:dot|DOT)\s)\s*[\w\-]+)+)",
    re.IGNORECASE,
)
#: blanks before something are looked at once, from the first of them
_SPELT_DOT = re.compile(
    r"(?:(?<!\s)\s++)?(?:\.|[\[({]\s*+(?:dot|punkt)\s*+[\])}])\s*+|(?<!\s)\s++dot\s++", re.IGNORECASE
)
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"']+|(?<![\w@.\-])[\w\-]+(?:\.[\w\-]+)+(?:/[^\s<>\"']*)?", re.IGNORECASE)
_PHONE = re.compile(r"(?<![\w])(?:\+|00)?[\s\u00a0]?\(?\d(?:(?:[\d\s\u00a0\u2009\u202f).\-–‑/]|\(\d{1,5}\)){4,}\d)")
_CALLED = re.compile(
    r"\b(?:tel|phone|telephone|telefon|téléphone|call|fax|mobile|mobil|whatsapp|ring)\b", re.IGNORECASE
)
_PHONE_VALUE = re.compile(r"(?:\+|00)?[\d\s\u00a0().\-–‑/]{7,}")
#: between the parts of a value: figures, names, ends of sentences and lines
_OTHERS_BETWEEN = re.compile(r"\d|\b[^\W\d_a-zß-öø-ÿ][^\W\d_]*|[.;!?\n\t]")
_SPLIT = re.compile(r"(?:(?<!\s)\s++)?[,;|()]\s*+|(?<!\s)[^\S\n]*+\n\s*+|(?<!\s)\s++[-–—·]\s++")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A quote where it stands: text[start:end]; the rest of the text is what surrounds it."""

    text: str
    start: int
    end: int
    #: a key or a selector says what it is
    named: bool = False

    @property
    def quote(self) -> str:
        """What numbers, dates and addresses are read from: of what is very long, the beginning."""
        return self.text[self.start : min(self.end, self.start + _MAX_READ)]


class Ruling(NamedTuple):
    """A verdict and its reason; without a verdict the value does not follow."""

    verdict: Verdict | None
    note: str = ""


_SUPPORTED = Ruling(Verdict.SUPPORTED)
_NOT_IN_QUOTE = Ruling(None, "not_in_quote")


def follows(value: Any, leaf: Leaf, passage: Passage, *, suspect: bool = False) -> Ruling:
    """Whether the value (of the leaf's type) follows; a `suspect` one stands in the prompt or the schema too."""
    match leaf.type:
        case "integer" | "number":
            return _number(value, leaf, passage)
        case "date":
            return _date(value, passage)
        case "boolean" | "enum":
            return _judged(value, leaf, passage)
    return _string(value, passage, suspect)


# What surrounds a value


def _chance(passage: Passage, start: int, end: int) -> str:
    """Why a bare value at text[start:end] may stand there by chance; empty: it does not."""
    if not passage.named:
        others = count_words(passage.text[passage.start : start]) + count_words(passage.text[end : passage.end])
        if others < OTHER_WORDS:
            return "bare"
    return "copyright_line" if is_copyright(passage.text, start, end) else ""


def _denied(passage: Passage, start: int) -> bool:
    before = fold(passage.text[max(0, start - _CONTEXT) : start]).text
    return is_negated(before + passage.text[start : start + 1], len(before))


def _best(rulings: Iterator[Ruling]) -> Ruling:
    """The first that holds, else the first reason."""
    reason: Ruling | None = None
    for ruling in rulings:
        if ruling.verdict is not None:
            return ruling
        reason = reason or ruling
    return reason or _NOT_IN_QUOTE


def _bare(passage: Passage, start: int, end: int, good: Ruling) -> Ruling:
    if note := _chance(passage, start, end):
        return Ruling(None, note)
    return Ruling(None, "negated") if _denied(passage, start) else good


# Strings


def is_weak(value: str) -> bool:
    """So short, or so bare a number, that it may stand anywhere by chance."""
    letters = sum(char.isalpha() for char in value)
    return letters < _MIN_LETTERS and not is_phone(value)


def is_phone(value: str) -> bool:
    digits = sum(char.isdigit() for char in value)
    return _PHONE_VALUE.fullmatch(value) is not None and 7 <= digits <= 15 and value_of(value) is None


def is_contact(value: str) -> bool:
    """An e-mail address or a telephone number."""
    return _EMAIL.fullmatch(value) is not None or is_phone(value)


def is_distinctive(value: str) -> bool:
    """Long enough, or of such a form, that it does not stand in a text by chance."""
    if is_contact(value) or "://" in value:
        return True
    return count_words(value) >= 3 or (len(value) >= 20 and not is_weak(value))


def _string(value: str, passage: Passage, suspect: bool) -> Ruling:
    if _EMAIL.fullmatch(value):
        return _email(value, passage)
    if is_phone(value):
        return _phone(value, passage)
    folded = fold(passage.text)
    lo, hi = _folded_range(folded, passage)
    for wanted in needles(value):
        if found := list(_standing(value, wanted, passage, folded, lo, hi, suspect)):
            return _best(iter(found))
    if _URL.fullmatch(value):
        return _url(value, passage)
    for rule in (_dated, _quantity, _parts):
        ruling = rule(value, passage)
        if ruling.verdict is not None:
            return ruling
    if not suspect and find_near(folded, plain(value), lo, hi) is not None:
        return Ruling(Verdict.DERIVED, "near_copy")
    return _NOT_IN_QUOTE


def _folded_range(folded: Folded, passage: Passage) -> tuple[int, int]:
    """The passage's place in the folded text."""
    if passage.start == 0 and passage.end == len(passage.text):
        return 0, len(folded.text)
    return folded.place(passage.start), folded.place(passage.end)


def _standing(
    value: str, wanted: str, passage: Passage, folded: Folded, lo: int, hi: int, suspect: bool
) -> Iterator[Ruling]:
    weak = suspect or is_weak(value)
    for start, end in occurrences(folded.text, wanted, lo, hi):
        first, last = folded.span(start, end)
        if wanted[0] in "$£¥" and is_of_others(folded.text[max(0, start - 4) : start + 1]):
            continue  # `$300` of `A$300`
        if weak and (note := _chance(passage, first, last)):
            yield Ruling(None, "echo" if suspect and note == "bare" else note)
        elif is_negated(folded.text, start):
            yield Ruling(None, "negated")
        elif is_hedged(folded.text, start) and not wanted[0].isdigit():
            yield Ruling(None, "hedged")
        else:
            yield _SUPPORTED if passage.text[first:last] == value else Ruling(Verdict.DERIVED, "normalised")


def _email(value: str, passage: Passage) -> Ruling:
    quote = passage.quote
    if value in _EMAIL.findall(quote) or value in (one.rstrip(".-") for one in _EMAIL.findall(quote)):
        return _SUPPORTED
    for name, host in _SPELT_EMAIL.findall(quote):
        if f"{name}@{_SPELT_DOT.sub('.', host)}".lower().rstrip(".-") == value.lower():
            return Ruling(Verdict.DERIVED, "email")
    return _NOT_IN_QUOTE


def _dialled(phone: str) -> str:
    """What is dialled: no blanks, no (0) behind a country's number, 00 for +."""
    phone = re.sub(r"\(\s*0\s*\)", "", phone) if phone.strip().startswith(("+", "00", "(+")) else phone
    return re.sub(r"\D", "", phone).removeprefix("00")


def _phone(value: str, passage: Passage) -> Ruling:
    wanted = _dialled(value)
    for found in _PHONE.findall(passage.quote):
        if _dialled(found) == wanted:
            return _SUPPORTED if value in found else Ruling(Verdict.DERIVED, "phone")
    return _NOT_IN_QUOTE


def _url(value: str, passage: Passage) -> Ruling:
    if any(_address(found) == _address(value) for found in _URL.findall(passage.quote)):
        return Ruling(Verdict.DERIVED, "url")
    return _NOT_IN_QUOTE


def _address(url: str) -> str:
    bare = re.sub(r"^(?:https?://)?(?:www\.)?", "", url.strip().rstrip(".,;:!?)"), flags=re.IGNORECASE)
    host, slash, path = bare.partition("/")
    return host.lower() + (slash + path if path.strip("/") else "").rstrip("/")


def _dated(value: str, passage: Passage) -> Ruling:
    made = value_of(value)
    if made is None or made[0].month is None:
        return _NOT_IN_QUOTE
    return _date(value, passage)


def _quantity(value: str, passage: Passage) -> Ruling:
    wanted = quantity(value)
    if wanted is None:
        return _NOT_IN_QUOTE
    good = Ruling(Verdict.DERIVED, "quantity")
    at = passage.start
    return _best(_bare(passage, at + start, at + end, good) for start, end in states(passage.quote, wanted))


def _parts(value: str, passage: Passage) -> Ruling:
    """`Bergen, Norway` of "in Bergen, in the west of Norway": every part stands there, close together."""
    parts = [part for part in _SPLIT.split(value) if part]
    if not 2 <= len(parts) <= 8 or all(is_weak(part) for part in parts):
        return _NOT_IN_QUOTE
    folded = fold(passage.text)
    lo, hi = _folded_range(folded, passage)
    known = _named_parts(folded, parts, lo, hi) if passage.named else _parts_in_order(folded, parts, lo, hi)
    if known is None:
        return _NOT_IN_QUOTE
    if any(is_negated(folded.text, start) for start, _ in known):
        return Ruling(None, "negated")
    return Ruling(Verdict.DERIVED, "parts")


def _named_parts(folded: Folded, parts: list[str], lo: int, hi: int) -> list[tuple[int, int]] | None:
    """Of texts that are named: wherever they stand."""
    spans = [next(occurrences(folded.text, plain(part), lo, hi), None) for part in parts]
    known = [span for span in spans if span is not None]
    return known if len(set(known)) == len(parts) else None


def _parts_in_order(folded: Folded, parts: list[str], lo: int, hi: int) -> list[tuple[int, int]] | None:
    """One after the other as in the value, or two the other way round without a word between (`CEO Anna Berg`); between
    them nothing else that the next one could belong to: no figure, no name, no end of a sentence."""
    wanted = [plain(part) for part in parts]
    for first in occurrences(folded.text, wanted[0], lo, hi):
        spans = [first]
        for part in wanted[1:]:
            end = spans[-1][1]
            near = occurrences(folded.text, part, end, min(hi, end + _PARTS_REACH))
            following = next((span for span in near if _belongs(folded, end, span[0])), None)
            if following is None:
                break
            spans.append(following)
        else:
            return spans
    if len(wanted) == 2:
        for last in occurrences(folded.text, wanted[1], lo, hi):
            for first in occurrences(folded.text, wanted[0], last[1], min(hi, last[1] + len(wanted[0]) + 3)):
                if not folded.text[last[1] : first[0]].strip(" ,-:("):
                    return [first, last]
    return None


def _belongs(folded: Folded, end: int, start: int) -> bool:
    between = folded.source[folded.span(max(end - 1, 0), end)[1] : folded.span(start, start + 1)[0]]
    return not between.strip(" ,\n\u00a0-–·|:") or _OTHERS_BETWEEN.search(between) is None


# Numbers and dates


def _number(value: Any, leaf: Leaf, passage: Passage) -> Ruling:
    wanted = decimal(value)
    if wanted is None:
        return Ruling(None, "wrong_type")
    return _best(_numbers(wanted, leaf, passage))


def _numbers(wanted: Decimal, leaf: Leaf, passage: Passage) -> Iterator[Ruling]:
    at = passage.start
    about = f"{leaf.path} {leaf.description}".lower()
    stated_dates = list(dates(passage.quote))
    for number in numbers(passage.quote):
        readings = number.readings
        if _within_date(number, stated_dates, wanted, passage.quote) or _within_phone(number, passage.quote):
            continue
        if number.scale and number.scale in about:
            readings = readings | number.unscaled
        if wanted in readings:
            good = _SUPPORTED if number.literal == wanted else Ruling(Verdict.DERIVED, "number")
        elif number.percent and wanted * 100 in readings:
            good = Ruling(Verdict.DERIVED, "percent")
        else:
            continue
        yield _bare(passage, at + number.start, at + number.end, good)
    if wanted in _YEARS:
        for stated in stated_dates:
            if stated.days[0].year == wanted:
                good = Ruling(Verdict.DERIVED, "year")
                yield _bare(passage, at + stated.start, at + stated.end, good)


def _within_date(number: Number, stated: list[Stated], wanted: Decimal, quote: str) -> bool:
    """It is the day or the month of a date, or its year among digits only (which the date's own rule reads)."""
    for one in stated:
        if one.start <= number.start and number.end <= one.end:
            spelt = any(char.isalpha() for char in quote[one.start : one.end])
            return not (spelt and wanted == one.days[0].year)
    return False


def _within_phone(number: Number, quote: str) -> bool:
    """It is a part of a telephone number that is called one, or written as only they are."""
    for found in _PHONE.finditer(quote):
        if found.start() <= number.start and number.end <= found.end():
            dialled = found[0].lstrip().startswith(("+", "00", "(0"))
            return dialled or _CALLED.search(quote, max(0, found.start() - 20), found.start()) is not None
    return False


def _date(value: str, passage: Passage) -> Ruling:
    made = value_of(value)
    if made is None:
        return Ruling(None, "wrong_type")
    wanted, clock = made
    if clock is not None and not any(one.says(clock) for one in times(passage.quote)):
        return _NOT_IN_QUOTE
    return _best(_dates(value, wanted, passage))


def _dates(value: str, wanted: Day, passage: Passage) -> Iterator[Ruling]:
    at = passage.start
    for stated in dates(passage.quote):
        if not any(day.says(wanted) for day in stated.days):
            continue
        exact = passage.quote[stated.start : stated.end] == value
        good = _SUPPORTED if exact else Ruling(Verdict.DERIVED, "date")
        if wanted.month is None:
            yield _bare(passage, at + stated.start, at + stated.end, good)
        else:
            yield Ruling(None, "negated") if _denied(passage, at + stated.start) else good
    if wanted.month is None:
        for number in numbers(passage.quote):
            if number.literal == wanted.year:
                yield _bare(passage, at + number.start, at + number.end, _SUPPORTED)


# Judgements


def _judged(value: Any, leaf: Leaf, passage: Passage) -> Ruling:
    said = isinstance(value, str) and not is_weak(value) and plain(value) in plain(passage.quote)
    if passage.named or said or count_words(passage.quote) >= OTHER_WORDS:
        return Ruling(Verdict.JUDGED, leaf.type)
    return Ruling(None, "bare")
