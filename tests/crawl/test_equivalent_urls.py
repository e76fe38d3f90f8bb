"""Equivalent URLs are one page of a crawl, servers have the last word, and `explain` says what was folded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_folder import CrawlFolder
from small_site import Answer, Say, SmallSite, linking

HOST = "http://one.small.test"


def to(location: str) -> Say:
    return Say(b"", 302, (("Location", location),))


def crawled(tmp_path: Path, site: SmallSite, *seeds: str, **settings: Any) -> CrawlFolder:
    tmp_path.mkdir(exist_ok=True)
    folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], delay_s=0, **settings)
    try:
        folder.crawl(*(f"{HOST}{seed}" for seed in seeds or ("/",)))
    finally:
        folder.close()
    return folder


PAGES: dict[str, Answer] = {
    "/": linking("/~joe", "/%7Ejoe", "/%c3%a9", "/é", "/a?", "/a", "/a?utm_source=x", "/a?gclid=2&b=1", "/a?b=1"),
    "/~joe": linking(), "/%C3%A9": linking(), "/a": linking(), "/a?b=1": linking(),
}  # fmt: skip


@pytest.fixture
def site() -> Iterator[SmallSite]:
    with SmallSite(PAGES) as running:
        yield running


def asked(site: SmallSite) -> list[str]:
    return sorted(path for path in site.paths() if path != "/sitemap.xml")


def test_equivalent_links_are_one_request(tmp_path: Path, site: SmallSite) -> None:
    folder = crawled(tmp_path, site)
    assert asked(site) == sorted(PAGES)
    assert folder.pages() == {f"{HOST}{path}" for path in PAGES}


def test_equivalent_seeds_are_one_request(tmp_path: Path, site: SmallSite) -> None:
    crawled(tmp_path, site, "/a?utm_id=1", "/a", "/%61?")
    assert asked(site) == ["/a"]


def test_without_rules_each_spelling_is_a_url(tmp_path: Path, site: SmallSite) -> None:
    crawled(tmp_path, site, fold=[])
    assert {"/%7Ejoe", "/%c3%a9", "/a?", "/a?utm_source=x", "/a?gclid=2&b=1"} <= set(asked(site))


def test_order_and_default_documents_are_folded_if_told(tmp_path: Path) -> None:
    links = ("/d/", "/d/index.html", "/s?a=1&b=2", "/s?b=2&a=1")
    with SmallSite({"/": linking(*links), **{link: linking() for link in links}}) as site:
        crawled(tmp_path / "as-is", site)
        assert asked(site) == sorted(("/", *links))
        site.asked.clear()
        crawled(tmp_path / "told", site, fold=["order", "index"])
        assert asked(site) == ["/", "/d/", "/s?a=1&b=2"]


def test_a_redirect_to_what_was_folded_away_is_followed_as_it_is(tmp_path: Path) -> None:
    pages: dict[str, Answer] = {
        "/": linking("/shop?PHPSESSID=old", "/%7Ea", "/away"),
        "/shop": to("/shop?PHPSESSID=new"), "/shop?PHPSESSID=new": linking(),
        "/~a": to("/%7Ea"), "/%7Ea": linking(),
        "/away": to("/there?utm_source=us"), "/there": to("/there?utm_source=them"),
        "/there?utm_source=them": linking(),
    }  # fmt: skip
    with SmallSite(pages) as site:
        folder = crawled(tmp_path, site)
    redirects = ("/shop", "/~a", "/away", "/there")
    assert asked(site) == sorted(pages)
    assert folder.pages() == {f"{HOST}{path}" for path in pages if path not in redirects}


def test_a_canonical_url_that_was_folded_away_is_asked_for(tmp_path: Path) -> None:
    named = b'<link rel="canonical" href="/list?sid=0cc175b9c0f1b6a831c399e269772661">'
    pages: dict[str, Answer] = {
        "/": linking("/list?sid=12345678901234567890", "/other?utm_id=1"),
        "/list": Say(named), "/list?sid=0cc175b9c0f1b6a831c399e269772661": Say(named),
        "/other": Say(b'<link rel="canonical" href="/other">'),
    }  # fmt: skip
    with SmallSite(pages) as site:
        crawled(tmp_path, site)
    assert asked(site) == sorted(pages)


def test_explain_names_the_url_and_the_rules(tmp_path: Path, site: SmallSite) -> None:
    folder = crawled(tmp_path, site)
    told = folder.run("explain", f"{HOST}/%7Ejoe?utm_id=1&PHPSESSID=2")
    assert (told["url"], told["folded_from"]) == (f"{HOST}/~joe", f"{HOST}/%7Ejoe?utm_id=1&PHPSESSID=2")
    assert (told["state"], told["folded_by"]) == ("done", ["escapes", "sessions", "tracking"])
    assert told["why"][0].startswith(f"It was folded into {HOST}/~joe (escapes: ")
    plain = folder.run("explain", f"{HOST}/~joe")
    assert (plain["state"], plain["folded_from"], plain["folded_by"]) == ("done", None, [])


def test_explain_uses_the_rules_of_the_crawl(tmp_path: Path, site: SmallSite) -> None:
    folder = crawled(tmp_path, site, fold=[])
    told = folder.run("explain", f"{HOST}/a?utm_id=1")
    assert (told["state"], told["folded_from"]) == (None, None)


def test_explain_says_what_the_page_calls_itself(tmp_path: Path) -> None:
    pages: dict[str, Answer] = {
        "/": linking("/a", "/b"),
        "/a": Say(b'<link rel="canonical" href="/a">'), "/b": Say(b'<link rel="canonical" href="/a">'),
    }  # fmt: skip
    with SmallSite(pages) as site:
        folder = crawled(tmp_path, site)
    assert "names itself as its canonical URL" in " ".join(folder.run("explain", f"{HOST}/a?utm_id=1")["why"])
    told = folder.run("explain", f"{HOST}/b")
    assert (told["canonical"], told["folded_from"]) == (f"{HOST}/a", None)
    assert f"It names {HOST}/a as its canonical URL." in " ".join(told["why"])
