"""What structured data states, as evidence for quotes of the visible text."""

from __future__ import annotations

import pytest

from curtsy.core.claims import Claim, Rung
from curtsy.extract import record_claims
from curtsy.grounding import judge
from curtsy.grounding.schema import Leaf

PAGE = """<title>Blue bowl</title>
<script type="application/ld+json">{"@type": "Product", "name": "Blue bowl",
"brand": {"@type": "Brand", "name": "Alder"},
"offers": {"price": "12.50", "priceCurrency": "EUR"}, "isRelatedTo": {"brand": "Birch"}}</script>
<meta property="og:site_name" content="Bowl Shop">
<h1>Blue bowl</h1><p>Made in Ghent at Alder</p><p>12,50 €</p><p>19,00 €</p><p>Birch</p><p>Bowl Shop</p>"""
TEXT = record_claims.sources_of("1", "http://a.test/", PAGE.encode(), "text/html; charset=utf-8").text


@pytest.mark.parametrize(
    ("path", "value", "states"),
    [
        ("/brand", "Alder", True),
        ("/brand", "Birch", False),
        ("/price", 12.5, True),
        ("/price", 19, False),
        ("/publisher", "Bowl Shop", True),
        ("/currency", "EUR", True),
        ("/color", "blue", None),
    ],
)
def test_a_key_named_like_the_field(path: str, value: object, states: bool | None) -> None:
    assert TEXT.states(path, value) is states


@pytest.mark.parametrize(
    ("leaf", "value", "quote", "published"),
    [
        (Leaf(path="/brand", type="string"), "Alder", "Made in Ghent at Alder", True),
        (Leaf(path="/brand", type="string"), "Birch", "Birch", False),
        (Leaf(path="/price", type="number"), 12.5, "12,50 €", True),
        (Leaf(path="/price", type="number"), 19, "19,00 €", False),
        (Leaf(path="/publisher", type="string"), "Bowl Shop", "Bowl Shop", True),
    ],
)
def test_a_quote_that_the_data_confirms_or_contradicts(leaf: Leaf, value: object, quote: str, published: bool) -> None:
    claim = Claim(path=leaf.path, value=value, rung=Rung.LLM, source=TEXT, quote=quote)
    assert judge.is_grounded(judge.judge(claim, leaf)) is published
