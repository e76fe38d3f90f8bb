"""Which pages a record is made from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curtsy.extract.page_selection import Candidate, applies, choose, matches, roles_of
from curtsy.grounding import schema as schemas

ORGANIZATION = schemas.load("organization")


@pytest.mark.parametrize(
    ("path", "title", "roles"),
    [
        ("/", None, {"home"}),
        ("/index.html", None, {"home"}),
        ("/de/", None, {"home"}),
        ("/en-GB/about-us", None, {"about"}),
        ("/about", None, {"about"}),
        ("/about-us.php", None, {"about"}),
        ("/%C3%BCber-uns", None, {"about"}),
        ("/ueberuns", None, {"about"}),
        ("/qui-sommes-nous/", None, {"about"}),
        ("/quienes_somos", None, {"about"}),
        ("/chi-siamo", None, {"about"}),
        ("/over-ons", None, {"about"}),
        ("/nous-contacter", None, {"contact"}),
        ("/contatti", None, {"contact"}),
        ("/impressum", None, {"contact", "imprint"}),
        ("/mentions-legales", None, {"imprint"}),
        ("/nachhaltigkeit/bericht", None, {"claims"}),
        ("/duurzaamheid", None, {"claims"}),
        ("/our-climate-impact", None, {"claims"}),
        ("/x1", "About us | Alder Trust", {"about"}),
        ("/x1", "Alder Trust – Contact", {"contact"}),
        ("/news/0001", None, {"news"}),
        # words of a story are not what its page is for
        ("/x/all-there-is-to-know-about-water-in-towns", None, {"other"}),
        ("/x1", "What we learnt about rivers and contact with schools", {"other"}),
        ("/?page=about", None, {"other"}),
        ("/a/b/c/d/about", None, {"other"}),
    ],
)
def test_a_page_is_for_what_its_path_and_title_say(path: str, title: str | None, roles: set[str]) -> None:
    assert roles_of(f"http://a.test{path}", title) == roles


def test_a_link_tells_what_a_page_is_for() -> None:
    assert roles_of("http://a.test/p/17", None, "Contact us") == {"contact"}


def urls(*paths: str) -> list[tuple[str, str | None]]:
    return [(f"http://a.test{path}", None) for path in paths]


def paths(found: list[str]) -> list[str]:
    return [url.removeprefix("http://a.test") for url in found]


def test_the_best_page_of_each_role_is_chosen_in_the_order_of_the_schema() -> None:
    site = urls(
        *("/news/about", "/about/history", "/about", "/contact", "/de/kontakt", "/people", "/", "/index.html"),
        *("/claims", "/news/0001", "/sustainability", "/climate/2021", "/climate/2022"),
    )
    assert paths(choose(ORGANIZATION, site)) == [
        *("/", "/about", "/contact", "/claims", "/sustainability", "/climate/2021")
    ]


def test_a_site_without_known_pages_is_read_from_the_nearest() -> None:
    many = [f"/x/{number}/y" for number in range(10)]
    assert paths(choose(ORGANIZATION, urls("/x/y/z", "/x/y", "/q?x=1", *many))) == ["/q?x=1"]
    assert choose(ORGANIZATION, []) == []


def test_a_title_decides_where_the_path_is_silent() -> None:
    others = [Candidate(f"http://a.test/?p={number}", "Home") for number in range(3, 13)]
    pages = [Candidate("http://a.test/?p=1", "Home"), Candidate("http://a.test/?p=2", "About us | A", None), *others]
    assert choose(ORGANIZATION, pages) == ["http://a.test/?p=2"]


def test_a_site_with_few_pages_is_read_as_a_whole() -> None:
    """It calls them what it likes."""
    site = urls("/soil/hedges", "/write", "/", "/about")
    assert paths(choose(ORGANIZATION, site)) == ["/", "/about", "/write", "/soil/hedges"]
    assert paths(choose(ORGANIZATION, [*site, *urls(*(f"/soil/{number}" for number in range(9)))])) == ["/", "/about"]


def schema_with(tmp_path: Path, pages: list[str], per: str = "site") -> schemas.Schema:
    document = {"type": "object", "properties": {"a": {"type": "string"}}, "x-curtsy": {"per": per, "pages": pages}}
    (tmp_path / "s.json").write_text(json.dumps(document))
    return schemas.load("s.json", folder=tmp_path)


def test_patterns_take_all_pages_that_match(tmp_path: Path) -> None:
    schema = schema_with(tmp_path, ["/shop/*", "https://*.a.test/x"])
    assert paths(choose(schema, urls("/shop/1", "/shops", "/about", "/shop/2"))) == ["/shop/1", "/shop/2"]
    assert choose(schema, urls("/about")) == []
    assert choose(schema, [("https://b.a.test/x", None)]) == ["https://b.a.test/x"]


def test_all_pages_are_twenty_at_most(tmp_path: Path) -> None:
    found = choose(schema_with(tmp_path, []), urls("/about", *(f"/p/{at}" for at in range(100)), "/"))
    assert len(found) == 20
    assert paths(found[:2]) == ["/", "/about"]


def test_a_schema_per_page_applies_to_the_pages_it_names(tmp_path: Path) -> None:
    schema = schema_with(tmp_path, ["contact", "/shop/*"], "page")
    assert applies(schema, "http://a.test/contact")
    assert applies(schema, "http://a.test/x1", "Contact us")
    assert applies(schema, "http://a.test/shop/1")
    assert not applies(schema, "http://a.test/about")
    assert applies(schema_with(tmp_path, [], "page"), "http://a.test/about")


def test_stars_stand_for_anything_and_nothing_else_is_special() -> None:
    assert matches("/a.b*", "http://a.test/a.b/c?d")
    assert not matches("/a.b*", "http://a.test/axb")
    assert matches("/*" * 200, "http://a.test/" + "a/" * 400)
