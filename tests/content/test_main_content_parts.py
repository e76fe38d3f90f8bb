"""Parts of pages by their roles, microdata, links and phrases: which are content, and which are not."""

from __future__ import annotations

import pytest

from curtsy.content.document import Document
from curtsy.content.main_content import PageType, phrases

SENTENCE = "The ferry crosses the strait four times a day, and in summer it takes bicycles without a ticket. "
MENU = '<nav><a href="/a">Timetables</a> <a href="/b">Fares and more</a> <a href="/c">Harbors</a></nav>'
ARTICLE = '<meta property="og:type" content="article">'


def page(body: str, title: str = "The ferry", head: str = "", url: str = "https://ferry.test/page") -> Document:
    html = f"<html><head><title>{title}</title>{head}</head><body>{MENU}{body}</body></html>"
    return Document.parse(html.encode(), "text/html; charset=utf-8", url)


def article(part: str) -> str:
    """The main text of an article with this part after its text."""
    text = "".join(f"<p>{n}: {SENTENCE}</p>" for n in range(6))
    return page(f"<div class='x1'><h1>The ferry</h1>{text}{part}</div>", head=ARTICLE).main_text()


# Roles and microdata


def test_an_accordion_is_no_row_of_tabs() -> None:
    questions = "".join(f"<div><h3>Question {n} here?</h3><div>{n}: {SENTENCE}</div></div>" for n in range(3))
    text = page(f'<div><h1>The ferry</h1><p>{SENTENCE * 4}</p><div role="tablist">{questions}</div></div>').main_text()
    assert "2: The ferry crosses" in text


def test_a_row_of_tabs_is_left_out() -> None:
    tabs = "<span>Summer</span><span>Winter</span>"
    text = page(f'<div><h1>The ferry</h1><div role="tablist">{tabs}</div><p>{SENTENCE * 4}</p></div>').main_text()
    assert "Winter" not in text


def test_what_is_marked_as_main_is_content_whatever_its_name() -> None:
    text = page(
        f"""<h1>The ferry</h1><section role="main" class="signup"><h2>How do I buy a ticket?</h2><p>{SENTENCE}</p>
        </section><div><p>{SENTENCE * 5}</p></div>"""
    ).main_text()
    assert "buy a ticket" in text


@pytest.mark.parametrize("kind", ["SiteNavigationElement", "WPFooter", "WPSideBar", "WPAdBlock", "BreadcrumbList"])
@pytest.mark.parametrize("attribute", ["itemtype", "typeof"])
def test_parts_that_microdata_and_rdfa_declare_are_left_out(kind: str, attribute: str) -> None:
    said = f'<div {attribute}="https://schema.org/{kind}"><p>Cabins for families, reserved in advance</p></div>'
    assert "Cabins for families" not in article(said)


def test_other_types_of_microdata_are_content() -> None:
    assert "Cabins for families" in article(
        '<div itemtype="https://schema.org/Offer"><p>Cabins for families, reserved in advance</p></div>'
    )


# Names


def test_a_header_with_a_heading_and_sentences_opens_a_page() -> None:
    opening = f'<div class="header-main"><h2>Across the strait</h2><p>{SENTENCE}</p><a href="/book">Book</a></div>'
    assert "Across the strait" in page(f"<div>{opening}<div><p>{SENTENCE * 8}</p></div></div>").main_text()


def test_a_header_with_a_menu_is_left_out() -> None:
    links = "".join(f'<a href="/{n}">Harbor number {n}</a> ' for n in range(5))
    text = page(f'<div><div class="header-main">{links}</div><p>{SENTENCE * 8}</p></div>').main_text()
    assert "Harbor number 3" not in text


def test_the_column_with_the_only_text_is_no_sidebar() -> None:
    links = "".join(f'<li><a href="/{n}">Harbor number {n} of the coast</a></li>' for n in range(99))
    text = page(
        f"""<ul>{links}</ul><div><h1>The ferry</h1><b>40.00 €</b></div>
        <div class="ferryMiddle-leftRail"><div><h2>About the ferry</h2><p>{SENTENCE * 4}</p><h2>Tickets</h2>
        <h2>Cabins</h2></div></div>""",
        head='<meta property="og:type" content="product">',
    ).main_text()
    assert "crosses the strait" in text


