"""RDFa: Lite as a whole, and what Core adds: about, rel and rev, prefixes, literals."""

from __future__ import annotations

from typing import Any

import pytest

from curtsy.content.document import Document

URL = "http://a.test/dir/page"


def read(html: str) -> list[dict[str, Any]]:
    found = Document.parse(html.encode(), "text/html; charset=utf-8", URL).structured()
    return [entry["data"] for entry in found if entry["kind"] == "rdfa"]


def test_lite_has_vocab_typeof_property_resource_and_prefix() -> None:
    assert read("""
      <div vocab="https://schema.org/" prefix="ov: http://open.vocab.org/terms/" resource="#manu" typeof="Person Agent">
        <span property="name">Manu</span> <a property="ov:preferredAnimal url" href="/liger">x</a>
        <img property="image" src="i.png">
        <p property="address" typeof="PostalAddress"><i property="addressLocality">Oslo</i></p>
        <time property="birthDate" datetime="1973-02-03">once</time></div>""") == [
        {
            "type": ["https://schema.org/Person", "https://schema.org/Agent"],
            "id": "http://a.test/dir/page#manu",
            "properties": {
                "name": "Manu",
                "http://open.vocab.org/terms/preferredAnimal": "http://a.test/liger",
                "url": "http://a.test/liger",
                "image": "http://a.test/dir/i.png",
                "address": {"type": "https://schema.org/PostalAddress", "properties": {"addressLocality": "Oslo"}},
                "birthDate": "1973-02-03",
            },
        }
    ]


def test_another_vocabulary_is_named() -> None:
    assert read("""<p vocab="http://xmlns.com/foaf/0.1/" typeof=Person><b property=name>A</b>
      <b vocab="http://purl.org/dc/terms/" property=title>T</b><i property="schema:email">e</i></p>""") == [
        {
            "type": "http://xmlns.com/foaf/0.1/Person",
            "vocab": "http://xmlns.com/foaf/0.1/",
            "properties": {"name": "A", "dcterms:title": "T", "email": "e"},
        }
    ]


def test_what_is_said_of_the_page_has_no_id() -> None:
    assert read('<h1 property="dc:title">T</h1><a rel="cc:license license" href="/l">l</a>') == [
        {"properties": {"dcterms:title": "T", "cc:license": "http://a.test/l", "xhv:license": "http://a.test/l"}}
    ]


def test_resources_are_subjects_and_values() -> None:
    assert read("""<body vocab="http://schema.org/">
      <div about="/bob" typeof="Person"><a property="knows" href="/alice">Alice</a></div>
      <div resource="/alice"><b property="name">Alice</b></div></body>""") == [
        {
            "type": "http://schema.org/Person",
            "id": "http://a.test/bob",
            "properties": {"knows": {"id": "http://a.test/alice", "properties": {"name": "Alice"}}},
        }
    ]


def test_relations_lead_to_what_is_in_them() -> None:
    assert read("""<div xmlns:foaf="http://xmlns.com/foaf/0.1/" about="#me">
      <div rel="foaf:knows"><p typeof="foaf:Person"><b property="foaf:name">A</b></p><a href="/b">B</a></div>
      <a rev="foaf:maker" href="/work">w</a></div>""") == [
        {
            "id": "http://a.test/work",
            "properties": {
                "foaf:maker": {
                    "id": "http://a.test/dir/page#me",
                    "properties": {
                        "foaf:knows": [
                            {"type": "http://xmlns.com/foaf/0.1/Person", "properties": {"foaf:name": "A"}},
                            "http://a.test/b",
                        ]
                    },
                }
            },
        }
    ]


def test_link_types_are_no_statements() -> None:
    assert read('<div vocab="http://schema.org/" typeof=A><a rel="nofollow noopener" href="/x">x</a></div>') == [
        {"type": "http://schema.org/A", "properties": {}}
    ]
    (item,) = read('<div vocab="http://schema.org/" typeof=A><a rel=me property=url href=/x>x</a></div>')
    assert item["properties"] == {"url": "http://a.test/x"}


def test_things_that_are_values_of_each_other_are_found_once() -> None:
    (item,) = read("""<div vocab="http://schema.org/"><p about="#a" typeof=A><a property=x href=#b>b</a></p>
      <p about="#b" typeof=B><a property=y href=#a>a</a></p></div>""")
    assert item["id"].endswith("#a")
    assert item["properties"]["x"] == {"type": "http://schema.org/B", "id": f"{URL}#b", "properties": {}}


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ('<i property=p content="c">text</i>', "c"),
        ("<a property=p href=/u datatype=''>text</a>", None),
        ("<time property=p datatype=xsd:date>1990-07-04</time>", "1990-07-04"),
        ("<data property=p value=5>five</data>", "5"),
        ("<a property=p href='#'>text</a>", "text"),
        ("<a property=p>text</a>", "text"),
        ("<img property=p>", None),
        ("<img property=p src=''>", None),
        ("<link property=p href=''>", None),
        ("<meta property=p>", None),
        ("<meta property=p content=''>", None),
        ("<i property=p content=''>text</i>", None),
        ("<i property=p resource=''></i>", None),
        ("<i property=p> </i>", None),
        ("<time property=p></time>", None),
        ("<i property=p typeof></i>", None),
    ],
)
def test_a_value_has_its_own_bytes(element: str, expected: str | None) -> None:
    items = read(f'<div vocab="http://schema.org/" typeof=A><i property=name>x</i>{element}</div>')
    assert items[0]["properties"].get("p") == expected


def test_a_term_without_a_vocabulary_counts_within_a_type() -> None:
    assert read("<p property=lost>x</p><div typeof=A><b property=name>n</b></div>") == [
        {"type": "A", "properties": {"name": "n"}}
    ]
