"""Statements of different steps and pages that contradict each other are withheld, each with its quote."""

from __future__ import annotations

import json
from typing import Any

import pytest

from curtsy.core.claims import Claim, Extraction, Field, Rung
from curtsy.extract import record_claims
from curtsy.grounding import judge
from curtsy.grounding import schema as schemas
from curtsy.grounding.schema import Schema

ORGANIZATION, PRODUCT, ARTICLE = map(schemas.load, ("organization", "product", "article"))


def fields_of(schema: Schema, *pages: str, model: Any = None) -> list[Field]:
    sources = [
        record_claims.sources_of(str(number), f"https://acme.test/{number or ''}", html.encode(), "text/html")
        for number, html in enumerate(pages)
    ]
    return judge.settle(schema, record_claims.extract(schema, sources, model).claims)


def of(path: str, fields: list[Field]) -> list[tuple[Any, str]]:
    return [(one.value, one.note) for one in fields if one.path == path]


def organization(founded: int, text: str) -> str:
    data = (
        f'{{"@type": "Organization", "name": "Acme Widgets", "url": "https://acme.test/", "foundingDate": "{founded}"}}'
    )
    return (
        f'<html lang=en><title>Acme Widgets</title><script type="application/ld+json">{data}</script>'
        f"<h1>Acme Widgets</h1><p>{text}</p>"
    )


def product(price: str, shown: str, *more: str) -> str:
    offers = ", ".join(f'{{"@type": "Offer", "price": "{one}", "priceCurrency": "USD"}}' for one in (price, *more))
    return (
        '<title>Lamp</title><script type="application/ld+json">{"@type": "Product", "name": "Lamp", "offers": ['
        f'{offers}]}}</script><h1>Lamp</h1><p class="price">{shown}</p>'
    )


def labelled(price: str, text: str, currency: str = "USD") -> str:
    offer = f'{{"@type": "Offer", "price": "{price}", "priceCurrency": "{currency}"}}'
    data = f'{{"@type": "Product", "name": "Lamp", "offers": {offer}}}'
    script = f'<script type="application/ld+json">{data}</script>'
    return f"<html lang=en><title>Lamp</title>{script}<h1>Lamp</h1>{text}"


def article(published: str, shown: str) -> str:
    return (
        f'<html lang=en><title>Lock closed</title><script type="application/ld+json">{{"@type": "NewsArticle", '
        f'"headline": "Lock closed", "datePublished": "{published}"}}</script><h1>Lock closed</h1><p>{shown}</p>'
        "<p>The lock was closed for repairs by the canal company.</p>"
    )


def test_structured_data_and_visible_text_that_contradict_each_other_are_withheld_with_both_quotes() -> None:
    fields = fields_of(ORGANIZATION, organization(1998, "Acme Widgets was founded in 2001 by two sisters."))
    assert of("/founded_year", fields) == [(1998, "contradicted"), (2001, "contradicted")]
    quotes = [one.evidence[0].quote for one in fields if one.path == "/founded_year"]
    assert quotes == ["1998", "Acme Widgets was founded in 2001 by two sisters."]
    sure = judge.confidence(ORGANIZATION, fields, 500)
    assert "contradicted" in sure.reasons
    assert sure.share < 1.0


def test_a_step_that_agrees_adds_its_evidence() -> None:
    fields = fields_of(ORGANIZATION, organization(2001, "Acme Widgets was founded in 2001 by two sisters."))
    found = next(one for one in fields if one.path == "/founded_year")
    assert {one.source.value for one in found.evidence} == {"structured", "text"}


def test_cities_contradict_each_other_unless_one_is_part_of_the_other() -> None:
    page = organization(2001, "Acme Widgets is headquartered in PLACE.")
    address = '"address": {"addressLocality": "Lyon", "addressCountry": "France"}, "foundingDate"'
    page = page.replace('"foundingDate"', address)
    notes = {
        place: {note for _, note in of("/headquarters", fields_of(ORGANIZATION, page.replace("PLACE", place)))}
        for place in ("Lyon, France", "Lyon", "Metz, Lorraine")
    }
    assert notes["Lyon, France"].isdisjoint({"contradicted"})
    assert notes["Lyon"].isdisjoint({"contradicted"})
    assert notes["Metz, Lorraine"] == {"contradicted"}


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (product("19.99", "$24.99"), [(19.99, "contradicted"), (24.99, "contradicted")]),
        (product("19.99", "$19.99"), [(19.99, "")]),
        # one of the offers is the visible price
        (product("19.99", "$24.99", "24.99"), [(19.99, "")]),
        # more than readers return: variants
        (product("19.99", "$49.99", "24.99", "29.99", "34.99"), [(19.99, "")]),
    ],
)
def test_visible_prices_are_compared_with_those_of_the_data(html: str, expected: list[tuple[float, str]]) -> None:
    assert of("/price", fields_of(PRODUCT, html)) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (labelled("29.99", "<p>Price: 19.99 USD</p>"), [(29.99, "contradicted"), (19.99, "contradicted")]),
        (labelled("29.99", "<p>Price: $19.99</p>"), [(29.99, "contradicted"), (19.99, "contradicted")]),
        (labelled("19.99", "<p>Price: $19.99</p>"), [(19.99, "")]),
        # an amount without a label, two labeled ones, those of other things, and an older one
        (labelled("29.99", "<p>$19.99</p>"), [(29.99, "")]),
        (labelled("29.99", "<p>Price: $19.99</p><p>Price: $9.99</p>"), [(29.99, "")]),
        (labelled("29.99", "<h2>You may also like</h2><p>Price: $19.99</p>"), [(29.99, "")]),
        (labelled("29.99", "<p>Price: <s>$49.99</s></p>"), [(29.99, "")]),
        # the marked price decides
        (labelled("29.99", "<p>Price: $49.99</p><p class=price>$29.99</p>"), [(29.99, "")]),
    ],
)
def test_a_labeled_price_is_compared_with_that_of_the_data(html: str, expected: list[tuple[float, str]]) -> None:
    assert of("/price", fields_of(PRODUCT, html)) == expected


