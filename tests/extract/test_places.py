"""Places of a page: chains of elements, labels, what makes a place known; and that hostile pages take bounded time."""

from __future__ import annotations

import time

import pytest

from curtsy.content.document import Document
from curtsy.extract.places import MAX_BLOCKS, PagePlaces, places_of, similarity, url_shape

URL = "http://a.test/x"


def places(html: str) -> PagePlaces:
    return places_of(Document.parse(html.encode(), "text/html", URL))


def at(page: PagePlaces, text: str) -> tuple[str, str]:
    """Chain and label of the block with that text."""
    (found,) = [one for one in page.blocks if page.text_of(one) == text]
    return found.path, found.label


@pytest.mark.parametrize(
    ("url", "shape"),
    [
        ("http://a.test/", "/"),
        ("http://a.test/about", "/*"),
        ("http://a.test/shop/12-red-hat", "/shop/*"),
        ("http://a.test/SHOP/hats/red.HTML", "/shop/*/*.html"),
        ("http://a.test/2024/05/title", "/*/*/*"),
        ("http://a.test/item?b=2&a=1&b=3", "/*?a&b"),
    ],
)
def test_the_shape_of_a_url_leaves_out_what_differs_between_pages(url: str, shape: str) -> None:
    assert url_shape(url) == shape


def test_a_chain_has_tags_and_stable_classes_and_the_innermost_element_counts() -> None:
    page = places("<main class='box p-4 css-1x2'><div class='odd price'><span>12 kg</span></div></main>")
    assert at(page, "12 kg") == ("main.box > div.price > span", "")


@pytest.mark.parametrize(
    ("html", "value", "label"),
    [
        ("<dl><dt>Maker</dt><dd>Alder</dd></dl>", "Alder", "maker"),
        ("<table><tr><th>Net weight:</th><td>3 kg</td></tr></table>", "3 kg", "net weight"),
        ("<p>Price: 12 EUR</p>", "Price: 12 EUR", "price"),
        ("<p><span>Size</span> <b>Large</b></p>", "Large", "size"),
        ("<div><div>Room 12</div><div class=v>Large</div></div>", "Large", "room ##"),
        ("<h1>A name</h1><div><p>Large</p><p>x</p></div>", "Large", ""),
    ],
)
def test_labels_come_from_the_table_the_line_or_the_line_before(html: str, value: str, label: str) -> None:
    assert at(places(html), value)[1] == label


def test_hidden_elements_have_no_place() -> None:
    page = places("<p>One</p><p hidden>Two</p><p style='display:none'>Three</p>")
    assert [page.text_of(one) for one in page.blocks] == ["One"]


def test_words_within_prose_are_no_place_of_their_own() -> None:
    words = "many words about nothing in particular " * 6
    page = places(f"<p>{words}<em>Alder</em> {words}</p>")
    assert all(page.key(one) is None for one in page.blocks if page.text_of(one) == "Alder")


def test_pages_of_one_template_are_similar_and_others_are_not() -> None:
    base = "<nav><a>Home</a></nav><main><h1>{0}</h1><p class=a>{0}</p><p class=b>{0}</p>{1}</main>"
    one, other = places(base.format("x", "")), places(base.format("y", "<p class=sale>z</p>"))
    redesign = places("<nav><a>Home</a></nav><section><h2>x</h2><div class=k>x</div><div class=l>x</div></section>")
    assert similarity(one.skeleton, other.skeleton) == pytest.approx(0.75)
    assert similarity(one.skeleton, redesign.skeleton) == 0


@pytest.mark.alone
def test_time_is_linear_in_the_page() -> None:
    """Ten times the page takes at most some forty times as long: what is quadratic would take a hundred times."""

    def seconds(size: int) -> float:
        deep = "<div class=a>" * 40
        page = Document.parse((deep + "<p>Maker: x<b>y</b></p>" * size).encode(), "text/html", URL)
        page.visible()
        began = time.thread_time()
        places_of(page)
        return time.thread_time() - began

    seconds(100)
    short = min(seconds(1_000) for _ in range(3))
    assert min(seconds(10_000) for _ in range(2)) < 40 * max(short, 0.005)
    assert len(places("<p>x</p>" * 10_000).blocks) == MAX_BLOCKS
    assert len(places("<p>x</p>" * 60_000).blocks) == 0, "more elements than a page may have"
