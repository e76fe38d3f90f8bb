"""What a process remembers of a crawl is never ahead of what the store will know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from curtsy.core.model import Crawl
from curtsy.core.settings import Settings
from curtsy.crawl.crawl_context import CrawlContext, Jar
from curtsy.crawl.results import sitemaps_of
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
        assert [row.url for row in sitemaps_of(rules, "https://a.test/p", known)] == ["https://a.test/map.xml"]
    known.sitemapped.add("https://a.test")
    assert sitemaps_of(rules, "https://a.test/p", known) == []


def test_links_that_were_denied_or_out_of_scope_are_looked_at_again_when_that_changes() -> None:
    denied = {"a.test"}
    known = CrawlContext(CRAWL, Settings(), denied.__contains__)
    assert found(known, "/x") == found(known, "/x") == []
    denied.clear()
    known.look_again()
    assert found(known, "/x") == ["https://a.test/x"]
    known.remember("https://a.test/x")
    assert found(known, "/x") == found(known, "/x") == []


def test_patterns_are_about_pages_and_not_about_the_sitemaps_that_name_them() -> None:
    crawl = replace(CRAWL, include=("/docs/",), exclude=(r"\.xml$",), max_depth=1)
    known = CrawlContext(crawl, Settings())
    rules = Robots.parse(b"Sitemap: https://a.test/map.xml\nSitemap: https://b.test/map.xml\n")
    assert [row.url for row in sitemaps_of(rules, "https://a.test/p", known)] == ["https://a.test/map.xml"]
    known.admit("b.test")
    assert len(sitemaps_of(rules, "https://a.test/p", known)) == 2
    assert found(known, "/map.xml") == found(known, "/docs/a.xml") == found(known, "/blog/b") == []
    assert found(known, "/docs/a") == ["https://a.test/docs/a"]
    known = CrawlContext(replace(crawl, max_depth=0), Settings())
    assert sitemaps_of(rules, "https://a.test/p", known) == []


# Cookies.

NOW_S = 1_700_000_000.0


def sent(jar: Jar, url: str, now_s: float = NOW_S) -> str:
    return "; ".join(f"{name}={value}" for name, value in jar.pairs(url, now_s))


def filled(*lines: str, url: str = "https://a.test/shop/cart") -> Jar:
    jar = Jar()
    jar.take(url, lines, NOW_S)
    return jar


@pytest.mark.parametrize(
    "line",
    [
        "b=; Max-Age=0",
        "b=2; max-age=-1",
        "b=2; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "b=; expires=Thu, 01-Jan-1970 00:00:01 GMT",
    ],
)
def test_a_cookie_that_expires_is_removed(line: str) -> None:
    jar = filled("a=1; Path=/", "b=2")
    assert sent(jar, "https://a.test/shop/x") == "b=2; a=1"
    jar.take("https://a.test/shop/other", [line], NOW_S)
    assert sent(jar, "https://a.test/shop/x") == "a=1"
    assert jar.knows("b")


def test_a_cookie_is_kept_for_its_time() -> None:
    jar = filled("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "b=2; Expires=soon", "c=3; Max-Age=x")
    assert sent(jar, "https://a.test/shop/") == "a=1; b=2; c=3"
    assert sent(jar, "https://a.test/shop/", NOW_S + 60) == "b=2; c=3"


@pytest.mark.parametrize(
    ("line", "url", "goes"),
    [
        ("a=1; Secure", "http://a.test/shop/x", False),
        ("a=1; Secure", "https://a.test/shop/x", True),
        ("a=1", "http://a.test/shop/x", True),
        ("a=1", "https://a.test/", False),
        ("a=1", "https://a.test/shopping", False),
        ("a=1; Path=/", "https://a.test", True),
        ("a=1; Path=/shop/cart", "https://a.test/shop/cart?x=1", True),
        ("a=1; Path=shop", "https://a.test/shop/x", True),
        ("a=1", "https://b.a.test/shop/x", False),
        ("a=1; Domain=.a.test", "https://b.a.test/shop/x", True),
        ("a=1; Domain=b.a.test", "https://b.a.test/shop/x", False),
        ("a=1; Domain=test", "https://a.test/shop/x", False),
        ("a", "https://a.test/shop/x", False),
        ("=1", "https://a.test/shop/x", False),
        ("a=\x01", "https://a.test/shop/x", False),
        ("a=" + "x" * 5000, "https://a.test/shop/x", False),
    ],
)
def test_where_a_cookie_goes(line: str, url: str, goes: bool) -> None:
    assert sent(filled(line), url) == ("a=1" if goes else "")


def test_a_jar_holds_so_many() -> None:
    jar = filled(*(f"c{n}=1" for n in range(60)))
    assert len(jar.pairs("https://a.test/shop/", NOW_S)) == 50
    assert "c59" in sent(jar, "https://a.test/shop/")
