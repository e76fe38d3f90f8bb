"""The main content: what is kept and what is left out of each type of page, exact pieces, linear time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curtsy.content.document import Document
from curtsy.content.main_content import PageType
from curtsy.content.main_content.page_type import has_price

PARAGRAPH = (
    "The harbor of the old town was rebuilt in three years, and the engineers say that the new quay will last for a "
    "century, if the sea allows it. "
)
MENU = (
    '<header class="site-header"><a href="/">Example Site</a><nav><ul><li><a href="/news">News section</a></li>'
    '<li><a href="/sport">Sport section</a></li><li><a href="/shop">Shop section</a></li></ul></nav></header>'
)
FOOTER = (
    '<footer><ul><li><a href="/imprint">Imprint page</a></li><li><a href="/privacy">Privacy page</a></li></ul>'
    "<p>© 2026 Example Site. All rights reserved.</p></footer>"
    '<div class="cookie-banner"><p>We use cookies to make this site better, and to measure it.</p></div>'
)


def page(body: str, title: str = "", head: str = "", url: str = "https://example.com/page") -> Document:
    html = f"<html><head><title>{title}</title>{head}</head><body>{MENU}{body}{FOOTER}</body></html>"
    return Document.parse(html.encode(), "text/html; charset=utf-8", url)


def article() -> Document:
    text = "".join(f"<p>{number}: {PARAGRAPH}</p>" for number in range(6))
    related = "".join(
        f'<div class="card"><a href="/{number}"><h3>Another story number {number}</h3></a><p>A teaser.</p></div>'
        for number in range(4)
    )
    return page(
        f"""<div class="layout"><div class="col"><ul class="breadcrumb"><li><a href="/">Home</a></li></ul>
        <h1>The harbor is open again</h1><div class="byline">By Jane Roe, 3 May</div>
        <div class="share-bar"><a href="#">Share on a network</a></div>
        <div class="body">{text}<div class="newsletter-box"><p>Sign up for our daily letter, please.</p></div></div>
        <h2>You may also like</h2><div class="x1">{related}</div>
        <div id="comments"><h3>2 comments</h3><p>{PARAGRAPH} says a reader who was there.</p></div></div>
        <div class="sidebar"><h3>Most read</h3><a href="/a">A story that many people have read</a></div></div>""",
        title="The harbor is open again | Example Site",
        head='<meta property="og:type" content="article">',
    )


def product() -> Document:
    others = "".join(f'<li class="p"><a href="/p/{n}">Other mug {n}</a> <b>{n}.00 €</b></li>' for n in range(5))
    return page(
        f"""<main><div class="gallery"></div><h1>Blue mug</h1><p class="price">12.50 €</p>
        <form class="cart" action="/cart"><input name="quantity" type="text"><button>Add to cart</button></form>
        <h2>Description</h2><p>A mug of stoneware that holds 300 ml, glazed by hand and safe for dishwashers.</p>
        <table><tr><th>Weight</th><td>350 g</td></tr><tr><th>Material</th><td>Stoneware</td></tr></table>
        <h2>Reviews</h2><div class="review"><p>Anna: I have used it every day for a year, and it still looks new.
        </p></div>
        <section class="related-products"><h2>Similar products</h2><ul>{others}</ul></section></main>""",
        title="Blue mug - Example Site",
        head='<script type="application/ld+json">{"@type": "Product", "name": "Blue mug"}</script>',
        url="https://example.com/products/blue-mug",
    )


def collection() -> Document:
    items = "".join(
        f'<li class="item"><a href="/products/{n}"><h3>Mug number {n} with a handle</h3></a><span>{n}.00 €</span></li>'
        for n in range(20)
    )
    return page(
        f"""<div class="wrap"><div class="filters"><h4>Color</h4><a href="?c=1">Red ones</a>
        <a href="?c=2">Blue ones</a>
        </div><div class="grid"><h1>All our mugs</h1><p>Mugs of stoneware.</p><ul>{items}</ul></div>
        <ul class="pagination"><li><a href="?p=2">Page two</a></li><li><a href="?p=3">Page three</a></li></ul></div>""",
        title="All our mugs",
        url="https://example.com/collections/mugs",
    )


def listing() -> Document:
    items = "".join(
        f'<article class="teaser"><h2><a href="/news/{n}">Headline number {n} of the town</a></h2>'
        f"<p>Short summary number {n}.</p></article>"
        for n in range(15)
    )
    return page(f"<div id='list'><h1>News of the town</h1>{items}</div>", title="News of the town")


def forum() -> Document:
    posts = "".join(
        f"""<div class="post"><div class="postprofile"><a href="/u/{n}">user{n}</a><br>Joined: May 2010
        <br>Posts: 77</div>
        <div class="postbody"><p>Answer {n}: have you tried to open the lid before you turn the key?</p></div></div>"""
        for n in range(6)
    )
    return page(
        f"<div id='page-body'><h2>How do I open the box?</h2>{posts}</div>",
        title="How do I open the box? - Forum",
        url="https://forum.example.com/viewtopic.php?t=1",
    )


def documentation() -> Document:
    steps = "".join(f"<h2>Step {n}</h2><p>{PARAGRAPH}</p><pre>run --step {n}</pre>" for n in range(4))
    return page(
        f"""<div class="sphinxsidebar"><h3>Contents of the manual</h3><ul><li><a href="a.html">Chapter A</a></li>
        </ul></div>
        <div class="document"><div class="body" role="main"><section><h1>Installation<a class="headerlink"
        href="#i">¶</a></h1>
        {steps}<div class="admonition note"><p>Note that the tool needs a network, and time.</p></div></section>
        </div></div>""",
        title="Installation — Manual",
        head='<meta name="generator" content="Sphinx 7">',
    )


def service() -> Document:
    sections = "".join(
        f"""<section class="feature"><h2>We repair machine type {n}</h2><p>Our team repairs it within {n} days, at your
        place or in our workshop.</p></section>"""
        for n in range(1, 6)
    )
    return page(
        f"""<section class="hero"><h1>Repairs for industry</h1><p>Fast, reliable and fair since 1970.</p></section>
        {sections}<section><h2>Questions</h2><details><summary>What does it cost?</summary><p>It costs 90 € per hour,
        and the first visit is free.</p></details></section>""",
        title="Repairs for industry | Example",
    )


PAGES = {
    "article": (article, ["The harbor is open again", "0: The harbor", "5: The harbor"],
                ["Another story", "You may also like", "says a reader", "daily letter", "Share on", "Most read"]),
    "product": (product, ["Blue mug", "12.50 €", "A mug of stoneware", "350 g", "Anna: I have used it"],
                ["Other mug 3", "Similar products", "Add to cart"]),
    "collection": (collection, ["All our mugs", "Mugs of stoneware", "Mug number 0", "Mug number 19", "7.00 €"],
                   ["Red ones", "Page two"]),
    "listing": (listing, ["News of the town", "Headline number 0", "Short summary number 14"], []),
    "forum": (forum, ["How do I open the box?", "Answer 0", "Answer 5"], ["Joined: May", "Posts: 77"]),
    "documentation": (documentation, ["Installation", "Step 3", "run --step 3", "Note that the tool"],
                      ["Contents of the manual", "¶"]),
    "service": (service, ["Repairs for industry", "since 1970", "machine type 1", "machine type 5", "It costs"], []),
}  # fmt: skip


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_keeps_what_it_is_about(kind: str) -> None:
    made, kept, left_out = PAGES[kind]
    found = made()
    text = found.main_text()
    assert found.page_type() == PageType(kind)
    assert [one for one in kept if one not in text] == []
    assert [one for one in [*left_out, "News section", "Imprint page", "cookies", "©"] if one in text] == []


@pytest.mark.parametrize("kind", PAGES)
def test_main_markdown_has_the_same_content(kind: str) -> None:
    made, kept, left_out = PAGES[kind]
    markdown = made().main_markdown()
    assert [one for one in kept if one not in markdown.replace("\\", "")] == []
    assert [one for one in [*left_out, "News section", "Imprint page", "cookies", "©"] if one in markdown] == []


def test_main_markdown_has_structure() -> None:
    text = product().main_markdown()
    assert "# Blue mug" in text
    assert "## Description" in text
    assert "| Weight | 350 g |" in text
    assert "```\nrun --step 2\n```" in documentation().main_markdown()


def test_comments_in_code_are_code() -> None:
    code = '<pre><code>run() <span class="hljs-comment"># starts it</span><button>Copy</button></code></pre>'
    found = page(f"<main><h1>How to run</h1><p>{PARAGRAPH}</p>{code}</main>", title="How to run")
    assert "run() # starts it" in found.main_text()
    assert "Copy" not in found.main_text()


def test_a_list_of_facts_stays_though_its_name_says_meta() -> None:
    cards = "".join(
        f'<div class="card"><h3><a href="/r/{n}">Route number {n}</a></h3><ul class="meta"><li>{n} km</li></ul></div>'
        for n in range(8)
    )
    assert "5 km" in page(f"<h1>All routes</h1><div>{cards}</div>", title="All routes").main_text()


def exact(found: Document) -> None:
    """Each piece is a part of the visible text, in order, and the pieces are the main text."""
    main, visible = found.main_content(), found.text()
    before = 0
    for piece in main.pieces:
        assert before <= piece.start < piece.end <= len(visible)
        assert main.text[piece.at : piece.at + piece.end - piece.start] == visible[piece.start : piece.end]
        before = piece.end
    assert main.text == "\n".join(visible[one.start : one.end] for one in main.pieces)


@pytest.mark.parametrize("kind", PAGES)
def test_pieces_are_exact_parts_of_the_visible_text(kind: str) -> None:
    exact(PAGES[kind][0]())


TAGS = st.sampled_from(
    ["div", "p", "ul", "li", "a", "nav", "main", "article", "section", "h1", "h2", "table", "tr", "td", "form", "aside"]
)
NAMES = st.sampled_from(
    ["", "nav", "content", "article-body", "related", "comments", "sidebar", "postbody", "byline", "ad", "sr-only", "x"]
)
TEXTS = st.sampled_from(["", "Related articles", "Home", "© 2020", PARAGRAPH, "続きを読む。文です。", "1"])
NODES = st.recursive(
    TEXTS,
    lambda inner: st.builds(
        lambda tag, name, parts: f'<{tag} class="{name}" href="/x">{"".join(parts)}</{tag}>',
        TAGS, NAMES, st.lists(inner, max_size=5),
    ),
    max_leaves=40,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(NODES, st.sampled_from(["", "Home", "Related articles"]))
def test_any_page_has_exact_pieces(body: str, title: str) -> None:
    html = f"<title>{title}</title><body>{body}".encode()
    found = Document.parse(html, "text/html; charset=utf-8", "https://example.com/")
    exact(found)
    found.main_markdown()


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=500))
def test_any_bytes_have_a_main_content(body: bytes) -> None:
    exact(Document.parse(body, None, "https://example.com/"))


def test_a_page_without_text_has_no_main_content() -> None:
    found = Document.parse(b"", None, "https://example.com/")
    assert found.main_text() == ""
    assert found.main_markdown() == ""


def test_streamed_content_is_main_content() -> None:
    html = (
        f'<title>T</title><body><nav>Menu here</nav><main><h1>Title of it</h1><template id="B:0"></template></main>'
        f'<div hidden id="S:0"><p>{PARAGRAPH}</p></div><script>$RC("B:0","S:0")</script>'
    )
    found = Document.parse(html.encode(), "text/html", "https://example.com/")
    assert "The harbor of the old town" in found.main_text()
    assert "The harbor of the old town" in found.main_markdown()
    exact(found)


def test_an_article_that_scripts_show_after_a_check_is_main_content() -> None:
    paragraphs = f"<p>{PARAGRAPH}</p>" * 3
    html = f'<title>T</title><body><h1>Title of it</h1><div id="articleBody" style="display: none">{paragraphs}</div>'
    found = Document.parse(html.encode(), "text/html", "https://example.com/")
    assert "The harbor of the old town" in found.main_text()
    trap = html.replace("articleBody", "trap")
    assert "The harbor" not in Document.parse(trap.encode(), "text/html", "https://example.com/").main_text()


def test_the_id_of_a_section_is_its_address_not_its_part_of_the_page() -> None:
    sections = "".join(
        f'<section id="{name}"><h2>{title}<a class="headerlink" href="#{name}">#</a></h2><p>{name}: {PARAGRAPH}</p>'
        "</section>"
        for name, title in (("core-tools", "主要なツール"), ("search", "Search"), ("related-work", "Related work"))
    )
    slugs = f'<div id="social"><h2>Social</h2><p>social: {PARAGRAPH}</p></div><h2 id="comments">Remarks</h2>'
    text = page(f"<main><h1>Handbook</h1>{sections}{slugs}<p>{PARAGRAPH}</p></main>", title="Handbook").main_text()
    for part in ("core-tools: The", "search: The", "related-work: The", "social: The", "Remarks"):
        assert part in text


def test_a_box_between_paragraphs_is_content_though_it_is_called_a_sidebar() -> None:
    box = f'<div class="sidebar"><p><b>Culture</b></p><p>Box: {PARAGRAPH}</p></div>'
    text = f"<p>{PARAGRAPH}</p><p>{PARAGRAPH}</p>{box}<p>{PARAGRAPH}</p>"
    assert "Box: The harbor" in page(f"<div><h1>A chapter</h1><div>{text}</div></div>", "A chapter").main_text()


def test_a_sidebar_may_have_more_prose_than_the_article() -> None:
    aims = "".join(f"<p>Aim {n}: {PARAGRAPH}</p>" for n in range(12))
    sidebar = f'<section id="sidebar"><aside class="widget"><h3>Our aims</h3>{aims}</aside></section>'
    text = f'<h1>A short note</h1><div class="entry-content">{f"<p>{PARAGRAPH}</p>" * 3}</div>'
    found = page(f'<div id="container"><article>{text}</article>{sidebar}</div>', "A short note").main_text()
    assert "The harbor" in found
    assert "Aim 3" not in found


def test_counters_of_posts_are_not_the_posts_of_a_forum() -> None:
    buttons = "".join(f'<span class="item-control pid-{n}"><a href="#">Delete</a></span>' for n in range(5))
    text = "".join(f"<p>{number}: {PARAGRAPH}</p>" for number in range(5))
    found = page(
        f"<div><h1>A journey</h1><div class='post-body entry-content'>{text}</div>{buttons}</div>", "A journey"
    )
    assert found.page_type() is not PageType.FORUM
    assert "4: The harbor" in found.main_text()


def test_a_paragraph_about_copyright_is_content() -> None:
    about = "We provide free, easy-to-use copyright licenses, and we explain how they work to everybody who asks us."
    body = f"<main><h1>About us</h1><p>{about}</p><p>{PARAGRAPH}</p><p>Copyright 2026 by us</p></main>"
    found = page(body, "About us").main_text()
    assert about in found
    assert "Copyright 2026" not in found


def test_a_teaser_between_the_paragraphs_of_an_article_is_left_out() -> None:
    teaser = '<figure><a href="/other"><h3>Trains every half hour</h3><p>The railway plans more.</p></a></figure>'
    text = f"<p>1: {PARAGRAPH}</p>{teaser}" + "".join(f"<p>{n}: {PARAGRAPH}</p>" for n in range(2, 10))
    letter = (
        '<p id="newsletter-teaser"><em>All news of the town: <a href="/letter">subscribe to our letter</a></em></p>'
    )
    body = f"<article><h1>A harbor</h1><div class='body'>{text}{letter}</div></article>"
    found = page(body, "A harbor", '<meta property="og:type" content="article">').main_text()
    assert "2: The harbor" in found
    assert "half hour" not in found
    assert "our letter" not in found


def test_functions_of_a_manual_keep_their_names_and_references() -> None:
    functions = "".join(
        f"<section><h3>{name}</h3><p>{PARAGRAPH}</p><dl><dt>See Also:</dt><dd><a href='#x'>reset()</a></dd></dl>"
        "</section>"
        for name in ("close", "read")
    )
    head = '<meta name="generator" content="javadoc/17">'
    lines = page(f"<main><h1>Class Stream</h1>{functions}</main>", "Class Stream", head).main_text().splitlines()
    assert lines.count("close") == 1
    assert lines.count("See Also:") == 2


def test_a_large_table_of_contents_is_left_out_beside_a_short_text() -> None:
    entries = "".join(f'<li><a href="{n}.html">Section number {n} of the manual</a></li>' for n in range(300))
    rows = "".join(f"<tr><td>drum number {n}</td><td>d{n}</td></tr>" for n in range(20))
    text = f'<div id="main"><h2>Percussion notes</h2><table>{rows}</table></div>'
    contents = f'<div id="tocframe"><h4>Contents</h4><ul>{entries}</ul></div>'
    found = page(text + contents, "Percussion notes").main_text()
    assert "drum number 19" in found
    assert "Section number 7" not in found


def test_a_short_article_beside_many_links_is_an_article() -> None:
    links = "".join(f"<li><a href=/{n}>A headline of another article, number {n}</a></li>" for n in range(60))
    paragraphs = "".join(f"<p>{n}. {PARAGRAPH}</p>" for n in range(3))
    html = (
        '<meta property="og:type" content="article"><title>Bridge opens</title><body><div><div>'
        f"<h1>Bridge opens</h1>{paragraphs}</div><div><ul>{links}</ul></div></div>"
    )
    found = Document.parse(html.encode(), "text/html", "https://example.com/a/1")
    assert found.page_type() == "article"
    assert "number 7" not in found.main_text()


def test_a_category_of_a_shop_keeps_its_products_below_a_long_introduction() -> None:
    products = "".join(
        f'<div class="item"><a href="/p{n}">Stoneware mug number {n}</a><p>Code: {n}</p><p>{n}.50 €</p></div>'
        for n in range(12)
    )
    intro = "".join(f"<p>{number}: {PARAGRAPH}</p>" for number in range(5))
    document = page(
        f'<div class="c"><h1>Mugs</h1><div>{intro}</div><div class="results">{products}</div></div>', "Mugs"
    )
    assert document.page_type() is PageType.COLLECTION
    assert "0: The harbor" in document.main_text()
    assert "Stoneware mug number 11\nCode: 11\n11.50 €" in document.main_text()


@pytest.mark.parametrize(("tag", "name"), [("span", "secondary_link"), ("div", "text-secondary")])
def test_names_of_ranks_and_colors_are_no_sidebars(tag: str, name: str) -> None:
    rows = "".join(f"<li><{tag} class='{name}'>Stoneware mug {n}</{tag}> <b>{n} €</b></li>" for n in range(4))
    text = page(f"<main><h1>Mugs</h1><p>{PARAGRAPH}</p><ul>{rows}</ul></main>", "Mugs").main_text()
    assert "Stoneware mug 3" in text


def test_a_short_product_below_large_menus_is_found_by_its_title_and_price() -> None:
    menu = "".join(f"<li><a href='/c{n}'>Category of tools number {n}</a></li><li>Section {n}</li>" for n in range(60))
    document = page(
        f'<div class="mega-menu"><ul>{menu}</ul></div><div class="c"><h1>Wooden knob</h1><p>8.93 € with tax</p></div>',
        title="Wooden knob",
        head='<meta property="og:type" content="product">',
    )
    assert document.main_text() == "Wooden knob\n8.93 € with tax"


def test_the_price_of_a_product_stays_beside_links_to_send_it() -> None:
    document = page(
        f"""<main><h1>Dandelion jelly</h1><table><tr><td>Price: $4.99</td>
        <td><a href="/mail">Email this page to a friend</a> <a href="/wish">Remember it for later</a></td></tr></table>
        <p>{PARAGRAPH}</p></main>""",
        title="Dandelion jelly",
        head='<meta property="og:type" content="product">',
    )
    assert "Price: $4.99" in document.main_text()


def test_rows_of_a_list_keep_cells_that_consist_of_links() -> None:
    rows = "".join(
        f"<tr><td><a href='/t{n}'>Discussion number {n}</a> <a href='/b'>Board</a> <a href='/t{n}/1'>1</a>"
        f" <a href='/t{n}/2'>2</a></td><td>Jane Roe</td><td>{n} replies</td></tr>"
        for n in range(15)
    )
    text = page(f"<main><h1>All boards</h1><table>{rows}</table></main>", "All boards").main_text()
    assert "Discussion number 14" in text
    assert "14 replies" in text


def test_boxes_about_the_author_are_left_out_though_they_are_long() -> None:
    text = "".join(f"<p>{number}: {PARAGRAPH}</p>" for number in range(12))
    box = f'<div class="authorbox"><h3>Jane Roe</h3><p>Jane Roe writes about harbors. {PARAGRAPH}</p></div>'
    document = page(f"<article><h1>The harbor is open</h1>{text}{box}</article>", "The harbor is open")
    assert "11: The harbor" in document.main_text()
    assert "Jane Roe" not in document.main_text()


def test_an_article_within_an_aside_is_content() -> None:
    links = "".join(f"<li><a href='/{n}'>Region number {n}</a></li><li>Place {n}</li>" for n in range(90))
    document = page(
        f"""<div><ul>{links}</ul></div><main><aside><section><article><h2>A prize for a novel</h2><p>{PARAGRAPH * 3}</p>
        </article></section></aside></main>""",
        title="News | Example Site",
    )
    assert "the new quay will last" in document.main_text()


def test_products_that_a_visitor_saw_before_are_left_out() -> None:
    products = "".join(
        f'<div class="g_{n % 2}"><a href="/p{n}">Guitarra número {n}</a><p>{n}.00 €</p></div>' for n in range(8)
    )
    seen = "".join(f"<a href='/s{n}'>Afinador de pinza {n}</a>" for n in range(3))
    document = page(
        f"<main><h1>Guitarras</h1><div>{products}</div><div><h2>Artículos vistos recientemente</h2>{seen}</div></main>",
        title="Guitarras",
    )
    assert "Guitarra número 7" in document.main_text()
    assert "Afinador" not in document.main_text()


def test_posts_of_a_forum_are_found_by_names_in_camel_case() -> None:
    posts = "".join(
        f'<li><div class="messageUserInfo">Member, Level 3</div><div class="messageText">{n}: {PARAGRAPH}</div></li>'
        for n in range(3)
    )
    document = page(f"<div><h1>Which harbor?</h1><ol>{posts}</ol></div>", "Which harbor?")
    assert document.page_type() is PageType.FORUM
    assert "2: The harbor" in document.main_text()
    assert "Level 3" not in document.main_text()


def test_ingredients_and_steps_that_a_reader_can_tick_off_are_content() -> None:
    rows = "".join(
        f'<li><input type="checkbox" id="i{n}"><label for="i{n}">{n} cups of flour type {n}</label></li>'
        for n in range(4)
    )
    text = page(
        f"""<article><h1>Bread of the harbor</h1><ul>{rows}</ul>{f"<p>{PARAGRAPH}</p>" * 4}
        <form><label>Your name</label><input name="name"><button>Send</button></form></article>""",
        title="Bread of the harbor",
    ).main_text()
    assert "3 cups of flour type 3" in text
    assert "Your name" not in text


@pytest.mark.parametrize(
    "rows",
    [
        '<li>2 cups of <a href="/flour">flour</a>, sifted twice</li><li>1 spoon of <a href="/salt">salt</a>, fine</li>'
        '<li>4 whole <a href="/eggs">eggs</a> at room temperature</li><li>some water</li>',
        '<li><a href="/f">Flour</a>: 200 g of it, sifted</li><li><a href="/s">Salt</a>: 1 spoon, not heaped</li>'
        '<li><a href="/e">Eggs</a>: 4, at room temperature</li>',
    ],
)
def test_lines_that_contain_links_are_no_teasers(rows: str) -> None:
    body = f"<article><h1>Bread of the harbor</h1><ul>{rows}</ul>{f'<p>{PARAGRAPH}</p>' * 6}</article>"
    text = page(body, title="Bread of the harbor", head='<meta property="og:type" content="article">').main_text()
    assert "at room temperature" in text


def test_the_column_of_a_text_may_be_named_after_the_column_beside_it() -> None:
    text = page(
        f"""<h1>The harbor is open again</h1>
        <div class="article-content right-rail">{f"<p>{PARAGRAPH}</p>" * 2}</div><div>{f"<p>{PARAGRAPH}</p>" * 5}</div>
        <div class="right-rail"><h3>Most read</h3><a href="/a">A story that many people have read</a></div>""",
        title="The harbor is open again",
    ).main_text()
    assert text.count("the engineers say") == 7
    assert "Most read" not in text


@pytest.mark.parametrize("column", ['div class="left-col"', "aside"])
def test_a_column_of_facts_within_an_article_is_content(column: str) -> None:
    facts = "".join(f"<li>{n} spoons of sugar from the island</li>" for n in range(5))
    text = page(
        f"""<article><h1>Bread of the harbor</h1><div>
        <{column}><h3>Ingredients</h3><ul>{facts}</ul></{column[:5].strip()}>
        <div class="sidebar"><h3>Letter</h3>{PARAGRAPH}<input type="email"></div></div>
        {f"<p>{PARAGRAPH}</p>" * 4}</article>""",
        title="Bread of the harbor",
    ).main_text()
    assert "4 spoons of sugar" in text
    assert "Letter" not in text


def test_a_recipe_of_cookies_with_a_button_asks_for_no_consent() -> None:
    text = page(
        f"""<article><h1>A cake of cookies</h1><section><h4>Serves</h4><p>12</p><h4>Ingredients</h4><p>30 cookies</p>
        <button>Print</button></section>{f"<p>{PARAGRAPH}</p>" * 4}</article>""",
        title="A cake of cookies",
    ).main_text()
    assert "30 cookies" in text


def test_names_and_titles_within_a_sentence_are_not_repetitions() -> None:
    said = "<b>The harbor is open again</b> for ships of <i>the Northern Line</i>, say the engineers."
    sentences = "".join(f"<p>{n}: {said}</p><p>{n}: {PARAGRAPH}</p>" for n in range(4))
    text = page(
        f"""<article><h1>The harbor is open again</h1>{sentences}
        <p>Ask for the <b>Newsletter</b> <span>of the harbor office</span>, which is printed and free.</p></article>""",
        title="The harbor is open again",
    ).main_text()
    assert text.count(": The harbor is open again for ships of the Northern Line, say") == 4
    assert "Newsletter of the harbor office, which" in text


def test_a_dialog_about_cookies_is_left_out_though_it_has_most_of_the_text() -> None:
    purposes = "".join(f"<h4>Purpose {n}</h4><p>{n}: These cookies count visits. {PARAGRAPH}</p>" for n in range(20))
    dialog = f'<div id="onetrust-consent-sdk"><div class="x"><h2>Privacy center</h2>{purposes}</div></div>'
    body = f"<div><h1>Old quay</h1><p>{PARAGRAPH}</p></div>"
    assert "Purpose" not in page(body + dialog, title="Old quay").main_text()
    policy = f'<div class="cookie-notice"><h1>Cookie notice</h1>{purposes}</div>'
    assert "Purpose 7" in page(policy, title="Cookie notice").main_text()


def test_the_next_articles_below_an_article_are_left_out_though_they_have_much_prose() -> None:
    stories = "".join(
        f'<div class="story"><h3><a href="/{n}">Story {n}</a></h3><p>{PARAGRAPH}{n}</p></div>' for n in range(3)
    )
    text = page(
        f"""<div><h1>The harbor is open again</h1>{"".join(f"<p>{n}: {PARAGRAPH}</p>" for n in range(12))}
        <div class="x9">{stories}</div></div>""",
        title="The harbor is open again",
        head='<meta property="og:type" content="article">',
    ).main_text()
    assert "Story 1" not in text
    assert text.count("the engineers say") == 12


def test_headlines_in_an_aside_are_no_facts() -> None:
    lines = "".join(f"<h4>Headline number {n} about the quay</h4>" for n in range(4))
    text = page(
        f"<article><h1>The harbor is open again</h1><div><aside>{lines}</aside></div>{f'<p>{PARAGRAPH}</p>' * 6}",
        title="The harbor is open again",
    ).main_text()
    assert "Headline number 2" not in text


def test_an_article_with_questions_and_answers_is_no_forum() -> None:
    comments = "".join(f'<li class="comment">{n} days ago: {PARAGRAPH}</li>' for n in range(3))
    text = "".join(f"<p>{n}: {PARAGRAPH}</p>" for n in range(6))
    said = '{"@type": "FAQPage", "mainEntity": [{"@type": "Question"}]}, {"@type": "Article"}'
    document = page(
        f"""<article><h1>The harbor is open again</h1>{text}</article>
        <ol class="comment-list">{comments}</ol>""",
        title="The harbor is open again",
        head=f'<script type="application/ld+json">[{said}]</script>',
    )
    assert document.page_type() is PageType.ARTICLE
    assert "days ago" not in document.main_text()


def test_a_text_that_a_label_opens_is_content() -> None:
    text = page(
        f"""<article><h1>The harbor is open again</h1><div><span>Read more</span><p>1: {PARAGRAPH}{PARAGRAPH}</p></div>
        {"".join(f"<p>{n}: {PARAGRAPH}</p>" for n in range(2, 8))}</article>""",
        title="The harbor is open again",
    ).main_text()
    assert "1: The harbor" in text


def test_a_menu_may_have_more_prose_than_the_article() -> None:
    teasers = "".join(f'<li><a href="/{n}">Story {n}</a><p>{PARAGRAPH}</p></li>' for n in range(20))
    text = page(
        f"""<nav><ul>{teasers}</ul></nav><div><h1>The harbor is open again</h1>
        <div class="article-body">{f"<p>{PARAGRAPH}</p>" * 4}</div></div>""",
        title="The harbor is open again",
    ).main_text()
    assert "Story 7" not in text
    assert text.count("the engineers say") == 4


@pytest.mark.parametrize(
    ("head", "beside"),
    [
        ("", "<div><ul><li>75 ml of cream</li><li>2 eggs of a large size</li><li>200 g of butter, soft</li>"
         "<li>150 g of sugar</li><li>30 g of cocoa, sifted</li></ul></div>"),
        ('<script type="application/ld+json">{"@type": "Recipe"}</script>',
         "<div><h2>Ingredients</h2><p>75 ml of cream</p><p>2 eggs of a large size</p><p>200 g of butter, soft</p>"
         "<p>150 g of sugar</p><p>30 g of cocoa, sifted</p></div>"),
    ],
)  # fmt: skip
def test_the_ingredients_beside_a_long_text_are_content(head: str, beside: str) -> None:
    text = page(
        f"""<h1>Bread of the harbor</h1><div>{beside}<div>{f"<p>{PARAGRAPH}</p>" * 12}</div></div>""",
        title="Bread of the harbor",
        head=f'<meta property="og:type" content="article">{head}',
    ).main_text()
    assert "30 g of cocoa" in text


def test_captions_of_every_picture_and_repeated_titles_appear_once() -> None:
    pictures = "<div><img src=a.png><p>Storm over the harbor</p></div>" * 5
    html = (
        '<meta property="og:type" content="article"><title>A storm comes</title><body><article><h1>A storm comes</h1>'
        f"{pictures}<p>{PARAGRAPH}</p><p>{PARAGRAPH}</p><span>A storm comes</span></article>"
    )
    text = Document.parse(html.encode(), "text/html", "https://example.com/a/1").main_text()
    assert text.count("Storm over the harbor") == 1
    assert text.count("A storm comes") == 1
    assert text.count("The harbor of the old town") == 2


ADVERSARIAL = {
    "siblings": lambda n: "<h2>Related articles</h2><div class=nav><a href=/x>link</a></div>" * n,
    "headings": lambda n: "<h1>Title</h1>" * n,
    "headers": lambda n: "<div>" * 500 + "<header>a word</header>" * n,
    "deep": lambda n: ("<div class='nav related'>" * 900 + "text, and more. " * 5 + "</div>" * 900) * (n // 900),
    "paragraphs": lambda n: "<h1>Title</h1>" + "<p>Some text, with a comma.</p>" * n,
    "cards": lambda n: "<div class=a><h3><a href=/x>Title of a card</a></h3><p>Its text.</p></div>" * n,
    "captions": lambda n: "<div><p>The same caption here</p></div>" * n,
    "forms": lambda n: "<form><input name=q type=text>Some words</form>" * n,
    "names": lambda n: "".join(f"<div class='c{number} nav-{number}'>x</div>" for number in range(n)),
}


@pytest.mark.parametrize("kind", ADVERSARIAL)
def test_time_grows_with_the_size_of_the_page(kind: str) -> None:
    def seconds(size: int) -> float:
        found = Document.parse(f"<title>Title</title><body>{ADVERSARIAL[kind](size)}".encode(), None, "https://e.com/")
        found.page_tree()
        start = time.process_time()
        found.main_content()
        return time.process_time() - start

    # CPU time: other processes hardly matter. With time that grows with the square, the factor is 8 times 8.
    small = min(seconds(2_000) for _ in range(3))
    large = min(seconds(16_000) for _ in range(2))
    assert large < 8 * 4 * small + 0.2, (small, large)


@pytest.mark.parametrize(
    ("text", "is_price"),
    [
        ("from €5", True), ("€ 5", True), ("5 €", True), ("12EUR", True), ("costs 9\xa0zł.", True), ("0$", True),
        ("1 €2", True), ("€", False), ("€  5", False), ("5  €", False), ("version 3 of 4", False), ("€uro 5", False),
        ("12 3", False), ("", False),
    ],
)  # fmt: skip
def test_a_price_has_its_currency_before_or_behind_a_digit(text: str, is_price: bool) -> None:
    assert has_price(text) == is_price
