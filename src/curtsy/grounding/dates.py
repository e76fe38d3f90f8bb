"""Dates in text: `2019-03-01`, `1 March 2019`, `March 1st, 2019`, `01.03.2019`, `3/1/19`, `1. März 2019`,
`2019年3月1日`, `令和元年3月1日`, `٣ مارس ٢٠٢٤`.

If a date is ambiguous, all readings are returned; `settled` chooses by the page's language and its other dates. No I/O;
nothing raises.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from curtsy.grounding.cldr import MONTHS, ascii_digits, date_order
from curtsy.grounding.vocabulary import MONTHS as COMMON_MONTHS

#: a word that `_read` looks up; a pattern with a thousand names would be slow
_MONTH_WORD = r"[^\W\d_][^\s\d,،;:()\[\]/<>\"!?|–—\-]{1,15}+(?:\sال(?:أول|ثاني))?"
_MONTH = rf"(?P<month>{_MONTH_WORD})"
#: without a day, short names are often other words
_LONG_MONTHS = frozenset(name for name in MONTHS if len(name) > 3) | {name for names in COMMON_MONTHS for name in names}
_YEAR = r"(?P<year>[12]\d{3})(?!\d)"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|º|ª|\.|লা|শে|ই|রা|ঠা)?"
_GAP = r"[\s,،\u00a0\u202f]*+"
_OF = rf"{_GAP}(?:(?:(?:of|de|di|du|del|do|ng)(?=\s)|d['’]|ta['’](?=\s)){_GAP})?"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?<![\w.\-/]){_YEAR}(?P<mark>[-/.])\s?(?P<month>\d{{1,2}})(?P=mark)\s?(?P<day>\d{{1,2}})(?!\d)",
        rf"(?<![\w.\-/]){_YEAR}-(?P<month>\d{{2}})(?![\d\-])",
        r"(?<![\w.\-/])(?P<year>[12]\d{3})(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])(?![\w])",
        r"(?P<year>[12]\d{3})\s?[年년]\s?(?P<month>\d{1,2})\s?[月월](?:\s?(?P<day>\d{1,2})\s?[日号號일])?",
        r"(?P<year>[12]\d{3})\sоны\s(?P<month>\d{1,2})(?:-р)?\sсарын\s(?P<day>\d{1,2})",
        r"(?P<era>令和|平成|昭和|大正|明治|民國|民国)\s?(?P<year>\d{1,3}|元|[一二三四五六七八九十]{1,3})\s?年\s?"
        r"(?P<month>\d{1,2}|[一二三四五六七八九十]{1,2})\s?月(?:\s?(?P<day>\d{1,2}|[一二三四五六七八九十]{1,3})\s?日)?",
        r"(?<![\w.])(?P<era>[RHS])(?P<year>\d{1,2})[./](?P<month>\d{1,2})[./](?P<day>\d{1,2})(?![\w.])",
        r"(?P<han>[〇零一二三四五六七八九]{4})年(?P<month>[一二三四五六七八九十]{1,2})月(?:(?P<day>[一二三四五六七八九十]{1,3})日)?",
        r"\b(?:ngày\s)?(?P<day>\d{1,2})\stháng\s(?P<month>\d{1,2})(?:\snăm\s|,\s?|\s)(?P<year>[12]\d{3})(?!\d)",
        rf"(?<![\w.,/]){_DAY}{_OF}[-/]?{_MONTH}{_OF}[-/]?{_YEAR}",
        rf"\b{_MONTH}\s{_DAY}\s\d{{1,2}}:\d{{2}}(?::\d{{2}})?[,\s](?:[A-Z]{{3,4}}\s|\s)?{_YEAR}",
        rf"\b{_MONTH}{_GAP}{_DAY}{_GAP}(?<!\d){_YEAR}",
        rf"(?<![\w.\-/]){_YEAR}(?:\.\sgada|\.|\sm\.|ko|-yil|\sწლის|\sթ\.|\sжылғы)?\s(?:{_DAY}[\s-])?{_MONTH}"
        r"(?:\s(?P<late>\d{1,2})(?!\d))?",
        rf"\b{_MONTH}{_OF}{_YEAR}",
    )
)
_TO = r"\s?(?:[-–—]|(?<=\s)(?:to|bis|au|al|a|do|tot|till|und|and|et)(?=\s))\s?"
_FIRST = r"(?P<first>\d{1,2})(?:st|nd|rd|th|er|º|ª|\.)?"
#: ranges, whose first date has no year: `12-14 June 2021`, `June 12-14, 2021`, `28 May - 2 June 2021`
_RANGES = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?<![\w.,/\-–]){_FIRST}{_TO}{_DAY}{_OF}{_MONTH}{_OF}{_YEAR}",
        r"(?P<year>[12]\d{3})\s?年\s?(?P<from>\d{1,2})\s?月\s?(?P<first>\d{1,2})\s?日(?:[（(][^()（）]{1,4}[)）])?"
        r"\s?(?:[-–—~〜～]|から|至)\s?(?:(?P<month>\d{1,2})\s?月\s?)?(?P<day>\d{1,2})\s?日",
        rf"(?<![\w.,/\-–]){_FIRST}{_OF}(?P<from>{_MONTH_WORD}){_TO}{_DAY}{_OF}{_MONTH}{_OF}{_YEAR}",
        rf"\b(?P<from>{_MONTH_WORD}){_GAP}{_FIRST}{_TO}{_MONTH}{_GAP}{_DAY}{_GAP}(?<!\d){_YEAR}",
        rf"\b{_MONTH}{_GAP}{_FIRST}{_TO}{_DAY}{_GAP}(?<!\d){_YEAR}",
        rf"(?<![\w./\-–])(?P<first>\d{{1,2}})\.{_TO}(?P<day>\d{{1,2}})\.\s?(?P<month>\d{{1,2}})\.\s?{_YEAR}",
    )
)
_BY_POSITION = re.compile(
    r"(?:(?<![\w.\-/])|(?<=\b[בהל]-))(?P<first>\d{1,2})(?P<mark>[./\-])[ \u00a0]?(?P<second>\d{1,2})(?P=mark)[ \u00a0]?"
    r"(?P<year>[12]\d{3}|\d{2})(?![\w])"
)
_ISO = re.compile(
    r"([12]\d{3})(?:-(\d{2})(?:-(\d{2}))?)?(?:[T ](?P<time>[0-2]\d:[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?"
    r" ?(?:Z|[+\-−]\d{2}(?::?\d{2})?)?))?"
)
_TIME = re.compile(
    r"(?<![\d:.,])(?P<hour>[01]?\d|2[0-4])(?:[:.h](?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:[.,]\d+)?)?)?"
    r"(?![\d:])(?:[ \u00a0]?(?P<half>[ap])\.?m\b\.?)?"
    r"(?:[ \u00a0]?(?P<zone>Z\b|[+\-−]\d{2}(?::?\d{2})?(?!\d)|\b[A-Z]{3,4}\b))?",
    re.IGNORECASE,
)
#: other spellings and short forms
_MORE_MONTHS: dict[str, tuple[int, ...]] = {
    "fév": (2,), "दिसम्बर": (12,), "सितम्बर": (9,), "नवम्बर": (11,), "кві": (4,), "чер": (6,), "верес": (9,),
    "листоп": (11,), "берез": (3,), "сер": (8,), "ян": (1,), "жніўня": (8,), "сакавіка": (3,), "studenog": (11,),
    "hulyo": (7,), "ივნ": (6,), "ফেব্রুয়ারী": (2,), "জানুয়ারী": (1,), "اكتبر": (10,), "یولیو": (7,), "กุมภา": (2,),
}  # fmt: skip
#: endings of Kazakh and Basque dates, and of Georgian ones: `наурызда`, `martxoaren`, `მარტს`
_CASE = re.compile(r"(?:(?<=[а-яәіңғүұқөһ]{3})[дт][ае]|(?<=a)ren)$")
#: endings of cases, after names of at least five letters: `augustil`, `avgusta`, `Ağustos'ta`, `heinäkuussa`
_ENDINGS = frozenset(
    [
        "a",
        "e",
        "i",
        "o",
        "u",
        "y",
        "ä",
        "il",
        "is",
        "ssa",
        "ssä",
        "n",
        "sta",
        "stä",
        "da",
        "de",
        "ta",
        "te",
        "dan",
        "den",
        "tan",
        "ten",
        "ban",
        "ben",
        "ov",
        "om",
    ]
)
_MIN_STEM = 5
_GEORGIAN_CASE = re.compile(r"(?<=[ა-ჰ])ს$")
#: the months of the Iranian calendar
_IRANIAN = {name: number for number, name in enumerate(
    ["فروردین", "اردیبهشت", "خرداد", "تیر", "مرداد", "شهریور", "مهر", "آبان", "آذر", "دی", "بهمن", "اسفند"], 1
)}  # fmt: skip
_IRANIAN_YEARS = range(1250, 1500)
#: days from an Iranian date by its years and months to the ordinal of `datetime.date`
_IRANIAN_START = 356_033
_HAN = "〇一二三四五六七八九十"
_ERAS = {
    "令和": 2018,
    "平成": 1988,
    "昭和": 1925,
    "大正": 1911,
    "明治": 1867,
    "R": 2018,
    "H": 1988,
    "S": 1925,
    "民國": 1911,
    "民国": 1911,
}
#: a later year with a Thai month is Buddhist
_BUDDHIST = 2400
#: characters of a page in which other dates are looked for
_MAX_CLUES = 20_000
#: offsets in minutes east of Greenwich, of named time zones
_ZONES = {
    "z": 0, "utc": 0, "gmt": 0, "bst": 60, "cet": 60, "cest": 120, "mez": 60, "mesz": 120, "est": -300, "edt": -240,
    "cst": -360, "cdt": -300, "pst": -480, "pdt": -420,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Day:
    """A date, or only its month or year."""

    year: int
    month: int | None = None
    day: int | None = None

    @property
    def iso(self) -> str:
        parts = [f"{self.year:04d}"] + [f"{part:02d}" for part in (self.month, self.day) if part is not None]
        return "-".join(parts)

    def says(self, other: Day) -> bool:
        """Return whether this day implies the other: it is equal, or the other is less exact."""
        return (
            self.year == other.year
            and other.month in (None, self.month)
            and (other.day is None or other.day == self.day)
        )


class Clock(NamedTuple):
    """A time of day."""

    #: since midnight
    minutes: int
    #: None: not stated
    seconds: int | None = None
    #: minutes east of Greenwich; None: not stated
    zone: int | None = None

    def says(self, other: Clock) -> bool:
        """Return whether this time implies the other: it is equal, or the other is less exact."""
        return (
            self.minutes == other.minutes
            and (other.seconds is None or other.seconds == (self.seconds or 0))
            and other.zone in (None, self.zone)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A date in a text: its possible readings, and its span."""

    start: int
    end: int
    days: tuple[Day, ...]


