"""Whether a value follows from a passage of its source, by the rules of its type.

    string      occurs literally or folded; e-mail addresses, phone numbers, URLs, dates and quantities by their
                meaning; a list of parts if all are close together; a long text as a near copy
    integer,    equals one of the numbers, in any notation
    number
    date        equals one of the dates, and is not more exact than stated; the same for time and zone
    boolean,    is a judgment about the passage
    enum

Values that are so short that they may occur by coincidence (bare numbers, years, less than four characters) count only
among three other words and outside of a copyright line, unless a key or a selector names them. A negated value does not
follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

from curtsy.core.claims import Verdict
from curtsy.grounding import other_fields, relation
from curtsy.grounding.cldr import ascii_digits
from curtsy.grounding.currencies import codes_of
from curtsy.grounding.dates import Day, Stated, dates, settled, times, value_of, years
from curtsy.grounding.folded_text import (
    Folded,
    count_words,
    fold,
    is_copyright,
    line_start,
    needles,
    occurrences,
    plain,
)
from curtsy.grounding.near_copies import find_near
from curtsy.grounding.negations import is_denied, is_hedged, is_negated, says_no
from curtsy.grounding.numbers import Number, decimal, is_of_others, numbers, quantity, states
from curtsy.grounding.schema import Leaf

OTHER_WORDS = 3
_MIN_LETTERS = 4
#: digits of a phone number without its country
_MIN_NATIONAL = 8
#: maximum distance in characters between the parts of a value (`Bergen, Norway`)
_PARTS_REACH = 80
_CONTEXT = 80
_MAX_READ = 4_000
_YEARS = range(1000, 2101)
_SHARE = re.compile(r"share|fraction|ratio|proportion|anteil|0 (?:to|and) 1|0[-–]1")
_PERCENT = re.compile(r"percent|per cent|%|prozent|pourcent|porcent")

_EMAIL = re.compile(r"(?<![\w.+\-])[\w.+\-]{1,64}@[\w\-]+(?:\.[\w\-]+)+")
_SPELT_EMAIL = re.compile(
    r"(?<![\w.+\-])([\w.+\-]{1,64})\s*(?:@|[\[({]\s*(?:at|ät)\s*[\])}]|\s(?:at|AT)\s)\s*([\w\-]+(?:\s*(?:\.|[\[({]\s*(?:dot|punkt)\s*[\])}]|\s(?:dot|DOT)\s)\s*[\w\-]+)+)",
    re.IGNORECASE,
)
#: blanks before something are looked at once, from the first of them
_SPELT_DOT = re.compile(
    r"(?:(?<!\s)\s++)?(?:\.|[\[({]\s*+(?:dot|punkt)\s*+[\])}])\s*+|(?<!\s)\s++dot\s++", re.IGNORECASE
)
#: soft hyphens, zero-width characters and marks of direction
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"']+|(?<![\w@.\-])[\w\-]+(?:\.[\w\-]+)+(?:/[^\s<>\"']*)?", re.IGNORECASE)
_PHONE = re.compile(r"(?<![\w])(?:\+|00)?[\s\u00a0]?\(?\d(?:(?:[\d\s\u00a0\u2009\u202f).\-–‑/]|\(\d{1,5}\)){4,}\d)")
_CALLED = re.compile(
    r"\b(?:tel|phone|telephone|telefon|téléphone|call|fax|mobile|mobil|whatsapp|ring)\b", re.IGNORECASE
)
_PHONE_VALUE = re.compile(r"(?:\+|00)?[\d\s\u00a0().\-–‑/]{7,}")
_HAN_NAME = re.compile("[\u3005\u3040-\u30ff\u3400-\u9fff]+")
_MAX_HAN_NAME = 12
#: text that separates the parts of a value: figures, names, ends of sentences and lines
_OTHERS_BETWEEN = re.compile(r"\d|\b[^\W\d_a-zß-öø-ÿ][^\W\d_]*|[.;!?\n\t]")
#: to the beginning of a value
_AFTER_LABEL = re.compile(r"[^\W\d_][^\d:：\n]{1,40}[:：]\s{0,3}(?:[^\W\d_]{1,4}\.?\s?)?[^\w\n]{0,3}\Z")
_SPLIT = re.compile(r"(?:(?<!\s)\s++)?[,;|()]\s*+|(?<!\s)[^\S\n]*+\n\s*+|(?<!\s)\s++[-–—·]\s++")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A quote in its context: text[start:end]; the rest of the text surrounds it."""

    text: str
    start: int
    end: int
    #: a key or a selector names the value
    named: bool = False
    #: a label, a heading or its form relates it to its field
    labelled: bool = False
    #: of the page
    language: str | None = None
    #: a model quotes it for this field, which another label or unit may contradict
    quoted_for: Leaf | None = None

    @property
    def quote(self) -> str:
        """Return the text in which numbers, dates and addresses are searched: the beginning of a very long quote."""
        return self.text[self.start : min(self.end, self.start + _MAX_READ)]


