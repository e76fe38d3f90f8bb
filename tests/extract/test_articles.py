"""Bylines and dates of articles; tests/golden/judge/articles.toml has whole pages."""

from __future__ import annotations

from typing import Any

import pytest

from curtsy.extract import ladder
from curtsy.extract.bylines import is_placeholder, names_in
from curtsy.grounding import judge, schema


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("By Nora Field", ["Nora Field"]),
        ("by Nora Field and Tom de Wit, staff writers", ["Nora Field", "Tom de Wit"]),
        ("Von Käthe Brandt | 3. März 2023", ["Käthe Brandt"]),
        ("Written by Jo Marsh on 5 May", ["Jo Marsh"]),
        ("文：山田花子", ["山田花子"]),
        ("Автор: Анна Белова", ["Анна Белова"]),
        ("By Friday the choir knew it.", []),
        ("Read more about Nora", []),
        ("", []),
    ],
)
def test_the_names_of_a_byline(text: str, names: list[str]) -> None:
    assert names_in(text) == names


def test_one_word_is_a_name_only_where_a_mark_says_so() -> None:
    assert names_in("Nora") == []
    assert names_in("Nora", marked=True) == ["Nora"]


@pytest.mark.parametrize(
    "name",
    [
        "admin",
        "Administrator",
        "{{ author }}",
        "https://a.test/x",
        "Harbor Post",
        "harborpost",
        "webmaster 2",
        "",
        "12",
    ],
)
def test_placeholders_are_no_authors(name: str) -> None:
    assert is_placeholder(name, ["Harbor Post"])


def test_people_are_authors() -> None:
    assert not is_placeholder("Nora Field", ["Harbor Post"])


def _record(html: str, **properties: Any) -> dict[str, Any]:
    made = schema.inline({"type": "object", "properties": properties})
    page = ladder.sources_of("1", "https://a.test/x", html.encode(), "text/html; charset=utf-8")
    return judge.assemble(made, judge.settle(made, ladder.extract(made, [page]).claims))


ARTICLE = """<title>Fog</title><h1>Fog</h1><p class="byline">By Nora Field and Tom Alder</p><p>5 May 2024</p>
<p>It was foggy.</p>"""


def test_schemas_of_users_get_bylines_and_dates_by_the_names_of_their_values() -> None:
    found = _record(
        ARTICLE, title={"type": "string"}, author={"type": "string"}, date={"type": "string", "format": "date"}
    )
    assert found == {"title": "Fog", "author": "Nora Field and Tom Alder", "date": "2024-05-05"}


def test_a_date_without_an_article_around_it_is_not_searched() -> None:
    assert _record(ARTICLE, date={"type": "string", "format": "date"}, seats={"type": "integer"}) == {}
