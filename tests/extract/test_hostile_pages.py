"""Pages that are made to be slow, to break extraction, or to have values of others taken for their own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from curtsy.extract import record_claims
from curtsy.grounding import judge, schema

_HEAD = "<title>Red hat - Acme</title><h1>Red hat</h1>"
_PAGES: dict[str, tuple[str, Callable[[int], str]]] = {
    "dates in a table": ("article", lambda n: f"<table>{'<tr><td class=date>05/03/2024</td></tr>' * n}</table>"),
    "dates of comments": ("article", lambda n: "<div class=comment>Posted on 5 May 2024</div>" * n),
    "a name that repeats": (
        "organization",
        lambda n: f'<meta property="og:site_name" content="{"Acme " * n}"><h1>Acme</h1>',
    ),
    "headings of others": ("organization", lambda n: f"{'<h2>Hosting</h2>' * n}<p>Tel: +49 30 1234567</p>"),
    "labeled prices": ("product", lambda n: "<p>Price: $9.99 a<b>b</b>c</p>" * n),
}  # fmt: skip


def _record(name: str, html: str, url: str = "https://acme.test/") -> dict[str, Any]:
    found = schema.load(name)
    page = record_claims.sources_of("1", url, html.encode(), "text/html; charset=utf-8")
    return dict(judge.assemble(found, judge.settle(found, record_claims.extract(found, [page]).claims)))


def _data(value: object) -> str:
    return f'{_HEAD}<script type="application/ld+json">{json.dumps(value)}</script>'


@pytest.mark.parametrize("kind", _PAGES)
def test_time_grows_with_the_size_of_the_page(kind: str) -> None:
    name, make = _PAGES[kind]

    def seconds(n: int) -> float:
        html = _HEAD + make(n)
        start = time.process_time()
        _record(name, html)
        return time.process_time() - start

    # CPU time: with time that grows with the square, the factor is 8 times 8.
    small = min(seconds(250) for _ in range(3))
    large = min(seconds(2_000) for _ in range(2))
    assert large < 8 * 4 * small + 0.2, (small, large)


@pytest.mark.parametrize("html", ["", "<title>x</title>", "<body><img src=a.png></body>"])
@pytest.mark.parametrize("name", ["product", "article", "organization", "event", "job"])
def test_a_page_without_text_has_no_values(name: str, html: str) -> None:
    _record(name, html)


@pytest.mark.parametrize(
    ("offers", "expected"),
    [
        ({"hasVariant": [{"offers": {"price": 9, "priceCurrency": "USD"}},
                         {"offers": {"price": 5, "priceCurrency": "EUR"}}]}, (5, "EUR")),
        ({"offers": [{"price": "", "priceCurrency": "GBP"}, {"price": 9, "priceCurrency": "USD"}]}, (9, "USD")),
        ({"offers": {"priceCurrency": "EUR", "priceSpecification": {"price": 7, "priceCurrency": "USD"}}}, (7, "USD")),
    ],
    ids=["variants", "an offer without a price", "specification"],
)  # fmt: skip
def test_a_price_has_the_currency_of_its_own_offer(offers: dict[str, Any], expected: tuple[float, str]) -> None:
    found = _record(
        "product", _data({"@context": "https://schema.org", "@type": "Product", "name": "Red hat"} | offers)
    )
    assert (found.get("price"), found.get("currency")) in (expected, (None, None))


@pytest.mark.parametrize("heading", ["You may also like", "Customers also bought", "Similar products"])
def test_a_product_does_not_get_the_price_of_another_one(heading: str) -> None:
    html = f"{_HEAD}<p>A warm hat.</p><h2>{heading}</h2><div><h3>Scarf</h3><p class=price>$9.99</p></div>"
    assert "price" not in _record("product", html)


@pytest.mark.parametrize("shown", ["12 x $5.00", "-$5", '<span style="text-decoration:line-through">$5</span>'])
def test_an_amount_that_is_not_the_price_is_none(shown: str) -> None:
    assert "price" not in _record("product", f"<html lang=en-US>{_HEAD}<p class=price>{shown}</p>")


@pytest.mark.parametrize(
    "link",
    [
        '<a style="display:none" href="mailto:trap@acme.test">x</a>',
        '<div hidden><a href="tel:+49301234567">x</a></div>',
    ],
)
def test_a_hidden_link_is_no_contact(link: str) -> None:
    assert "contact" not in _record(
        "organization", f"<title>Acme</title><h1>Contact</h1>{link}", "https://acme.test/contact"
    )


def test_an_address_does_not_end_at_an_abbreviation() -> None:
    html = "<title>Acme</title><h1>Contact</h1><p>Address: Hauptstr. 5, 10115 Berlin</p>"
    found = _record("organization", html, "https://acme.test/contact")
    assert found.get("contact", {}).get("address") in (None, "Hauptstr. 5, 10115 Berlin")


@pytest.mark.parametrize(
    "other",
    ["<div class=related><a rel=author>Jane Roe</a></div>", "<footer>Theme by <a rel=author>Jane Roe</a></footer>",
     "<blockquote>Great.<p class=author>Jane Roe</p></blockquote>"],
)  # fmt: skip
def test_the_author_of_another_part_is_not_that_of_the_article(other: str) -> None:
    html = f"<title>A storm</title><article><h1>A storm</h1><p>{'It rained. ' * 40}</p></article>{other}"
    assert not _record("article", html).get("authors")