def dates(text: str) -> Iterator[Stated]:
    """Yield all dates with at least a month; a bare year is a number."""
    taken: list[tuple[int, int]] = []  # in order, without overlaps
    for found in _found(text):
        at = bisect_left(taken, (found.end,))
        if not at or taken[at - 1][1] <= found.start:
            taken.insert(at, (found.start, found.end))
            yield found


def _found(given: str) -> Iterator[Stated]:
    text = ascii_digits(given)
    for form in _RANGES:
        for found in form.finditer(text):
            yield from _range(found)
    for form in _FORMS:
        for found in form.finditer(text):
            parts = found.groupdict()
            if "\u06f0" <= given[found.start()] <= "\u06f9" and (parts.get("mark") or "").strip("."):
                made = _iranian(*(int(parts[name] or 0) for name in ("year", "month", "day"))) or _read(parts)
            else:
                made = _read(parts)
            if made:
                yield Stated(start=found.start(), end=found.end(), days=made)
    for found in _BY_POSITION.finditer(text):
        if days := _by_position(found):
            yield Stated(start=found.start(), end=found.end(), days=days)


_YEARS = re.compile(
    r"(?P<era>令和|平成|昭和|大正|明治|民國|民国)\s?(?P<year>\d{1,3}|元|[一二三四五六七八九十]{1,3})\s?年(?!\s?[\d一二三四五六七八九十]{1,2}\s?月)"
    r"|(?:พ\.?\s?ศ\.?|ปี(?:\sพ\.?\s?ศ\.?)?)\s?(?P<thai>2[45]\d\d)(?!\d)"
    r"|(?:سال)\s(?P<iranian>1[234]\d\d)(?!\d)"
)


