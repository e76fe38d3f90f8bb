"""The outbox: put once, sent under a lease, done once, dead with a letter, put again."""

from __future__ import annotations

import threading
from dataclasses import replace

from sqlalchemy import Connection

from curtsy.core.model import Crawl, CrawlState, Failure
from curtsy.store import crawls, failures, outbox
from curtsy.store.engine import Store
from curtsy.store.outbox import Put

NOW = 1_000_000
LEASE_MS = 120_000
CRAWL = Crawl(id="c", request_id="r", state=CrawlState.RUNNING, schema="page")


def make(tx: Connection, *subjects: str, id: str = "c", kind: str = "extract") -> int:
    crawl = crawls.create(tx, replace(CRAWL, id=id))
    outbox.put(tx, [Put(kind, crawl.n, subject, NOW, {"word": subject}, "r") for subject in subjects])
    return crawl.n


def subjects(tx: Connection, now_ms: int = NOW, limit: int = 10) -> list[str]:
    return sorted(row.subject for row in outbox.due(tx, now_ms, limit))


def test_a_row_is_put_once_and_keeps_its_payload(store: Store) -> None:
    with store.begin() as tx:
        n = make(tx, "a")
        outbox.put(tx, [Put("extract", n, "a", NOW + 5, {"word": "other"})])
        (row,) = outbox.due(tx, NOW, 10)
    assert (row.kind, row.crawl, row.subject, row.payload, row.request_id) == ("extract", n, "a", {"word": "a"}, "r")


def test_what_was_sent_is_due_again_after_its_lease(store: Store) -> None:
    with store.begin() as tx:
        make(tx, "a", "b")
        (first, _) = outbox.due(tx, NOW, 10)
        outbox.sent(tx, [first.n], NOW, lease_ms=500)
        assert len(outbox.due(tx, NOW, 10)) == 1
        assert outbox.under_way(tx, NOW) == 1
        assert len(outbox.due(tx, NOW + 499, 10)) == 1
        assert len(outbox.due(tx, NOW + 500, 10)) == 2


def test_what_could_not_be_sent_is_due_at_once_unless_somebody_has_it_after_all(store: Store) -> None:
    with store.begin() as tx:
        make(tx, "a", "b")
        lost, got = outbox.due(tx, NOW, 10)
        outbox.sent(tx, [lost.n, got.n], NOW, lease_ms=500)
        assert outbox.begin(tx, "extract", got.n, NOW + 1, 500) is not None
        outbox.unsent(tx, [lost.n, got.n], NOW + 2)
        assert [row.n for row in outbox.due(tx, NOW + 2, 10)] == [lost.n]
        assert outbox.begin(tx, "extract", got.n, NOW + 3, LEASE_MS) is None


def test_a_row_is_done_once(store: Store) -> None:
    with store.begin() as tx:
        crawl = make(tx, "a")
        (row,) = outbox.due(tx, NOW, 10)
        assert outbox.has_open(tx, crawl)
        assert outbox.done(tx, row.n)
        assert not outbox.done(tx, row.n)
        assert not outbox.has_open(tx, crawl)
        assert outbox.begin(tx, "extract", row.n, NOW, LEASE_MS) is None


def test_a_row_that_waits_for_its_next_try_is_not_taken_up_by_a_late_message(store: Store) -> None:
    with store.begin() as tx:
        make(tx, "a")
        (row,) = outbox.due(tx, NOW, 10)
        outbox.sent(tx, [row.n], NOW, LEASE_MS)
        taken = outbox.begin(tx, "extract", row.n, NOW, LEASE_MS)
        assert taken is not None
        assert taken.attempts == 1
        outbox.failed(tx, row.n, "busy", "try later", NOW + 1000)
        assert outbox.begin(tx, "extract", row.n, NOW + 999, LEASE_MS) is None
        assert subjects(tx, NOW + 999) == []
        assert subjects(tx, NOW + 1000) == ["a"]


def test_a_row_belongs_to_one_process_until_its_lease_ends(store: Store) -> None:
    with store.begin() as tx:
        make(tx, "a")
        (row,) = outbox.due(tx, NOW, 10)
        outbox.sent(tx, [row.n], NOW, 500)
        assert outbox.begin(tx, "extract", row.n, NOW + 1, 500) is not None
        assert outbox.begin(tx, "extract", row.n, NOW + 2, 500) is None, "the message came twice"
        again = outbox.begin(tx, "extract", row.n, NOW + 501, 500)
        assert again is not None
        assert again.attempts == 2


