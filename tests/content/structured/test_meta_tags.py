"""Meta elements: OpenGraph with arrays and objects, Twitter cards, Dublin Core, names."""

from __future__ import annotations

from typing import Any

from curtsy.content.document import Document


def read(html: str) -> dict[str, Any]:
    found = Document.parse(html.encode(), "text/html; charset=utf-8", "http://a.test/").structured()
    return {entry["kind"]: {key: value for key, value in entry.items() if key != "kind"} for entry in found}


def test_opengraph_has_arrays_and_objects() -> None:
    assert read("""<meta property="OG:image" content="/1"><meta property="og:image:width" content="10">
      <meta property="og:image" content="/2"><meta property="og:image:url" content="/2">
      <meta property="og:image" content="/3"><meta property="og:image:alt" content="third">
      <meta property="og:title" content=" T "><meta name="og:type" content="article">""") == {
        "opengraph": {
            "data": {
                "og:image": ["/1", "/2", "/3"],
                "og:image:width": "10",
                "og:image:url": "/2",
                "og:image:alt": "third",
                "og:title": "T",
                "og:type": "article",
            },
            "objects": {"og:image": [{"url": "/1", "width": "10"}, {"url": "/2"}, {"url": "/3", "alt": "third"}]},
        }
    }


def test_each_vocabulary_has_its_kind() -> None:
    assert read("""<meta name="twitter:card" content="summary"><meta property="twitter:site" content="@a">
      <meta name="DC.Title" content="D"><meta name="dcterms.issued" content="2020"><meta name="author" content="Ann">
      <meta name="description" property="og:description" content="both"><meta name="og:x" property="og:x" content="1">
      """) == {
        "opengraph": {"data": {"og:description": "both", "og:x": "1"}},
        "twitter": {"data": {"twitter:card": "summary", "twitter:site": "@a"}},
        "dublin-core": {"data": {"dc:title": "D", "dcterms:issued": "2020"}},
        "meta": {"data": {"author": "Ann", "description": "both"}},
    }


def test_an_element_without_content_has_no_value() -> None:
    assert read("<meta property=og:title><meta property=og:url content=''><meta name=author content=' '><meta>") == {}


def test_a_property_of_an_item_is_not_one_of_the_page() -> None:
    found = read("""<div vocab="http://schema.org/" typeof="Product"><meta property="price" content="12">
      <meta property="og:title" content="T"></div>""")
    assert found["opengraph"]["data"] == {"og:title": "T"}
    assert found["rdfa"]["data"]["properties"]["price"] == "12"
