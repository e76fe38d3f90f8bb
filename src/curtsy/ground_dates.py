"""Dates in running text: `2019-03-01`, `1 March 2019`, `March 1st, 2019`, `01.03.2019`, `3/1/19`, `1. März 2019`.

Where the order of day and month cannot be told, both readings are given. No I/O; nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from curtsy.ground_words import MONTHS

_MONTHS = {name: number for number, names in enumerate(MONTHS, 1) for name in names}

_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_YEAR = r"(?P<year>[12]\d{3})(?!\d)"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|º|ª|\.)?"
_GAP = r"[\s,\u00a0\u202f]*"
_OF = rf"{_GAP}(?:of|de|di|du|del)?{_GAP}"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?<![\w.\-/]){_YEAR}(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}})(?!\d)",
        rf"(?<![\w.\-/]){_YEAR}-(?P<month>\d{{2}})(?![\d\-])",
        r"(?<![\w.\-/])(?P<year>[12]\d{3})(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])(?![\w])",
        r"(?P<year>[12]\d{3})\s?年\s?(?P<month>\d{1,2})\s?月(?:\s?(?P<day>\d{1,2})\s?日)?",
        rf"(?<![\w.,/]){_DAY}{_OF}-?{_MONTH}{_OF}-?{_YEAR}",
        rf"\b{_MONTH}{_GAP}{_DAY}{_GAP}(?<!\d){_YEAR}",
        rf"\b{_MONTH}{_OF}{_YEAR}",
    )
)
_BY_POSITION = re.compile(
    r"(?<![\w.\-/])(?P<first>\d{1,2})(?P<mark>[./\-])[ \u00a0]?(?P<second>\d{1,2})(?P=mark)[ \u00a0]?"
    r"(?P<year>[12]\d{3}|\d{2})(?![\w])"
)
_ISO = re.compile(r"([12]\d{3})(?:-(\d{2})(?:-(\d{2}))?)?(?:[T ]([0-2]\d:[0-5]\d).*)?")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Day:
    """A date, or the month or the year that is known of it."""

    year: int
    month: int | None = None
    day: int | None = None

    @property
    def iso(self) -> str:
        parts = [f"{self.year:04d}"] + [f"{part:02d}" for part in (self.month, self.day) if part is not None]
        return "-".join(parts)

    def says(self, other: Day) -> bool:
        """Whoever knows this day knows the other: it is the same, or less exact."""
        return (
            self.year == other.year
            and other.month in (None, self.month)
            and (other.day is None or other.day == self.day)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A date in a text: what it may be, and where it stands."""

    start: int
    end: int
    days: tuple[Day, ...]


def dates(text: str) -> Iterator[Stated]:
    """All dates with at least a month; a bare year is a number."""
    taken: list[tuple[int, int]] = []
    for found in _found(text):
        if not any(start < found.end and found.start < end for start, end in taken):
            taken.append((found.start, found.end))
            yield found


def _found(text: str) -> Iterator[Stated]:
    for form in _FORMS:
        for found in form.finditer(text):
            parts = found.groupdict()
            name = parts["month"].lower()
            month = int(name) if name.isdigit() else _MONTHS.get(name, 0)
            if made := _day(int(parts["year"]), month, int(parts["day"]) if parts.get("day") else None):
                yield Stated(start=found.start(), end=found.end(), days=(made,))
    for found in _BY_POSITION.finditer(text):
        if days := _by_position(found):
            yield Stated(start=found.start(), end=found.end(), days=days)


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


def value_of(text: str) -> tuple[Day, str | None] | None:
    """The date that a value is, and the time (`10:30`) in it; None: it is none, or its order cannot be told."""
    text = text.strip()
    if found := _ISO.fullmatch(text):
        month = int(found[2]) if found[2] else None
        day = int(found[3]) if found[3] else None
        if month is None:
            return Day(year=int(found[1])), found[4]
        made = _day(int(found[1]), month, day)
        return (made, found[4]) if made else None
    stated = next(dates(text), None)
    if stated is None or (stated.start, stated.end) != (0, len(text)) or len(stated.days) != 1:
        return None
    return stated.days[0], None
