"""The first rung: what structured data says, of which thing, and where it stands."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from curtsy.core.claims import Rung, SourceKind, Verdict
from curtsy.extract import structured
from curtsy.extract.sources import PageSources, sources_of
from curtsy.grounding import judge
from curtsy.grounding import schema as schemas

URL = "http://alder.test/about"
ORGANIZATION = schemas.load("organization")
ALDER = {"@type": "Organization", "name": "Alder Trust", "url": "http://alder.test/"}


def page(html: str, url: str = URL) -> PageSources:
    return sources_of("p1", url, html.encode(), "text/html; charset=utf-8")


def jsonld(*data: Any, url: str = URL) -> PageSources:
    scripts = (f'<script type="application/ld+json">{json.dumps(one)}</script>' for one in data)
    return page("".join(scripts), url)


def schema_of(**properties: Any) -> schemas.Schema:
    return schemas.inline({"type": "object", "properties": properties})


def said(found: PageSources, schema: schemas.Schema = ORGANIZATION) -> dict[str, list[Any]]:
    """Path -> values; each claim is checked against the page's data."""
    values: dict[str, list[Any]] = {}
    for claim in structured.claims(schema, found):
        assert claim.rung is Rung.STRUCTURED
        assert claim.source.kind is SourceKind.STRUCTURED
        assert claim.quote == claim.source.text == structured.text_at(found.data, claim.source.locator)
        assert judge.is_grounded(judge.judge(claim, schema.leaf_for(claim.path))), claim
        values.setdefault(claim.path, []).append(claim.value)
    return values


WHOLE = {
    **ALDER,
    "foundingDate": "1973-05-01",
    "address": {
        "@type": "PostalAddress",
        "streetAddress": "Mill Road 4",
        "addressLocality": "Bergen",
        "addressCountry": {"@type": "Country", "name": "Norway"},
    },
    "contactPoint": [{"@type": "ContactPoint", "telephone": "+47 55 01 22 33"}, {"email": "office@alder.test"}],
}


def test_an_organization_is_read_from_json_ld() -> None:
    assert said(jsonld(WHOLE)) == {
        "/name": ["Alder Trust"],
        "/founded_year": [1973],
        "/headquarters": ["Bergen, Norway"],
        "/contact/email": ["office@alder.test"],
        "/contact/phone": ["+47 55 01 22 33"],
        "/contact/address": ["Mill Road 4, Bergen", "Mill Road 4, Bergen, Norway"],
    }


def test_a_value_put_together_names_every_place_it_comes_from() -> None:
    (claim,) = (one for one in structured.claims(ORGANIZATION, jsonld(WHOLE)) if one.path == "/headquarters")
    assert claim.source.locator == "/0/data/address/addressLocality /0/data/address/addressCountry/name"
    assert claim.source.text == "Bergen\nNorway"
    assert judge.judge(claim, ORGANIZATION.leaf_for(claim.path)).verdict is Verdict.DERIVED


def test_keys_with_blanks_and_slashes_are_found_again() -> None:
    schema = schemas.inline(
        {
            "type": "object",
            "properties": {"value": {"type": "string", "x-curtsy": {"structured": ["a b/c~d%20e.name", "{x y}, {z}"]}}},
        }
    )
    found = jsonld({"a b/c~d%20e": {"name": "one name"}, "x y": "two", "z": "three"})
    assert said(found, schema) == {"/value": ["one name", "two, three"]}


@pytest.mark.parametrize(
    "html",
    [
        """<div itemscope itemtype="https://schema.org/NGO"><h1 itemprop="name">Alder Trust</h1>
           <time itemprop="foundingDate" datetime="1973">then</time>
           <p itemprop="address" itemscope itemtype="https://schema.org/PostalAddress">
             <span itemprop="addressLocality">Bergen</span> <span itemprop="addressCountry">Norway</span></p></div>""",
        """<div vocab="https://schema.org/" typeof="NGO"><h1 property="name">Alder Trust</h1>
           <meta property="foundingDate" content="1973">
           <p property="address" typeof="PostalAddress">
             <span property="addressLocality">Bergen</span> <span property="addressCountry">Norway</span></p></div>""",
    ],
    ids=["microdata", "rdfa"],
)
def test_microdata_and_rdfa_say_the_same_in_other_words(html: str) -> None:
    assert said(page(html)) == {
        "/name": ["Alder Trust"],
        "/founded_year": [1973],
        "/headquarters": ["Bergen, Norway"],
    }


