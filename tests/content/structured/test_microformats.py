"""Microformats: roots, properties by prefix, implied ones, parts of values, and classic classes."""

from __future__ import annotations

from typing import Any

import pytest

from curtsy.content.document import Document


def read(html: str) -> list[dict[str, Any]]:
    found = Document.parse(html.encode(), "text/html; charset=utf-8", "http://a.test/dir/page").structured()
    return [entry["data"] for entry in found if entry["kind"] == "microformats"]


def test_an_entry_has_its_author_within() -> None:
    assert read("""<article class="h-entry"><h1 class="p-name">Title</h1>
      <time class="dt-published" datetime="2020-01-02">yesterday</time>
      <a class="u-url" href="/1">link</a><div class="e-content"><p>One</p><p>two</p></div>
      <a class="p-author h-card" href="/ann"><img class="u-photo" src="a.png" alt="">Ann</a>
      <div class="h-cite">C</div></article>""") == [
        {
            "type": "h-entry",
            "properties": {
                "name": "Title",
                "published": "2020-01-02",
                "url": "http://a.test/1",
                "content": "One two",
                "author": {"type": "h-card", "properties": {"photo": "http://a.test/dir/a.png", "name": "Ann"}},
            },
            "children": [{"type": "h-cite", "properties": {"name": "C"}}],
        }
    ]


@pytest.mark.parametrize(
    ("root", "properties"),
    [
        ("<p class=h-card>Ann Lee</p>", {"name": "Ann Lee"}),
        ("<p class=h-org>Ann & Co</p>", {"name": "Ann & Co"}),
        ("<a class=h-card href=/a>Ann</a>", {"name": "Ann", "url": "http://a.test/a"}),
        ("<img class=h-card src=/a.png alt=Ann>", {"name": "Ann", "photo": "http://a.test/a.png"}),
        ("<abbr class=h-card title='Ann Lee'>AL</abbr>", {"name": "Ann Lee"}),
        (
            "<p class=h-card><a href=/a><img src=/i alt=Ann></a></p>",
            {"name": "Ann", "photo": "http://a.test/i", "url": "http://a.test/a"},
        ),
        ("<p class=h-card><a href=/a>A</a> <a href=/b>B</a></p>", {"name": "A B"}),
        ("<p class=h-card><b class=p-org>Org</b> <a href=/a>A</a></p>", {"org": "Org", "url": "http://a.test/a"}),
        ("<p class=h-card><a class=u-url href=''></a><b class=p-name>N</b></p>", {"name": "N"}),
        ("<a class=h-card href=''>Ann</a>", {"name": "Ann"}),
        ("<img class=h-card>", None),
    ],
)
def test_name_photo_and_url_are_implied(root: str, properties: dict[str, str] | None) -> None:
    (item,) = read(root)
    assert (item["properties"] or None) == properties


@pytest.mark.parametrize(
    ("element", "value"),
    [
        ("<abbr class=p-x title=whole>w</abbr>", "whole"),
        ("<data class=p-x value=5>five</data>", "5"),
        ("<b class=p-x><i class=value>+1</i> (<i class=value>23</i>)</b>", "+123"),
        ("<b class=p-x><i class=value-title title=hidden></i>seen</b>", "hidden"),
        ("<b class=dt-x><i class=value>2020-01-02</i> at <i class=value>19:30</i></b>", "2020-01-02 19:30"),
        ("<b class=dt-x>2020</b>", "2020"),
        ("<video class=u-x poster=/p></video>", "http://a.test/p"),
        ("<b class=u-x>not an address</b>", "not an address"),
        ("<b class=u-x>https://b.test</b>", "https://b.test/"),
        ("<b class=p-x><img alt=Alt src=i></b>", "Alt"),
        ("<img class=u-x>", None),
        ("<img class=p-x src=i>", None),
        ("<a class=u-x href=''></a>", None),
        ("<time class=dt-x></time>", None),
        ("<b class=p-x> </b>", None),
    ],
)
def test_a_value_depends_on_its_prefix_and_element(element: str, value: str | None) -> None:
    (item,) = read(f"<div class=h-event><b class=p-name>N</b>{element}</div>")
    assert item["properties"].get("x") == value


def test_classic_classes_are_read_by_their_root() -> None:
    assert read("""<div class="hrecipe"><b class="fn">Soup</b><i class=ingredient>Salt</i><i class=ingredient>Water</i>
      <p class="instructions">Boil.</p><i class="p-name">not classic</i></div>""") == [
        {
            "type": "h-recipe",
            "properties": {"name": "Soup", "ingredient": ["Salt", "Water"], "instructions": "Boil."},
        }
    ]
    (entry,) = read("""<div class="hentry"><h2 class="entry-title">T</h2>
      <span class="author vcard"><a class="fn url" href="/ann">Ann</a></span></div>""")
    assert entry["properties"]["author"] == {
        "type": "h-card",
        "properties": {"name": "Ann", "url": "http://a.test/ann"},
    }


def test_a_classic_review_has_an_item() -> None:
    (review,) = read("""<div class="hreview"><p class="item"><img class="photo" src="/i.gif">
      <a class="fn url" href="/crepes">Crepes</a></p><b class="rating">5</b></div><p class="item">no review</p>""")
    assert review["properties"]["rating"] == "5"
    assert review["properties"]["item"] == {
        "type": "h-item",
        "properties": {"photo": "http://a.test/i.gif", "name": "Crepes", "url": "http://a.test/crepes"},
    }


def test_a_classic_resume_has_skills_and_a_contact() -> None:
    (resume,) = read("""<div class="hresume"><p class="contact vcard"><b class="fn">Ann</b></p><a class="skill">Law</a>
      <a class="skill">Art</a><p class="summary">Lawyer</p></div>""")
    assert resume == {
        "type": "h-resume",
        "properties": {
            "contact": {"type": "h-card", "properties": {"name": "Ann"}},
            "skill": ["Law", "Art"],
            "summary": "Lawyer",
        },
    }


def test_classic_news_have_a_source() -> None:
    (news,) = read("""<div class="hnews"><div class="entry hentry"><h1 class="entry-title">T</h1></div>
      <p class="source-org vcard"><b class="fn">Press</b></p><i class="dateline">Bonn</i></div>""")
    assert news["type"] == "h-news"
    assert news["properties"]["dateline"] == "Bonn"
    assert news["properties"]["entry"]["properties"] == {"name": "T"}
    assert news["properties"]["source-org"]["properties"] == {"name": "Press"}


def test_classes_of_style_sheets_are_no_items() -> None:
    assert read('<div class="h-full h-screen p-4 h-auto"><p class="p-name">x</p></div>') == []
