"""JSON-LD as pages write it: what is repaired, what is noted, and what is not guessed."""

from __future__ import annotations

from typing import Any

import pytest

from curtsy.content.document import Document


def read(source: str, kind: str = "application/ld+json") -> list[tuple[Any, list[str]]]:
    html = f'<html><body><script type="{kind}">{source}</script>'
    found = Document.parse(html.encode(), "text/html; charset=utf-8", "http://a.test/").structured()
    return [(entry["data"], entry.get("repaired", [])) for entry in found if entry["kind"] == "json-ld"]


@pytest.mark.parametrize(
    ("source", "repairs"),
    [
        ('{"a": "b"}', []),
        ('  [{"a": "b"}]  ', []),
        ('[[{"a": "b"}], []]', []),
        ('<!-- {"a": "b"} -->', ["comment"]),
        ('<!--\n{"a": "b"}\n//-->', ["comment"]),
        ('<!-- made by a plugin --> {"a": "b"}', ["comment"]),
        ('<![CDATA[{"a": "b"}]]>', ["cdata"]),
        ('//<![CDATA[\n{"a": "b"}\n//]]>', ["cdata"]),
        ('/* <![CDATA[ */{"a": "b"}/* ]]> */', ["cdata"]),
        ('{"a": "b",}', ["comma"]),
        ('[{"a": "b"},]', ["comma"]),
        ('{,"a": "b"}', ["comma"]),
        ('{"a": "b"};', ["semicolon"]),
        ('\ufeff{"a": "b"}', ["invisible_characters"]),
        ('// note\n{"a": /* inner */ "b" // end\n}', ["comment"]),
        ('{"a": "b"}}', ["extra_bracket"]),
        ('{"a": "b"', ["missing_bracket"]),
        ('[{"a": "b"}', ["missing_bracket"]),
        ('[{"a": "b",', ["comma", "missing_bracket"]),
        ("{&quot;a&quot;: &quot;b&quot;}", ["entities"]),
        ('{"a": "b"} trailing words', ["text_after"]),
    ],
)
def test_an_object_is_read_through_what_is_around_it(source: str, repairs: list[str]) -> None:
    assert read(source) == [({"a": "b"}, repairs)]


@pytest.mark.parametrize(
    ("source", "value", "repairs"),
    [
        ('{"a": "x\ny\tz"}', "x\ny\tz", ["control_characters"]),
        (r'{"a": "it\'s"}', "it's", ["escape"]),
        (r'{"a": "\u00e9 \/ \" \q"}', 'é / " q', ["escape"]),
        ('{"a": "http://b.test/ /* not */ // this", }', "http://b.test/ /* not */ // this", ["comma"]),
        ('{"a": "R&amp;D", }', "R&amp;D", ["comma"]),
        ('{"a": "x, ]", "b": [1, ], }', "x, ]", ["comma"]),
    ],
)
def test_a_text_keeps_what_it_says(source: str, value: str, repairs: list[str]) -> None:
    ((data, found),) = read(source)
    assert (data["a"], found) == (value, repairs)


@pytest.mark.parametrize("between", ["", "\n", ",", ";\n"])
def test_several_objects_in_a_row_are_all_read(between: str) -> None:
    assert [data for data, _ in read(f'{{"a": 1}}{between}{{"a": 2}}{between}{{"a": 3}}')] == [
        {"a": 1},
        {"a": 2},
        {"a": 3},
    ]


def test_an_unreadable_object_does_not_take_others_with_it() -> None:
    assert read('{"a": 1 2}{"b": 3}') == [({"b": 3}, [])]


@pytest.mark.parametrize(
    "source",
    [
        "",
        "null",
        '"text"',
        "{}",
        '{"price": 12',  # 1200?
        '{"a": "b',
        '{"a"',
        '{"a":',
        '{"a": tru}',
        '{"a": 1 2}',
        '{"a": [1}',
        '{"a": "b" "c"}',
        '{a: "b"}',
        'var x = {"a": "b"}',
        '{"a": "x &quot;b&quot;: &quot;c", nonsense}',
        "[" * 100_000,
        '{"a": ' * 5_000 + "1" + "}" * 5_000,
    ],
)
def test_nothing_is_guessed(source: str) -> None:
    assert read(source) == []


def test_the_type_of_the_script_may_have_parameters() -> None:
    assert read('{"a": 1}', "application/LD+JSON; charset=utf-8") == [({"a": 1}, [])]
    assert read('{"a": 1}', "application/json") == []