def years(text: str) -> Iterator[Stated]:
    """Yield years of other calendars: `昭和39年`, `พ.ศ. 2555`, `سال ۱۳۷۳`."""
    for found in _YEARS.finditer(ascii_digits(text)) if not text.isascii() else ():
        if era := found["era"]:
            year = _int(found["year"]) + _ERAS[era]
        elif found["thai"]:
            year = int(found["thai"]) - 543
        else:
            year = int(found["iranian"]) + 621
        yield Stated(start=found.start(), end=found.end(), days=(Day(year=year),))


def _range(found: re.Match[str]) -> Iterator[Stated]:
    """Both dates of a range, each with its part of the text."""
    parts = found.groupdict()
    parts["month"] = parts["month"] or parts.get("from")
    last = _read(parts)
    first = _read({**parts, "day": parts["first"], "month": parts.get("from") or parts["month"]})
    if last and first and first[0] <= last[0]:
        middle = max(found.start("first"), found.start("from") if parts.get("from") else 0)
        cut = min(place for place in (found.start("day"), found.start("month")) if place > middle)
        yield Stated(start=found.start(), end=cut, days=first)
        yield Stated(start=cut, end=found.end(), days=last)


def _read(parts: dict[str, str | None]) -> tuple[Day, ...]:
    if parts.get("han"):
        year = int("".join(str(_HAN.index(char)) for char in (parts["han"] or "").replace("零", "〇")))
        return _days(year, (_han(parts["month"]),), _han(parts.get("day")) or None)
    name = (parts["month"] or "").lower().rstrip(".")
    day = parts.get("day") or parts.get("late")
    months = (
        (_int(name),)
        if name.isdigit() or name[0] in _HAN
        else (MONTHS.get(name) or _MORE_MONTHS.get(name) or _by_case(name))
        if day or name in _LONG_MONTHS
        else ()
    )
    year = _int(parts["year"] or "0")
    if era := parts.get("era"):
        year += _ERAS[era.upper()]
    if name in _IRANIAN:
        return _iranian(year, _IRANIAN[name], int(day)) if day else ()
    if year > _BUDDHIST and "\u0e00" <= name[:1] <= "\u0e7f":
        year -= 543
    return _days(year, months, _int(day) if day else None)