class Ruling(NamedTuple):
    """A verdict and its reason; without a verdict the value is not supported."""

    verdict: Verdict | None
    note: str = ""


_SUPPORTED = Ruling(Verdict.SUPPORTED)
_NOT_IN_QUOTE = Ruling(None, "not_in_quote")


def support_of(value: Any, leaf: Leaf, passage: Passage, *, suspect: bool = False) -> Ruling:
    """Return how the passage supports the value. A `suspect` value also occurs in the prompt or the schema."""
    match leaf.type:
        case "integer" | "number":
            return _number(value, leaf, passage)
        case "date":
            return _date(value, passage)
        case "boolean" | "enum":
            return _judged(value, leaf, passage)
    return _string(value, passage, suspect)


# The context of a value


def _coincidence(passage: Passage, start: int, end: int) -> str:
    """Return why a bare value at text[start:end] may be a coincidence; empty if it is not."""
    if not passage.named and not passage.labelled:
        others = count_words(passage.text[passage.start : start]) + count_words(passage.text[end : passage.end])
        if others < OTHER_WORDS and not _is_after_label(passage, start):
            return "bare"
    return "copyright_line" if is_copyright(passage.text, start, end) else ""


def _is_of_other_field(passage: Passage, start: int, end: int) -> bool:
    leaf = passage.quoted_for
    return leaf is not None and other_fields.is_of_other_field(leaf, passage.text, start, end, passage.start)


def _is_after_label(passage: Passage, start: int) -> bool:
    """`Gewicht: ca. 300`, `価格：￥1,200`: a label, a colon, and no other word before the value that a model quotes."""
    least = max(passage.start, line_start(passage.text, start))
    return passage.quoted_for is not None and _AFTER_LABEL.search(passage.text, least, start) is not None


def _negated(passage: Passage, start: int, end: int) -> bool:
    text = passage.text
    before = fold(text[max(line_start(text, start), start - _CONTEXT) : start]).text
    if is_negated(before + text[start : start + 1], len(before), language=passage.language):
        return True
    return is_denied(fold(text[end : end + _CONTEXT].partition("\n")[0]).text, 0, passage.language)


def _best(rulings: Iterator[Ruling]) -> Ruling:
    """Return the first ruling with a verdict, else the first reason."""
    reason: Ruling | None = None
    for ruling in rulings:
        if ruling.verdict is not None:
            return ruling
        reason = reason or ruling
    return reason or _NOT_IN_QUOTE


def _bare(passage: Passage, start: int, end: int, good: Ruling) -> Ruling:
    if note := _coincidence(passage, start, end):
        return Ruling(None, note)
    if _is_of_other_field(passage, start, end):
        return Ruling(None, "other_field")
    return Ruling(None, "negated") if _negated(passage, start, end) else good


# Strings


