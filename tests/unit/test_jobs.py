"""From a lease to its request: which proxies it goes through, and how long it may take."""

from __future__ import annotations

import pytest

from curtsy.contexts import CrawlContext
from curtsy.jobs import Jobs
from curtsy.model import Crawl, Entry, Kind, Lane, Lease
from curtsy.settings import HostRule, Settings

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
    assert Jobs(settings).for_url(lease, CrawlContext(crawl, settings), None).proxy_pool == expected


@pytest.mark.parametrize(("kind", "timeout_s"), [(Kind.PAGE, 20.0), (Kind.SITEMAP, 20.0), (Kind.BROWSER, 60.0)])
def test_a_visit_has_more_time(kind: Kind, timeout_s: float) -> None:
    lease = Lease(
        fence=1, shard=0, host="a.test", crawl=1, crawl_version=0, lane=Lane.BATCH, delay_ms=0, per_host=1,
        entry=Entry(url="https://a.test/", kind=kind), robots_ms=0, valid_until=99.0,
    )  # fmt: skip
    job = Jobs(Settings()).for_url(lease, CrawlContext(Crawl(id="c", request_id="r"), Settings()), None)
    assert (job.timeout_s, job.deadline) == (timeout_s, 99.0)
