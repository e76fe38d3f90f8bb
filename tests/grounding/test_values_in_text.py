"""Numbers, quantities, dates and pointers, as grounding reads them from texts."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curtsy.grounding.dates import Day, dates, value_of
from curtsy.grounding.json_pointer import find, keys
from curtsy.grounding.numbers import numbers, quantity, states


def read(text: str) -> list[list[str]]:
    return [sorted(f"{one:f}" for one in number.readings) for number in numbers(text)]


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("in 1998 we", [["1998"]]),
        ("1,234 trees", [["1234"]]),
        ("1.234 Bäume", [["1.234", "1234"]]),
        ("1.234,5 kg", [["1234.5"]]),
        ("1,234.5 kg", [["1234.5"]]),
        ("1 234 567 kr", [["1234567"]]),
        ("1'234", [["1234"]]),
        ("0,125", [["0.125"]]),
        ("3,5 t", [["3.5"]]),
        ("12.05.1998", []),
        ("192.168.0.1", []),
        ("1998–2024", [["1998"], ["2024"]]),
        ("from -5 to +7", [["-5"], ["7"]]),
        ("2019 340 trees", [["2019"], ["340"]]),
        ("CO2 and 5G", []),
        ("25th", [["25"]]),
        ("20MW", [["20"]]),
        ("€3m", [["3000000"]]),
        ("3m", [["3"]]),
        ("$1.5 billion", [["1500000000"]]),
        ("twenty-five", [["25"]]),
        ("1998¹", [["1998"]]),
        ("a1b2", []),
    ],
)
def test_numbers_are_read_in_all_ways_that_they_may_be_meant(text: str, readings: list[list[str]]) -> None:
    assert read(text) == readings


@given(st.integers(min_value=0, max_value=10**12), st.sampled_from([",", "'", "\u202f", "\u00a0", " "]))
def test_thousands_may_be_set_apart_by_any_mark(number: int, mark: str) -> None:
    found = list(numbers(f"It was {number:,} in all".replace(",", mark)))
    assert any(Decimal(number) in one.readings for one in found)
    assert len(found) == 1


@given(st.decimals(min_value=0, max_value=10**9, places=2, allow_nan=False))
def test_a_decimal_comma_is_read_like_a_point(number: Decimal) -> None:
    for text in (f"{number:,}", f"{number:,}".translate(str.maketrans(",.", ".,"))):
        (found,) = numbers(f"about {text} euros")
        assert number in found.readings


@given(st.text(max_size=60))
def test_any_text_can_be_read_for_numbers_and_dates(text: str) -> None:
    for number in numbers(text):
        assert 0 <= number.start < number.end <= number.whole_end <= len(text)
        assert number.readings
    for stated in dates(text):
        assert 0 <= stated.start < stated.end <= len(text)
        assert stated.days


@pytest.mark.parametrize(
    ("value", "text", "stated"),
    [
        ("€3 million", "We gave EUR 3,000,000 to it", True),
        ("€3 million", "We gave 3 million euros to it", True),
        ("€3 million", "We gave 3 million dollars to it", False),
        ("€3 million", "We gave €3 billion to it", False),
        ("45 %", "by 45 percent", True),
        ("45 %", "by 45 tonnes", False),
        ("120 t", "saved 120 tonnes of tin", True),
        ("120 trees", "planted 120 trees", True),
        ("120 trees", "planted 120 treehouses", False),
    ],
)
def test_a_quantity_is_an_amount_with_its_unit(value: str, text: str, stated: bool) -> None:
    wanted = quantity(value)
    assert wanted is not None
    assert bool(list(states(text, wanted))) is stated


def test_a_bare_number_is_no_quantity() -> None:
    assert quantity("1998") is None
    assert quantity("Bergen") is None


MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905


@given(st.dates(min_value=date(1000, 1, 1), max_value=date(2999, 12, 31)))
def test_a_date_is_read_however_it_is_written(day: date) -> None:
    month = MONTHS[day.month - 1]
    wanted = Day(year=day.year, month=day.month, day=day.day)
    for text in (
        day.isoformat(),
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{day.day}th of {month[:3]} {day.year}",
        f"{day.day:02d}.{day.month:02d}.{day.year}",
        f"{day.year}/{day.month:02d}/{day.day:02d}",
        f"{day.year}年{day.month}月{day.day}日",
    ):
        assert [stated.days for stated in dates(f"signed {text} here")] == [(wanted,)], text
        assert value_of(text) == (wanted, None), text


def test_where_the_order_cannot_be_told_both_are_given() -> None:
    (stated,) = dates("on 03/04/2019")
    assert {day.iso for day in stated.days} == {"2019-04-03", "2019-03-04"}
    assert value_of("03/04/2019") is None


def test_a_day_says_its_month_and_year_but_not_the_other_way_round() -> None:
    day, month = Day(year=2019, month=3, day=1), Day(year=2019, month=3)
    assert day.says(month)
    assert day.says(Day(year=2019))
    assert not month.says(day)
    assert not day.says(Day(year=2019, month=4))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def places(value: Any, pointer: str = "") -> list[tuple[str, Any]]:
    found = [(pointer, value)]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            found += places(inner, f"{pointer}/{at}")
    return found


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_a_pointer_leads_to_its_value_in_the_text(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    for pointer, expected in places(value):
        spot = find(text, pointer)
        assert spot is not None
        assert spot.value == expected
        raw = text[spot.start : spot.end]
        assert json.loads(f'"{raw}"' if isinstance(expected, str) else raw) == expected


def test_a_pointer_that_leads_nowhere_finds_nothing() -> None:
    for text, pointer in (
        ('{"a": [1]}', "/b"),
        ('{"a": [1]}', "/a/1"),
        ('{"a": [1]}', "/a/x"),
        ("no json", "/a"),
        ("", "/a"),
    ):
        assert find(text, pointer) is None
    assert keys("/a~1b/0/~0") == ["a/b", "0", "~"]
