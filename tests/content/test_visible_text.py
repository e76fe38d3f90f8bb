"""The visible text: what is hidden, collapsed or for screen readers, streamed content, spans of elements."""

from __future__ import annotations

import pytest

from curtsy.content import text as prose
from curtsy.content.document import Document
from curtsy.core.text_layout import Visibility

COLLAPSED, VISIBLE, SCREEN_READER = Visibility.COLLAPSED, Visibility.VISIBLE, Visibility.SCREEN_READER


def parse(html: str) -> Document:
    return Document.parse(html.encode(), "text/html; charset=utf-8", "http://a.test/")


def visibility(html: str, word: str = "secret") -> Visibility:
    """Of a word of the page; HIDDEN if it is not in the text."""
    page = parse(html)
    start = page.text().find(word)
    return Visibility.HIDDEN if start < 0 else page.visibility_at(start, start + len(word))


@pytest.mark.parametrize(
    "html",
    [
        "<details><summary>More</summary>the <b>secret</b></details>",
        "<details>secret<summary>More</summary></details>",
        "<div hidden=until-found>secret</div>",
        "<button aria-controls='x y'>Open</button><div id=y hidden>secret</div>",
        "<a href='#x'>Open</a><section id=x style='display:none'><p>secret</section>",
        "<button data-bs-target='#x'>Open</button><div id=x class=hidden>secret</div>",
        "<button data-target='#x'>Open</button><div id=x style='height:0;overflow:hidden'>secret</div>",
        "<button aria-expanded=false aria-controls=x>Open</button><div id=x>secret</div>",
        "<div role=tab aria-selected=false aria-controls=x>Tab</div><div id=x role=tabpanel>secret</div>",
        "<h3><button aria-expanded=false>Open</button></h3><div hidden>secret</div>",
        "<div role=tabpanel hidden>secret</div>",
        "<div class='collapse' id=x>secret</div>",
        "<div class='tab-pane fade'>secret</div>",
        "<div class=faq-item><h3>Why?</h3><div style='display:none'>secret</div></div>",
        "<div class=faqList><div><div hidden>secret</div></div></div>",
        "<span class='read-more-text' style='display: none'>secret</span>",
        "<div class='Accordion_panel__x3' hidden>secret</div>",
        "<div class='swiper-slide' style='opacity:0'>secret</div>",
        "<p style='opacity:0;transform:translateY(20px)'>secret</p>",
        "<p data-aos=fade-up style='opacity: 0'>secret</p>",
        "<a href='#x'>Open</a><div id=x aria-hidden=true>secret</div>",
        "<a href='#x'>Open</a><div id=x hidden><a href='#y'>Open</a><div id=y hidden>secret</div></div>",
    ],
)
def test_content_that_a_reader_can_open_is_collapsed(html: str) -> None:
    assert visibility(html) is COLLAPSED


@pytest.mark.parametrize(
    "html",
    [
        "<div hidden>secret</div>",
        "<div style='display:none'>secret</div>",
        "<div style='VISIBILITY: hidden !important'>secret</div>",
        "<div class='hidden'>secret</div>",
        "<p class='d-none x'>secret</p>",
        "<div style='position:absolute;left:-9999px'>secret</div>",
        "<div style='position:absolute; top: -100em'>secret</div>",
        "<h1 style='text-indent:-9999px'>secret</h1>",
        "<span style='font-size:0'>secret</span>",
        "<span style='opacity:0'>secret</span>",
        "<div style='transform:translateX(-10000px)'>secret</div>",
        "<div class=panel style='display:none'><label>secret <input name=url></label></div>",
        "<dialog>secret</dialog>",
        "<div popover id=x>secret</div><button popovertarget=x>Open</button>",
        "<a href='#x'>Open</a><div id=x role=dialog hidden>secret</div>",
        "<a href='#x'>Open</a><div id=x class=cookie-consent hidden>secret</div>",
        "<div class='modal fade' id=x><div>secret</div></div><a href='#x'>Open</a>",
        "<div hidden><a href='#x'>Open</a></div><div id=x hidden>secret</div>",
        "<i class='fa' aria-hidden=true>secret</i>",
        "<span class='material-icons' aria-hidden=true>secret</span>",
        "<noscript>secret</noscript>",
        "<template id=x>secret</template><a href='#x'>Open</a>",
        "<select><option>secret</option></select>",
        "<textarea>secret</textarea>",
        "<input type=submit value=secret>",
        "<img src=x alt=secret>",
    ],
)
def test_text_that_nobody_reads_is_not_in_the_text(html: str) -> None:
    assert visibility(f"<p>other</p>{html}") is Visibility.HIDDEN
    assert "secret" not in parse(f"<p>other</p>{html}").markdown().replace("![secret]", "")