@pytest.mark.parametrize(
    ("published", "shown", "expected"),
    [
        ("2024-03-05", "Published: March 9, 2024", [("2024-03-05", "contradicted"), ("2024-03-09", "contradicted")]),
        ("2024-03-05", "Published: March 5, 2024", [("2024-03-05", "")]),
        # another time zone
        ("2024-03-05T23:30:00-05:00", "Published: March 6, 2024", [("2024-03-05", "")]),
        ("2024-03-05", "Updated: March 9, 2024", [("2024-03-05", "")]),
        # a date without a label may be that of a photo
        ("2024-03-05", "March 9, 2024", [("2024-03-05", "")]),
    ],
)
def test_only_a_date_that_the_page_calls_published_contradicts(
    published: str, shown: str, expected: list[tuple[str, str]]
) -> None:
    assert of("/published", fields_of(ARTICLE, article(published, shown))) == expected


def test_two_entries_of_structured_data_can_contradict_each_other() -> None:
    meta = '<meta property="article:published_time" content="2024-04-01">'
    fields = fields_of(ARTICLE, article("2024-03-05", "").replace("<h1>", f"{meta}<h1>"))
    assert {note for _, note in of("/published", fields)} == {"contradicted"}


class TwoAnswers:
    """A model that reads another founding year on each page."""

    def ask(self, schema: Schema, leaves: Any, pages: Any) -> Extraction:
        found = [(page.text, next(line for line in page.text.text.split("\n") if "founded" in line)) for page in pages]
        return Extraction(
            claims=tuple(
                Claim(path="/founded_year", value=int(line[-5:-1]), rung=Rung.LLM, source=source, quote=line)
                for source, line in found
            )
        )


def test_answers_of_a_model_can_contradict_each_other() -> None:
    pages = [f"<title>Acme</title><p>The company of the widgets was founded in {year}.</p>" for year in (1990, 1995)]
    fields = fields_of(ORGANIZATION, *pages, model=TwoAnswers())
    assert of("/founded_year", fields) == [(1990, "contradicted"), (1995, "contradicted")]


@pytest.mark.parametrize(
    ("one", "other", "contradict"),
    [(1200, 1187, False), (1200, 1100, True), (2000, 1998, True), (350, 347, True), (12_000, 12_000, False)],
)
def test_round_counts_agree_with_exact_ones_but_years_are_never_round(one: int, other: int, contradict: bool) -> None:
    schema = schemas.inline(
        {"title": "t", "type": "object", "properties": {"employees": {"type": "integer"}}, "x-curtsy": {"per": "site"}}
    )
    sources = [
        record_claims.sources_of(str(n), "https://a.test/", f"<p>{n}".encode(), "text/html").text for n in (one, other)
    ]
    claims = [
        Claim(path="/employees", value=n, rung=Rung.SELECTOR, source=source, span=(0, len(source.text)))
        for n, source in zip((one, other), sources, strict=True)
    ]
    notes = {field.note for field in judge.settle(schema, claims)}
    assert ("contradicted" in notes) is contradict


def with_phone(*numbers: str, key: str = "telephone") -> str:
    stated = f'"{key}": {json.dumps(list(numbers))}'
    if key == "contactPoint":
        stated = f'"{key}": {json.dumps([{"@type": "ContactPoint", "telephone": one} for one in numbers])}'
    return organization(2001, "We make chairs.").replace('"foundingDate"', f'{stated}, "foundingDate"')


@pytest.mark.parametrize(
    ("pages", "contradict"),
    [
        ((with_phone("+47 55 12 34 56"), with_phone("+47 55 65 43 21")), True),
        ((with_phone("+47 55 12 34 56"), with_phone("55 12 34 56")), False),
        # one page states both
        ((with_phone("+47 55 12 34 56"), with_phone("+47 55 65 43 21", "+47 55 12 34 56")), False),
        # numbers of departments
        ((with_phone("+47 55 12 34 56"), with_phone("+47 55 65 43 21", key="contactPoint")), False),
        # numbers in the text may belong to departments
        ((with_phone("+47 55 12 34 56"), "<title>Contact</title><p>Phone: +47 55 65 43 21</p>"), False),
    ],
)
def test_pages_contradict_each_other_about_the_number_that_their_data_give_for_the_organization(
    pages: tuple[str, ...], contradict: bool
) -> None:
    found = of("/contact/phone", fields_of(ORGANIZATION, *pages))
    assert {note for _, note in found} == ({"contradicted"} if contradict else {""})
    assert len(found) == (2 if contradict else 1)
