"""The main content of shops, lists, forums and landing pages, in forms that real pages have."""

from __future__ import annotations

import pytest

from curtsy.content.document import Document
from curtsy.content.main_content import PageType, phrases

SENTENCE = "The workshop repairs old clocks, watches and music boxes, and it delivers them within two weeks. "
MENU = (
    '<div class="menu"><a href="/a">Clocks and more</a> <a href="/b">Watches and more</a> <a href="/c">Help</a></div>'
)


def page(body: str, title: str = "Clocks", url: str = "https://shop.test/page") -> Document:
    html = f"<html><head><title>{title}</title></head><body>{MENU}{body}</body></html>"
    return Document.parse(html.encode(), "text/html; charset=utf-8", url)


def test_the_details_of_a_classified_ad_are_no_advertisement() -> None:
    text = page(
        f"""<h1>Old clock</h1><div class="ad_detail_container">Price: 40 €</div><p>{SENTENCE * 6}</p>
        <div class="ad_container">Buy another thing now</div>""",
        title="Old clock",
    ).main_text()
    assert "Price: 40 €" in text
    assert "Buy another" not in text


def test_paragraphs_without_links_are_content_though_they_are_named_as_a_search() -> None:
    tabs = "".join(f'<div class="search-category"><p>{n}: {SENTENCE * 3}</p></div>' for n in range(3))
    text = page(f"<div><h1>Clocks</h1><p>{SENTENCE * 4}</p>{tabs}</div>").main_text()
    assert "2: The workshop" in text


def test_the_results_of_a_search_are_content_and_its_fields_are_not() -> None:
    results = "".join(f'<div class="item"><a href="/p{n}">Clock number {n}</a> <b>{n}5 €</b></div>' for n in range(12))
    text = page(
        f"""<div><div class="search-options">Search again here</div><h1>Clocks</h1><p>{SENTENCE * 3}</p></div>
        <div id="C3_SearchResults">{results}</div>"""
    ).main_text()
    assert "Clock number 11" in text
    assert "Search again" not in text


def test_a_large_menu_stays_out_beside_a_list_without_prose() -> None:
    topics = "".join(f'<li><a href="/t{n}">Topic of clocks number {n}</a></li>' for n in range(400))
    items = "".join(f'<div class="product"><a href="/p{n}">Wall clock model {n}</a></div>' for n in range(40))
    text = page(f'<div id="leftNav"><ul>{topics}</ul></div><div><h1>Clocks</h1>{items}</div>').main_text()
    assert "Wall clock model 39" in text
    assert "Topic of clocks" not in text


@pytest.mark.parametrize(("url", "is_alone"), [("/2024/05/a-song", True), ("/2024/05/", False), ("/songs", False)])
def test_a_short_entry_of_a_blog_stays_alone_beside_a_long_archive(url: str, is_alone: bool) -> None:
    song = "<br>".join(f"The clock {n} of the tower" for n in range(12))
    archive = "".join(f'<li><a href="/m{n}">Songs of an old singer</a> ({n} songs)</li>' for n in range(150))
    text = page(
        f'<div class="post"><h3>A song</h3><div>{song}</div></div><div class="sidebar"><ul>{archive}</ul></div>',
        title="A song",
        url=f"https://blog.test{url}",
    ).main_text()
    assert "The clock 11 of the tower" in text
    assert ("Songs of an old singer" not in text) == is_alone


def test_boxes_that_have_the_text_of_all_items_are_content_whatever_their_name() -> None:
    cards = "".join(
        f"""<article><a href="/{n}">Entry {n}</a><div class="cardPopup color{n}">
        <p>{n}: {SENTENCE * 3}</p></div></article>"""
        for n in range(6)
    )
    banner = f'<div class="popup"><p>Sign up now. {SENTENCE}</p></div>'
    first = f'<article><a href="/first">First</a><p>First: {SENTENCE * 4}</p></article>'
    text = page(f'<div class="main-content">{first}{cards}</div>{banner}').main_text()
    assert "0: The workshop" in text
    assert "5: The workshop" in text
    assert "Sign up now" not in text


@pytest.mark.parametrize("name", ["search-box", "cookie-info", "footer-note"])
def test_short_texts_and_notices_are_left_out_by_their_names(name: str) -> None:
    text = page(
        f'<div><h1>Clocks</h1><p>{SENTENCE * 9}</p></div><div class="{name}"><p>Only here.</p></div>'
    ).main_text()
    assert "Only here" not in text


def test_the_title_of_an_entry_stays_beside_links_to_its_author_and_topics() -> None:
    entries = "".join(
        f"""<article><header><h2><a href="/{n}">Entry {n} about clocks</a></h2><a href="/jane">Jane Roe wrote it</a>
        <a href="/t">A topic of it</a></header><p>{n}: {SENTENCE}</p></article>"""
        for n in range(6)
    )
    text = page(f"<div><h1>All entries</h1>{entries}</div>").main_text()
    assert "Entry 0 about clocks" in text
    assert "Entry 5 about clocks" in text


def test_two_lists_of_the_same_class_stay_together() -> None:
    popular = "".join(
        f'<article><h3><a href="/{n}">Popular {n}</a></h3><p>{n}: {SENTENCE * 2}</p></article>' for n in range(4)
    )
    recent = "".join(f'<article><h3><a href="/r{n}">Recent entry number {n}</a></h3></article>' for n in range(14))
    text = page(
        f"""<main><section class="part"><h2>Some entries</h2>{popular}</section>
        <section class="part"><h2>Other entries</h2>{recent}</section></main>""",
        title="Entries",
    ).main_text()
    assert "Popular 3" in text
    assert "Recent entry number 13" in text


