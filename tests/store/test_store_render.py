"""Rows that wait for a browser in the store: told apart from plain ones, and what is remembered of hosts."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from curtsy.core.model import Crawl, CrawlState, Kind, NewUrl, UrlState, new_id
from curtsy.store import crawls, hosts, queues, urls
from curtsy.store.engine import Store


def made(store: Store, render: str = "auto") -> int:
    crawl = Crawl(id=new_id(), request_id="r", state=CrawlState.RUNNING, render=render)
    return store.run(crawls.create, crawl).n


def fp(n: int) -> bytes:
    return n.to_bytes(16, "big")


def add(store: Store, crawl: int, host: str, kind: Kind, *numbers: int) -> None:
    def write(tx: Any) -> None:
        queues.open_queues(tx, [(crawl, host, "batch", len(numbers))])
        rows = [NewUrl(crawl=crawl, fp=fp(n), url=f"https://{host}/{n}", host=host, kind=kind) for n in numbers]
        urls.insert(tx, rows, 1)

    store.run(write)


def read(store: Store, fn: Any, *args: Any) -> Any:
    with store.read() as tx:
        return fn(tx, *args)


def seen(store: Store, crawl: int, host: str, render: bool) -> list[str]:
    return [row.url for row in read(store, urls.open_rows, crawl, host, 0, 10, render)]


def test_a_scan_reads_the_rows_of_its_own_queue(store: Store) -> None:
    n = made(store)
    add(store, n, "a.test", Kind.PAGE, 1)
    add(store, n, "a.test", Kind.BROWSER, 2, 3)
    add(store, n, "a.test", Kind.SITEMAP, 4)
    assert seen(store, n, "a.test", False) == ["https://a.test/1", "https://a.test/4"]
    assert seen(store, n, "a.test", True) == ["https://a.test/2", "https://a.test/3"]


def test_which_queues_are_put_back_follows_from_their_open_rows(store: Store) -> None:
    n, plain = made(store), made(store, "never")
    add(store, n, "p.test", Kind.PAGE, 1)
    add(store, n, "b.test", Kind.BROWSER, 2)
    add(store, n, "both.test", Kind.PAGE, 3)
    add(store, n, "both.test", Kind.BROWSER, 4)
    add(store, n, "none.test", Kind.BROWSER, 5)
    store.run(urls.settle, [urls.Settle(n, fp(5), 1, UrlState.DONE)], 1)
    add(store, plain, "a.test", Kind.PAGE, 6)
    pairs = [(n, host) for host in ("p.test", "b.test", "both.test", "none.test")] + [(plain, "a.test")]
    found = read(store, urls.kinds_open, pairs)
    assert set(found[0]) == {(n, "p.test"), (n, "both.test"), (n, "none.test"), (plain, "a.test")}
    assert set(found[1]) == {(n, "b.test"), (n, "both.test")}


def test_a_row_changes_its_kind_as_long_as_it_is_open(store: Store) -> None:
    n = made(store)
    add(store, n, "a.test", Kind.PAGE, 1, 2)
    store.run(urls.settle, [urls.Settle(n, fp(2), 1, UrlState.DONE)], 1)
    store.run(urls.change_kinds, [(n, fp(1), "b"), (n, fp(2), "b")])
    assert {row.kind for row in read(store, urls.select_many, [(n, fp(1))]).values()} == {"b"}
    assert {row.kind for row in read(store, urls.select_many, [(n, fp(2))]).values()} == {"p"}


def test_pages_that_wait_for_a_browser_are_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are open, on hosts that are not dead for the crawl, as far as is counted."""
    n, other = made(store), made(store)
    add(store, n, "a.test", Kind.PAGE, 1)
    add(store, n, "a.test", Kind.BROWSER, 2, 3, 4)
    add(store, n, "dead.test", Kind.BROWSER, 5, 6)
    add(store, other, "a.test", Kind.BROWSER, 7)
    store.run(crawls.add_counts, {(n, "open", ""): 6, (other, "open", ""): 1})

    def counted() -> tuple[int, int]:
        counts = read(store, crawls.counts, n)
        return counts.pending, counts.pending_render

    assert counted() == (6, 5)
    store.run(urls.settle, [urls.Settle(n, fp(2), 1, UrlState.DONE)], 1)
    store.run(crawls.add_counts, {(n, "done", ""): 1})
    assert counted() == (5, 4)
    store.run(urls.change_kinds, [(n, fp(3), "p")])
    assert counted() == (5, 3)
    store.run(queues.mark_dead, n, "dead.test", "host_unreachable")
    assert counted() == (3, 1)
    monkeypatch.setattr(crawls, "MOST_RENDER", 0)
    assert counted() == (3, 0), "no more are looked at"
    monkeypatch.undo()
    store.run(crawls.set_state, n, CrawlState.CANCELLED, "cancelled", 9)
    assert counted() == (0, 0)


def test_counting_them_reads_no_other_rows(store: Store) -> None:
    n = made(store)
    add(store, n, "a.test", Kind.PAGE, *range(1, 200))
    with store.read() as tx:
        if tx.dialect.name == "postgresql":
            # What its statistics say of a table of 200 rows is not the point.
            tx.execute(text("SET LOCAL enable_seqscan = off"))
        explain = "EXPLAIN" if tx.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN"
        plan = str(tx.execute(text(f"{explain} {crawls._RENDER_ROWS}"), {"crawl": n, "most": 10}).all())
    assert "urls_render" in plan


def test_a_queue_stays_open_while_pages_wait_for_a_browser(store: Store) -> None:
    n = made(store)
    add(store, n, "a.test", Kind.BROWSER, 1)
    assert not store.run(queues.mark_empty_if_none, n, "a.test")
    with store.read() as tx:
        assert not queues.has_open_rows(tx, n, "a.test", render=False)
        assert queues.has_open_rows(tx, n, "a.test", render=True)
        assert urls.has_open(tx, n)


def test_what_was_learnt_of_a_host_adds_up_and_fades(store: Store) -> None:
    store.run(hosts.learn_rendering, {"a.test": (3, 1), "b.test": (0, 2)})
    store.run(hosts.learn_rendering, {"a.test": (2, 0)})
    assert read(store, hosts.rendering, ["a.test", "b.test", "new.test"]) == {
        "a.test": (5, 1),
        "b.test": (0, 2),
        "new.test": (0, 0),
    }
    store.run(hosts.learn_rendering, {"a.test": (96, 0)})
    store.run(hosts.learn_rendering, {"a.test": (0, 1)})
    assert read(store, hosts.rendering, ["a.test"]) == {"a.test": (50, 1)}, "older experience counts half"