def _int(text: str) -> int:
    """Return a number in digits or in Han digits; `元` is the first year of an era."""
    return int(text) if text.isdecimal() else 1 if text == "元" else _han(text)


def _by_case(name: str) -> tuple[int, ...]:
    bare = _GEORGIAN_CASE.sub("", _CASE.sub("", name))
    return MONTHS.get(bare) or MONTHS.get(f"{bare}ი", ()) or _by_stem(name)


def _by_stem(name: str) -> tuple[int, ...]:
    for size in range(1, min(4, len(name) - _MIN_STEM + 1)):
        if name[-size:] in _ENDINGS and (found := MONTHS.get(name[:-size].rstrip("'’"))):
            return found
    return ()


def _iranian(year: int, month: int, day: int) -> tuple[Day, ...]:
    """A date of the Iranian calendar, whose leap years repeat every 33 years: `۵ فروردین ۱۴۰۳`."""
    if year not in _IRANIAN_YEARS or not 1 <= month <= 12 or not 1 <= day <= (31 if month < 7 else 30):
        return ()
    past = year + 1595
    days = 365 * past + past // 33 * 8 + (past % 33 + 3) // 4 + day + (month - 1) * 30 + min(month - 1, 6)
    made = date.fromordinal(days - _IRANIAN_START)
    return (Day(year=made.year, month=made.month, day=made.day),)


def _days(year: int, months: Iterable[int], day: int | None) -> tuple[Day, ...]:
    made = (_day(year, month, day) for month in months)
    return tuple(one for one in made if one)


def _han(text: str | None) -> int:
    """Return a number below 100 in Han digits: `二十一`."""
    tens, ten, ones = (text or "").rpartition("十")
    high = (_HAN.find(tens) if tens else 1) if ten else 0
    return high * 10 + (_HAN.find(ones) if ones else 0)