def test_every_section_of_a_landing_page_stays() -> None:
    text = page(
        f"""<div class="hero"><div><h2>We repair clocks</h2><p>Fast, fair, and with a warranty of two years: ask us
        for an offer, or bring your clock to our workshop.</p></div></div>
        <div class="all"><div><h2>How it works</h2><p>{SENTENCE * 20}</p></div>
        <div><h2>Prices</h2><p>{SENTENCE * 20}</p></div><div><h2>Questions</h2><p>{SENTENCE * 20}</p></div></div>""",
        title="Our workshop",
    ).main_text()
    assert "We repair clocks" in text
    assert "Prices" in text


PRODUCT = """<div><h1>Old clock</h1><p>Price: 40 €</p>{button}<p>A clock of brass, which is as good as new.</p>
<h2>Reviews</h2><table><tr><td>5 stars</td><td class="comment">It still works well, and it looks good.</td></tr>
</table></div>"""


def test_a_button_that_is_an_image_makes_a_product_whose_reviews_stay() -> None:
    button = '<input type="image" src="/b.png" alt="Add to basket">'
    read = page(PRODUCT.format(button=button), title="Old clock")
    assert read.page_type() is PageType.PRODUCT
    assert "It still works well" in read.main_text()
    assert page(PRODUCT.format(button=""), title="Old clock").page_type() is not PageType.PRODUCT


BOARD = """<div id="page-body" class="phpbb"><h2>Questions about clocks</h2><ul class="topiclist">{topics}</ul>
<p><a href="?s=2">1</a> <a href="?s=3">2</a> <a href="?s=4">Next</a></p><h3><a href="/who">Who is online</a></h3>
<p>Users browsing this forum: no registered users, and 3 guests</p><h3>Forum permissions</h3>
<p>You cannot post new topics in this forum</p></div>"""


def test_a_board_of_a_forum_is_a_list_without_notices_to_the_reader() -> None:
    topics = "".join(
        f'<li class="row"><dl><dt><a href="/t{n}">How do I wind clock number {n}?</a></dt><dd>{n} posts</dd></dl></li>'
        for n in range(12)
    )
    read = page(BOARD.format(topics=topics), title="Questions", url="https://forum.test/viewforum.php?f=1")
    text = read.main_text()
    assert read.page_type() is PageType.LISTING
    assert "How do I wind clock number 11?" in text
    assert not [said for said in ("online", "browsing", "permissions", "cannot post", "Next") if said in text]


def test_the_signatures_of_posts_are_left_out() -> None:
    posts = "".join(
        f"""<table><tr><td class="name">user{n}</td><td><div class="postbody">{n}: {SENTENCE}</div>
        <span class="postbody"><br>_________________<br>My clocks: none so far</span></td></tr></table>"""
        for n in range(4)
    )
    text = page(f"<div><h2>My clock is slow</h2>{posts}</div>", title="My clock is slow").main_text()
    assert "3: The workshop" in text
    assert "none so far" not in text


def test_a_long_legal_notice_at_the_end_is_no_content() -> None:
    text = page(
        f"""<div><h1>Clocks</h1><p>{SENTENCE * 4}</p></div><div class="footer"><div class="copyright"><p>Terms of
        repairs: {SENTENCE * 5}</p></div></div>"""
    ).main_text()
    assert SENTENCE.strip() in text
    assert "repairs: The" not in text


def test_a_list_is_content_though_most_of_the_page_is_in_an_element_named_as_a_notice() -> None:
    rows = "".join(f'<li><a href="/{n}">Clock {n}</a> from the year 19{n:02}, in good order</li>' for n in range(40))
    text = page(
        f'<div class="list announcement"><h3>Clocks</h3><div class="share-bar">Tell others</div><ul>{rows}</ul></div>',
        title="x",
    ).main_text()
    assert "Clock 39 from the year 1939" in text
    assert "Tell others" not in text


@pytest.mark.parametrize(
    "said", ["1 2 3 … 11 Next ›", "« Zurück 1 2 3 Weiter »", "Page 1 of 4: 1, 2, 3, 4", "上一页 1 2 3 下一页"]
)
def test_numbers_of_pages_are_recognized(said: str) -> None:
    assert phrases.is_pagination(said)


@pytest.mark.parametrize("said", ["Next", "12 clocks of 1920", "1 2 3 clocks", "Nextel 1 2"])
def test_other_numbers_are_no_numbers_of_pages(said: str) -> None:
    assert not phrases.is_pagination(said)


def shelf(filters: str) -> str:
    items = "".join(
        f'<li class="item"><a href="/p/{n}">Old clock number {n}</a> <span>{n}0.00 €</span></li>' for n in range(300)
    )
    return page(
        f"<div><h1>All clocks</h1>{filters}<ul>{items}</ul></div>", url="https://shop.test/c/clocks"
    ).main_text()


def test_choices_that_filter_a_list_are_left_out() -> None:
    links = "".join(f'<li><a href="?m={n}">Material {n}</a> ({n})</li>' for n in range(1, 5))
    text = shelf(f"<ul>{links}</ul>")
    assert "Old clock number 299" in text
    assert "Material 3" not in text


def test_a_part_of_a_list_with_long_labels_is_content() -> None:
    links = "".join(
        f'<p class="offer{n}"><a href="/s/{n}">Special offer {n}: a clock of brass, a watch of silver, a ring</a></p>'
        for n in range(9)
    )
    assert "Special offer 8" in shelf(f'<div class="grid"><div>{links}</div></div>')
