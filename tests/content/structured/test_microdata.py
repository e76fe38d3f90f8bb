"""Microdata: items, references, types, and values that have bytes of their own."""

from __future__ import annotations

from typing import Any

import pytest

from curtsy.content.document import Document


def read(html: str) -> list[dict[str, Any]]:
    found = Document.parse(html.encode(), "text/html; charset=utf-8", "http://a.test/dir/page").structured()
    return [entry["data"] for entry in found if entry["kind"] == "microdata"]


def value(element: str) -> Any:
    (item,) = read(f"<div itemscope itemtype=T><i itemprop=other>x</i>{element}</div>")
    return item["properties"].get("p")


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ("<b itemprop=p> two\n words </b>", "two words"),
        ("<div itemprop=p><p>one</p><p>two<br>three</p><script>no</script><!-- no --></div>", "one two three"),
        ("<b itemprop=p hidden>unseen</b>", "unseen"),
        ("<b itemprop=p>10<sup>2</sup></b>", "102"),
        ("<a itemprop=p href=/u>text</a>", "http://a.test/u"),
        ("<link itemprop=p href=u>", "http://a.test/dir/u"),
        ("<img itemprop=p src=' i.png '>", "http://a.test/dir/i.png"),
        ("<object itemprop=p data=o></object>", "http://a.test/dir/o"),
        ("<audio itemprop=p src=s></audio>", "http://a.test/dir/s"),
        ("<meta itemprop=p content=' c '>", "c"),
        ("<data itemprop=p value=5>five</data>", "5"),
        ("<meter itemprop=p value=5>five</meter>", "5"),
        ("<time itemprop=p datetime=2020-01-01>today</time>", "2020-01-01"),
        ("<time itemprop=p>today</time>", "today"),
        ("<span itemprop=p content=12.50>12,50 EUR</span>", "12.50"),
        ("<a itemprop=p content=12>text</a>", "12"),
        ("<input itemprop=p-input name=q required>", None),
    ],
)
def test_a_value_is_where_its_element_has_it(element: str, expected: str | None) -> None:
    assert value(element) == expected


@pytest.mark.parametrize(
    "element",
    [
        "<img itemprop=p>",
        "<img itemprop=p src=''>",
        "<img itemprop=p src='  ' alt=x>",
        "<a itemprop=p href=#></a>",
        "<a itemprop=p href='javascript:void(0)'></a>",
        "<a itemprop=p></a>",
        "<link itemprop=p>",
        "<link itemprop=p href>",
        "<area itemprop=p>",
        "<meta itemprop=p>",
        "<meta itemprop=p content=' '>",
        "<data itemprop=p>five</data>",
        "<meter itemprop=p></meter>",
        "<time itemprop=p datetime=''></time>",
        "<object itemprop=p></object>",
        "<audio itemprop=p></audio>",
        "<video itemprop=p src></video>",
        "<iframe itemprop=p></iframe>",
        "<embed itemprop=p>",
        "<span itemprop=p> </span>",
        "<span itemprop=p><br></span>",
        "<span itemprop=p content=''></span>",
        "<div itemprop=p itemscope></div>",
        "<input itemprop=p>",
    ],
)
def test_an_element_without_a_value_has_none(element: str) -> None:
    assert value(element) is None


def test_a_link_without_an_address_has_its_text_at_most() -> None:
    assert value("<a itemprop=p>Alder</a>") == "Alder"
    assert value("<a itemprop=p href=''>Alder</a>") == "Alder"


def test_items_nest_and_have_types_and_ids() -> None:
    assert read("""
      <div itemscope itemtype="http://s.test/A http://s.test/B" itemid="#me"><b itemprop="name other">N</b>
        <p itemprop=address itemscope itemtype=http://s.test/C><i itemprop=city>Rome</i><i itemprop=city>Oslo</i></p>
        <div itemprop=brand itemscope itemtype=http://s.test/Brand>Acme</div>
        <div itemscope itemtype=http://s.test/D><i itemprop=x>1</i></div></div>""") == [
        {
            "type": ["http://s.test/A", "http://s.test/B"],
            "id": "http://a.test/dir/page#me",
            "properties": {
                "name": "N",
                "other": "N",
                "address": {"type": "http://s.test/C", "properties": {"city": ["Rome", "Oslo"]}},
                "brand": {"type": "http://s.test/Brand", "value": "Acme"},
            },
        },
        {"type": "http://s.test/D", "properties": {"x": "1"}},
    ]


def test_references_add_properties_in_the_order_of_the_page() -> None:
    first, second = read("""
      <p id=before><i itemprop=name>A</i></p>
      <div itemscope itemtype=T itemref="before after item missing"><i itemprop=name>B</i></div>
      <div id=after><i itemprop=name>C</i><div itemscope itemprop=inner><i itemprop=name>D</i></div></div>
      <div id=after><i itemprop=name>not the first of its id</i></div>
      <div itemscope itemtype=U itemref=after></div>
      <div id=item itemscope itemprop=whole><i itemprop=name>E</i></div>""")
    inner = {"properties": {"name": "D"}}
    assert first["properties"] == {
        "name": ["A", "B", "C"],
        "inner": inner,
        "whole": {"properties": {"name": "E"}},
    }
    assert second == {"type": "U", "properties": {"name": "C", "inner": inner}}


def test_an_item_that_refers_to_itself_does_not_contain_itself() -> None:
    assert read("<div id=a itemscope itemref=a itemprop=self><i itemprop=n>1</i></div>") == []
    (item,) = read("<div itemscope itemref=b><i itemprop=n>1</i><div id=b itemscope itemprop=x itemref=b>t</div></div>")
    assert item["properties"]["n"] == "1"


def test_items_in_many_properties_do_not_multiply() -> None:
    names = " ".join(f"p{number}" for number in range(16))
    html = "<div itemscope>" + f"<div itemscope itemprop='{names}'>" * 12 + "<i itemprop=n>1</i>"
    assert len(str(read(html))) < 5_000_000


def test_inputs_of_actions_have_their_names() -> None:
    (item,) = read("<form itemscope><input itemprop=query-input name=q required><i itemprop=target>t</i></form>")
    assert item["properties"] == {"query-input": {"valueRequired": True, "valueName": "q"}, "target": "t"}
