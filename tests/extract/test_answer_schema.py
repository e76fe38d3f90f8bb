"""The form of a model's answer, and what is read from answers of every kind."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curtsy.extract import answer_schema, answers
from curtsy.extract.answer_schema import Found, Style, WrongShape
from curtsy.grounding.schema import Leaf

NAME = Leaf(path="/name", type="string")
YEAR = Leaf(path="/founded_year", type="integer")
SHARE = Leaf(path="/share", type="number")
EMAIL = Leaf(path="/contact/email", type="string")
CLAIM = Leaf(path="/claims/*", type="string", long=True)
KIND = Leaf(path="/kind", type="enum", enum=("shop", "club"))
OPEN = Leaf(path="/open", type="boolean")
WHO, ROLE = Leaf(path="/people/*/name", type="string"), Leaf(path="/people/*/role", type="string")
ODD = Leaf(path="/a~1b", type="string")
ALL = (NAME, YEAR, SHARE, EMAIL, CLAIM, KIND, OPEN, WHO, ROLE, ODD)


def said(value: Any, quote: str = "words of the page") -> dict[str, Any]:
    return {"quote": quote, "value": value}


def fits(schema: Any, answer: Any) -> bool:
    jsonschema.Draft202012Validator.check_schema(schema)
    return bool(jsonschema.Draft202012Validator(schema).is_valid(answer))


FULL = {
    "name": said("Green Leaf"), "founded_year": said(1987), "share": said(0.5), "contact": {"email": None},
    "claims": [said("one"), said("two")], "kind": said("shop"), "open": said(True),
    "people": [{"name": said("Ann"), "role": None}, {"name": said("Bo"), "role": said("chair")}], "a/b": said("x"),
}  # fmt: skip


def test_the_schema_has_the_form_of_the_record_and_a_full_answer_fits_it() -> None:
    schema = answer_schema.schema_of(ALL)
    assert fits(schema, FULL)
    assert not fits(schema, {**FULL, "name": {"value": "x"}})
    assert not fits(schema, {**FULL, "kind": said("bank")})


def test_the_quote_comes_before_the_value() -> None:
    pair = answer_schema.schema_of([NAME])["properties"]["name"]["anyOf"][1]
    assert list(pair["properties"]) == ["quote", "value"]


def test_strict_servers_get_no_lengths_and_small_models_do() -> None:
    assert "maxLength" not in str(answer_schema.schema_of(ALL))
    assert "maxItems" not in str(answer_schema.schema_of(ALL))
    bounded = answer_schema.schema_of(ALL, Style.VALUE, bounded=True)
    assert bounded["properties"]["claims"]["maxItems"]
    assert "quote" not in str(bounded)
    values = {
        **dict.fromkeys(bounded["properties"]),
        "claims": ["a"],
        "people": [],
        "contact": {"email": "a@b.example"},
    }
    assert fits(bounded, values)


def test_a_full_answer_is_read_with_the_paths_of_the_record() -> None:
    found = {one.path: (one.value, one.quote) for one in answer_schema.read(FULL, ALL)}
    assert found["/name"] == ("Green Leaf", "words of the page")
    assert "/contact/email" not in found
    assert [found["/claims/0"][0], found["/claims/1"][0]] == ["one", "two"]
    assert (found["/people/1/name"][0], found["/people/1/role"][0]) == ("Bo", "chair")
    assert "/people/0/role" not in found
    assert found["/a~1b"][0] == "x"


@pytest.mark.parametrize(
    ("leaf", "given_", "expected"),
    [
        (YEAR, said("1987"), 1987),
        (YEAR, said(1987.0), 1987),
        (YEAR, said("about 1987"), "about 1987"),
        (YEAR, said(True), None),
        (YEAR, 1987, 1987),
        (SHARE, said("0.5"), 0.5),
        (SHARE, said(float("nan")), None),
        (NAME, "Green Leaf", "Green Leaf"),
        (NAME, said(1987), "1987"),
        (NAME, said("  "), None),
        (NAME, said("N/A"), None),
        (NAME, said("Not stated."), None),
        (NAME, said(None), None),
        (NAME, said({"deep": 1}), None),
        (NAME, said("x" * 5000), None),
        (OPEN, said("yes"), True),
        (OPEN, said("maybe"), "maybe"),
        (NAME, {"quote": 7, "value": "Green Leaf"}, "Green Leaf"),
    ],
)
def test_where_the_meaning_is_plain_reading_is_generous(leaf: Leaf, given_: Any, expected: Any) -> None:
    found = answer_schema.read({leaf.path[1:]: given_}, [leaf])
    assert [one.value for one in found] == ([] if expected is None else [expected])
    assert all(one.quote in (None, "words of the page") for one in found)


def test_one_value_where_a_list_was_asked_is_a_list_of_one() -> None:
    assert answer_schema.read({"claims": said("one")}, [CLAIM]) == [Found("/claims/0", "one", "words of the page")]


def test_items_without_a_value_leave_no_gap_and_endless_lists_end() -> None:
    found = answer_schema.read({"claims": [None, said("one"), said(""), *[said("two")] * 50]}, [CLAIM])
    assert [one.path for one in found[:2]] == ["/claims/0", "/claims/1"]
    assert len(found) <= answer_schema.MAX_ITEMS


@pytest.mark.parametrize("answer", [[], [1, 2], "text", 7, None, {"other": 1}, [{"other": 1}]])
def test_an_answer_that_speaks_of_no_leaf_is_refused(answer: Any) -> None:
    with pytest.raises(WrongShape):
        answer_schema.read(answer, [NAME, YEAR])


def test_an_empty_object_says_that_nothing_was_found() -> None:
    assert answer_schema.read({}, [NAME, YEAR]) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "claims", "people", "contact", "email", "value", "quote"]), inner)
    ),
    max_leaves=12,
)


@given(JSON)
def test_whatever_a_model_says_reading_gives_values_or_refuses(answer: Any) -> None:
    try:
        found = answer_schema.read(answer, ALL)
    except WrongShape:
        return
    assert all(isinstance(one.value, (str, int, float, bool)) for one in found)
    assert all(one.quote is None or one.quote.strip() for one in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Here you are:\n```json\n{"a": 1}\n```\nAnything else?', {"a": 1}),
        ('<think>{"a": 2} perhaps</think>{"a": 1}', {"a": 1}),
    ],
)
def test_the_object_is_found_whatever_stands_around_it(text: str, expected: Any) -> None:
    assert answers.parse(text) == expected


@pytest.mark.parametrize("text", ["", "no", '{"a": ', "{" * 100_000, '{"a": 1' + "0" * 5000 + "}", '{"a" 1}'])
def test_what_is_no_json_is_refused_with_a_short_reason(text: str) -> None:
    with pytest.raises(answers.NotJson) as caught:
        answers.parse(text)
    assert len(str(caught.value)) < 200


def test_of_an_answer_that_was_cut_off_the_complete_part_is_kept() -> None:
    assert answers.partial('{"name": {"quote": "q", "value": "Green Leaf"}, "found')["name"]["value"] == "Green Leaf"
    assert answers.partial("no json") is None


@pytest.mark.parametrize("said_", [None, [], {}, {"score": "high"}, {"score": True}, {"score": float("nan")}])
def test_a_judgement_without_a_score_is_refused(said_: Any) -> None:
    with pytest.raises(ValueError, match="score"):
        answers.judgment(said_)


def test_a_judgement_stays_between_0_and_1() -> None:
    assert answers.judgment({"score": 7, "reason": "r", "quote": " q "}) == (1.0, "r", "q")
    assert answers.judgment({"score": -1, "reason": None, "quote": None}) == (0.0, "", None)
