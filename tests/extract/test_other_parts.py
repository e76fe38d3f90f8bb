"""Parts of a page that are about something else: other events and jobs, suppliers, related recipes, comments."""

from __future__ import annotations

from typing import Any

import pytest

from curtsy.extract import record_claims
from curtsy.grounding import judge, schema

_EVENT = "<title>Summer fair</title><h1>Summer fair</h1><p>Music and food for everybody at the old mill.</p>"
_JOB = "<title>Baker</title><h1>Baker</h1><p>You bake bread and cakes with a team of five people.</p>"
_TABLE = "<table><tr><th>Date<td>3 March 2027<tr><th>Location<td>Castle</table>"
_LINES = "<p>Date: 3 March 2027</p><p>Location: Castle</p>"
_OFFER = "<p>Employer: Other AS</p><p>Location: Oslo</p>"


def _record(name: str, html: str) -> dict[str, Any]:
    made = schema.load(name)
    page = record_claims.sources_of("1", "https://a.test/x", html.encode(), "text/html; charset=utf-8")
    data = judge.assemble(made, judge.settle(made, record_claims.extract(made, [page]).claims))
    return {key: value for key, value in data.items() if value and key not in ("name", "title")}


@pytest.mark.parametrize(
    ("name", "html"),
    [
        ("event", f"{_EVENT}<h2>More events</h2>{_TABLE}"),
        ("event", f"{_EVENT}<h2>More events</h2><h3>Winter ball</h3>{_LINES}"),
        ("event", f"{_EVENT}<h2>Weitere Veranstaltungen</h2>{_LINES}"),
        ("event", f"{_EVENT}<aside><h3>Winter ball</h3>{_LINES}</aside>"),
        ("event", f"{_EVENT}<div class='related-events'><h3>Winter ball</h3>{_LINES}</div>"),
        ("job", f"{_JOB}<h2>Similar jobs</h2>{_OFFER}"),
        ("job", f"{_JOB}<h2>Offres similaires</h2>{_OFFER}"),
        ("job", f"{_JOB}<ul class=related><li>{_OFFER}</ul>"),
    ],
)
def test_values_of_another_event_or_job_are_left_alone(name: str, html: str) -> None:
    assert _record(name, html) == {}


@pytest.mark.parametrize(
    "html",
    [
        f"{_EVENT}{_LINES}<h2>More events</h2><p>Date: 4 April 2027</p>",
        f"{_EVENT}<h2>More events</h2><p>Date: 4 April 2027</p><h2>When and where</h2>{_LINES}",
        f"{_EVENT}<aside><h3>Event details</h3>{_LINES}</aside>",
        f"{_EVENT}<aside>{_LINES}</aside>",
        f"<div class=related-view>{_EVENT}{_TABLE}</div><p>{'Further text. ' * 30}</p>",
        f"<h2>Newsletter</h2>{_EVENT}{_TABLE}",
    ],
)
def test_values_of_the_event_itself_are_found(html: str) -> None:
    assert _record("event", html) == {"start": "2027-03-03", "location": "Castle"}


def test_a_pattern_finds_the_heading_of_such_a_part() -> None:
    made = schema.inline(
        {"type": "object", "properties": {"comments": {"type": "integer"}},
         "x-curtsy": {"selectors": {"comments": [{"pattern": r"(?m)^(\d+) comments$"}]}}}
    )  # fmt: skip
    html = b"<title>Fog</title><h1>Fog</h1><p>It was foggy.</p><h2>12 comments</h2><p>So it was.</p>"
    page = record_claims.sources_of("1", "https://a.test/x", html, "text/html")
    assert [claim.value for claim in record_claims.extract(made, [page]).claims] == [12]


_FACTS = "<table><tr><th>Founded<td>1921<tr><th>Headquarters<td>Oslo, Norway</table>"


def test_facts_of_suppliers_are_not_those_of_the_organization() -> None:
    head = "<title>Alder Trust</title><h1>About Alder Trust</h1><p>Alder Trust mends boats.</p>"
    assert _record("organization", f"{head}<h2>Our suppliers</h2>{_FACTS}") == {}
    assert _record("organization", f"{head}<h2>Our history</h2>{_FACTS}") == {
        "founded_year": 1921, "headquarters": "Oslo, Norway"
    }  # fmt: skip