def test_a_layout_with_a_sidebar_is_no_sidebar() -> None:
    steps = f'<div class="SidebarLayout_wrapper__x1"><h2>Steps</h2><p>{SENTENCE}</p><h2>More</h2><h2>End</h2></div>'
    assert "Steps" in article(steps)


def test_a_path_of_links_is_left_out_though_it_ends_with_a_long_title() -> None:
    path = '<p class="breadcrumb-navigation"><a href="/">Home</a> &gt; The ferry that crosses the strait in summer</p>'
    assert "Home" not in article(path)


def test_the_classes_of_a_recipe_are_no_posts() -> None:
    steps = "".join(f'<div class="cooked-dir-content"><p>{n}: {SENTENCE}</p></div>' for n in range(4))
    assert page(f"<div><h1>The ferry</h1>{steps}</div>").page_type() is not PageType.FORUM


def test_the_button_to_edit_a_blog_is_no_post() -> None:
    edit = '<span class="item-control blog-admin pid-533645473"><a href="#">Edit this entry</a></span>'
    body = f'<div><h1>The ferry</h1><div class="post-body"><p>{SENTENCE * 6}</p>{edit}</div></div>'
    assert page(body + edit).page_type() is not PageType.FORUM


# Types


@pytest.mark.parametrize(
    "said",
    [
        '[{"@type": ["WebPage", "FAQPage"]}, {"@type": "Question"}]',
        '[{"@type": "Article"}, {"@type": "Question"}]',
    ],
)
def test_questions_of_an_article_make_no_forum(said: str) -> None:
    comments = "".join(f'<li class="comment">{n} days ago: {SENTENCE}</li>' for n in range(3))
    document = page(
        f'<article><h1>The ferry</h1><p>{SENTENCE * 8}</p></article><ol class="comment-list">{comments}</ol>',
        head=f'<script type="application/ld+json">{said}</script>',
    )
    assert document.page_type() is not PageType.FORUM
    assert "days ago" not in document.main_text()


def test_every_type_of_a_list_counts() -> None:
    said = '<script type="application/ld+json">{"@type": [ "Thing",\n "https://schema.org/BlogPosting" ]}</script>'
    assert page(f"<div><h1>The ferry</h1><p>{SENTENCE}</p></div>", head=said).page_type() is PageType.ARTICLE


def test_a_page_that_is_a_form_has_the_text_of_the_form() -> None:
    form = f'<form><h2>Lost and found</h2><p>{SENTENCE}</p><label>Your name</label> <input type="text"></form>'
    links = "".join(f'<a href="/{n}">Harbor number {n} of the coast</a> ' for n in range(20))
    text = page(f"{form}<footer>{links}</footer>").main_text()
    assert "Lost and found" in text
    assert "Harbor number" not in text


# Links


@pytest.mark.parametrize(
    "part",
    [
        '<h2>Category: <a href="/c/1">Summer trips</a></h2>',
        '<p>Schlagwörter: <a href="/c/1">Summer trips</a></p>',
        '<p>タグ：<a href="/c/1">Summer trips</a></p>',
        '<p>Under <a href="/c/1" rel="category tag">Summer trips</a></p>',
        '<a href="/c/1"><div>Summer trips</div></a>',
        '<div><ul><li><a href="/1">Islands (12)</a></li><li><a href="/2">Summer trips (3)</a></li>'
        '<li><a href="/3">Winter (1)</a></li></ul></div>',
    ],
)
def test_the_topics_of_an_article_and_links_to_others_are_left_out(part: str) -> None:
    text = article(part)
    assert "Summer trips" not in text
    assert "5: The ferry" in text


@pytest.mark.parametrize(
    "part",
    [
        "<p>Category: Summer trips without a fixed plan</p>",
        '<p>The company calls them <a href="/c/1">Summer trips</a> and they are sold from May to the end of June</p>',
        '<a href="#summer-trips"><h2>Summer trips</h2></a><p>They are sold from May to June, on board.</p>',
    ],
)
def test_sentences_and_headings_with_links_are_content(part: str) -> None:
    assert "Summer trips" in article(part)


def test_the_years_of_books_are_no_numbers_of_entries() -> None:
    assert not phrases.is_facet("The strait (1987)\nThe crossing (2004)")
    assert phrases.is_facet("Islands (12)\nHarbors (3)")
    assert phrases.is_facet("島（12）\n港（3）")
