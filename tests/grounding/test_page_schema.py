"""The schema `page`: every value that a page states has the place where it states it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curtsy.core.claims import SourceKind, Verdict
from curtsy.core.model import Page
from curtsy.grounding.json_pointer import value_at
from curtsy.grounding.page_schema import Described, Stored, describe
from curtsy.rules.urls import normalise

PAGES = sorted((Path(__file__).parents[1] / "golden").glob("*/*.html"))
URL = "https://a.test/dir/page"
HTML = """<!doctype html><html lang=" en-GB "><head><title>
  Boats &amp; oars </title><link rel="alternate canonical" href="../boats">
<meta name="description" content="Old boats."><meta property="og:description" content="Other words.">
<script type="application/ld+json">{"@type": "Thing"}</script></head>
<body><h1>Boats <em>and</em>
 oars</h1><h2 style="display:none">Hidden one</h2><h3>Visible <span hidden>not</span> part</h3><p>Words.</p></body>
</html>"""


def described(html: bytes, url: str = URL) -> Described:
    page = Page(id="1-aa", crawl=1, fp=b"\xaa", url=url, host="a.test", status=200, fetched_ms=0, depth=0)
    return describe(Stored(page, html, "text/html; charset=utf-8"))


def stated(facts: dict[str, Any]) -> set[str]:
    """The pointers of the values that have evidence: all except the address and the count of words."""
    single = {f"/{name}" for name in ("title", "description", "language", "canonical") if facts[name]}
    return single | {f"/{name}/{at}" for name in ("headings", "structured") for at in range(len(facts[name]))}


def test_each_value_has_the_place_where_the_page_states_it() -> None:
    found = described(HTML.encode())
    by_path = {one.field.path: one for one in found.cited}
    assert set(by_path) == stated(found.facts)
    quotes = {path: one.field.evidence[0].quote for path, one in by_path.items()}
    assert quotes["/title"] == "\n  Boats & oars "
    assert quotes["/language"] == " en-GB "
    assert (quotes["/canonical"], found.facts["canonical"]) == ("../boats", "https://a.test/boats")
    assert (quotes["/description"], found.facts["description"]) == ("Old boats.", "Old boats.")
    assert by_path["/description"].field.evidence[0].locator == "/2/data/description"
    assert value_at(found.facts["structured"], "/2/data/description") == "Old boats."
    assert quotes["/headings/0"] == "Boats and oars"
    assert by_path["/headings/0"].source.kind is SourceKind.TEXT
    # What a reader does not see is evidence for the element, not for the text.
    assert [by_path[f"/headings/{at}"].source.kind for at in (1, 2)] == [SourceKind.ATTRIBUTE] * 2
    assert quotes["/structured/0"] == '{"kind": "json-ld", "data": {"@type": "Thing"}}'


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_on_real_forms_of_pages_every_stated_value_follows_from_its_span(path: Path) -> None:
    found = described(path.read_bytes())
    assert {one.field.path for one in found.cited} == stated(found.facts)
    for field, source in found.cited:
        (evidence,) = field.evidence
        assert source.text[evidence.start : evidence.end] == evidence.quote != ""
        assert evidence.sha256 == source.sha256
        assert field.verdict in (Verdict.SUPPORTED, Verdict.DERIVED)
        assert value_at(found.facts, field.path) == field.value
        if field.path.startswith("/headings"):
            assert " ".join(evidence.quote.split()).startswith(field.value["text"])
        elif field.path == "/canonical":
            assert normalise(evidence.quote, URL) == field.value
        elif isinstance(field.value, str):
            assert " ".join(evidence.quote.split()).startswith(" ".join(field.value.split()))


def test_pages_without_anything_have_no_evidence() -> None:
    assert described(b"").cited == []
    page = Page(id="1-aa", crawl=1, fp=b"", url=URL, host="", status=200, fetched_ms=0, depth=0)
    assert describe(Stored(page, b"words", "text/plain")).cited == []
