"""Numbers, dates and currencies in many languages, and a model's quotes over real markup: floors that only rise."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import quoting

from curtsy.core.claims import Claim, Rung, Source, SourceKind
from curtsy.extract import record_claims
from curtsy.grounding import judge, schema
from curtsy.grounding.schema import Leaf


class Case(NamedTuple):
    accepted: bool
    type: str
    value: Any
    language: str
    quote: str


def _case(line: str) -> Case:
    accepted, kind, value, language, quote, *_ = [part.strip() for part in line.split(" | ")]
    made: Any = float(value) if kind in ("number", "share") else int(value) if kind == "integer" else value
    return Case(accepted == "yes", kind, made, language, quote)


LINES = (Path(__file__).parent / "languages.txt").read_text("utf-8").splitlines()
CASES = [_case(line) for line in LINES if line and not line.startswith("#")]


def test_there_are_many_cases_in_many_languages() -> None:
    assert len(CASES) >= 200
    assert len({case.language for case in CASES}) > 38


@pytest.mark.parametrize("case", CASES, ids=[f"{case.language}-{case.value}-{case.accepted}" for case in CASES])
def test_a_value_is_accepted_as_labelled(case: Case) -> None:
    leaf = Leaf(path="/share" if case.type == "share" else "/x", type="number" if case.type == "share" else case.type)  # type: ignore[arg-type]
    source = Source(SourceKind.TEXT, "1", "http://a.test/", case.quote, language=case.language)
    field = judge.judge(Claim(path=leaf.path, value=case.value, rung=Rung.LLM, source=source, quote=case.quote), leaf)
    assert judge.is_grounded(field) is case.accepted, field.note


#: set -> least share of true quotes that are published, most of quotes of other lines
FLOORS = {
    "articles": (1.0, 0.03),
    "events": (1.0, 0.05),
    "jobs": (1.0, 0.035),
    "organizations": (1.0, 0.04),
    "organization_sites": (1.0, 0.03),
    "products": (1.0, 0.04),
}


@pytest.mark.parametrize("name", FLOORS)
def test_true_quotes_are_published_and_other_lines_are_not(name: str) -> None:
    right, other, told = quoting.shares(name)
    assert right >= FLOORS[name][0], [key for key in told if key.startswith("true /")]
    assert other <= FLOORS[name][1], [key for key in told if key.startswith("other /")]


@pytest.mark.parametrize(
    ("markup", "published"),
    [
        ('<span itemprop="jobLocation"><span itemprop="name">Como</span></span>', True),
        ('<span itemprop="brand"><span itemprop="name">Como</span></span>', False),
    ],
)
def test_markup_that_names_the_field_separates_a_value_from_its_line(markup: str, published: bool) -> None:
    page = f"<title>Cook</title><h1>Cook</h1><div><span>Lake Inn</span>{markup}</div>"
    source = record_claims.sources_of("1", "http://a.test/", page.encode(), "text/html; charset=utf-8").text
    leaf = schema.load("job").leaf_for("/location")
    claim = Claim(path="/location", value="Como", rung=Rung.LLM, source=source, quote="Lake InnComo")
    assert judge.is_grounded(judge.judge(claim, leaf)) is published
