"""From an outcome to what the commit writes, where the way is long."""

from __future__ import annotations

import random

import pytest

from curtsy import harvest
from curtsy.contexts import CrawlContext
from curtsy.links import sitemap
from curtsy.model import Crawl, Entry, Kind, Lane, Lease, Outcome
from curtsy.settings import Settings


@pytest.mark.parametrize(("urls", "slices"), [(3, None), (2500, 3)])
def test_the_links_of_a_long_sitemap_come_in_slices(urls: int, slices: int | None) -> None:
    locs = "".join(f"<url><loc>https://a.test/page/{n}</loc></url>" for n in range(urls))
    body = f"<urlset>{locs}</urlset>".encode()
    url = "https://a.test/sitemap.xml"
    lease = Lease(
        fence=1, shard=0, host="a.test", crawl=1, crawl_version=0, lane=Lane.BATCH, delay_ms=0, per_host=1,
        entry=Entry(url=url, kind=Kind.SITEMAP), robots_ms=0, valid_until=0.0,
    )  # fmt: skip
    context = CrawlContext(Crawl(n=1, id="1", request_id="r", members=frozenset({"a.test"})), Settings())
    outcome = Outcome(
        url=url, status=200, headers=(("Content-Type", "application/xml"),), body=body, started=1.0, ended=2.0
    )
    done = harvest.of_url(lease, outcome, context, Settings(), random.Random(1))
    assert done.decision.reason == "sitemap"
    assert done.complete == (slices is None)
    if slices is not None:
        assert done.links == []
        assert sum(1 for _ in harvest.sitemap_links(done, context, sitemap(body, 50_000))) == slices
    assert [link.url for link in done.links] == [f"https://a.test/page/{n}" for n in range(urls)]
