"""From a text to a value: numbers and dates as people write them, where they can mean one thing only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from curtsy.core.claims import Claim
from curtsy.extract import record_claims
from curtsy.extract.values import coerced
from curtsy.grounding import judge
from curtsy.grounding import schema as schemas
from curtsy.grounding.schema import Leaf

INTEGER = Leaf(path="/value", type="integer")
NUMBER = Leaf(path="/value", type="number")
DATE = Leaf(path="/value", type="date")
TIMED = Leaf(path="/value", type="date", timed=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12.5", 12.5),
        ("0.125", 0.125),
        ("-12.50", -12.5),
        ("+5", 5),
        ("1,234", 1234),
        ("1,234.56", 1234.56),
        ("1.234,56", 1234.56),
        ("1 234 567", 1234567),
        ("12,50 €", 12.5),
        ("12,50€", 12.5),
        ("€12.50", 12.5),
        ("€ 1.234,56", 1234.56),
        ("£1,234", 1234),
        ("US$ 12", 12),
        ("$1,299.00 USD", 1299),
        ("CHF 1'299.50", 1299.5),
        ("1 234 kr", 1234),
        ("1\u00a0234&nbsp;kr.", 1234),
        ("Rs. 500", 500),
        ("45 %", 45),
        ("12 kg", 12),
        ("250 m²", 250),
    ],
)
def test_a_number_is_read_as_people_write_it(text: str, value: float) -> None:
    assert coerced(text, NUMBER) == value


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "1.234",
            "€1.234",
            "3 of 5",
            "3/5",
            "10 - 20",
            "10–20 €",
            "from €12",
            "€12 each",
            "12 €/kg",
            "1.5 million",
        ),
        *(
            "€5m",
            "5 m",
            "5k",
            "five",
            "price on request",
            "12€50",
            "1e5",
            "12 34",
            "1.2.3",
            "9" * 16,
            "9" * 5_000,
            "€",
            "5G",
        ),
        *("2024-25", "10 USD 20", "€ €", "1 March 2019"),
    ],
)
def test_what_may_be_several_numbers_or_none_is_no_number(text: str) -> None:
    assert coerced(text, NUMBER) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1973", 1973),
        ("1.234", 1234),
        ("1,234", 1234),
        ("10.00", 10),
        ("1 234 kr", 1234),
        ("2024-05", 2024),
        ("2024-12-31", 2024),
        ("2024-05-01T10:30:00Z", 2024),
        ("1 March 2019", 2019),
        ("2024-25", None),
        ("2024-13", None),
        ("2024-00", None),
        ("2024-05-32", None),
        ("2024-05 to 2025-06", None),
        ("12.5", None),
        ("1,234.567", None),
        ("3 of 5", None),
    ],
)
def test_a_whole_number_is_one_and_a_date_gives_its_year(text: str, value: int | None) -> None:
    assert coerced(text, INTEGER) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2019-03-01", "2019-03-01"),
        ("2019-03-01T10:30:00Z", "2019-03-01"),
        ("1 March 2019", "2019-03-01"),
        ("1. März 2019", "2019-03-01"),
        ("March 1, 2019", "2019-03-01"),
        ("01.03.2019", "2019-03-01"),
        ("14/03/2019", "2019-03-14"),
        ("Thu, 14 Mar 2019 10:00:00 GMT", "2019-03-14"),
        ("Thu Mar 14 2019 10:00:00 GMT+0200 (CEST)", "2019-03-14"),
        ("14.03.2019 - 10:00 Uhr", "2019-03-14"),
        ("03/14/2019 09:49:00", "2019-03-14"),
        ("March 14, 2019 9:49 p.m.", "2019-03-14"),
        ("04/03/2019 10:00", None),
        ("04/03/2019", None),
        ("04-03-2019", None),
        ("01.03.19", None),
        ("March 2019", None),
        ("2019", None),
        ("2019-02-30", None),
        ("2019-25-01", None),
        ("2019-03-01 10:00 - 2019-03-02 10:00", None),
        ("from 1 March 2019", None),
        ("1" + "," * 5_000 + "March 2019", None),
    ],
)
def test_a_date_is_read_as_people_write_it(text: str, value: str | None) -> None:
    assert coerced(text, DATE) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-05-01T10:30:00Z", "2024-05-01T10:30:00Z"),
        ("2024-05-01T10:30:00+02:00", "2024-05-01T10:30:00+02:00"),
        ("2024-05-01 10:30", "2024-05-01 10:30"),
        ("2024-05-01", "2024-05-01"),
        ("1 May 2024", "2024-05-01"),
        ("2024-05-01 10:30 at noon", "2024-05-01"),
        ("2024-05-01T99:30", "2024-05-01"),
        ("2024-05", None),
    ],
)
def test_a_date_keeps_its_time_where_one_is_wanted(text: str, value: str | None) -> None:
    assert coerced(text, TIMED) == value


def test_a_number_of_json_says_what_its_point_is() -> None:
    assert coerced("1.234", NUMBER, exact=True) == 1.234
    assert coerced("1.234", INTEGER, exact=True) is None
    assert coerced("1973.0", INTEGER, exact=True) == 1973
    assert coerced("1e400", NUMBER, exact=True) is None


# Through all sources: what is read here, `ground` reads too


def published(kind: dict[str, Any], html: str, hints: dict[str, Any]) -> tuple[list[Claim], Any]:
    schema = schemas.inline({"type": "object", "properties": {"value": kind}, "x-curtsy": hints})
    page = record_claims.sources_of("p1", "http://a.test/", html.encode(), "text/html; charset=utf-8")
    claims = list(record_claims.extract(schema, [page]).claims)
    return claims, judge.assemble(schema, judge.settle(schema, claims)).get("value")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ({"type": "number"}, "1.234,56 €", 1234.56),
        ({"type": "number"}, "€12.50", 12.5),
        ({"type": "number"}, "1 234 kr", 1234),
        ({"type": "integer"}, "2024-25", None),
        ({"type": "string", "format": "date"}, "1 March 2019", "2019-03-01"),
        ({"type": "string", "format": "date"}, "01.03.2019", "2019-03-01"),
        ({"type": "string", "format": "date-time"}, "2024-05-01T10:30:00Z", "2024-05-01T10:30:00Z"),
        ({"type": "string", "format": "date"}, "2024-05-01T10:30:00Z", "2024-05-01"),
    ],
)
def test_what_is_read_is_published(kind: dict[str, Any], text: str, value: Any) -> None:
    assert published(kind, f"<p class=v>{text}</p>", {"selectors": {"value": "p.v"}})[1] == value
    time = f'<time datetime="{text}">then</time>'
    assert published(kind, time, {"selectors": {"value": {"css": "time", "attribute": "datetime"}}})[1] == value
    data = f'<script type="application/ld+json">{json.dumps({"value": text})}</script>'
    assert published(kind, data, {})[1] == value


def test_a_crawl_keeps_whether_a_date_has_a_time() -> None:
    kinds = {
        "a": {"type": "string", "format": "date-time"},
        "b": {"type": "string", "format": "date"},
        "c": {"enum": [1]},
    }
    schema = schemas.inline({"type": "object", "properties": kinds})
    assert [leaf.timed for leaf in schema.leaves] == [True, False, False]
    dumped = json.loads(json.dumps(schema.dump()))
    assert [leaf.timed for leaf in schemas.restore(dumped).leaves] == [True, False, False]
    for leaf in dumped["leaves"]:
        del leaf["timed"]  # as an earlier version kept it
    assert not any(leaf.timed for leaf in schemas.restore(dumped).leaves)


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("/contact/email", "mailto:office@alder.test", "office@alder.test"),
        ("/contact/email", "MAILTO:office@alder.test?subject=Hello", "office@alder.test"),
        ("/contact/phone", "tel:+44-1632-960001;ext=4", "+44-1632-960001"),
        ("/name", "tel: the story of a call", "tel: the story of a call"),
    ],
)
def test_the_scheme_of_a_contact_is_no_part_of_it(path: str, text: str, value: str) -> None:
    assert coerced(text, Leaf(path=path, type="string")) == value