def is_weak(value: str) -> bool:
    """Return whether the value is so short, or so bare a number, that it may occur by coincidence."""
    letters = sum(char.isalpha() for char in value)
    return letters < _MIN_LETTERS and not is_phone(value)


def is_phone(value: str) -> bool:
    digits = sum(char.isdigit() for char in value)
    return _PHONE_VALUE.fullmatch(value) is not None and 7 <= digits <= 15 and value_of(value) is None


def is_contact(value: str) -> bool:
    """Return whether it is an e-mail address or a phone number."""
    return _EMAIL.fullmatch(value) is not None or is_phone(value)


def is_distinctive(value: str) -> bool:
    """Return whether the value's length or form excludes a coincidence."""
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
    for wanted in [*needles(value), *_spaced_names(value, folded.text[lo:hi])]:
        if found := list(_occurring(value, wanted, passage, folded, lo, hi, suspect)):
            best = _best(iter(found))
            return best if best.verdict is not None or best.note != "bare" else _currency(value, passage, best)
    if _URL.fullmatch(value):
        return _url(value, passage)
    for rule in (_currency, _dated, _quantity, _parts):
        ruling = rule(value, passage)
        if ruling.verdict is not None:
            return ruling
    if not suspect and find_near(folded, plain(value), lo, hi) is not None:
        return Ruling(Verdict.DERIVED, "near_copy")
    return _NOT_IN_QUOTE


def _spaced_names(value: str, text: str) -> Iterator[str]:
    """Yield a Han name as the text writes it, with or without a blank: `山田 太郎`."""
    letters = plain(value).replace(" ", "")
    if 2 <= len(letters) <= _MAX_HAN_NAME and _HAN_NAME.fullmatch(letters):
        yield from (one[0] for one in re.finditer(" ?".join(letters), text))


def _folded_range(folded: Folded, passage: Passage) -> tuple[int, int]:
    """Return the range of the passage in the folded text."""
    if passage.start == 0 and passage.end == len(passage.text):
        return 0, len(folded.text)
    return folded.place(passage.start), folded.place(passage.end)


def _occurring(
    value: str, wanted: str, passage: Passage, folded: Folded, lo: int, hi: int, suspect: bool
) -> Iterator[Ruling]:
    weak = suspect or is_weak(value)
    for start, end in occurrences(folded.text, wanted, lo, hi):
        first, last = folded.span(start, end)
        least = folded.place(line_start(passage.text, first))
        if wanted[0] in "$£¥" and is_of_others(folded.text[max(0, start - 4) : start + 1]):
            continue  # `$300` in `A$300`
        if weak and (note := _coincidence(passage, first, last)):
            yield Ruling(None, "echo" if suspect and note == "bare" else note)
        elif is_negated(folded.text, start, least, passage.language) or is_denied(folded.text, end, passage.language):
            yield Ruling(None, "negated")
        elif is_hedged(folded.text, start, least) and not wanted[0].isdigit():
            yield Ruling(None, "hedged")
        elif _is_of_other_field(passage, first, last):
            yield Ruling(None, "other_field")
        else:
            yield _SUPPORTED if passage.text[first:last] == value else Ruling(Verdict.DERIVED, "normalised")


def _email(value: str, passage: Passage) -> Ruling:
    quote = _INVISIBLE.sub("", ascii_digits(passage.quote))
    if value in _EMAIL.findall(quote) or value in (one.rstrip(".-") for one in _EMAIL.findall(quote)):
        return _SUPPORTED
    for name, host in _SPELT_EMAIL.findall(quote):
        if f"{name}@{_SPELT_DOT.sub('.', host)}".lower().rstrip(".-") == value.lower():
            return Ruling(Verdict.DERIVED, "email")
    return _NOT_IN_QUOTE


def _digits(phone: str) -> str:
    """Return the digits to dial: without spaces, without (0) after a country code, without 00 for +."""
    phone = re.sub(r"\(\s*0\s*\)", "", phone) if phone.strip().startswith(("+", "00", "(+")) else phone
    return re.sub(r"\D", "", phone).removeprefix("00")