def _by_position(found: re.Match[str]) -> tuple[Day, ...]:
    first, second, year = int(found["first"]), int(found["second"]), int(found["year"])
    if len(found["year"]) == 2:
        year += 2000 if year < 70 else 1900
    orders = [(second, first)] if found["mark"] == "." else [(second, first), (first, second)]
    made = (_day(year, month, day) for month, day in orders)
    return tuple(dict.fromkeys(day for day in made if day))


def _day(year: int, month: int, day: int | None) -> Day | None:
    try:
        date(year, month, day or 1)
    except ValueError:
        return None
    return Day(year=year, month=month, day=day)


def settled(stated: Stated, text: str, language: str | None) -> Day | None:
    """Return the one reading of a date; by the language, or by the other dates of the text. None if it is ambiguous."""
    if len(stated.days) == 1:
        return stated.days[0]
    if stated.days[0].day == stated.days[1].day:  # names that two languages use for different months
        return stated.days[0] if (language or "").lower().startswith("hr") else stated.days[-1]
    order = date_order(language)
    first = re.match(r"\d{1,2}", ascii_digits(text[stated.start : stated.end]))
    if order is not None and first is not None:
        wanted = int(first[0])
        return next((day for day in stated.days if (day.day if order == "dmy" else day.month) == wanted), None)
    return _by_clues(stated, text[:_MAX_CLUES])


def _by_clues(stated: Stated, text: str) -> Day | None:
    """Another date of the text has the same day, or shows the order of numeric dates."""
    places, shown = _clues(text)
    same = {day for day in stated.days if places.get(day, frozenset()) - {(stated.start, stated.end)}}
    if len(same) == 1:
        return next(iter(same))
    if len(shown) != 1:
        return None
    # The first reading has the day first.
    return stated.days[0] if "dmy" in shown else stated.days[1]


@lru_cache(maxsize=8)
def _clues(text: str) -> tuple[dict[Day, set[tuple[int, int]]], frozenset[str]]:
    """The places of each day that is certain, and the orders that numeric dates show."""
    places: dict[Day, set[tuple[int, int]]] = {}
    for one in dates(text):
        if len(one.days) == 1:
            places.setdefault(one.days[0], set()).add((one.start, one.end))
    shown = (_order_shown(found) for found in _BY_POSITION.finditer(ascii_digits(text)) if found["mark"] == "/")
    return places, frozenset(one for one in shown if one is not None)


def _order_shown(found: re.Match[str]) -> str | None:
    first, second = int(found["first"]), int(found["second"])
    if first > 12 >= second:
        return "dmy"
    return "mdy" if second > 12 >= first else None


def times(text: str) -> Iterator[Clock]:
    """Yield all times of day: `10:30`, `10.30 pm`, `7h30`, `9 am`, `10:30:59+02:00`, `18:00 CET`."""
    for found in _TIME.finditer(text):
        hour, half = int(found["hour"]), (found["half"] or "").lower()
        if (found["minute"] is None and not half) or (half and not 1 <= hour <= 12):
            continue
        if half:
            hour = hour % 12 + (12 if half == "p" else 0)
        second = None if found["second"] is None else int(found["second"])
        yield Clock(hour * 60 + int(found["minute"] or 0), second, _zone(found["zone"] or ""))


def _zone(text: str) -> int | None:
    if text[:1] not in ("+", "-", "−"):
        return _ZONES.get(text.lower())
    hours, minutes = int(text[1:3]), int(text[3:].lstrip(":") or 0)
    return (hours * 60 + minutes) * (1 if text[0] == "+" else -1)


def value_of(text: str) -> tuple[Day, Clock | None] | None:
    """Return the date of a value and its time of day; `None` if it is not a date, or ambiguous."""
    text = ascii_digits(text.strip())
    if found := _ISO.fullmatch(text):
        month = int(found[2]) if found[2] else None
        day = int(found[3]) if found[3] else None
        clock = next(times(found["time"]), None) if found["time"] else None
        if month is None:
            return Day(year=int(found[1])), clock
        made = _day(int(found[1]), month, day)
        return (made, clock) if made else None
    stated = next(dates(text), None)
    if stated is None or (stated.start, stated.end) != (0, len(text)) or len(stated.days) != 1:
        return None
    return stated.days[0], None