@pytest.mark.parametrize(
    "html",
    [
        "<details open><summary>More</summary>secret</details>",
        "<details><summary>secret</summary>more</details>",
        "<dialog open>secret</dialog>",
        "<div class='hidden md:block'>secret</div>",
        "<div class='d-none d-lg-flex'>secret</div>",
        "<div class='collapse show'>secret</div>",
        "<div class='collapse navbar-collapse'>secret</div>",
        "<div class='tab-pane active'>secret</div>",
        "<span aria-hidden=true>secret</span>",
        "<div style='font-size:0'><span>secret</span></div>",
        "<div style='left:-20px;opacity:0.5;height:0'>secret</div>",
        "<div style='color:red'>secret</div>",
        "<button aria-expanded=true aria-controls=x>Open</button><div id=x>secret</div>",
        "<button>secret</button>",
        "<figure><figcaption>secret</figcaption></figure>",
    ],
)
def test_what_is_displayed_is_visible(html: str) -> None:
    assert visibility(html) is VISIBLE


@pytest.mark.parametrize(
    "html",
    [
        "<span class=sr-only>secret</span>",
        "<span class='x visually-hidden'>secret</span>",
        "<span style='position:absolute;width:1px;height:1px;clip:rect(0, 0, 0, 0)'>secret</span>",
    ],
)
def test_text_for_screen_readers_is_kept_and_marked(html: str) -> None:
    assert visibility(html) is SCREEN_READER


def test_visibility_ends_with_the_element() -> None:
    inner = "<details><summary>deep</summary>x</details>"
    page = parse(f"<p>before</p><details><summary>open</summary><p>in</p>{inner}</details>after")
    assert page.text() == "before\nopen\nin\ndeep\nx\nafter"
    found = [(span.visibility, page.text()[span.start : span.end].split()) for span in page.visible().layout.unseen]
    assert found == [(COLLAPSED, ["in", "deep", "x"])]
    whole = len(page.text())
    assert page.visibility_at(0, whole) is COLLAPSED
    assert page.visibility_at(0, 11) is VISIBLE
    assert page.visibility_at(whole - 5, whole) is VISIBLE


STREAMED = """<main><h1>Shop</h1><!--$?--><template id="B:2"></template><p>Loading</p><!--/$-->
<footer>End</footer></main>
<div hidden id="S:2"><p>Price 79</p><!--$?--><template id="B:3"></template><!--/$--></div>
<script>$RC("B:2","S:2")</script><div hidden id="S:3"><b>Only two left</b></div>{script}"""


def test_streamed_content_stands_at_its_placeholder() -> None:
    page = parse(STREAMED.format(script='<script>$RC=function(){};$RC("B:3","S:3")</script>'))
    assert page.text().split("\n") == ["Shop", "Price 79", "Only two left", "End"]
    assert page.visible().layout.unseen == ()
    assert page.markdown() == "# Shop\n\nPrice 79\n\n**Only two left**\n\nEnd\n"


def test_streamed_content_that_no_script_moves_stays_hidden() -> None:
    assert parse(STREAMED.format(script="")).text().split("\n") == ["Shop", "Price 79", "End"]


def test_streamed_content_that_contains_itself_ends() -> None:
    html = '<p>a<template id="B:1"></template><div hidden id="S:1">b<template id="B:1"></template></div>'
    assert parse(f'{html}<script>$RC("B:1","S:1")</script>').text() in ("a b", "ab", "a\nb")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>co\u00adop<wbr>er\u200bate", "cooperate"),
        ("<p>a&nbsp;&amp;&#32;\n b &lt;c&gt;", "a & b <c>"),
        ("<p>one<br>two<br><br>three", "one\ntwo\nthree"),
        (
            "<ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp>京<rp>(</rp><rt>きょう</rt><rp>)</rp></ruby>都",
            "東京(とうきょう)都",
        ),
        ("<ruby>x</ruby> y<rt>z</rt>", "x yz"),
        ("<p>1,234<sup>a</sup> of 5<sup>th</sup> x<sup>-</sup><sup>[3]</sup>", "1,234ᵃ of 5th x⁻[3]"),
        ("<p>2019<sup><a href='#fn1'>1</a></sup>.", "2019¹."),
        ("<p>H<sub>2</sub>O", "H2O"),
        ("<pre>a  b\n\n  c</pre>", "a b\nc"),
        ("<ul><li>a</li> <li>b</li></ul>c", "a\nb\nc"),
        ("a<span> b</span><span>c </span>d", "a bc d"),
    ],
)
def test_the_text_is_what_is_seen(html: str, text: str) -> None:
    assert parse(html).text() == text


def test_spans_of_elements_are_exact() -> None:
    page = parse("<article> <h2>One</h2> <p>two <b>three</b></p> </article><p></p><p>four")
    found = prose.read(page.page_tree(), spans_of=("h2", "p", "article"))
    assert found.text == page.text()
    assert [(span.node.tag, found.text[span.start : span.end]) for span in found.spans] == [
        ("h2", "One"), ("p", "two three"), ("article", "One\ntwo three"), ("p", ""), ("p", "four"),
    ]  # fmt: skip


def test_a_limit_ends_the_walk() -> None:
    page = parse("<p>word</p>" * 1000)
    assert len(prose.text(page.tree.root, 100, page.page_tree())) < 120