def _is_same_number(one: str, other: str) -> bool:
    """The same with and without the code of its country: `1-877-738-7237`, `+49 30 1234567` and `030 1234567`."""
    short, long = sorted((one, other), key=len)
    if short == long:
        return True
    national = short.removeprefix("0")
    return (
        len(national) >= _MIN_NATIONAL
        and long.endswith(national)
        and len(long) - len(national) <= (3 if short != national else 1)
    )


def _phone(value: str, passage: Passage) -> Ruling:
    wanted = _digits(value)
    quote = _INVISIBLE.sub("", ascii_digits(passage.quote))
    for found in _PHONE.finditer(quote):
        if not _is_same_number(_digits(found[0]), wanted):
            continue
        if passage.quoted_for and other_fields.is_fax(passage.quoted_for, quote[: found.start()]):
            return Ruling(None, "other_field")
        return _SUPPORTED if value in found[0] else Ruling(Verdict.DERIVED, "phone")
    return _NOT_IN_QUOTE


def _url(value: str, passage: Passage) -> Ruling:
    if any(_address(found) == _address(value) for found in _URL.findall(passage.quote)):
        return Ruling(Verdict.DERIVED, "url")
    return _NOT_IN_QUOTE


def _address(url: str) -> str:
    bare = re.sub(r"^(?:https?://)?(?:www\.)?", "", url.strip().rstrip(".,;:!?)"), flags=re.IGNORECASE)
    host, slash, path = bare.partition("/")
    return host.lower() + (slash + path if path.strip("/") else "").rstrip("/")


def _currency(value: str, passage: Passage, otherwise: Ruling = _NOT_IN_QUOTE) -> Ruling:
    """`£` next to an amount supports GBP."""
    if not (len(value) == 3 and value.isascii() and value.isupper()):
        return otherwise
    quote = passage.quote
    places = [
        (number.start, end) for number in numbers(quote, passage.language) for end in {number.end, number.whole_end}
    ]
    if any(value in codes_of(quote, start, end, passage.language) for start, end in places):
        return Ruling(Verdict.DERIVED, "currency")
    return otherwise


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
    """`Bergen, Norway` from "in Bergen, in the west of Norway": all parts occur, close together."""
    parts = [part for part in _SPLIT.split(value) if part]
    if not 2 <= len(parts) <= 8 or all(is_weak(part) for part in parts):
        return _NOT_IN_QUOTE
    folded = fold(passage.text)
    lo, hi = _folded_range(folded, passage)
    known = _named_parts(folded, parts, lo, hi) if passage.named else _parts_in_order(folded, parts, lo, hi)
    if known is None:
        return _NOT_IN_QUOTE
    if any(_negated(passage, *folded.span(*one)) for one in known):
        return Ruling(None, "negated")
    return Ruling(Verdict.DERIVED, "parts")


def _named_parts(folded: Folded, parts: list[str], lo: int, hi: int) -> list[tuple[int, int]] | None:
    """Named texts may contain the parts anywhere."""
    spans = [next(occurrences(folded.text, plain(part), lo, hi), None) for part in parts]
    known = [span for span in spans if span is not None]
    return known if len(set(known)) == len(parts) else None


