"""From a lease to its request: which proxies it goes through, and how long it may take."""

from __future__ import annotations

import pytest

from curtsy.core.model import Chain, Crawl, Entry, Kind, Lane, Lease, Page
from curtsy.core.settings import HostRule, Settings
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.crawl.request_builder import RequestBuilder
from curtsy.rules.cookies import CookieJar

POOLS = {"default": ("http://one.test:1",), "mine": ("http://two.test:2",), "hosts": ("http://three.test:3",)}


@pytest.mark.parametrize(
    ("of_crawl", "of_host", "expected"),
    [(None, None, "default"), ("mine", None, "mine"), ("mine", "hosts", "hosts"), (None, "hosts", "hosts")],
)
def test_the_operators_rule_for_a_host_wins_over_the_crawls_pool_and_that_over_the_default(
    of_crawl: str | None, of_host: str | None, expected: str
) -> None:
    rules = {"a.test": HostRule(proxy_pool=of_host)} if of_host else {}
    settings = Settings(proxies=POOLS, hosts=rules)
    crawl = Crawl(id="c", request_id="r", proxy_pool=of_crawl)
    lease = Lease(
        fence=1, shard=0, host="a.test", crawl=1, crawl_version=0, lane=Lane.BATCH, entry=Entry(url="https://a.test/"),
        delay_ms=0, per_host=1, robots_ms=0, valid_until=0.0,
    )  # fmt: skip
    assert RequestBuilder(settings).for_url(lease, CrawlContext(crawl, settings), None).proxy_pool == expected


@pytest.mark.parametrize(("kind", "timeout_s"), [(Kind.PAGE, 20.0), (Kind.SITEMAP, 20.0), (Kind.BROWSER, 60.0)])
def test_a_visit_has_more_time(kind: Kind, timeout_s: float) -> None:
    lease = Lease(
        fence=1, shard=0, host="a.test", crawl=1, crawl_version=0, lane=Lane.BATCH, delay_ms=0, per_host=1,
        entry=Entry(url="https://a.test/", kind=kind), robots_ms=0, valid_until=99.0,
    )  # fmt: skip
    job = RequestBuilder(Settings()).for_url(lease, CrawlContext(Crawl(id="c", request_id="r"), Settings()), None)
    assert (job.timeout_s, job.deadline) == (timeout_s, 99.0)


@pytest.mark.parametrize("kind", Kind)
def test_only_the_body_of_a_plain_page_is_kept_as_gzip(kind: Kind) -> None:
    lease = Lease(
        fence=1, shard=0, host="a.test", crawl=1, crawl_version=0, lane=Lane.BATCH, delay_ms=0, per_host=1,
        entry=Entry(url="https://a.test/", kind=kind), robots_ms=0, valid_until=99.0,
    )  # fmt: skip
    builder, context = RequestBuilder(Settings()), CrawlContext(Crawl(id="c", request_id="r"), Settings())
    job = builder.for_robots(lease) if kind is Kind.ROBOTS else builder.for_url(lease, context, None)
    assert job.keep_gzip is (kind is Kind.PAGE)


def cookies_of(jar: CookieJar | None, chain: Chain | None, url: str = "http://a.test/x") -> str | None:
    context = CrawlContext(Crawl(id="c", request_id="r", cookies=True), Settings())
    if jar is not None:
        context.jars["a.test"] = jar
    lease = Lease(
        fence=1, shard=0, host="a.test", crawl=1, crawl_version=0, lane=Lane.BATCH, delay_ms=0, per_host=1,
        entry=Entry(url=url, chain=chain), robots_ms=0, valid_until=99.0,
    )  # fmt: skip
    return dict(RequestBuilder(Settings()).for_url(lease, context, None).headers).get("Cookie")


def test_after_a_redirect_a_cookie_is_sent_once_and_as_the_jar_has_it() -> None:
    chain = Chain(cookies=("r=9", "gone=", "s=1", "far=4"), cookie_host="http://a.test")
    jar = CookieJar()
    jar.store("http://a.test/", ["r=10", "a=1", "gone=; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "s=1; Secure"])
    assert cookies_of(None, chain) == "r=9; gone=; s=1; far=4"
    assert cookies_of(jar, chain) == "far=4; r=10; a=1"
    assert cookies_of(jar, None) == "r=10; a=1"
    assert cookies_of(CookieJar(), None) is None


@pytest.mark.parametrize(("kind", "conditional"), [(Kind.PAGE, True), (Kind.BROWSER, False), (Kind.SITEMAP, False)])
def test_only_plain_pages_are_asked_for_conditionally(kind: Kind, conditional: bool) -> None:
    lease = Lease(
        fence=1, shard=0, host="a.test", crawl=1, crawl_version=0, lane=Lane.BATCH, delay_ms=0, per_host=1,
        entry=Entry(url="https://a.test/", kind=kind), robots_ms=0, valid_until=99.0,
    )  # fmt: skip
    before = Page(
        id="1", crawl=1, fp=b"x", url="https://a.test/", host="a.test", status=200, fetched_ms=1, depth=0, etag='"v1"'
    )
    job = RequestBuilder(Settings()).for_url(lease, CrawlContext(Crawl(id="c", request_id="r"), Settings()), before)
    assert (("If-None-Match", '"v1"') in job.headers) is conditional
