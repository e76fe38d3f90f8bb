"""Selectors and the claims of a record: what each source finds, on what it rests, and what is left for the next."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curtsy.core.claims import Claim, Extraction, Rung, SourceKind, Usage
from curtsy.extract import record_claims, selectors, structured
from curtsy.extract.record_claims import Candidate, PageSources
from curtsy.grounding import judge
from curtsy.grounding import schema as schemas
from curtsy.grounding.schema import Leaf, Schema
from curtsy.grounding.sentences import sentence_around
from curtsy.services import stored_files
from curtsy.tinyweb import facts
from curtsy.tinyweb.facts import Kind
from curtsy.tinyweb.pages import OrgSite, Shape

TEXT = {"type": "string"}
LIST = {"type": "array", "items": TEXT}
ORGANIZATION = schemas.load("organization")


def schema_of(hints: dict[str, Any], **properties: Any) -> Schema:
    return schemas.inline({"type": "object", "properties": properties, "x-curtsy": hints})


def page(html: str, url: str = "http://a.test/about", name: str = "p1") -> PageSources:
    return record_claims.sources_of(name, url, html.encode(), "text/html; charset=utf-8")


def found(selector: Any, html: str, kind: Any = TEXT, url: str = "http://a.test/about") -> list[Claim]:
    return selectors.claims(schema_of({"selectors": {"value": selector}}, value=kind), page(html, url))


# Selectors

HTML = """<title>About | Alder Trust</title><h1>Who <b>we</b> are</h1>
<p class="year">1973</p><p>Alder Trust was founded in 1973 by neighbours. We planted 1,200 trees. It rained.</p>
<a class="mail" href="mailto:office@alder.test?subject=x">write</a><ul><li>wind power</li><li>sun power</li></ul>"""


@pytest.mark.parametrize(
    ("selector", "kind", "values"),
    [
        ("h1", TEXT, ["Who we are"]),
        ({"css": "li"}, LIST, ["wind power", "sun power"]),
        ({"css": "li"}, TEXT, ["wind power", "sun power"]),
        ({"css": ".year"}, {"type": "integer"}, [1973]),
        ({"css": "h1"}, {"type": "integer"}, []),
        ({"css": "a.mail", "attribute": "HREF"}, TEXT, ["mailto:office@alder.test?subject=x"]),
        ({"css": "a.mail", "attribute": "href", "pattern": "^mailto:([^?]+)"}, TEXT, ["office@alder.test"]),
        ({"css": "title", "pattern": r"\| (?P<value>.+)$"}, TEXT, ["Alder Trust"]),
        ({"pattern": r"founded in (\d{4})"}, {"type": "integer"}, [1973]),
        ({"pattern": r"(founded|planted) (?P<value>[\d,]+) trees"}, {"type": "integer"}, [1200]),
        ({"pattern": r"\bplanted\b", "sentence": True}, TEXT, ["We planted 1,200 trees"]),
        (
            {"pattern": r"\bwas\b|\bWe\b|\bIt\b", "sentence": True, "also": [r"\d", "trees"]},
            LIST,
            ["We planted 1,200 trees"],
        ),
        ({"pattern": "nothing of the kind"}, TEXT, []),
        ({"css": "h1", "pages": ["contact"]}, TEXT, []),
        ({"css": "h1", "pages": ["contact", "/ab*"]}, TEXT, ["Who we are"]),
        ([{"css": "h9"}, {"css": "h1"}], TEXT, ["Who we are"]),
    ],
)
def test_selectors_find_values_of_the_leafs_type(selector: Any, kind: Any, values: list[Any]) -> None:
    claims = found(selector, HTML, kind)
    assert [claim.value for claim in claims] == values
    for claim in claims:
        assert claim.rung is Rung.SELECTOR
        assert claim.quote is not None
        assert claim.quote in claim.source.text


def test_an_element_is_its_own_source_and_a_pattern_rests_on_its_sentence() -> None:
    (claim,) = found({"css": "a.mail", "attribute": "href", "pattern": "^mailto:([^?]+)"}, HTML)
    assert (claim.source.kind, claim.source.locator) == (SourceKind.ATTRIBUTE, "css:a.mail @href")
    assert claim.source.text == claim.quote == "mailto:office@alder.test?subject=x"
    (claim,) = found({"pattern": r"founded in (\d{4})"}, HTML, {"type": "integer"})
    assert (claim.source.kind, claim.source.locator) == (SourceKind.TEXT, "")
    assert claim.source.text == page(HTML).text.text
    assert claim.quote == "Alder Trust was founded in 1973 by neighbours."


@pytest.mark.parametrize(
    ("sentence", "taken"),
    [
        ("Alder Trust was founded in 1973.", True),
        ("Alder Trust, a cooperative of forty members, was founded in 1973.", True),
        ("Later founded in 1973, Alder Trust mends things.", True),
        ("Alder Trust’s neighbour was founded in 1973.", False),
        ("Alder Trust is close to the Old Mill, which was founded in 1973.", False),
        ("We think that the mill was founded in 1973.", False),
        ("We were founded in 1973.", True),
        ("ALDER TRUST was founded in 1973.", True),
        ("The museum was founded in 1973.", False),
        ("Westward Ho was founded in 1973.", False),
    ],
)
def test_a_sentence_must_be_about_its_subject(sentence: str, taken: bool) -> None:
    schema = schema_of(
        {"selectors": {"name": "h1", "year": {"pattern": r"founded in (\d{4})", "subject": "name"}}},
        name=TEXT,
        year={"type": "integer"},
    )
    claims = selectors.claims(schema, page(f"<h1>Alder Trust</h1><p>{sentence}</p>"))
    assert [claim.value for claim in claims if claim.path == "/year"] == ([1973] if taken else [])


@pytest.mark.parametrize(
    ("text", "word", "sentence"),
    [
        ("One. Two is here. Three.", "Two", "Two is here."),
        ("One line\nTwo is here\nThree", "Two", "Two is here"),
        ("In approx. 3.5 years Two grew! Three.", "Two", "In approx. 3.5 years Two grew!"),
        ("Two", "Two", "Two"),
        ("Is it One? Two.", "Two", "Two."),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, word: str, sentence: str) -> None:
    at = text.index(word)
    start, end = sentence_around(text, at, at + len(word))
    assert text[start:end] == sentence


def test_a_sentence_without_an_end_is_cut() -> None:
    text = "word " * 1000
    start, end = sentence_around(text, 2500, 2504)
    assert start <= 2500 < 2504 <= end
    assert end - start <= 900


WILD = {
    "one line": "we were founded in 1973 water 3 " * 20_000,
    "sentences": "<p>We saved 3 tonnes of carbon." * 20_000,
    "addresses": "a@b.test " * 60_000,
    "numbers": "tel: " + "1 2 3 4 5 6 7 8 " * 40_000,
    "characters": "ü we carbon 3. Ä " * 40_000,
}


@pytest.mark.parametrize("name", WILD)
def test_wild_text_takes_bounded_time(name: str) -> None:
    schema, wild = ORGANIZATION, page(WILD[name])
    started = time.process_time()
    assert len(record_claims.extract(schema, [wild, wild]).claims) <= 200
    assert time.process_time() - started < 5


def test_what_is_not_a_page_says_nothing() -> None:
    schema = ORGANIZATION
    for body, kind in ((b"", "text/html"), (b"\x00\xff" * 100, "image/png"), (b"%PDF", None), (b"<p>", "text/html")):
        assert record_claims.extract(schema, [record_claims.sources_of("p", "http://a.test/", body, kind)]).claims == ()
    plain = record_claims.sources_of("p", "http://a.test/", b"We were founded in 1973 by neighbours.", "text/plain")
    assert [claim.value for claim in record_claims.extract(schema, [plain]).claims] == [1973]
    assert plain.words == 7


# The order of sources


class Asked:
    """Stands for a language model: it notes what it is asked and answers what it is told to."""

    def __init__(self, *claims: tuple[str, Any, str]) -> None:
        self.claims = claims
        self.leaves: list[list[str]] = []

    def ask(self, schema: Schema, leaves: Sequence[Leaf], pages: Sequence[PageSources]) -> Extraction:
        self.leaves.append([leaf.path for leaf in leaves])
        text = pages[0].text
        claims = (
            Claim(path=path, value=value, rung=Rung.LLM, source=text, quote=quote) for path, value, quote in self.claims
        )
        return Extraction(claims=tuple(claims), usage=Usage(calls=1))


MIXED = {"structured": {"name": ["name"]}, "selectors": {"mail": {"pattern": r"[a-z]+@[a-z.]+[a-z]"}, "tags": "li"}}
KINDS = {"name": TEXT, "mail": TEXT, "tags": LIST, "motto": TEXT}
DATA = '<script type="application/ld+json">{"name": "Alder Trust"}</script>'


def test_each_rung_is_climbed_only_for_what_is_missing() -> None:
    schema, asked = schema_of(MIXED, **KINDS), Asked(("/motto", "mend what breaks", "We mend what breaks."))
    html = f"{DATA}<p>office@alder.test</p><ul><li>wind power</li></ul><p>We mend what breaks.</p>"
    extraction = record_claims.extract(schema, [page(html)], asked)
    assert [(claim.path, claim.rung) for claim in extraction.claims] == [
        ("/name", Rung.STRUCTURED),
        ("/mail", Rung.SELECTOR),
        ("/tags/0", Rung.SELECTOR),
        ("/motto", Rung.LLM),
    ]
    assert asked.leaves == [["/motto"]]
    assert extraction.usage.calls == 1


def test_nobody_is_asked_for_nothing() -> None:
    asked = Asked()
    schema = schema_of({"structured": {"name": ["name"]}}, name=TEXT)
    assert len(record_claims.extract(schema, [page(DATA)], asked).claims) == 1
    assert record_claims.extract(schema, [], asked).claims == ()
    assert asked.leaves == []


def test_what_is_found_without_support_is_still_missing() -> None:
    schema = schema_of({"selectors": {"year": {"pattern": r"\d{4}"}}}, year={"type": "integer"})
    asked = Asked(("/year", 1973, "They opened the doors in 1973."))
    claims = record_claims.extract(schema, [page("<p>1999</p><p>They opened the doors in 1973.</p>")], asked).claims
    assert asked.leaves == []  # a later match of the pattern has support
    claims = record_claims.extract(schema, [page("<p>1999</p><p>They opened the doors long ago.</p>")], asked).claims
    assert asked.leaves == [["/year"]]
    assert [claim.value for claim in claims] == [1999, 1973]
    assert judge.assemble(schema, judge.settle(schema, claims)) == {}


def test_the_items_of_a_list_are_numbered_on_over_pages() -> None:
    schema = schema_of(MIXED, **KINDS)
    pages = [
        page("<li>wind power</li><li>sun power</li>", name="p1"),
        page("<li>water power</li>", "http://a.test/contact", "p2"),
    ]
    claims = record_claims.extract(schema, pages).claims
    assert [(claim.path, claim.value, claim.source.page) for claim in claims] == [
        ("/tags/0", "wind power", "p1"),
        ("/tags/1", "sun power", "p1"),
        ("/tags/2", "water power", "p2"),
    ]


def test_the_objects_of_a_list_stay_whole_over_pages() -> None:
    person = {"type": "object", "properties": {"name": TEXT, "jobTitle": TEXT}}
    schema = schema_of({}, employee={"type": "array", "items": person})

    def of(name: str, *people: dict[str, str]) -> PageSources:
        return page(f'<script type="application/ld+json">{json.dumps({"employee": people})}</script>', name=name)

    ada, jonas, vera = (
        {"name": "Ada Dahl", "jobTitle": "Research Lead"},
        {"name": "Jonas Weber"},
        {"name": "Vera Novak", "jobTitle": "Finance Lead"},
    )
    claims = record_claims.extract(schema, [of("p1", ada, jonas), of("p2", vera)]).claims
    assert judge.assemble(schema, judge.settle(schema, claims)) == {"employee": [ada, jonas, vera]}


def test_a_leaf_has_no_more_claims_than_are_of_use() -> None:
    schema = schema_of(MIXED, **KINDS)
    html = "<p>" + " ".join(f"a{chr(97 + at)}@alder.test" for at in range(20)) + "<li>item" * 300
    claims = record_claims.extract(schema, [page(html, name=f"p{at}") for at in range(10)]).claims
    assert sum(claim.path == "/mail" for claim in claims) <= 6
    assert sum(claim.path.startswith("/tags/") for claim in claims) <= 100


def test_claims_for_what_is_not_in_the_schema_are_dropped() -> None:
    asked = Asked(("/other", 1, ""), ("/tags", [], ""), ("/motto", "x y z w", ""))
    claims = record_claims.extract(schema_of(MIXED, **KINDS), [page("<p>x")], asked).claims
    assert [claim.path for claim in claims] == ["/motto"]


# The built-in schema, against the truth of the tiny web


def sources(site: OrgSite, url: str) -> PageSources:
    answer = site.answer(url.removeprefix(f"http://{site.host}"))
    body = answer.wire[len(answer.head) :]
    is_file = url.endswith(site.document or "?")
    file = stored_files.file_of(body, None, url) if is_file else None
    return record_claims.sources_of(url, url, body, "text/html", file)


def record(number: int) -> tuple[facts.Organization, dict[str, Any], list[Claim]]:
    schema, host = ORGANIZATION, facts.org_host(number)
    site = OrgSite(host, Shape())
    listed = [Candidate(f"http://{host}{path}", is_file=path == site.document) for path in site.paths]
    pages = [sources(site, url) for url in record_claims.choose(schema, listed)]
    claims = list(record_claims.extract(schema, pages).claims)
    return facts.truth(host), judge.assemble(schema, judge.settle(schema, claims)), claims


def expected(org: facts.Organization) -> dict[str, Any]:
    contact = {"email": org.contact.email, "phone": org.contact.phone, "address": org.contact.address}
    claims = [claim.text for claim in org.sustainability_claims]
    stated = {
        "name": org.name,
        "mission": org.mission,
        "founded_year": org.founded_year,
        "headquarters": org.headquarters,
        "sustainability_claims": claims,
    }
    return {key: value for key, value in stated.items() if value} | {
        "contact": {key: value for key, value in contact.items() if value}
    }


@pytest.mark.parametrize("number", range(30))
def test_an_organization_is_found_as_its_site_states_it(number: int) -> None:
    if facts.kind_of(number) in (Kind.SCRIPT, Kind.FETCHED):
        return  # nothing stands in their HTML
    org, data, claims = record(number)
    found = {key: value for key, value in data.items() if value}
    unread = facts.IN_DOCUMENT[Kind.SCANNED] if org.kind is Kind.SCANNED else ()
    assert found == {key: value for key, value in expected(org).items() if key not in unread}
    rungs = {claim.path: claim.rung for claim in reversed(claims)}
    assert rungs["/name"] is (Rung.STRUCTURED if org.kind is Kind.JSONLD else Rung.SELECTOR)


# Whatever a page says

_KEYS = st.sampled_from(
    (
        *("@type", "@id", "@graph", "@value", "name", "url", "address", "streetAddress", "addressLocality", "email"),
        *("addressCountry", "foundingDate", "mainEntity", "publisher", "properties", "type", "telephone"),
    )
)
_SCALARS = st.sampled_from(
    ("Organization", "WebSite", "#a", "1973", "http://a.test/", "a@a.test", "Bergen", "", " ", "/")
)
_DATA = st.recursive(
    _SCALARS | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=6),
    max_leaves=30,
)
_WORDS = st.sampled_from(
    (
        *("We were founded in 1973", "Alder Trust", "our mission is to", "tel: 12 34 56 78", "©", "a@b.test"),
        *(". ", "<p>", "<h1>", "</h1>", "<title>", "</title>", "Oslo, Norway", "our headquarters in"),
        *("\n", "3 tonnes of carbon we", "\u2028", "\x00", "ß"),
    )
)


@settings(max_examples=150, deadline=None)
@given(data=_DATA, words=st.lists(_WORDS, max_size=12))
def test_every_claim_stands_in_its_source_whatever_the_page(data: Any, words: list[str]) -> None:
    schema = ORGANIZATION
    script = f'<script type="application/ld+json">{json.dumps(data)}</script>'
    source = page(script + " ".join(words), "http://a.test/about")
    for claim in record_claims.extract(schema, [source]).claims:
        assert schema.leaf_for(claim.path)
        assert claim.quote
        assert claim.quote in claim.source.text
        if claim.source.kind is SourceKind.STRUCTURED:
            assert structured.text_at(source.data, claim.source.locator) == claim.source.text
        field = judge.judge(claim, schema.leaf_for(claim.path))
        for evidence in field.evidence:
            assert claim.source.text[evidence.start : evidence.end] == evidence.quote