def _parts_in_order(folded: Folded, parts: list[str], lo: int, hi: int) -> list[tuple[int, int]] | None:
    """Return the spans of the parts in order, or of two in reverse without a word between them (`CEO Anna Berg`).
    Between them there must be no figure, name or end of a sentence, which the next part could belong to."""
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
    stated_dates = [*dates(passage.quote), *years(passage.quote)]
    for number in numbers(passage.quote, passage.language):
        readings = number.readings
        if _within_date(number, stated_dates, wanted, passage.quote) or _within_phone(number, passage.quote):
            continue
        if passage.quoted_for and number.percent and relation.is_only_money(leaf):
            continue
        if passage.quoted_for and other_fields.is_other_number(leaf, passage.text, at + number.start, at + number.end):
            continue
        if number.scale and number.scale in about:
            readings = readings | number.unscaled
        unit = _unit_of(about)
        if wanted in readings and not (number.percent and unit == "share"):
            good = _SUPPORTED if number.literal == wanted else Ruling(Verdict.DERIVED, "number")
        elif number.percent and unit == "share" and wanted * 100 in readings:
            good = Ruling(Verdict.DERIVED, "percent")
        else:
            continue
        yield _bare(passage, at + number.start, at + number.end, good)
    if wanted in _YEARS:
        for stated in stated_dates:
            if stated.days[0].year == wanted:
                good = Ruling(Verdict.DERIVED, "year")
                yield _bare(passage, at + stated.start, at + stated.end, good)


def _unit_of(about: str) -> str:
    """Return whether a field is a share (0.12), by its name and description; a percentage (12) otherwise."""
    return "share" if _SHARE.search(about) and not _PERCENT.search(about) else "percent"


def _within_date(number: Number, stated: list[Stated], wanted: Decimal, quote: str) -> bool:
    """Return whether it is the day or month of a date, or its year in digits only (which the rule for dates reads)."""
    for one in stated:
        if one.start <= number.start and number.end <= one.end:
            in_words = any(char.isalpha() for char in quote[one.start : one.end])
            return not (in_words and wanted == one.days[0].year)
    return False


def _within_phone(number: Number, quote: str) -> bool:
    """Return whether it is part of a phone number that is named as one, or has its typical form."""
    for found in _PHONE.finditer(quote):
        if found.start() <= number.start and number.end <= found.end():
            international = found[0].lstrip().startswith(("+", "00", "(0"))
            return international or _CALLED.search(quote, max(0, found.start() - 20), found.start()) is not None
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
    known = list(dates(passage.quote))
    for stated in known:
        if not any(day.says(wanted) for day in stated.days):
            continue
        if passage.quoted_for and other_fields.is_other_end(passage.quoted_for, stated, known, passage.quote):
            yield Ruling(None, "other_field")
            continue
        if wanted.month is not None and len(stated.days) > 1:
            whole = replace(stated, start=at + stated.start, end=at + stated.end)
            meant = settled(whole, passage.text, passage.language)
            if meant is None or not meant.says(wanted):
                yield Ruling(None, "ambiguous_date" if meant is None else "not_in_quote")
                continue
        if is_copyright(passage.text, at + stated.start, at + stated.end):
            yield Ruling(None, "copyright_line")
            continue
        exact = passage.quote[stated.start : stated.end] == value
        good = _SUPPORTED if exact else Ruling(Verdict.DERIVED, "date")
        if wanted.month is None:
            yield _bare(passage, at + stated.start, at + stated.end, good)
        else:
            yield Ruling(None, "negated") if _negated(passage, at + stated.start, at + stated.end) else good
    if wanted.month is None:
        for stated in years(passage.quote):
            if stated.days[0].year == wanted.year:
                yield _bare(passage, at + stated.start, at + stated.end, Ruling(Verdict.DERIVED, "year"))
        for number in numbers(passage.quote, passage.language):
            if number.literal == wanted.year:
                yield _bare(passage, at + number.start, at + number.end, _SUPPORTED)


def _judged(value: Any, leaf: Leaf, passage: Passage) -> Ruling:
    said = isinstance(value, str) and not is_weak(value) and plain(value) in plain(passage.quote)
    if value is True and not passage.named and says_no(plain(passage.quote), passage.language):
        return Ruling(None, "negated")
    if passage.named or said or count_words(passage.quote) >= OTHER_WORDS - passage.labelled:
        return Ruling(Verdict.JUDGED, leaf.type)
    return Ruling(None, "bare")
