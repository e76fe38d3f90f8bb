"""Crawls and queues: states, budgets, the ledger, and the race between an insert and an emptying rescan."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import Connection
from threads import in_threads

from curtsy.core.errors import UnknownCrawl
from curtsy.core.model import Counts, Crawl, CrawlState, HostState, Lane, NewUrl, UrlState
from curtsy.store import crawls, hosts, queues, urls
from curtsy.store.engine import Store


def _crawl(store: Store, id: str = "0192-a", **values: object) -> Crawl:
    return store.run(crawls.create, Crawl(id=id, request_id="r", **values))  # type: ignore[arg-type]


def _url(crawl: int, n: int, host: str = "a.test") -> NewUrl:
    return NewUrl(crawl=crawl, fp=n.to_bytes(16, "big"), url=f"https://{host}/{n}", host=host)


def _add(tx: Connection, crawl: int, *ns: int, host: str = "a.test") -> None:
    queues.open_queues(tx, [(crawl, host, "batch", len(ns))])
    inserted = urls.insert(tx, [_url(crawl, n, host) for n in ns], 1)
    crawls.add_counts(tx, {(crawl, "open", ""): len(inserted)})


def test_a_crawl_reads_back_as_written(store: Store) -> None:
    written = _crawl(
        store,
        members=frozenset({"a.test", "b.test"}),
        include=("/x", "ü"),
        exclude=("/y",),
        max_pages=5,
        max_depth=2,
        delay_s=0.25,
        per_host=2,
        lane=Lane.SLOW,
        scope="domain",
        sitemaps=False,
        cookies=True,
        created_ms=7,
    )
    with store.read() as tx:
        assert crawls.by_n(tx, written.n) == written
        assert crawls.get(tx, written.id) == written
        assert crawls.get(tx, "last") == written
        assert crawls.settings_of(tx, written.n) == {}


def test_a_crawl_is_found_by_an_unambiguous_beginning_of_its_id(store: Store) -> None:
    first, second = _crawl(store, "0192-aa"), _crawl(store, "0192-ab")
    with store.read() as tx:
        assert crawls.get(tx, "0192-aa").n == first.n
        assert [found.n for found in crawls.list_all(tx)] == [second.n, first.n]
        for wrong in ("0192-a", "77", "", "%", "0192_aa"):
            with pytest.raises(UnknownCrawl):
                crawls.get(tx, wrong)


def test_a_state_changes_only_from_where_it_may(store: Store) -> None:
    n = _crawl(store).n
    assert store.run(crawls.set_state, n, CrawlState.RUNNING, None, 5, [CrawlState.LOADING])
    assert not store.run(crawls.set_state, n, CrawlState.RUNNING, None, 6, [CrawlState.LOADING])
    assert store.run(crawls.set_state, n, CrawlState.FINISHED, "budget", 9, [CrawlState.RUNNING])
    with store.read() as tx:
        ended = crawls.by_n(tx, n)
        assert (ended.state, ended.reason, ended.started_ms, ended.ended_ms) == (CrawlState.FINISHED, "budget", 5, 9)
        assert crawls.running(tx) == []
    assert store.run(crawls.set_state, n, CrawlState.RUNNING, None, 20)
    with store.read() as tx:
        resumed = crawls.by_n(tx, n)
        assert (resumed.started_ms, resumed.ended_ms, resumed.reason) == (5, None, None)
        assert [crawl.n for crawl in crawls.running(tx)] == [n]


def test_the_version_grows_only_with_new_members(store: Store) -> None:
    n = _crawl(store, members=frozenset({"a.test"})).n
    assert [store.run(crawls.extend_members, n, hosts) for hosts in (["a.test"], ["b.test", "a.test"], ["b.test"])] == [
        0,
        1,
        1,
    ]
    with store.read() as tx:
        assert crawls.by_n(tx, n).members == {"a.test", "b.test"}


def test_max_pages_is_counted_exactly_by_rivals(store: Store) -> None:
    n = _crawl(store, max_pages=25).n

    def take(tx: Connection) -> bool:
        limit, used = crawls.lock_budgets(tx, [n])[n]
        assert limit is not None
        if used < limit:
            crawls.add_pages(tx, {n: 1})
        return used < limit

    granted: list[bool] = []

    def work() -> None:
        granted.extend(store.run(take) for _ in range(15))

    in_threads(work, work, work)
    assert granted.count(True) == 25
    with store.read() as tx:
        assert crawls.lock_budgets(tx, [n, n]) == {n: (25, 25)}


def test_the_ledger_counts_open_rows_of_dead_hosts_and_ended_crawls_by_their_reason(store: Store) -> None:
    n = _crawl(store).n
    with store.begin() as tx:
        _add(tx, n, 1, 2, 3)
        _add(tx, n, 4, 5, host="b.test")
        urls.settle(tx, [urls.Settle(n, _url(n, 1).fp, 9, "done")], 2)
        crawls.add_counts(tx, {(n, "done", ""): 1})
        assert crawls.counts(tx, n) == Counts(done=1, pending=4)
        assert queues.mark_dead(tx, n, "b.test", "host_unreachable")
        assert not queues.mark_dead(tx, n, "b.test", "host_unreachable")
        assert crawls.counts(tx, n) == Counts(done=1, pending=2, failed={"host_unreachable": 2})
        crawls.set_state(tx, n, CrawlState.CANCELLED, None, 3)
        assert crawls.counts(tx, n) == Counts(
            done=1, pending=0, skipped={"cancelled": 2}, failed={"host_unreachable": 2}
        )


def test_a_queue_is_empty_only_without_open_rows_and_opens_again(store: Store) -> None:
    n = _crawl(store).n
    with store.begin() as tx:
        _add(tx, n, 1)
        assert not queues.mark_empty_if_none(tx, n, "a.test")
        urls.settle(tx, [urls.Settle(n, _url(n, 1).fp, 9, "done")], 2)
        assert queues.mark_empty_if_none(tx, n, "a.test")
        assert queues.open_of(tx, n) == []
        found = queues.open_queues(tx, [(n, "a.test", "batch", 3)])
        assert (found[n, "a.test"].state, found[n, "a.test"].added) == ("open", 4)
        queues.count_added(tx, {(n, "a.test"): 2})
        assert queues.get(tx, [(n, "a.test")])[n, "a.test"].added == 6


def test_a_dead_queue_stays_dead_until_it_is_revived(store: Store) -> None:
    n = _crawl(store).n
    with store.begin() as tx:
        _add(tx, n, 1)
        queues.mark_dead(tx, n, "a.test", "robots_unreachable")
        assert queues.open_queues(tx, [(n, "a.test", "batch", 1)])[n, "a.test"].state == "dead"
        assert not urls.has_open(tx, n)
        assert queues.reopen(tx, n, "a.test")
        assert urls.has_open(tx, n)
        assert [queue.host for queue in queues.open_of(tx, n)] == ["a.test"]


def test_a_queue_is_never_closed_over_a_row_being_inserted(store: Store) -> None:
    n = _crawl(store).n
    store.run(lambda tx: queues.open_queues(tx, [(n, "a.test", "batch", 0)]))
    opened, inserted = threading.Event(), threading.Event()
    emptied: list[bool] = []

    def rescan() -> None:
        opened.wait(10)
        emptied.append(store.run(queues.mark_empty_if_none, n, "a.test"))

    def insert(tx: Connection) -> None:
        queues.open_queues(tx, [(n, "a.test", "batch", 0)])
        opened.set()
        inserted.wait(0.2)  # the rescan is at the queue's lock by now; it must wait for us
        urls.insert(tx, [_url(n, 1)], 1)

    thread = threading.Thread(target=rescan)
    thread.start()
    store.run(insert)
    thread.join(20)
    assert emptied == [False]
    with store.read() as tx:
        assert [queue.state for queue in queues.open_of(tx, n)] == ["open"]


def test_open_queues_are_listed_in_order_for_running_crawls_only(store: Store) -> None:
    first, second, paused = _crawl(store, "a").n, _crawl(store, "b").n, _crawl(store, "c").n
    with store.begin() as tx:
        for n in (first, second, paused):
            _add(tx, n, 1, host="b.test")
            _add(tx, n, 2, host="a.test")
        crawls.set_state(tx, paused, CrawlState.PAUSED, None, 1)
        listed = [(queue.crawl, queue.host) for queue in queues.open_of(tx)]
        assert listed == [(first, "a.test"), (first, "b.test"), (second, "a.test"), (second, "b.test")]
        part = queues.open_of(tx, after=(first, "a.test"), limit=2)
        assert [(queue.crawl, queue.host) for queue in part] == listed[1:3]
        assert len(queues.open_of(tx, paused)) == 2


def test_queues_wait_by_next_time_over_all_running_crawls(store: Store) -> None:
    first, second, paused = _crawl(store, "a").n, _crawl(store, "b").n, _crawl(store, "c").n
    with store.begin() as tx:
        for n in (first, second, paused):
            for i, host in enumerate(("a.test", "b.test", "c.test")):
                _add(tx, n, i, host=host)
        crawls.set_state(tx, paused, CrawlState.PAUSED, None, 1)
        rows = [(first, "b.test", 30), (first, "a.test", 20), (second, "c.test", 20), (paused, "a.test", 10)]
        assert queues.wait(tx, rows) == {"batch"}
        assert queues.wait(tx, [(first, "b.test", 1)]) == set(), "it waits already: its place in the order stays"
        order = [(first, "a.test"), (second, "c.test"), (first, "b.test")]
        assert [(q.crawl, q.host) for q in queues.waiting(tx, "batch")] == order
        assert queues.waiting(tx, "high") == []
        for i in range(3):
            last = queues.waiting(tx, "batch")[i]
            behind = queues.waiting(tx, "batch", (last.next_ms, last.crawl, last.host))
            assert [(q.crawl, q.host) for q in behind] == order[i + 1 :]
        assert [(q.crawl, q.host) for q in queues.waiting(tx, "batch", limit=1)] == order[:1]
        in_play = [(q.crawl, q.host) for q in queues.open_of(tx, in_play=True)]
        assert in_play == [(first, "c.test"), (second, "a.test"), (second, "b.test")]
        queues.loaded(tx, order[:2])
        assert [(q.crawl, q.host) for q in queues.waiting(tx, "batch")] == order[2:]
        assert len(queues.open_of(tx, in_play=True)) == 5


def test_a_queue_that_is_not_open_does_not_wait(store: Store) -> None:
    n = _crawl(store).n
    with store.begin() as tx:
        _add(tx, n, 1)
        queues.mark_dead(tx, n, "a.test", "host_unreachable")
        assert queues.wait(tx, [(n, "a.test", 5)]) == set()
        assert queues.waiting(tx, "batch") == []


def test_a_host_fails_from_the_first_failure_until_it_recovers(store: Store) -> None:
    n = _crawl(store).n
    with store.begin() as tx:
        _add(tx, n, 1)
        queues.mark(tx, silent={"a.test": ("dns_failed", "SERVFAIL"), "unknown.test": ("timeout", "")}, now_ms=100)
        queues.mark(tx, silent={"a.test": ("timeout", "")}, now_ms=200)
        assert queues.faults(tx) == queues.faults(tx, "a.test") == {"a.test": ("dns_failed", 100)}
        (failing,) = queues.failing_since(tx, 150)
        assert (failing[0].failing_since_ms, failing[0].detail, failing[1]) == (100, "SERVFAIL", False)
        assert queues.failing_since(tx, 99) == []
        queues.mark(tx, silent={"a.test": ("status_503", "")}, now_ms=300)
        assert queues.faults(tx) == {"a.test": ("status_503", 100)}  # it is there
        queues.mark(tx, answered={"a.test"})
        assert queues.failing_since(tx, 10_000) == []
        assert queues.faults(tx) == {}
        assert [queue.reason for queue in queues.open_of(tx, n)] == [""]


def test_what_a_crawl_is_run_with_is_kept_and_may_be_amended(store: Store) -> None:
    crawl = _crawl(store, delay_s=1.0, max_pages=5, version=3)
    store.run(crawls.keep_settings, crawl.n, {"settings": {"resolve": ["ü=127.0.0.1:1"]}, "withheld": ["proxies"]})
    store.run(crawls.change_options, crawl.n, {"delay_s": 2.5, "max_pages": 9})
    with store.read() as tx:
        kept, now = crawls.settings_of(tx, crawl.n), crawls.by_n(tx, crawl.n)
    assert kept == {"settings": {"resolve": ["ü=127.0.0.1:1"]}, "withheld": ["proxies"]}
    assert (now.delay_s, now.max_pages, now.per_host, now.version) == (2.5, 9, None, 4)


def test_a_lifted_host_is_asked_soon_and_its_retries_wait_no_longer(store: Store) -> None:
    crawl = _crawl(store)
    with store.begin() as tx:
        for host, n in (("a.test", 1), ("b.test", 2)):
            _add(tx, crawl.n, n, host=host)
            hosts.upsert(tx, [HostState(host=host, next_ms=9000, blocked_until_ms=9000)])
            again = urls.Settle(crawl.n, _url(crawl.n, n).fp, 1, UrlState.OPEN, "", 1, retry_ms=9000)
            urls.settle(tx, [again], 5)
    before = _read(store, hosts.operator_version)
    store.run(hosts.lift, "a.test", 2000)
    assert store.run(urls.clear_retry_delays, "a.test", 1000) == 1
    assert store.run(urls.clear_retry_delays, "a.test", 1000) == 0
    states = _read(store, hosts.get_many, ["a.test", "b.test"])
    assert [(s.next_ms, s.blocked_until_ms) for s in states.values()] == [(2000, 0), (9000, 9000)]
    rows = [_read(store, urls.open_rows, crawl.n, host)[0].retry_ms for host in ("a.test", "b.test")]
    assert rows == [None, 9000]
    assert _read(store, hosts.operator_version) > before


def _read(store: Store, fn: Any, *args: Any) -> Any:
    with store.read() as tx:
        return fn(tx, *args)


def test_patience_with_silent_hosts_begins_anew(store: Store) -> None:
    n = _crawl(store).n
    other = _crawl(store, "0192-b").n
    with store.begin() as tx:
        for crawl in (n, other):
            queues.open_queues(tx, [(crawl, host, "batch", 1) for host in ("a.test", "b.test", "c.test")])
        queues.mark(tx, silent=dict.fromkeys(("a.test", "b.test", "c.test"), ("timeout", "")), now_ms=5)
        queues.mark_dead(tx, n, "c.test", "host_unreachable")
        queues.reset_patience(tx, n, "a.test")
        since = {(q.crawl, q.host): q.failing_since_ms for q, _ in queues.failing_since(tx, 10)}
        assert since == {(n, "b.test"): 5, (other, "a.test"): 5, (other, "b.test"): 5, (other, "c.test"): 5}
        queues.reset_patience(tx, n)
        assert {q.crawl for q, _ in queues.failing_since(tx, 10)} == {other}
        assert queues.get(tx, [(n, "c.test")])[n, "c.test"].state == "dead"
