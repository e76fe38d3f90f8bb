"""Cron expressions in a time zone: five fields as in Debian's cron, or a nickname. No I/O; the caller passes the time.

    minute 0-59   hour 0-23   day of month 1-31   month 1-12 or jan-dec   day of week 0-7 or sun-sat (0 and 7: Sunday)

Each field is `*`, a value, a range `a-b`, any of them with a step (`*/15`, `8-18/2`), or a list of these with commas.
If neither day field begins with `*`, a day that matches either of them matches.

The fields are cronsim's. Clock changes are handled here, the same way for every expression: a local time that the
change skips fires once, at the first minute after the gap; one that occurs twice fires the first time only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from curtsy.core.errors import UsageError

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
#: name and allowed values of each field
_FIELDS = (
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of month", "1-31"),
    ("month", "1-12 or jan-dec"),
    ("day of week", "0-7 or sun-sat"),
)
_MAX_LENGTH = 200
_MINUTE = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: `sat-sun`: cronsim requires 7 at the end of a range
_TO_SUNDAY = re.compile(r"(?<!sun)(?<=[1-6a-z])-(?:0|sun)\b")
#: `5-5/20`: a step over one value, which cronsim reads as `5/20`
_STEP_OF_ONE = re.compile(r"\b(\w+)-\1/\d+")


@dataclass(frozen=True)
class Cron:
    """When something is due."""

    text: str
    zone: str

    @classmethod
    def parse(cls, text: str, zone: str = "UTC") -> Cron:
        """Raises UsageError, which says what to write instead."""
        _zone(zone)
        if len(text) > _MAX_LENGTH:
            raise UsageError(f"A cron expression has at most {_MAX_LENGTH} characters, for example '0 6 * * mon-fri'.")
        fields = _fields_of(text)
        if len(fields) != len(_FIELDS):
            raise UsageError(
                f"{text!r} is not a cron expression: write five fields (minute hour day month weekday), for example "
                f"'0 6 * * mon-fri', or one of {', '.join(NICKNAMES)}."
            )
        for place, (name, allowed) in enumerate(_FIELDS):
            _check(fields[place], place, name, allowed)
        return cls(text, zone)

    @cached_property
    def _tz(self) -> ZoneInfo:
        return _zone(self.zone)

    def next_after(self, ms: int) -> int | None:
        """The first time later than `ms` (milliseconds since 1970); None if there is no such time (30 February)."""
        try:
            now = _EPOCH + timedelta(milliseconds=ms)
            # In the second of two equal hours, local times that look like future ones may have passed.
            for found in self._local_times(now.astimezone(self._tz).replace(tzinfo=None, microsecond=0, fold=0)):
                at = self._instant(found)
                if at > now:
                    return (at - _EPOCH) // timedelta(milliseconds=1)
        except (OverflowError, ValueError):  # after the year 9999
            pass
        return None

    def _local_times(self, local: datetime) -> Iterator[datetime]:
        """Matching local times after `local`, ignoring clock changes."""
        try:
            yield from CronSim(" ".join(_fields_of(self.text)), local)
        except CronSimError:  # each field is right, but no month has such a day
            return

    def _instant(self, local: datetime) -> datetime:
        """The instant of a local time: the first of two, or the first minute after the gap that skips it."""
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


def _fields_of(text: str) -> list[str]:
    fields = _STEP_OF_ONE.sub(r"\1", NICKNAMES.get(text.strip().lower(), text).lower()).split()
    return [*fields[:4], *(_TO_SUNDAY.sub("-7", field) for field in fields[4:])]


def _check(field: str, place: int, name: str, allowed: str) -> None:
    alone = ["*"] * len(_FIELDS)
    alone[place] = field
    for part in field.split(","):
        alone[place] = part
        try:
            CronSim(" ".join(alone), datetime(2000, 1, 1))
        except (CronSimError, AssertionError):
            low, _, high = part.partition("-")
            hint = ": a range runs upwards" if low.isdigit() and high.isdigit() and int(low) > int(high) else ""
            raise UsageError(
                f"The {name} cannot be {part!r}{hint}. It is {allowed}, a range (1-5), a step (*/15), a list of these "
                "with commas, or * for every one."
            ) from None


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"There is no time zone {name!r}: use a name like UTC or Europe/Berlin.") from None
