"""Which URLs a crawl asks for, and what becomes of them: scope, limits, redirects, robots words, sitemaps, cookies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder

from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.politeness_check import judge

FAULTS = (
    "gone", "trap-calendar", "redirect-chain", "redirect-host", "redirect-private-seed", "nofollow", "noindex",
    "sitemap-index", "sitemap-gzip", "sitemap-50000", "cookie-redirect", "cookie-wall", "duplicates", "etag",
)  # fmt: skip


def at(host: str, *paths: str) -> set[str]:
    return {f"http://{host}.tinyweb.test{path}" for path in paths}


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TinyWeb]:
    log = tmp_path_factory.mktemp("web") / "access.log"
    with TinyWeb.start(hosts=2, pages=6, faults=FAULTS, log=log) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, web: TinyWeb) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path, web)
    yield made
    made.close()


def test_links_are_followed_no_deeper_than_max_depth(folder: CrawlFolder) -> None:
    folder.crawl("http://trap-calendar.tinyweb.test/", max_depth=2)
    month = "/calendar?month=2024-0"
    assert folder.pages() == at("trap-calendar", "/", "/one", "/two", f"{month}5", f"{month}4", f"{month}6")


def test_a_depth_of_zero_is_the_seeds_alone(folder: CrawlFolder) -> None:
    folder.crawl("http://gone.tinyweb.test/", "http://gone.tinyweb.test/two", max_depth=0)
    assert folder.pages() == at("gone", "/", "/two")


def test_only_what_is_included_and_not_excluded_is_asked_for(folder: CrawlFolder) -> None:
    folder.crawl("http://trap-calendar.tinyweb.test/", include=("month=2024-", "/one$"), exclude=("-0[0-46-9]$", "-1"))
    seed = at("trap-calendar", "/")
    assert folder.pages() == seed | at("trap-calendar", "/one", "/calendar?month=2024-05")


def test_the_scope_host_stays_on_the_seeds_hosts(folder: CrawlFolder) -> None:
    folder.crawl("http://redirect-target.tinyweb.test/")
    assert folder.pages() == at("redirect-target", "/", "/one", "/two")


def test_the_scope_domain_takes_its_other_hosts_in(folder: CrawlFolder) -> None:
    folder.crawl("http://redirect-target.tinyweb.test/", scope="domain", max_depth=1)
    assert folder.ends()["http://redirect-host.tinyweb.test/away"] == "done redirect"
    assert folder.pages() > at("redirect-target", "/", "/one", "/two") | at("redirect-host", "/one")


def test_redirects_of_a_seed_extend_the_scope_and_others_do_not(folder: CrawlFolder) -> None:
    folder.crawl("http://redirect-host.tinyweb.test/")
    ends = folder.ends()
    assert ends["http://redirect-host.tinyweb.test/"] == "done redirect"
    assert ends["http://redirect-host.tinyweb.test/away"] == "done redirect"
    assert folder.pages() == at("redirect-target", "/", "/one", "/two") | at("redirect-host", "/one", "/two")
    assert not any("redirect-outside" in url for url in ends)


def test_a_seed_that_leads_to_a_private_address_is_skipped_there(folder: CrawlFolder, web: TinyWeb) -> None:
    folder.crawl("http://redirect-private-seed.tinyweb.test/", "http://10.0.0.1/", "http://[::1]/x")
    assert folder.ends() == {
        "http://redirect-private-seed.tinyweb.test/": "done redirect",
        f"http://127.0.0.1:{web.port}/secret": "skipped forbidden_address",
        "http://10.0.0.1/": "skipped forbidden_address",
        "http://[::1]/x": "skipped forbidden_address",
    }
    assert {host for (host,) in folder.rows("SELECT host FROM requests")} == {"redirect-private-seed.tinyweb.test"}


def test_nofollow_hides_links_and_noindex_hides_pages(folder: CrawlFolder, web: TinyWeb) -> None:
    folder.crawl("http://nofollow.tinyweb.test/", "http://noindex.tinyweb.test/")
    kept = at("nofollow", "/", "/one", "/two", "/rel", "/closed", "/closed-tag", "/closed-name")
    assert folder.pages() == kept | at("noindex", "/", "/one", "/two", "/other", "/behind-meta")
    hidden = {url for url, end in folder.ends().items() if end == "skipped noindex"}
    assert hidden == at("noindex", "/meta", "/own", "/tag", "/own-tag", "/none")
    assert not any(line.name.startswith("nofollow") and "/behind" in line.path for line in web.requests())


def test_sitemaps_bring_pages_that_nothing_links_to(folder: CrawlFolder) -> None:
    folder.crawl("http://sitemap-index.tinyweb.test/", "http://sitemap-gzip.tinyweb.test/")
    indexed = at("sitemap-index", *(f"/mapped/{n}" for n in range(1, 7)))
    assert folder.pages() >= indexed | at("sitemap-gzip", "/mapped/1", "/mapped/2", "/mapped/3")
    kinds = dict(folder.rows("SELECT url, reason FROM urls WHERE kind = 's'"))
    assert set(kinds.values()) == {"sitemap"}
    assert len(kinds) == 6


def test_sitemaps_are_read_though_only_other_pages_are_included(folder: CrawlFolder) -> None:
    folder.crawl("http://sitemap-index.tinyweb.test/mapped/1", include=("/mapped/",), exclude=(r"\.xml", "/mapped/6"))
    assert folder.pages() == at("sitemap-index", *(f"/mapped/{n}" for n in range(1, 6)))


def test_sitemaps_are_left_alone_when_told_so(folder: CrawlFolder) -> None:
    folder.crawl("http://sitemap-index.tinyweb.test/", sitemaps=False)
    assert folder.pages() == at("sitemap-index", "/", "/one", "/two")


def test_a_sitemap_of_50000_urls_is_cut_to_what_a_host_may_have(tmp_path: Path, web: TinyWeb) -> None:
    folder = CrawlFolder(tmp_path, web, max_urls_per_host=40, fetch_timeout_s=10, slot_s=12, url_lease_s=12)
    counts = folder.crawl("http://sitemap-50000.tinyweb.test/", delay_s=0.005)
    assert folder.rows("SELECT count(*) FROM urls") == [(40,)]
    assert (counts.pages, counts.pending, counts.failed) == (39, 0, {})


def test_a_cookie_is_kept_along_redirects_and_a_wall_is_a_loop(folder: CrawlFolder, web: TinyWeb) -> None:
    folder.crawl("http://cookie-redirect.tinyweb.test/", "http://cookie-wall.tinyweb.test/")
    ends = folder.ends()
    assert ends["http://cookie-redirect.tinyweb.test/hello"] == "done"
    assert ends["http://cookie-redirect.tinyweb.test/inside"] == "done"
    assert ends["http://cookie-wall.tinyweb.test/wall"] == "skipped redirect_loop"
    assert sum(line.path == "/wall" for line in web.requests()) == 2


@pytest.mark.parametrize("processes", ["1", "2"])
def test_max_pages_is_exact(folder: CrawlFolder, web: TinyWeb, processes: str) -> None:
    told = folder.run("crawl", *web.seeds, "--max-pages", "17", "--delay", "0.01", "--processes", processes)
    assert (told["state"], told["pages"], told["pending"]) == ("finished", 17, 0)
    assert len(folder.pages()) == 17
    assert told["skipped"]["budget"] > 0


def test_equal_bodies_are_stored_once_and_each_is_a_page(folder: CrawlFolder) -> None:
    folder.crawl("http://duplicates.tinyweb.test/")
    same = at("duplicates", "/a", "/b", "/c", "/~x")
    assert folder.pages() == same | at("duplicates", "/", "/one", "/two")
    twins = folder.rows("SELECT url, same_as FROM pages WHERE same_as IS NOT NULL")
    assert len({url for url, _ in twins} & same) == 3
    assert len({of for url, of in twins if url in same}) == 1


def test_the_server_saw_a_polite_crawler_through_all_of_this(web: TinyWeb) -> None:
    """Delays are a few milliseconds here, so only order and rules are judged."""
    # redirect-outside belongs to the scope of one of these crawls.
    verdict = judge([line for line in web.requests() if line.name != "redirect-outside.tinyweb.test"], 0.0)
    assert (verdict.overlaps, verdict.robots_violations, verdict.unwanted) == (0, 0, 0)
