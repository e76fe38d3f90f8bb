"""What changed between two crawls: counts, lists in pages, on SQLite and PostgreSQL."""

from __future__ import annotations

import pytest

from curtsy.control import changes
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, CrawlState, NewUrl, Page, UrlState
from curtsy.store import crawls, pages, urls
from curtsy.store.engine import Store

NOW = 1_000_000


def fp(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")


def make(
    store: Store, id: str, bodies: dict[str, str], ends: dict[str, str] | None = None, reason: str | None = None
) -> Crawl:
    """A crawl with these pages, and these URLs that became none, by reason."""
    with store.begin() as tx:
        crawl = crawls.create(tx, Crawl(id=id, request_id="r", state=CrawlState.FINISHED, reason=reason))
        pages.insert(tx, [page(crawl.n, name, body) for name, body in bodies.items()])
        rows = [NewUrl(crawl=crawl.n, fp=fp(name), url=url(name), host="a.test") for name in (*bodies, *(ends or {}))]
        urls.insert(tx, rows, NOW)
        settled = [
            urls.Settle(crawl.n, fp(name), 1, UrlState.FAILED if why == "timeout" else UrlState.DONE, why)
            for name, why in (ends or {}).items()
        ]
        urls.settle(tx, settled, NOW)
        return crawl


def url(name: str) -> str:
    return f"https://a.test/{name}"


def page(crawl: int, name: str, body: str) -> Page:
    return Page(
        id="", crawl=crawl, fp=fp(name), url=url(name), host="a.test", status=200, fetched_ms=NOW, depth=0,
        sha256=body.encode().hex().ljust(64, "0"),
    )  # fmt: skip


@pytest.fixture
def two(store: Store) -> Store:
    make(store, "before", {"same": "1", "edited": "1", "lost": "1", "deleted": "1", "away": "1", "broken": "1"})
    make(
        store, "after", {"same": "1", "edited": "2", "fresh": "1"},
        {"deleted": "gone", "away": "redirect", "broken": "timeout"},
    )  # fmt: skip
    return store


KINDS = {
    "same": "unchanged",
    "edited": "changed",
    "fresh": "new",
    "lost": "gone",
    "deleted": "gone",
    "away": "moved",
    "broken": "unread",
}


def test_every_page_of_both_crawls_is_reported_once(two: Store) -> None:
    report = changes.report_of(two, "after", "before")
    found, after = changes.chunk(two, report)
    assert {change.url: change.kind for change in found} == {url(name): kind for name, kind in KINDS.items()}
    assert after is None
    why = {change.url: change.why for change in found if change.why}
    assert why == {url("lost"): "absent", url("deleted"): "gone", url("away"): "redirect", url("broken"): "timeout"}
    (edited,) = [change for change in found if change.kind == "changed"]
    assert edited.sha256_before != edited.sha256
    assert changes.counts(two, report) == {
        "new": 1, "changed": 1, "unchanged": 1, "gone": 2, "moved": 1, "unread": 1,
    }  # fmt: skip


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_lists_continue_where_they_ended(two: Store, limit: int) -> None:
    report = changes.report_of(two, "after", "before")
    found: list[str] = []
    after: changes.Cursor | None = changes.FIRST
    while after is not None:
        some, after = changes.chunk(two, report, after=after, limit=limit)
        assert len(some) <= limit
        found += [change.url for change in some]
    assert sorted(found) == sorted(map(url, KINDS))


@pytest.mark.parametrize("kind", changes.KINDS)
def test_one_kind_alone(two: Store, kind: str) -> None:
    report = changes.report_of(two, "after", "before")
    found, _ = changes.chunk(two, report, kind)
    assert {change.url for change in found} == {url(name) for name, its in KINDS.items() if its == kind}


def test_a_crawl_that_did_not_see_everything_does_not_say_gone_of_what_it_did_not_meet(store: Store) -> None:
    make(store, "before", {"a": "1", "b": "1", "c": "1"})
    make(store, "after", {"a": "1"}, {"c": "gone"}, reason="budget")
    counted = changes.counts(store, changes.report_of(store, "after", "before"))
    assert (counted["gone"], counted["unread"]) == (1, 1)


def test_what_cannot_be_compared_is_reported(two: Store) -> None:
    with pytest.raises(UsageError, match="no earlier crawl has the same seeds"):
        changes.report_of(two, "after")
    with pytest.raises(UsageError, match="itself"):
        changes.report_of(two, "after", "after")
    with pytest.raises(UsageError, match="Unknown kind of change: 'odd'"):
        changes.chunk(two, changes.report_of(two, "after", "before"), "odd")
