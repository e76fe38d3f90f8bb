"""Cron expressions: a table of cases, the changes of the clock, and properties against a minute-by-minute search."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curtsy.core.errors import UsageError
from curtsy.rules.cron import NICKNAMES, Cron


def ms(text: str, zone: str = "UTC") -> int:
    at = datetime.fromisoformat(text)
    return int((at if at.tzinfo else at.replace(tzinfo=ZoneInfo(zone))).timestamp() * 1000)


def after(text: str, now: str, zone: str = "UTC") -> str | None:
    found = Cron.parse(text, zone).next_after(ms(now, zone))
    return None if found is None else datetime.fromtimestamp(found / 1000, ZoneInfo(zone)).isoformat()[:16]


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        ("* * * * *", "2026-03-10T10:00", "2026-03-10T10:01"),
        ("* * * * *", "2026-03-10T10:00:59.999", "2026-03-10T10:01"),
        ("0 6 * * *", "2026-03-10T06:00", "2026-03-11T06:00"),
        ("0 6 * * *", "2026-03-10T05:59:59", "2026-03-10T06:00"),
        ("*/15 8-9 * * *", "2026-03-10T08:46", "2026-03-10T09:00"),
        ("*/15 8-9 * * *", "2026-03-10T09:45", "2026-03-11T08:00"),
        ("5/20 * * * *", "2026-03-10T08:05", "2026-03-10T08:25"),
        ("0 0 31 * *", "2026-03-31T00:00", "2026-05-31T00:00"),
        ("0 0 29 feb *", "2026-01-01T00:00", "2028-02-29T00:00"),
        ("0 0 29 2 *", "2096-02-29T00:00", "2104-02-29T00:00"),
        ("0 0 30 2 *", "2026-01-01T00:00", None),
        ("0 0 * * MON", "2026-03-10T00:00", "2026-03-16T00:00"),
        ("0 0 * * 0", "2026-03-10T00:00", "2026-03-15T00:00"),
        ("0 0 * * 7", "2026-03-10T00:00", "2026-03-15T00:00"),
        ("0 0 * * sat-sun", "2026-03-15T00:00", "2026-03-21T00:00"),
        ("0 0 * * mon-sun", "2026-03-15T00:00", "2026-03-16T00:00"),
        ("0 0 * * */2", "2026-03-14T00:00", "2026-03-15T00:00"),
        # both days restricted: either matches
        ("0 0 13 * fri", "2026-03-10T00:00", "2026-03-13T00:00"),
        ("0 0 13 * fri", "2026-03-13T00:00", "2026-03-20T00:00"),
        ("0 0 20 * fri", "2026-04-17T00:00", "2026-04-20T00:00"),
        # one begins with a star: both must match
        ("0 0 */2 * fri", "2026-03-06T00:00", "2026-03-13T00:00"),
        ("0 12 1 jan,jul *", "2026-02-01T00:00", "2026-07-01T12:00"),
        ("@hourly", "2026-03-10T10:20", "2026-03-10T11:00"),
        ("@daily", "2026-03-10T10:20", "2026-03-11T00:00"),
        ("@weekly", "2026-03-10T10:20", "2026-03-15T00:00"),
        ("@monthly", "2026-03-10T10:20", "2026-04-01T00:00"),
        ("@Yearly", "2026-03-10T10:20", "2027-01-01T00:00"),
        ("0 0 1 1 *", "9999-06-01T00:00", None),
    ],
)
def test_the_next_time(text: str, now: str, expected: str | None) -> None:
    assert after(text, now) == expected


def test_a_skipped_local_time_fires_once_after_the_gap() -> None:
    assert after("30 2 * * *", "2026-03-28T12:00", "Europe/Berlin") == "2026-03-29T03:00"
    assert after("30 2 * * *", "2026-03-29T03:00", "Europe/Berlin") == "2026-03-30T02:30"
    # several times in one gap are one, also together with the minute after it
    assert after("*/10 2,3 * * *", "2026-03-29T01:59", "Europe/Berlin") == "2026-03-29T03:00"
    assert after("*/10 2,3 * * *", "2026-03-29T03:00", "Europe/Berlin") == "2026-03-29T03:10"


def test_a_gap_of_half_an_hour_and_one_of_a_day() -> None:
    assert after("15 2 * * *", "2026-10-04T01:00", "Australia/Lord_Howe") == "2026-10-04T02:30"
    assert after("0 12 30 12 *", "2011-12-01T00:00", "Pacific/Apia") == "2011-12-31T00:00"


def test_a_repeated_local_time_fires_the_first_time_only() -> None:
    cron = Cron.parse("30 2 * * *", "Europe/Berlin")
    first = cron.next_after(ms("2026-10-24T12:00", "Europe/Berlin"))
    assert first == ms("2026-10-25T00:30+00:00")
    assert cron.next_after(first) == ms("2026-10-26T01:30+00:00")
    # asked in the second of the two hours
    assert cron.next_after(ms("2026-10-25T01:10+00:00")) == ms("2026-10-26T01:30+00:00")
    assert Cron.parse("0 * * * *", "Europe/Berlin").next_after(ms("2026-10-25T00:00+00:00")) == ms(
        "2026-10-25T02:00+00:00"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write five fields"),
        ("* * * *", "write five fields"),
        ("* * * * * *", "write five fields"),
        ("@reboot", "@hourly"),
        ("60 * * * *", "minute cannot be '60'. It is 0-59"),
        ("* 24 * * *", "hour cannot be '24'"),
        ("* * 0 * *", "day of month cannot be '0'. It is 1-31"),
        ("* * * foo *", "month cannot be 'foo'. It is 1-12 or jan-dec"),
        ("* * * * 8", "day of week cannot be '8'. It is 0-7 or sun-sat"),
        ("-1 * * * *", "minute cannot be '-1'"),
        ("5-1 * * * *", "a range runs upwards"),
        ("* * * * fri-mon", "cannot be 'fri-mon'"),
        ("*/0 * * * *", "minute cannot be '*/0'"),
        ("*/x * * * *", "minute cannot be '*/x'"),
        ("*/ * * * *", "minute cannot be '*/'"),
        ("1,,2 * * * *", "minute cannot be ''"),
        ("² * * * *", "minute cannot be '²'"),
        ("* " * 200, "at most 200"),
    ],
)
def test_bad_input_is_reported_in_one_line(text: str, says: str) -> None:
    with pytest.raises(UsageError) as told:
        Cron.parse(text)
    assert says in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../../etc/passwd", "/etc/passwd", "a\0b"])
def test_an_unknown_zone_is_reported(zone: str) -> None:
    with pytest.raises(UsageError, match="no time zone"):
        Cron.parse("@daily", zone)


def field(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    spans = st.tuples(value, value).map(lambda pair: f"{min(pair)}-{max(pair)}")
    stepped = st.tuples(st.one_of(spans, st.just("*")), st.integers(1, high)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    part = st.one_of(value.map(str), spans, stepped)
    return st.one_of(st.just("*"), st.lists(part, min_size=1, max_size=3).map(",".join))


EXPRESSIONS = st.one_of(
    st.sampled_from(list(NICKNAMES)),
    st.tuples(field(0, 59), field(0, 23), st.just("*"), st.just("*"), st.just("*")).map(" ".join),
    st.tuples(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7)).map(" ".join),
)
TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2080, 1, 1))
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])


def values(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        begin = low if span == "*" else int(first)
        end = high if span == "*" or (step and not dash) else int(last or first)
        found.update(range(begin, end + 1, int(step or 1)))
    return found


def matches(text: str, local: datetime) -> bool:
    fields = NICKNAMES.get(text, text).split()
    limits = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
    minutes, hours, days, months, weekdays = (values(f, *limit) for f, limit in zip(fields, limits, strict=True))
    by_month = local.day in days
    by_week = local.isoweekday() in weekdays or (local.isoweekday() == 7 and 0 in weekdays)
    either = fields[2][0] != "*" and fields[4][0] != "*"
    day = by_month or by_week if either else by_month and by_week
    return local.minute in minutes and local.hour in hours and local.month in months and day


@given(EXPRESSIONS, TIMES, ZONES)
@settings(max_examples=300, deadline=None)
def test_the_next_time_is_later_whole_and_the_first(text: str, at: datetime, zone: str) -> None:
    cron = Cron.parse(text, zone)
    now = at.replace(tzinfo=UTC)
    found = cron.next_after(ms(now.isoformat()))
    if found is None:
        return
    assert found > ms(now.isoformat())
    assert found % 60_000 == 0
    # nothing between now and then fires, and asking from any time between gives the same
    middle = (ms(now.isoformat()) + found) // 2
    assert cron.next_after(middle) == found
    assert cron.next_after(found - 1) == found


@given(EXPRESSIONS, TIMES)
@settings(max_examples=150, deadline=None)
def test_in_utc_it_is_what_a_search_minute_by_minute_finds(text: str, at: datetime) -> None:
    cron = Cron.parse(text)
    found = cron.next_after(ms(at.replace(tzinfo=UTC).isoformat()))
    minute = at.replace(second=0, microsecond=0) + timedelta(minutes=1)
    for _ in range(3 * 24 * 60):
        if matches(text, minute):
            assert found == ms(minute.replace(tzinfo=UTC).isoformat())
            return
        minute += timedelta(minutes=1)
    assert found is None or found >= ms(minute.replace(tzinfo=UTC).isoformat())


@given(st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_told(text: str) -> None:
    said = ""
    try:
        Cron.parse(text).next_after(0)
    except UsageError as error:
        said = str(error)
    assert "\n" not in said