def test_opengraph_and_meta_are_asked_by_their_names() -> None:
    schema = schema_of(title={"type": "string"}, description={"type": "string"})
    found = page('<meta property="og:title" content="A &amp; B"><meta name="Description" content="Of both.">')
    assert said(found, schema) == {"/title": ["A & B"], "/description": ["Of both."]}


# Which thing


@pytest.mark.parametrize(
    ("data", "names"),
    [
        ([{"@graph": [{"@type": "WebSite", "name": "Site"}, ALDER]}], ["Alder Trust"]),
        ([{"@type": "WebSite", "publisher": ALDER}], ["Alder Trust"]),
        ([{"@type": "WebPage", "mainEntity": {"@id": "#us"}}, {**ALDER, "@id": "#us"}], ["Alder Trust"]),
        ([{"@graph": {"@type": ["Thing", "http://schema.org/Organization"], "name": "Alder Trust"}}], ["Alder Trust"]),
        # an article's publisher or subject need not be whose site this is
        ([{"@type": "Article", "publisher": {"@type": "Organization", "name": "Press"}}], []),
        ([{"@type": "Article", "about": {"@type": "Organization", "name": "Others"}}], []),
        # partners of an organisation are others
        ([{**ALDER, "memberOf": {"@type": "Organization", "name": "Union"}}], ["Alder Trust"]),
        ([{"@type": "Organization", "name": "Union", "url": "http://union.test/"}, ALDER], ["Alder Trust"]),
        # a list of others
        ([{"@type": "Organization", "name": name} for name in ("One", "Two")], []),
        ([{"@type": "Organization", "name": "Only"}], ["Only"]),
        # whoever made the site
        ([{"@type": "Organization", "name": "Web Agency", "url": "https://agency.example/"}], []),
        ([{"@type": "Person", "name": "Somebody"}], []),
        ([{"@type": "LocalBusiness", "name": "Shop"}], ["Shop"]),
        ([{"name": "No type"}], []),
    ],
)
def test_the_record_is_about_the_organization_whose_site_it_is(data: list[Any], names: list[str]) -> None:
    assert said(jsonld(*data)).get("/name", []) == names


# Types


@pytest.mark.parametrize(
    ("kind", "stated", "value"),
    [
        ({"type": "integer"}, "1973", 1973),
        ({"type": "integer"}, 1973, 1973),
        ({"type": "integer"}, "1973-05-01", 1973),
        ({"type": "integer"}, "12,500", 12500),
        ({"type": "integer"}, "about 12", None),
        ({"type": "integer"}, 12.5, None),
        ({"type": "number"}, "12.5", 12.5),
        ({"type": "number"}, 12.5, 12.5),
        ({"type": "string", "format": "date"}, "2024-05-31T10:00:00Z", "2024-05-31"),
        ({"type": "string", "format": "date"}, "2024", None),
        ({"type": "boolean"}, True, True),
        ({"type": "boolean"}, "https://schema.org/False", False),
        ({"type": "boolean"}, "perhaps", None),
        ({"enum": ["InStock", "SoldOut"]}, "https://schema.org/InStock", "InStock"),
        ({"enum": ["InStock", "SoldOut"]}, "instock", "InStock"),
        ({"enum": ["InStock", "SoldOut"]}, "later", None),
        ({"type": "string"}, "  A &amp;\n B ", "A & B"),
        ({"type": "string"}, {"@value": "Alder", "@language": "en"}, "Alder"),
        ({"type": "string"}, {"@type": "Person", "name": "Ada"}, "Ada"),
        ({"type": "string"}, {"@type": "Thing"}, None),
        ({"type": "string"}, " ", None),
        ({"type": "string"}, None, None),
    ],
)
def test_a_text_becomes_a_value_of_its_type_or_none(kind: dict[str, Any], stated: Any, value: Any) -> None:
    found = structured.claims(schema_of(value=kind), jsonld({"value": stated}))
    assert [claim.value for claim in found] == ([] if value is None else [value])


