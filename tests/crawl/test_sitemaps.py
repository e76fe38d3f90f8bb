"""Sitemaps that nothing names, sitemaps and feeds as seeds, and what they say about their URLs."""

from __future__ import annotations

import gzip
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from crawl_folder import CrawlFolder
from small_site import Answer, Say, SmallSite, linking

from curtsy.export.page_rows import pages_of, row_of
from curtsy.store.engine import Store

HOST = "http://one.small.test"
XML = (("Content-Type", "application/xml"),)


def urlset(*inner: str) -> Say:
    entries = "".join(f"<url><loc>{HOST}{one}</url>" for one in inner)
    return Say(f"<?xml version='1.0'?><urlset>{entries}</urlset>".encode(), 200, XML)


@pytest.fixture(autouse=True)
def _guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CURTSY_GUESS_SITEMAP")


def crawled(tmp_path: Path, site: SmallSite, *seeds: str, options: dict[str, Any] | None = None) -> CrawlFolder:
    folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], delay_s=0)
    try:
        folder.crawl(*(f"{HOST}{seed}" for seed in seeds or ("/",)), **(options or {}))
    finally:
        folder.close()
    return folder


def reasons(folder: CrawlFolder) -> dict[str, tuple[str, str]]:
    return {
        url.removeprefix(HOST): (state, reason)
        for url, state, reason in folder.rows("SELECT url, state, reason FROM urls")
    }


def test_a_sitemap_is_looked_for_once_at_its_usual_place(tmp_path: Path) -> None:
    pages: dict[str, Answer] = {
        "/": linking("/a"), "/a": linking(), "/sitemap.xml": urlset("/a</loc>", "/hidden</loc>"), "/hidden": linking(),
    }  # fmt: skip
    with SmallSite(pages) as site:
        folder = crawled(tmp_path, site)
    assert sorted(site.paths()) == sorted(pages)
    assert folder.pages() == {f"{HOST}{path}" for path in ("/", "/a", "/hidden")}


@pytest.mark.parametrize("status", [404, 403, 500, 429])
def test_a_sitemap_that_is_not_there_is_no_page_and_no_dead_letter(tmp_path: Path, status: int) -> None:
    with SmallSite({"/": linking("/a"), "/a": linking(), "/sitemap.xml": Say(b"No.", status)}) as site:
        folder = crawled(tmp_path, site)
    assert site.paths().count("/sitemap.xml") == 1
    assert reasons(folder)["/sitemap.xml"] == ("done", "no_sitemap")
    assert folder.pages() == {f"{HOST}/", f"{HOST}/a"}
    assert folder.rows("SELECT url FROM failures") == []


def test_a_missing_sitemap_that_redirects_makes_no_sitemap_of_a_page(tmp_path: Path) -> None:
    pages: dict[str, Answer] = {
        "/docs": linking("/docs/a"), "/docs/a": linking("/"), "/": linking(),
        "/sitemap.xml": Say(b"", 302, (("Location", "/"),)),
    }  # fmt: skip
    with SmallSite(pages) as site:
        folder = crawled(tmp_path, site, "/docs")
    assert folder.pages() == {f"{HOST}{path}" for path in ("/docs", "/docs/a", "/")}


def test_a_sitemap_that_moved_is_read(tmp_path: Path) -> None:
    pages: dict[str, Answer] = {
        "/": linking(), "/sitemap.xml": Say(b"", 301, (("Location", "/sitemap_index.xml"),)),
        "/sitemap_index.xml": urlset("/hidden</loc>"), "/hidden": linking(),
    }  # fmt: skip
    with SmallSite(pages) as site:
        folder = crawled(tmp_path, site)
    assert folder.pages() == {f"{HOST}/", f"{HOST}/hidden"}


ROBOTS = Say(f"User-agent: *\nSitemap: {HOST}/other.xml\n".encode(), 200, (("Content-Type", "text/plain"),))
FORBIDDEN = Say(b"User-agent: *\nDisallow: /sitemap\n", 200, (("Content-Type", "text/plain"),))


@pytest.mark.parametrize(
    ("robots", "options"),
    [
        (ROBOTS, {}),
        (FORBIDDEN, {}),
        (Say(b"", 404), {"sitemaps": False}),
        (Say(b"", 404), {"max_depth": 0}),
        (Say(b"", 404), {"scope": "any"}),
    ],
)
def test_no_sitemap_is_looked_for(tmp_path: Path, robots: Say, options: dict[str, Any]) -> None:
    pages: dict[str, Answer] = {"/": linking(), "/robots.txt": robots, "/other.xml": urlset()}
    with SmallSite(pages) as site:
        crawled(tmp_path, site, options=options)
    assert "/sitemap.xml" not in site.paths()


def test_sitemaps_and_feeds_can_be_seeds(tmp_path: Path) -> None:
    feed = b"<feed><entry><id>http://one.small.test/fed</id></entry></feed>"
    pages: dict[str, Answer] = {
        "/map": urlset("/a</loc>"), "/a": linking(), "/fed": linking(), "/b": linking(),
        "/news": Say(feed, 200, (("Content-Type", "text/xml"),)),
        "/maps/all.xml.gz": Say(gzip.compress(urlset("/b</loc>").body), 200, (("Content-Type", "application/gzip"),)),
    }  # fmt: skip
    with SmallSite(pages) as site:
        folder = crawled(tmp_path, site, "/map", "/news", "/maps/all.xml.gz")
    assert folder.pages() == {f"{HOST}{path}" for path in ("/a", "/b", "/fed", "/news")}
    assert reasons(folder)["/map"] == ("done", "sitemap")


def test_date_and_priority_are_kept_with_the_url(tmp_path: Path) -> None:
    listed = urlset(
        "/</loc><priority>1</priority>", "/new%7E</loc><lastmod>2026-01-31</lastmod><priority>0.4</priority>"
    )
    with SmallSite({"/": linking("/plain"), "/plain": linking(), "/new~": linking(), "/sitemap.xml": listed}) as site:
        folder = crawled(tmp_path, site)
    kept = {url.removeprefix(HOST): facts for url, *facts in folder.rows("SELECT url, lastmod, priority FROM urls")}
    assert (kept["/"], kept["/new~"], kept["/plain"]) == ([None, 1.0], ["2026-01-31", 0.4], [None, None])
    with closing(Store.open(f"sqlite:///{folder.data}/curtsy.sqlite")) as store:
        rows = [row_of(page, "id") for page in pages_of(store, 1)]
    assert {(row["url"].removeprefix(HOST), row["lastmod"], row["priority"]) for row in rows} == {
        ("/", None, 1.0), ("/new~", "2026-01-31", 0.4), ("/plain", None, None),
    }  # fmt: skip
    told = folder.run("explain", f"{HOST}/new~")
    assert (told["lastmod"], told["priority"]) == ("2026-01-31", 0.4)
    assert "A sitemap says about it: last changed 2026-01-31, priority 0.4." in told["why"]
