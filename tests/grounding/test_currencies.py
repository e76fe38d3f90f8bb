"""Amounts with the signs and names of currencies, as shops write them, quoted by a model for a price."""

from __future__ import annotations

import html

import pytest

from curtsy.core.claims import Claim, Rung
from curtsy.extract import record_claims
from curtsy.grounding import judge, schema
from curtsy.grounding.currencies import codes_of, has_money
from curtsy.grounding.numbers import numbers

PRODUCT = schema.load("product")
WRITTEN = [
    ("US$: 12.90", 12.9, "USD"), ("Rp 31.500", 31500, "IDR"), ("RM75", 75, "MYR"), ("R1,250.00", 1250, "ZAR"),
    ("7,250 KD", 7250, "KWD"), ("125.00 درهم", 125, "AED"), ("644.00 جنيه", 644, "EGP"), ("1 890 р.", 1890, "RUB"),
    ("128 240 рублей", 128240, "RUB"), ("60,- Kč", 60, "CZK"), ("39 RON", 39, "RON"), ("S/. 49.90", 49.9, "PEN"),
    ("2963yen", 2963, "JPY"), ("27CHF", 27, "CHF"), ("SGD4.90", 4.9, "SGD"), ("₦12,500", 12500, "NGN"),
    ("12 500 ₸", 12500, "KZT"), ("₱349.75", 349.75, "PHP"), ("1.299.000 ₫", 1299000, "VND"), ("฿250", 250, "THB"),
]  # fmt: skip


def published(line: str, value: float, markup: str = "p") -> bool:
    page = (
        f"<title>Lamp</title><h1>Lamp</h1><{markup}>{html.escape(line)}</{markup.split()[0]}><p>It burns for hours.</p>"
    )
    source = record_claims.sources_of("1", "https://shop.test/lamp", page.encode(), "text/html; charset=utf-8").text
    leaf = PRODUCT.leaf_for("/price")
    field = judge.judge(Claim(path="/price", value=value, rung=Rung.LLM, source=source, quote=line), leaf)
    return judge.is_published(field, leaf)


@pytest.mark.parametrize(("line", "value", "code"), WRITTEN)
def test_an_amount_with_its_currency_is_a_price(line: str, value: float, code: str) -> None:
    assert has_money(line)
    assert any(code in codes_of(line, one.start, one.end, None) for one in numbers(line))
    assert published(line, value)


def test_an_amount_alone_is_a_price_if_the_markup_says_so() -> None:
    assert not published("39.95", 39.95)
    assert published("39.95", 39.95, 'p class="product-price"')
    assert published("39.95", 39.95, 'span itemprop="price"')
    assert not published("39.95", 39.95, 'p class="old-price"')
    assert not published("39.95", 39.95, 'p class="review-count"')


@pytest.mark.parametrize("line", ["Room R2 is on floor 3", "CO2 300 t", "Karl 5", "A4 500 sheets", "Line 12 krill"])
def test_letters_beside_a_number_are_no_currency(line: str) -> None:
    assert not any(codes_of(line, one.start, one.end, None) - {"ZAR"} for one in numbers(line))


def test_the_contacts_of_who_made_a_site_are_not_the_organizations() -> None:
    organization = schema.load("organization")
    leaf = organization.leaf_for("/contact/email")
    page = (
        "<title>Mill</title><h1>Mill</h1><p>Webdesign: Pixel Barn, info@pixelbarn.test</p><p>Mail: hello@mill.test</p>"
    )
    source = record_claims.sources_of("1", "https://mill.test/", page.encode(), "text/html; charset=utf-8").text

    def shown(value: str, quote: str) -> bool:
        claim = Claim(path="/contact/email", value=value, rung=Rung.LLM, source=source, quote=quote)
        return judge.is_published(judge.judge(claim, leaf), leaf)

    assert not shown("info@pixelbarn.test", "Webdesign: Pixel Barn, info@pixelbarn.test")
    assert shown("hello@mill.test", "Mail: hello@mill.test")