def test_lists_give_items_and_objects_of_a_list_stay_together() -> None:
    person = {"type": "object", "properties": {"name": {"type": "string"}, "jobTitle": {"type": "string"}}}
    schema = schema_of(
        keywords={"type": "array", "items": {"type": "string"}}, employee={"type": "array", "items": person}
    )
    found = jsonld(
        {
            "keywords": ["wind power", "sun power"],
            "employee": [{"name": "Ada Dahl"}, {"name": "Jonas Weber", "jobTitle": "Finance Lead"}],
        }
    )
    assert said(found, schema) == {
        "/keywords/0": ["wind power"],
        "/keywords/1": ["sun power"],
        "/employee/0/name": ["Ada Dahl"],
        "/employee/1/name": ["Jonas Weber"],
        "/employee/1/jobTitle": ["Finance Lead"],
    }


# Bounds


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            [
                {"@type": "Product", "name": "Lamp", "sku": "L1"},
                {"@type": "Product", "name": "Bed", "offers": {"price": 500}},
            ],
            {"/name": ["Lamp"], "/sku": ["L1"]},
        ),
        (
            [
                {"@type": "BreadcrumbList", "name": "Path"},
                {"@type": "Product", "name": "Lamp", "sku": "L1", "offers": {"price": 20}},
            ],
            {"/name": ["Lamp"], "/sku": ["L1"], "/price": [20]},
        ),
        (
            [{"@type": "Product", "name": "Lamp", "sku": "L1"}, {"@type": "Thing", "name": "Lamp", "price": 20}],
            {"/name": ["Lamp"], "/sku": ["L1"], "/price": [20]},
        ),
    ],
)
def test_a_record_of_no_type_is_about_one_thing(data: list[Any], expected: dict[str, list[Any]]) -> None:
    schema = schema_of(name={"type": "string"}, sku={"type": "string"}, price={"type": "number"})
    assert said(jsonld(*data), schema) == expected


def test_content_says_what_a_span_only_shows() -> None:
    html = """<div itemscope itemtype="https://schema.org/Offer">
      <span itemprop="price" content="1000.00">1,000.00</span>
      <span itemprop="priceCurrency" content="USD">$</span></div>"""
    schema = schema_of(price={"type": "number"}, currency={"type": "string"})
    assert said(page(html), schema) == {"/price": [1000.0], "/currency": ["USD"]}


def nested(depth: int) -> Any:
    data: Any = {"@type": "Organization", "name": "Deep"}
    for _ in range(depth):
        data = {"@type": "WebSite", "publisher": data}
    return data


CIRCLE = {
    **ALDER,
    "@id": "#a",
    "address": {"@id": "#b"},
    "x": {"@id": "#b", "streetAddress": {"@id": "#b"}, "addressLocality": {"@id": "#a"}, "y": {"@id": "#b"}},
}
WILD: dict[str, Any] = {
    "long text": {**ALDER, "email": "x" * 900_000},
    "many things": [{"@type": "Organization", "name": f"n{at}", "url": f"http://{at}.test/"} for at in range(9_000)],
    "chain of references": {
        "@graph": [{"@id": f"#{at}", "@type": "WebPage", "about": {"@id": f"#{at + 1}"}} for at in range(9_000)]
    },
    "circle of references": CIRCLE,
    "deep": nested(400),
    "many items": {**ALDER, "email": [f"a{at}@alder.test" for at in range(20_000)]},
    "lists of lists": {**ALDER, "name": [["a"] * 100] * 1_000},
    "odd numbers": {**ALDER, "foundingDate": [float("nan"), float("inf"), 10**400, -0.0]},
}


@pytest.mark.parametrize("name", WILD)
def test_wild_data_takes_bounded_time_and_stays_checkable(name: str) -> None:
    started = time.process_time()
    found = jsonld(*(WILD[name] if isinstance(WILD[name], list) else [WILD[name]]))
    for claim in structured.claims(ORGANIZATION, found):
        assert claim.source.text == structured.text_at(found.data, claim.source.locator)
    json.dumps(found.data, allow_nan=False)
    assert len(found.structured.text) < 5_000_000
    assert time.process_time() - started < 3


def test_a_locator_that_leads_nowhere_has_no_text() -> None:
    data = jsonld(ALDER).data
    assert structured.text_at(data, "/0/data/name") == "Alder Trust"
    for locator in ("/0/data/nothing", "/9/data/name", "/0/data/name/0", "", "/x", "/0/data/name /0/data/nothing"):
        assert structured.text_at(data, locator) is None


# Repaired JSON-LD


def test_a_value_of_repaired_json_says_so() -> None:
    found = page('<script type=application/ld+json>{"@type": "Organization", "name": "Alder", /* x */}</script>')
    (claim,) = structured.claims(ORGANIZATION, found)
    field = judge.judge(claim, ORGANIZATION.leaf_for(claim.path))
    assert (field.value, field.verdict, field.note) == ("Alder", Verdict.SUPPORTED, "repaired: comment, comma")


