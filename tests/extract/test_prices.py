"""The price of a product, in structured data and as pages show it; tests/golden/judge/products.toml has whole pages."""

from __future__ import annotations

import pytest

from curtsy.extract import record_claims
from curtsy.grounding import judge, schema

PRODUCT = schema.load("product")
_HEAD = "<title>Red hat - Shop</title><h1>Red hat</h1>"
_FAR = f"<p>{'A hat is a cover for the head. ' * 12}</p>"


def _price(html: str) -> tuple[object, object]:
    page = record_claims.sources_of("1", "https://shop.test/hat", html.encode(), "text/html; charset=utf-8")
    found = judge.assemble(PRODUCT, judge.settle(PRODUCT, record_claims.extract(PRODUCT, [page]).claims))
    return found.get("price"), found.get("currency")


@pytest.mark.parametrize(
    "html",
    [
        "<div itemscope itemtype='http://schema.org/Product'><b itemprop=name>Red hat</b></div><div itemscope"
        " itemtype='http://schema.org/Offer'><meta itemprop=price content=19.99>"
        "<meta itemprop=priceCurrency content=USD></div>",
        "<meta itemprop=price content=19.99><meta itemprop=priceCurrency content=USD>",
        "<meta property='product:price:amount' content=29.99><meta property='product:sale_price:amount' content=19.99>"
        "<meta property='product:price:currency' content=USD>",
    ],
    ids=["offer beside the product", "meta outside of items", "sale price"],
)  # fmt: skip
def test_a_price_in_structured_data(html: str) -> None:
    assert _price(_HEAD + html) == (19.99, "USD")


@pytest.mark.parametrize(
    "html",
    [
        # marked elements
        "<p class=price><del><b>$</b>29.99</del> <ins><b>$</b>19.99</ins></p>",
        "<div class=price__box><div class=price__regular><span>Regular price</span><span>$19.99</span></div></div>",
        "<div class=price-box><span class=special-price><span>Special</span> <span class=price>$19.99</span></span>"
        "<span class=old-price><span>Regular</span><span class=price>$29.99</span></span></div>",
        "<p class=price>Was $29.99 Now $19.99</p>",
        "<p class=price>From $19.99</p>",
        "<p class=productPrice>$19.99 incl. VAT</p>",
        f"<p class=price>$19.99</p>{_FAR}<div><h3>Blue hat</h3><p class=price>$9.99</p></div>",
        "<p class=price>$19.99</p><div class=related><p class=price>$9.99</p></div>",
        # labels
        "<p>Price: $19.99</p>",
        "<p>Our price<p>$19.99",
        # beside a note about taxes
        f"{_FAR}<p>$19.99</p><p>incl. 19% VAT</p>{_FAR}<p>$9.99</p>",
        f"{_FAR}<p>$19.99 (inkl. MwSt. zzgl. Versand)</p>{_FAR}<p>$9.99</p>",
        # between the heading and the button
        "<div><strong>$19.99</strong></div><p>Free shipping from $50<p>Save $5<p><button>Add to cart</button>",
        # a line of its own
        "<p>$19.99</p><p>It is a hat.</p><p>Shipping: $4.99</p>",
        f"<p>It is a hat.</p><p><b>$19.99</b></p>{_FAR}<p>In stock</p><h2>You may also like</h2><p>$9.99</p>",
    ],
)
def test_a_price_that_only_the_page_shows(html: str) -> None:
    assert _price(f"<html lang=en-US>{_HEAD}{html}") == (19.99, "USD")


@pytest.mark.parametrize(
    "html",
    [
        "<p class=price>$19.99</p><p class=price>$24.99</p>",
        "<p class=price>$<span>19</span><sup>99</sup></p>",
        "<p class=price>$<span>19</span><span>99</span></p>",
        "<p class=price>$0.00</p>",
        "<p class=price>$19.99 - $24.99</p>",
        "<p class=price>$4.99 per month</p>",
        # an empty cart, a sentence about points, a teaser above the heading
        "<table><tr><th>Items<th>Price<tr><td>Sub-total<td>$0.00</table>",
        "<p>With this hat you collect one point, which makes a voucher of <b class=price>$0.20</b>.</p>",
        "<p class=price><s>$29.99</s></p>",
        "<div class=related><p class=price>$9.99</p></div>",
        "<p>Free shipping over $50</p><button>Add to cart</button>",
        "<p>$19.99 incl. VAT</p><p>$24.99 incl. VAT</p>",
        "<p>Shipping: $4.99 incl. VAT</p>",
        "<p>It is a hat.</p><h2>You may also like</h2><p>Blue hat</p><p>$9.99</p><p>incl. VAT</p>",
        "<p>$19.99</p><p>$24.99</p><button>Add to cart</button>",
        "<p>Small</p><p>$19.99</p><p>Large</p><p>$24.99</p>",
        "<p>In stock</p><p>$19.99</p><p>per month for 12 months</p>",
        "<p>In stock</p><p>Deposit</p><p>$19.99</p>",
        "<p>The jury gave us a cheque.</p><p>$19.99</p>",
        "<p>A hat for $19.99 is cheap.</p>",
    ],
)
def test_amounts_that_are_not_the_price(html: str) -> None:
    assert _price(_HEAD + html) == (None, None)


def test_a_price_far_above_the_heading_is_of_something_else() -> None:
    teaser = "<div><span>Blue hat</span><span class=price>$9.99</span></div>"
    assert _price(f"<title>Red hat</title>{teaser}{_FAR}<h1>Red hat</h1><p>A hat.</p>") == (None, None)
    assert _price("<html lang=en-US><title>Red hat</title><p class=price>$9.99</p><h1>Red hat</h1><p>A hat.</p>") == (
        9.99,
        "USD",
    )
