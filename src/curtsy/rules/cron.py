"""Cron expressions: five fields or a nickname, read in a time zone. No I/O: `next_after` is told the time.

    minute 0-59   hour 0-23   day of month 1-31   month 1-12 or jan-dec   day of week 0-7 or sun-sat (0 and 7: Sunday)

Each field is `*`, a value, a range `a-b`, any of them with a step (`*/15`, `8-18/2`), or a list of these with commas.
If both days are restricted, which means that neither field begins with `*`, a day that matches either will do.

A local time that a change of the clock skips fires once, at the first minute after the gap; one that comes twice fires
the first time only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from curtsy.core.errors import UsageError

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_MONTHS = dict(jan=1, feb=2, mar=3, apr=4, may=5, jun=6, jul=7, aug=8, sep=9, oct=10, nov=11, dec=12)  # noqa: C408
_DAYS = dict(sun=0, mon=1, tue=2, wed=3, thu=4, fri=5, sat=6)  # noqa: C408
#: name, first, last, words
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
#: 29 February comes at least every eight years
_HORIZON_YEARS = 9
_MAX_LENGTH = 200
_MINUTE = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Cron:
    """When something is due."""

    text: str
    zone: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    #: 0 is Sunday
    weekdays: frozenset[int]
    #: a day that matches either field will do
    either: bool

    @classmethod
    def parse(cls, text: str, zone: str = "UTC") -> Cron:
        """What cannot be read is a UsageError that says what to write instead."""
        _zone(zone)
        if len(text) > _MAX_LENGTH:
            raise UsageError(f"A cron expression has at most {_MAX_LENGTH} characters, for example '0 6 * * mon-fri'.")
        fields = NICKNAMES.get(text.strip().lower(), text).split()
        if len(fields) != len(_FIELDS):
            names = ", ".join(NICKNAMES)
            raise UsageError(
                f"{text!r} is no cron expression: write five fields (minute hour day month weekday), for example "
                f"'0 6 * * mon-fri', or one of {names}."
            )
        minutes, hours, days, months, weekdays = map(_values, fields, _FIELDS)
        return cls(
            text=text,
            zone=zone,
            minutes=tuple(sorted(minutes)),
            hours=tuple(sorted(hours)),
            days=frozenset(days),
            months=frozenset(months),
            weekdays=frozenset(day % 7 for day in weekdays),
            either=fields[2][0] != "*" and fields[4][0] != "*",
        )

    @cached_property
    def _tz(self) -> ZoneInfo:
        return _zone(self.zone)

    def next_after(self, ms: int) -> int | None:
        """The first time later than `ms` (milliseconds since 1970); None: never (30 February)."""
        try:
            now = _EPOCH + timedelta(milliseconds=ms)
            # The same hour may come twice: its local times lie behind us, though they look as if they came.
            local = now.astimezone(self._tz).replace(tzinfo=None, second=0, microsecond=0, fold=0)
            end = local.year + _HORIZON_YEARS
            while (found := self._first_from(local, end)) is not None:
                at = self._instant(found)
                if at > now:
                    return (at - _EPOCH) // timedelta(milliseconds=1)
                local = found + _MINUTE
        except OverflowError:  # after the year 9999
            pass
        return None

    def _first_from(self, local: datetime, last_year: int) -> datetime | None:
        """The first local time from `local` on that matches, by its clock face."""
        while local.year <= last_year:
            if local.month not in self.months:
                local = _next_month(local)
            elif not self._is_day(local):
                local = datetime(local.year, local.month, local.day) + timedelta(days=1)
            elif (found := self._in_day(local)) is not None:
                return found
            else:
                local = datetime(local.year, local.month, local.day) + timedelta(days=1)
        return None

    def _is_day(self, local: datetime) -> bool:
        by_month, by_week = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return by_month or by_week if self.either else by_month and by_week

    def _in_day(self, local: datetime) -> datetime | None:
        for hour in self.hours:
            if hour < local.hour:
                continue
            for minute in self.minutes:
                if hour > local.hour or minute >= local.minute:
                    return local.replace(hour=hour, minute=minute)
        return None

    def _instant(self, local: datetime) -> datetime:
        """When that is; of two such times the first, of none the first minute after the gap."""
        at = local.replace(tzinfo=self._tz).astimezone(UTC)
        if at.astimezone(self._tz).replace(tzinfo=None, fold=0) == local:
            return at
        low, high = local.replace(tzinfo=self._tz, fold=1).astimezone(UTC), at
        before = low.astimezone(self._tz).utcoffset()
        while high - low > timedelta(seconds=1):
            middle = low + (high - low) // 2
            if middle.astimezone(self._tz).utcoffset() == before:
                low = middle
            else:
                high = middle
        change = high.replace(microsecond=0)
        return change if change.second == 0 else change.replace(second=0) + _MINUTE


def _next_month(local: datetime) -> datetime:
    return (datetime(local.year, local.month, 1) + timedelta(days=31)).replace(day=1)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"There is no time zone {name!r}: use a name like UTC or Europe/Berlin.") from None


def _values(field: str, kind: tuple[str, int, int, dict[str, int]]) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        found.update(_part(part, kind))
    return found


def _part(part: str, kind: tuple[str, int, int, dict[str, int]]) -> range:
    name, first, last, _ = kind
    body, slash, step = part.partition("/")
    if slash and not (step.isascii() and step.isdigit() and 1 <= int(step) <= last):
        raise UsageError(f"The step {step!r} of the {name} in {part!r} must be a number from 1 to {last}.")
    if body == "*":
        # Seven is Sunday once more: a step must not count it.
        low, high = first, 6 if name == "day of week" else last
    else:
        start, dash, end = body.partition("-")
        low = _value(start, kind)
        high = _value(end, kind) if dash else (last if slash else low)
        if dash and high == 0 and low > 0 and name == "day of week":
            high = 7
        if low > high:
            raise UsageError(f"The range {body!r} of the {name} runs backwards: write it as two, with a comma.")
    return range(low, high + 1, int(step or 1))


def _value(word: str, kind: tuple[str, int, int, dict[str, int]]) -> int:
    name, first, last, words = kind
    if word.lower() in words:
        return words[word.lower()]
    if word.isascii() and word.isdigit() and len(word) <= 2 and first <= int(word) <= last:
        return int(word)
    names = f" or {next(iter(words))}-{list(words)[-1]}" if words else ""
    raise UsageError(f"The {name} cannot be {word!r}: it is {first}-{last}{names}, or * for every one.")