def test_a_value_of_valid_json_says_nothing() -> None:
    claim = structured.claims(ORGANIZATION, jsonld(ALDER))[0]
    assert judge.judge(claim, ORGANIZATION.leaf_for(claim.path)).note == ""


# References


def test_a_relative_reference_leads_to_the_whole_name() -> None:
    schema = schema_of(publisher={"type": "string"})
    article = {"@type": "Article", "publisher": {"@id": "#org"}}
    graph = {"@graph": [article, {"@type": "Organization", "@id": f"{URL}#org", "name": "Alder Trust"}]}
    assert said(jsonld(graph), schema) == {"/publisher": ["Alder Trust"]}


# Microformats, cards and Dublin Core


def test_a_card_is_of_an_organization_if_its_name_is_one() -> None:
    card = "<div class=vcard><b class='fn org'>Alder Trust</b><b class=tel>+47 55 01 22 33</b></div>"
    assert said(page(card))["/name"] == ["Alder Trust"]
    assert said(page("<div class=vcard><b class=fn>Ann Lee</b><b class=org>Alder Trust</b></div>")) == {}


def test_an_item_without_properties_has_its_text() -> None:
    schema = schemas.inline(
        {"type": "object", "properties": {"brand": {"type": "string"}}, "x-curtsy": {"types": ["Product"]}}
    )
    html = (
        "<div itemscope itemtype=http://schema.org/Product><b itemprop=brand itemscope itemtype=x/Brand>Acme</b></div>"
    )
    assert said(page(html), schema) == {"/brand": ["Acme"]}


@pytest.mark.parametrize(
    ("key", "element"),
    [
        ("twitter:title", '<meta name="twitter:title" content="T">'),
        ("twitter:title", '<meta property="twitter:title" content="T">'),
        ("meta:twitter:title", '<meta name="twitter:title" content="T">'),
        ("og:title", '<meta name="og:title" content="T">'),
        ("meta:DC.title", '<meta name="DC.Title" content="T">'),
        ("meta:x:title", '<meta name="x:title" content="T">'),
        ("x:title", '<meta property="x:title" content="T">'),
    ],
)
def test_meta_elements_are_found_by_their_names(key: str, element: str) -> None:
    schema = schemas.inline(
        {"type": "object", "properties": {"a": {"type": "string"}}, "x-curtsy": {"structured": {"a": [key]}}}
    )
    assert said(page(element), schema) == {"/a": ["T"]}


def test_an_element_without_an_address_is_no_evidence_for_one() -> None:
    schema = schemas.inline({"type": "object", "properties": {"url": {"type": "string"}, "image": {"type": "string"}}})
    html = "<div itemscope itemtype=http://schema.org/Product><a itemprop=url></a><img itemprop=image src=''></div>"
    assert said(page(html), schema) == {}


@pytest.mark.parametrize(
    ("stated", "path", "kept"),
    [
        ({"email": "x@@y"}, "/contact/email", None),
        ({"email": "x@localhost"}, "/contact/email", None),
        ({"email": "office@alder.test"}, "/contact/email", "office@alder.test"),
        ({"telephone": "call"}, "/contact/phone", None),
        ({"telephone": "112"}, "/contact/phone", "112"),
        ({"address": "none"}, "/contact/address", None),
        ({"address": "Mill Road 4, Bergen"}, "/contact/address", "Mill Road 4, Bergen"),
    ],
)
def test_a_contact_that_is_none_does_not_count(stated: dict[str, str], path: str, kept: str | None) -> None:
    assert said(jsonld({**ALDER, **stated})).get(path) == (None if kept is None else [kept])


def test_a_boolean_is_no_name_and_a_negative_amount_no_price() -> None:
    wanted = schema_of(name={"type": "string"}, price={"type": "number"})
    assert said(jsonld({"@type": "Product", "name": True, "offers": {"price": -5}}), wanted) == {}
    assert said(jsonld({"@type": "Product", "name": "Boat", "offers": {"price": "-5.00"}}), wanted) == {
        "/name": ["Boat"]
    }
    assert said(jsonld({"@type": "Product", "name": "true", "offers": {"price": 0}}), wanted) == {
        "/name": ["true"],
        "/price": [0.0],
    }
