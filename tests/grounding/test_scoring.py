"""Rubrics: how they are read, and that scores, reasons and quotes rest on evidence of published values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from curtsy.core.claims import Evidence, Field, Rung, SourceKind, Verdict
from curtsy.core.errors import UsageError
from curtsy.grounding import scoring as score

RUBRIC = """
fields = ["!/name"]
[groups]
green = 3
fair = 1
[[criteria]]
name = "emissions"
group = "green"
weight = 2
figures = true
patterns = ['\\bemissions?\\b', 'carbon']
against = ['carbon copy']
[[criteria]]
name = "trees"
group = "green"
enough = 2
patterns = ['\\btrees\\b']
[[criteria]]
name = "pay"
group = "fair"
patterns = ['living wage']
"""


def field(
    path: str, quote: str, value: Any = None, verdict: Verdict = Verdict.SUPPORTED, url: str = "http://alder.test/"
) -> Field:
    evidence = Evidence(
        page="p", url=url, source=SourceKind.TEXT, locator="", sha256="0" * 64, start=5, end=5 + len(quote), quote=quote
    )
    return Field(path=path, value=value or quote, rung=Rung.LLM, verdict=verdict, evidence=(evidence,))


def scored(
    text: str, fields: Sequence[Field], data: dict[str, Any] | None = None, ask: score.Ask | None = None
) -> dict[str, Any]:
    rubric = score.Rubric.parse(text, "mine")
    if data is None:
        data = {"claims": [one.value for one in fields if one.path.startswith("/claims/")]}
        data |= {one.path[1:]: one.value for one in fields if one.path.count("/") == 1}
    return score.score(rubric, "organization", data, fields, ask)


def by_name(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in result["criteria"]}


def test_criteria_groups_and_total_are_weighted() -> None:
    result = scored(
        RUBRIC,
        [
            field("/claims/0", "In 2021 we cut our emissions by 42 percent"),
            field("/claims/1", "We planted trees with schools"),
        ],
    )
    found = by_name(result)
    assert {name: one["score"] for name, one in found.items()} == {"emissions": 100.0, "trees": 50.0, "pay": 0.0}
    assert result["groups"] == {"green": 83.3, "fair": 0.0}
    assert result["total"] == 62.5
    assert result["rubric"] == "mine"
    assert found["emissions"]["quotes"] == [
        {"quote": "In 2021 we cut our emissions by 42 percent", "url": "http://alder.test/", "start": 5, "end": 47}
    ]
    assert found["emissions"]["reason"] == '1 quote with "emissions", 1 with a figure'
    assert found["pay"]["reason"] == "no evidence"


def test_a_year_is_no_figure() -> None:
    result = scored(RUBRIC, [field("/claims/0", "In 2021 we cut our emissions")])
    assert by_name(result)["emissions"]["score"] == 50.0
    assert score.has_figure("by 2021 kg 12")
    assert not score.has_figure("in 2021 and 1998")


def test_withheld_values_and_values_that_are_not_in_the_record_do_not_count() -> None:
    invented = field("/claims/0", "We cut emissions by 90 percent", verdict=Verdict.UNSUPPORTED)
    elsewhere = field("/claims/1", "We cut emissions by 80 percent")
    result = scored(RUBRIC, [invented, elsewhere], data={"claims": ["We cut emissions by 90 percent"]})
    assert result["total"] == 0.0
    assert all(not one["quotes"] for one in result["criteria"])


def test_values_prove_nothing_without_their_quotes() -> None:
    result = scored(RUBRIC, [field("/claims/0", "We planted birches", value="We cut emissions by 90 percent")])
    assert by_name(result)["emissions"]["score"] == 0.0


def test_fields_that_the_rubric_leaves_out_do_not_count() -> None:
    result = scored(RUBRIC, [field("/name", "Low Carbon Emissions 7 Trust")])
    assert result["total"] == 0.0


def test_a_quote_that_speaks_against_itself_does_not_count() -> None:
    assert by_name(scored(RUBRIC, [field("/claims/0", "Send a carbon copy of 12 pages")]))["emissions"]["score"] == 0.0


def test_the_same_words_count_once() -> None:
    result = scored(
        RUBRIC, [field("/claims/0", "We plant trees"), field("/claims/1", "We plant  TREES", url="http://b.test/")]
    )
    assert by_name(result)["trees"]["score"] == 50.0


# Questions

ASKING = """
[[criteria]]
name = "fair"
patterns = ['wage']
question = "Is everybody paid a living wage?"
[[criteria]]
name = "open"
question = "Are the books open?"
"""


@dataclass(frozen=True)
class Answer:
    score: float
    quote: str | None


def test_a_model_is_asked_about_quotes_only_and_its_answer_needs_one_of_them() -> None:
    asked: list[tuple[str, list[str]]] = []

    def ask(question: str, quotes: Sequence[str], /) -> Answer:
        asked.append((question, list(quotes)))
        return Answer(0.8, "a living wage") if "wage" in question else Answer(1.0, "all our books are open, trust me")

    result = scored(
        ASKING, [field("/claims/0", "We pay a living wage to all"), field("/claims/1", "We like tea")], ask=ask
    )
    found = by_name(result)
    assert asked == [
        ("Is everybody paid a living wage?", ["We pay a living wage to all"]),
        ("Are the books open?", ["We pay a living wage to all", "We like tea"]),
    ]
    assert (found["fair"]["score"], found["fair"]["quotes"][0]["quote"]) == (80.0, "We pay a living wage to all")
    assert (found["open"]["score"], found["open"]["quotes"]) == (0.0, [])
    assert "trust me" not in str(result)


def test_without_a_model_patterns_count_and_questions_are_left_out() -> None:
    result = scored(ASKING, [field("/claims/0", "We pay a living wage to all")])
    found = by_name(result)
    assert (found["fair"]["score"], found["open"]["score"], found["open"]["reason"]) == (100.0, None, "not asked")
    assert result["total"] == 100.0


def test_nobody_is_asked_where_there_is_no_evidence() -> None:
    def ask(question: str, quotes: Sequence[str], /) -> Answer:
        raise AssertionError("asked")

    assert scored(ASKING, [], ask=ask)["total"] == 0.0


# Reading rubrics


def test_the_version_follows_from_the_content_but_not_from_comments() -> None:
    one, two, three = (
        score.Rubric.parse(text, "mine")
        for text in (RUBRIC, "# a comment\n" + RUBRIC, RUBRIC.replace("weight = 2", "weight = 3"))
    )
    assert one.version == two.version != three.version
    assert len(one.version) == 16


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("criteria = [", "not valid TOML"),
        ("", "`criteria`: Field required"),
        ("[[criteria]]\nname = 'a'", "neither `patterns` nor a `question`"),
        ("[[criteria]]\npatterns = ['a']", "`name`: Field required"),
        ("[[criteria]]\nname = 'a'\npatterns = ['(']", "google-re2"),
        ("[[criteria]]\nname = 'a'\npatterns = ['(?=a)']", "google-re2"),
        ("[[criteria]]\nname = 'a'\npatterns = 'a'", "valid list"),
        ("[[criteria]]\nname = 'a'\npattern = ['a']", "`pattern`: unknown key"),
        ("[[criteria]]\nname = 'a'\npatterns = ['a']\nweight = -1", "greater than or equal to 0"),
        ("[[criteria]]\nname = 'a'\npatterns = ['a']\nenough = 0", "`enough`"),
        ("[[criteria]]\nname = 'a'\npatterns = ['a']\n" * 2, "two criteria"),
        ("[groups]\nb = 1\n[[criteria]]\nname = 'a'\ngroup = 'c'\npatterns = ['a']", "no weight for 'c'"),
        (f"[[criteria]]\nname = 'a'\npatterns = ['{'a' * 501}']", "longer than 500"),
    ],
)
def test_what_is_wrong_with_a_rubric_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        score.Rubric.parse(text, "mine")
    assert said in str(caught.value)
    assert "mine" in str(caught.value)


def test_rubrics_come_from_the_package_from_files_and_from_functions(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(RUBRIC)
    (tmp_path / "own_scoring.py").write_text("def rate(schema, data, quotes):\n    return 140 if quotes else 7\n")
    assert score.load("esg").name == "esg"
    assert score.load("own.toml", folder=tmp_path).name == "own"
    made = score.load("own_scoring:rate", folder=tmp_path, code=True)
    result = score.score(made, "organization", {}, [])
    assert (result["rubric"], result["total"], result["criteria"]) == ("own_scoring:rate", 7.0, [])
    full = score.score(made, "organization", {"name": "Alder"}, [field("/name", "Alder")])
    assert full["total"] == 100.0
    with pytest.raises(UsageError, match="functions are allowed only on the command line"):
        score.load("own_scoring:rate", folder=tmp_path)
    for spec in ("nothing", "missing.toml", "no_such_module:rate", "own_scoring:nothing"):
        with pytest.raises(UsageError):
            score.load(spec, folder=tmp_path, code=True)


def test_a_function_cannot_quote_what_is_no_evidence() -> None:
    def rate(schema: str, data: Any, quotes: list[dict[str, Any]]) -> dict[str, Any]:
        said = [*quotes, {"quote": "Trust me", "url": "http://evil.test/", "start": 0, "end": 8}]
        return {
            "total": 50,
            "groups": {"all": 50},
            "criteria": [{"name": "a", "score": 50, "reason": "so", "quotes": said}],
        }

    made = score.Function(name="m:rate", version="1", call=rate)
    result = score.score(made, "organization", {"name": "Alder"}, [field("/name", "Alder")])
    assert [one["quote"] for one in result["criteria"][0]["quotes"]] == ["Alder"]
    broken = score.Function(name="m:rate", version="1", call=lambda **_: "much")
    with pytest.raises(UsageError, match="instead of a number or a result"):
        score.score(broken, "organization", {}, [])
    for none in (float("nan"), {"total": float("inf")}):
        lost = score.Function(name="m:rate", version="1", call=lambda made=none, **_: made)
        with pytest.raises(UsageError, match=r"from 0 to 100, not (nan|inf)"):
            score.score(lost, "organization", {}, [])


@pytest.mark.parametrize("made", [{"total": "lots"}, {"criteria": ["good"]}, {"groups": ["a"]}, {"criteria": 5}])
def test_a_result_of_another_form_is_reported(made: Any) -> None:
    odd = score.Function(name="m:rate", version="1", call=lambda **_: made)
    with pytest.raises(UsageError, match="m:rate returned an invalid result"):
        score.score(odd, "organization", {}, [])


def test_a_scorer_that_ends_the_process_does_not() -> None:
    def leave(**_: Any) -> None:
        raise SystemExit(3)

    with pytest.raises(UsageError, match="m:rate exits the process"):
        score.score(score.Function(name="m:rate", version="1", call=leave), "organization", {}, [])


# The rubric that comes with the package


@pytest.mark.parametrize(
    ("quote", "criterion"),
    [
        ("In 2021 we cut our direct greenhouse gas emissions by 42 percent compared with 2015", "emissions"),
        ("Since 2019, 86 percent of our electricity has come from wind and sun", "energy"),
        ("We planted 12,450 native trees in 2020 together with local schools", "nature"),
        ("Our workshops saved 318 tonnes of material from landfill in 2019", "materials and waste"),
        ("In 2022 we used 31 percent less water per unit than three years before", "water"),
        ("By the end of 2023 140 of our suppliers had signed our code of fair work", "fair work"),
        ("By the end of 2023 140 of our suppliers had signed our code of fair work", "suppliers"),
        ("In 2024 99 percent of our packaging was made from recycled fibre", "materials and waste"),
        ("The board of 7 members is elected every two years", "ownership and say"),
        ("We publish what went wrong in our annual report", "accountability"),
    ],
)
def test_esg_finds_what_organisations_state(quote: str, criterion: str) -> None:
    result = score.score(
        score.load("esg"),
        "organization",
        {"sustainability_claims": [quote]},
        [field("/sustainability_claims/0", quote)],
    )
    assert by_name(result)[criterion]["score"] == 100.0
    assert 0 < result["total"] < 100


@pytest.mark.parametrize(
    "quote",
    [
        "We have never planted 500 trees.",
        "Unlike others we do not use 100% renewable electricity.",
        "Wir haben 2023 keine 500 Tonnen Abfall wiederverwendet",
    ],
)
def test_esg_gives_nothing_for_what_is_denied(quote: str) -> None:
    fields = [field("/sustainability_claims/0", quote)]
    result = score.score(score.load("esg"), "organization", {"sustainability_claims": [quote]}, fields)
    assert result["total"] == 0.0


@pytest.mark.parametrize(
    ("quote", "criterion"),
    [
        ("We not only plant trees, but sent 300 tonnes of waste back into use", "materials and waste"),
        ("None of our 40 suppliers uses child labour: we allow no child labour", "fair work"),
        ("Since 2020 our 12 shops have no plastic packaging", "materials and waste"),
    ],
)
def test_esg_counts_what_is_good_because_it_is_not_done(quote: str, criterion: str) -> None:
    fields = [field("/sustainability_claims/0", quote)]
    result = score.score(score.load("esg"), "organization", {"sustainability_claims": [quote]}, fields)
    assert by_name(result)[criterion]["score"] == 100.0


def test_esg_gives_nothing_for_names_and_addresses() -> None:
    fields = [
        field("/name", "Wind and Water Recycling Cooperative 7"),
        field("/headquarters", "Carbon Forest 12, Climate"),
    ]
    result = score.score(score.load("esg"), "organization", {one.path[1:]: one.value for one in fields}, fields)
    assert result["total"] == 0.0
