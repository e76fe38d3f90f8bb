"""From an outcome to what the commit writes, where the way is long."""

from __future__ import annotations

import random

import pytest

from curtsy.content.sitemaps import sitemap
from curtsy.core.model import Crawl, Entry, Kind, Lane, Lease
from curtsy.core.outcome import Action, Outcome
from curtsy.core.settings import Settings
from curtsy.crawl import results, sitemap_links
from curtsy.crawl.crawl_context import CrawlContext


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
    done = results.of_url(lease, outcome, context, Settings(), random.Random(1))
    assert done.decision.reason == "sitemap"
    assert done.is_complete == (slices is None)
    if slices is not None:
        assert list(done.links) == []
        found = list(sitemap_links.sitemap_links(lease.entry.url, context, sitemap(body, 50_000)))
        assert len(found) == slices
        done = results.with_links(done, [link for some in found for link in some], ())
        assert done.is_complete
    assert [link.url for link in done.links] == [f"https://a.test/page/{n}" for n in range(urls)]


SHELL = b'<!doctype html><a href="/x">x</a><div id="root"></div><script src="/app.js"></script>'
PROSE = b"<!doctype html><a href='/x'>x</a><p>" + b"words that say something " * 30 + b"</p><script>1</script>"


def result_of(body: bytes, render: str, kind: Kind = Kind.PAGE, **headers: str) -> results.Result:
    url = "https://a.test/page"
    lane = Lane.RENDER if kind is Kind.BROWSER else Lane.BATCH
    lease = Lease(
        fence=1, shard=0, host="a.test", crawl=1, crawl_version=0, lane=lane, delay_ms=0, per_host=1,
        entry=Entry(url=url, kind=kind, attempts=2), robots_ms=0, valid_until=0.0,
    )  # fmt: skip
    crawl = Crawl(n=1, id="1", request_id="r", members=frozenset({"a.test"}), render=render)
    given = (("Content-Type", "text/html"), *((name.replace("_", "-"), value) for name, value in headers.items()))
    outcome = Outcome(url=url, status=200, headers=given, body=body, started=1.0, ended=2.0)
    return results.of_url(lease, outcome, CrawlContext(crawl, Settings()), Settings(), random.Random(1))


def test_a_page_without_content_waits_for_a_browser_and_is_not_stored() -> None:
    done = result_of(SHELL, "auto")
    assert (done.decision.action, done.page, list(done.links)) == (Action.RENDER, None, [])
    assert done.retry is not None
    assert (done.retry.kind, done.retry.attempts) == (Kind.BROWSER, 0)
    assert done.needed_browser is True


@pytest.mark.parametrize(
    ("body", "render", "kind", "learnt"),
    [
        (SHELL, "never", Kind.PAGE, None),
        (PROSE, "auto", Kind.PAGE, False),
        (PROSE, "auto", Kind.BROWSER, None),
        (SHELL, "auto", Kind.BROWSER, False),
        (SHELL, "always", Kind.BROWSER, None),
    ],
)
def test_what_is_a_page_and_what_it_teaches(body: bytes, render: str, kind: Kind, learnt: bool | None) -> None:
    done = result_of(body, render, kind)
    assert (done.page is not None, done.retry, len(done.links)) == (True, None, 1)
    assert done.needed_browser is learnt


def test_a_page_that_asks_not_to_be_kept_is_not_rendered() -> None:
    done = result_of(SHELL, "auto", X_Robots_Tag="noindex")
    assert (done.decision.action, done.decision.reason) == (Action.SKIP, "noindex")


@pytest.mark.parametrize(("kind", "from_end"), [(Kind.PAGE, False), (Kind.BROWSER, True)])
def test_the_delay_runs_from_the_end_of_a_visit(kind: Kind, from_end: bool) -> None:
    assert result_of(PROSE, "always", kind).release().broken_off is from_end


@pytest.mark.parametrize(("render", "kind"), [("never", Kind.PAGE), ("auto", Kind.PAGE), ("always", Kind.BROWSER)])
def test_how_new_pages_are_asked_for(render: str, kind: Kind) -> None:
    assert [link.kind for link in result_of(PROSE, render).links] == [kind]
