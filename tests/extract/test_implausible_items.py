"""Dates ahead are no dates of publication, and data about another thing than the page are of a teaser."""

from __future__ import annotations

from typing import Any

import pytest

from curtsy.extract import articles, record_claims
from curtsy.grounding import judge, schema


def record(name: str, html: str) -> dict[str, Any]:
    form = schema.load(name)
    page = record_claims.sources_of("1", "https://shop.test/p/1", html.encode(), "text/html; charset=utf-8")
    return judge.assemble(form, judge.settle(form, record_claims.extract(form, [page]).claims))


@pytest.mark.parametrize(
    "date",
    [
        '<meta property="article:published_time" content="{}T08:00:00Z">',
        '<time datetime="{}">on the day</time>',
    ],
)
def test_nothing_was_published_in_the_future(date: str) -> None:
    page = "<title>Ferry</title>{}<article><h1>Ferry returns</h1>{}<p>The ferry came back to the harbor.</p></article>"
    head, body = (date, "") if date.startswith("<meta") else ("", date)
    assert "published" not in record("article", page.format(head.format("2931-05-01"), body.format("2931-05-01")))
    found = record("article", page.format(head.format("2021-05-01"), body.format("2021-05-01")))
    assert found["published"][:10] == "2021-05-01"


def test_the_day_after_today_may_be_that_of_another_time_zone() -> None:
    noon = 1_700_000_000  # 2023-11-14
    assert not articles.is_ahead("2023-11-15", noon)
    assert articles.is_ahead("2023-11-16T01:00:00Z", noon)


ITEM = """<title>{} | Shop</title><h1>{}</h1><script type="application/ld+json">{{"@type":"Product","name":"Pine Chair",
    "offers":{{"price":"49.00","priceCurrency":"EUR"}}}}</script>"""


def test_a_sole_product_with_another_name_than_title_and_heading_is_left_out() -> None:
    assert record("product", ITEM.format("Oak Table", "Oak Table")) == {}


@pytest.mark.parametrize(
    ("title", "heading"),
    [("Pine Chair", "Pine Chair"), ("Shop", "Shop"), ("Welcome", "Our chairs"), ("Chaise en pin", "Pine seat")],
)
def test_data_are_used_if_title_and_heading_do_not_agree_on_another_thing(title: str, heading: str) -> None:
    assert record("product", ITEM.format(title, heading))["price"] == 49