def test_the_number_of_a_row_that_is_done_is_not_given_again(store: Store) -> None:
    with store.begin() as tx:
        crawl = make(tx, "a")
        (row,) = outbox.due(tx, NOW, 10)
        outbox.done(tx, row.n)
        outbox.put(tx, [Put("score", crawl, "a", NOW)])
        (later,) = outbox.due(tx, NOW, 10)
        assert later.n > row.n
        assert not outbox.done(tx, row.n)


def test_a_message_of_another_kind_takes_nothing_up(store: Store) -> None:
    with store.begin() as tx:
        make(tx, "a")
        (row,) = outbox.due(tx, NOW, 10)
        assert outbox.begin(tx, "score", row.n, NOW, LEASE_MS) is None


def test_stages_of_a_paused_or_cancelled_crawl_rest(store: Store) -> None:
    for state in (CrawlState.PAUSED, CrawlState.CANCELLED):
        with store.begin() as tx:
            crawl = make(tx, "a", id=state.value)
            (row,) = outbox.due(tx, NOW, 10)
            crawls.set_state(tx, crawl, state, None, NOW)
            assert outbox.due(tx, NOW, 10) == []
            assert outbox.begin(tx, "extract", row.n, NOW, LEASE_MS) is None


def test_webhooks_are_due_whatever_became_of_the_crawl_and_do_not_keep_it_open(store: Store) -> None:
    with store.begin() as tx:
        crawl = make(tx, "cancelled", kind="webhook")
        crawls.set_state(tx, crawl, CrawlState.CANCELLED, None, NOW)
        (row,) = outbox.due(tx, NOW, 10)
        assert not outbox.has_open(tx, crawl)
        assert outbox.begin(tx, "webhook", row.n, NOW, LEASE_MS) is not None


def test_crawls_alternate(store: Store) -> None:
    with store.begin() as tx:
        make(tx, *(f"a{i}" for i in range(50)), id="a")
        make(tx, *(f"b{i}" for i in range(5)), id="b")
        found = subjects(tx, limit=8)
    assert sum(name.startswith("b") for name in found) == 4
    assert len(found) == 8


def test_a_dead_row_has_a_letter_and_can_be_put_again_and_die_again(store: Store) -> None:
    with store.begin() as tx:
        crawl = make(tx, "00ff")
        (row,) = outbox.due(tx, NOW, 10)
        letter = Failure(id="", crawl=crawl, fp=b"\x00\xff", url="u", host="h", stage="extract", fence=77, at_ms=NOW)
        outbox.failed(tx, row.n, "broken", "it broke", None, letter)
        outbox.failed(tx, row.n, "broken", "it broke", None, letter)
        (found,) = failures.find(tx, crawl=crawl)
        assert (found.stage, found.cause, found.detail, found.fence) == ("extract", "broken", "it broke", 77)
        assert not outbox.has_open(tx, crawl)
        assert outbox.due(tx, NOW, 10) == []
        key = ("extract", crawl, "00ff")
        assert outbox.again(tx, [key], NOW + 1) == [key]
        assert outbox.again(tx, [key], NOW + 1) == []
        (row,) = outbox.due(tx, NOW + 1, 10)
        assert (row.attempts, row.payload) == (0, {"word": "00ff"})
        outbox.failed(tx, row.n, "broken", "again", None, letter)
        assert [f.detail for f in failures.find(tx, crawl=crawl)] == ["it broke", "again"]


def test_two_senders_do_not_take_the_same_rows(store: Store) -> None:
    with store.begin() as tx:
        make(tx, *(f"a{i:03}" for i in range(100)))
    taken: list[list[int]] = []
    barrier = threading.Barrier(2)

    def take(tx: Connection) -> list[int]:
        ns = [row.n for row in outbox.due(tx, NOW, 40)]
        outbox.sent(tx, ns, NOW, LEASE_MS)
        return ns

    def send() -> None:
        barrier.wait()
        taken.append(store.run(take))

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not set(taken[0]) & set(taken[1])
    assert {len(ns) for ns in taken} == {40}
