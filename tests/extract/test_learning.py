"""Learning where pages state a field, and using it: only on pages that hold nothing new."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from curtsy.content.document import Document
from curtsy.core.claims import Rung
from curtsy.extract import learned, learning
from curtsy.extract.learned import Known, Place, Selector, Template
from curtsy.extract.learning import Example
from curtsy.extract.places import PagePlaces, places_of
from curtsy.extract.sources import PageSources, sources_of
from curtsy.grounding import judge
from curtsy.grounding.schema import Schema, inline

SCHEMA = inline(
    {
        "title": "Thing",
        "type": "object",
        "properties": {
            "maker": {"type": "string"},
            "weight": {"type": "number"},
            "released": {"type": "string", "format": "date"},
            "colors": {"type": "array", "items": {"type": "string"}},
        },
    }
)


def leaf(schema: Schema, path: str) -> Any:
    return schema.leaf_for(path)


def places(html: str) -> PagePlaces:
    return places_of(Document.parse(html.encode(), "text/html", "http://a.test/x"))


def examples(path: str, pages: Sequence[tuple[str, Any]], **more: Any) -> list[Example]:
    """Pages with the value of one field; a list of nothing: it is absent."""
    return [
        Example(places(html), {path: value if isinstance(value, list) else [value]}, **more) for html, value in pages
    ]


def learn(path: str, pages: Sequence[tuple[str, Any]]) -> list[Place]:
    return [place for place, _ in learning.learn(leaf(SCHEMA, path), examples(path, pages))]


CASES: dict[str, tuple[str, str, list[tuple[str, Any]], Place]] = {
    "its element": ("/maker", "<main><p class=by>{}</p><p>x</p></main>", [("A", "A"), ("B", "B"), ("C C", "C C")],
        Place(path="main > p.by")),
    "a table cell by its label": ("/weight", "<table><tr><th>Weight<td>{}<tr><th>Parcel<td>9 kg</table>",
        [("1.5 kg", 1.5), ("2 kg", 2.0), ("7 kg", 7.0)], Place(path="table > tbody > tr > td", label="weight")),
    "between constant words": ("/maker", "<p class=mk>Made by {} in Norway</p>",
        [("A", "A"), ("B B", "B B"), ("C", "C")], Place(path="p.mk", before="Made by ", after=" in Norway")),
    "a date in other words": ("/released", "<p class=day>Released on {}</p>",
        [("4 March 2021", "2021-03-04"), ("12 May 2019", "2019-05-12"), ("1 June 2020", "2020-06-01")],
        Place(path="p.day", before="Released on ")),
    "the second of three": ("/maker", "<main><span>{0}{0}</span><br><span>{0}</span><br><span>y</span></main>",
        [("A", "A"), ("B", "B"), ("C", "C")], Place(path="main > span", at=1, of=3)),
    "a list": ("/colors/*", "<h2>Colors</h2><ul class=col>{}</ul><ul><li>z</ul>",
        [("<li>red<li>blue", ["red", "blue"]), ("<li>red", ["red"]), ("<li>a<li>b<li>c", ["a", "b", "c"])],
        Place(path="ul.col > li")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_three_pages_teach_a_place(name: str) -> None:
    path, html, values, place = CASES[name]
    pages = [(html.format(text), value) for text, value in values]
    assert learn(path, pages) == [place]
    assert learn(path, pages[:2]) == [], "two pages teach nothing"


def test_a_place_that_contradicts_verified_values_is_not_learned() -> None:
    html = "<p class=by>{}</p><p class=of>{}</p>"
    pages = [(html.format("A", "A"), "A"), (html.format("B", "B"), "B"), (html.format("C", "C"), "C")]
    assert Place(path="p.of") not in learn("/maker", [*pages, (html.format("D", "x"), "D")])
    assert learn("/maker", [*pages, (html.format("D", "x"), "D")]) == [Place(path="p.by")]
    assert learn("/maker", [*pages, (html.format("x", "y"), "D")]) == [], "one in four is too much"


def test_a_place_that_finds_what_a_person_denied_is_not_learned() -> None:
    pages = [(f"<p class=by>{name}</p>", name) for name in "ABCDEFGHIJKLMN"]
    found = examples("/maker", pages)
    denied = Example(places("<p class=by>Menu</p>"), {"/maker": []}, by_person=frozenset(["/maker"]))
    assert learning.learn(leaf(SCHEMA, "/maker"), found)
    assert not learning.learn(leaf(SCHEMA, "/maker"), [*found, denied])


def test_pages_with_two_layouts_teach_two_places() -> None:
    old = [(f"<p class=by>{name}</p>", name) for name in "ABC"]
    new = [(f"<div class=maker>{name}</div>", name) for name in "DEF"]
    assert learn("/maker", [*old, *new]) == [Place(path="p.by"), Place(path="div.maker")]


def test_learning_from_hostile_pages_takes_bounded_time() -> None:
    """Thousands of short blocks, each of which could have the value."""
    pages = [("".join(f"<p class=k{chr(97 + at % 26)}>a b {n} c {at} d e f g h</p>" for at in range(3000)), float(n))
             for n in (31, 32, 33, 34)]  # fmt: skip
    found = examples("/weight", pages)
    began = time.thread_time()
    learning.learn(leaf(SCHEMA, "/weight"), found)
    assert time.thread_time() - began < 30


# Looking at a page


def page(html: str) -> PageSources:
    return sources_of("1-00", "http://a.test/x", html.encode(), "text/html")


def template(seen: str, place: Place, **more: Any) -> Template:
    known = {key: Known(absent=frozenset(more.get("absent", ()))) for key in places(seen).keys}
    return Template(known=known, absent=more, selectors=(Selector(n=7, leaf="/weight", place=place),))


OLD = "<main><h1>x</h1><p class=weight>Weight: 3 kg</p><p class=note>nothing</p></main>"
PLACE = Place(path="main > p.weight", before="Weight: ", label="weight")


def find(html: str, known: Template | None = None) -> learned.LearnedClaims:
    found = page(html)
    assert found.document is not None
    wanted = [leaf(SCHEMA, "/weight")]
    return learned.find(known or template(OLD, PLACE), SCHEMA, found, places_of(found.document), wanted)


def test_a_known_page_gives_its_value_with_its_exact_span_and_the_selector_in_the_evidence() -> None:
    seen = find(OLD.replace("3 kg", "4.5 kg"))
    (claim,) = seen.claims
    assert (seen.is_complete, seen.used, claim.value, claim.rung) == (True, (7,), 4.5, Rung.LEARNED)
    field = judge.judge(claim, leaf(SCHEMA, "/weight"))
    (evidence,) = field.evidence
    assert (field.verdict, evidence.quote, evidence.source) == ("supported", "4.5 kg", "text")
    assert evidence.locator == 'learned:main > p.weight [label "weight"]'
    assert claim.source.text[evidence.start : evidence.end] == "4.5 kg"


@pytest.mark.parametrize(
    "html",
    [
        OLD.replace("</main>", "<p class=net>Net weight: 2 kg</p></main>"),
        OLD.replace("</main>", "<p class=net>2 kg</p></main>"),
        OLD.replace("Weight: 3 kg", "Parcel: 3 kg"),
        OLD.replace("class=weight", "class=mass"),
        OLD.replace("3 kg", "three"),
        OLD.replace("</main>", "<p class=weight>Weight: 9 kg</p></main>"),
    ],
    ids=["a new label", "a new number", "another label", "another class", "no number", "two values"],
)
def test_a_page_with_anything_new_about_the_field_is_left_to_the_model(html: str) -> None:
    seen = find(html)
    assert not seen.is_complete
    assert seen.trusted == ()


def test_new_places_that_cannot_state_the_field_do_not_matter() -> None:
    assert find(OLD.replace("</main>", "<p class=extra>a few words</p></main>")).is_complete


def test_an_absent_field_needs_three_pages_and_the_same_places() -> None:
    without = "<main><h1>x</h1><p class=note>nothing</p></main>"
    known = {key: Known(absent=frozenset(["/weight"])) for key in places(without).keys}
    for pages, settled in ((2, False), (3, True)):
        assert find(without, Template(known=known, absent={"/weight": pages})).is_complete is settled
    assert not find(OLD, Template(known=known, absent={"/weight": 9})).is_complete, "its place was never on such a page"
    stated = {key: Known(absent=frozenset(["/weight"]), found=frozenset(["/weight"])) for key in known}
    assert not find(without, Template(known=stated, absent={"/weight": 9})).is_complete, "the model once found it there"


def test_selectors_that_contradict_each_other_find_nothing() -> None:
    html = "<main><p class=aa>3 kg</p><p class=bb>4 kg</p></main>"
    two = tuple(
        Selector(n=n, leaf="/weight", place=Place(path=f"main > p.{name}")) for n, name in enumerate(("aa", "bb"))
    )
    known = Template(known={key: Known() for key in places(html).keys}, selectors=two)
    assert find(html, known).claims == ()
    assert find(html.replace("4", "3"), known).is_complete
