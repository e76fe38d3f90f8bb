"""What a process remembers of a crawl is never ahead of what the store will know."""

from __future__ import annotations

from dataclasses import replace

from curtsy.core.model import Crawl
from curtsy.core.settings import Settings
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.crawl.sitemap_links import offered_sitemaps
from curtsy.rules.robots import Robots

CRAWL = Crawl(n=1, id="one", request_id="r", members=frozenset({"a.test"}), version=1)


def context() -> CrawlContext:
    return CrawlContext(CRAWL, Settings())


def found(known: CrawlContext, href: str) -> list[str]:
    return [link.url for link in known.new_links("https://a.test/", [href], 1)]


def test_a_row_read_before_our_commit_takes_no_member_away() -> None:
    known = context()
    known.renew(replace(CRAWL, members=frozenset({"a.test", "b.test"}), version=2))
    known.renew(CRAWL)
    assert found(known, "https://b.test/x") == ["https://b.test/x"]
    assert known.crawl.version == 2


def test_a_member_that_was_admitted_here_is_in_scope_and_still_to_be_stored() -> None:
    known = context()
    assert found(known, "https://b.test/x") == []
    known.admit("b.test")
    known.renew(CRAWL)
    assert found(known, "https://b.test/x") == ["https://b.test/x"]
    assert "b.test" not in known.crawl.members


def test_sitemaps_are_offered_until_their_rows_are_committed() -> None:
    known, rules = context(), Robots.parse(b"User-agent: *\nSitemap: https://a.test/map.xml\n")
    for _ in range(2):
        assert [row.url for row in offered_sitemaps(rules, "https://a.test/p", known)] == ["https://a.test/map.xml"]
    known.sitemapped.add("https://a.test")
    assert offered_sitemaps(rules, "https://a.test/p", known) == []


def test_links_that_were_denied_or_out_of_scope_are_looked_at_again_when_that_changes() -> None:
    denied = {"a.test"}
    known = CrawlContext(CRAWL, Settings(), denied.__contains__)
    assert found(known, "/x") == found(known, "/x") == []
    denied.clear()
    known.forget_links()
    assert found(known, "/x") == ["https://a.test/x"]
    known.remember("https://a.test/x")
    assert found(known, "/x") == found(known, "/x") == []


def test_patterns_are_about_pages_and_not_about_the_sitemaps_that_name_them() -> None:
    crawl = replace(CRAWL, include=("/docs/",), exclude=(r"\.xml$",), max_depth=1)
    known = CrawlContext(crawl, Settings())
    rules = Robots.parse(b"Sitemap: https://a.test/map.xml\nSitemap: https://b.test/map.xml\n")
    assert [row.url for row in offered_sitemaps(rules, "https://a.test/p", known)] == ["https://a.test/map.xml"]
    known.admit("b.test")
    assert len(offered_sitemaps(rules, "https://a.test/p", known)) == 2
    assert found(known, "/map.xml") == found(known, "/docs/a.xml") == found(known, "/blog/b") == []
    assert found(known, "/docs/a") == ["https://a.test/docs/a"]
    known = CrawlContext(replace(crawl, max_depth=0), Settings())
    assert offered_sitemaps(rules, "https://a.test/p", known) == []
