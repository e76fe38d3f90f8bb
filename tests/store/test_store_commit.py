"""What the commit relies on: rows settled once by fence, repeated transactions without effect, no deadlocks."""

from __future__ import annotations

import random
import threading
from dataclasses import replace

import pytest
from sqlalchemy import Connection

from curtsy.core.errors import UsageError
from curtsy.core.model import BodyRef, Chain, Crawl, Failure, HostState, Kind, NewUrl, Page, Request, RobotsState
from curtsy.store import crawls, failures, hosts, pages, queues, requests, urls
from curtsy.store.engine import Store
from curtsy.store.urls import Settle

NOW = 1_700_000_000_000


@pytest.fixture
def crawl(store: Store) -> int:
    return store.run(crawls.create, Crawl(id="0192", request_id="r")).n


def _fp(n: int) -> bytes:
    return n.to_bytes(16, "big")


def _url(crawl: int, n: int, **values: object) -> NewUrl:
    given = {"url": f"https://a.test/{n}", "host": "a.test"} | values
    return NewUrl(crawl=crawl, fp=_fp(n), **given)  # type: ignore[arg-type]


def _page(crawl: int, n: int, **values: object) -> Page:
    given: dict[str, object] = {
        "id": pages.page_id(crawl, _fp(n)),
        "url": f"https://a.test/{n}",
        "host": "a.test",
        "status": 200,
        "fetched_ms": NOW + n,
        "depth": 1,
        "sha256": f"{n:064x}",
        "size": 10,
        "body": BodyRef(segment="s.warc.gz", offset=n * 100, length=50),
        "fence": n,
    }
    return Page(crawl=crawl, fp=_fp(n), **(given | values))  # type: ignore[arg-type]


def _request(fence: int, **values: object) -> Request:
    given: dict[str, object] = {"crawl": 1, "host": "a.test", "url": "https://a.test/", "kind": "p", "status": 200}
    times = {"start_ms": NOW + fence, "end_ms": NOW + fence + 5}
    return Request(fence=fence, **(given | times | values))  # type: ignore[arg-type]


def test_what_a_sitemap_says_is_kept_with_the_url(store: Store, crawl: int) -> None:
    store.run(urls.insert, [_url(crawl, n) for n in (1, 2, 3)], NOW)
    listed = [
        urls.SitemapEntry(crawl, _fp(2), "2026-01-31", 0.5),
        urls.SitemapEntry(crawl, _fp(1), None, 1.0),
        urls.SitemapEntry(crawl, _fp(9), "2026", None),
    ]
    store.run(urls.note_sitemap_entries, listed)
    with store.read() as tx:
        found = urls.sitemap_entries(tx, [(crawl, _fp(n)) for n in (1, 2, 3, 9)])
        row = urls.get(tx, crawl, _fp(2))
    assert found == {(one.crawl, one.fp): one for one in listed[:2]}
    assert row is not None
    assert (row.lastmod, row.priority) == ("2026-01-31", 0.5)


def test_only_new_urls_are_returned_and_numbered_in_the_order_given(store: Store, crawl: int) -> None:
    first = store.run(urls.insert, [_url(crawl, n) for n in (9, 3, 5, 9)], NOW)
    assert sorted(first, key=first.__getitem__) == [(crawl, _fp(n)) for n in (9, 3, 5)]
    second = store.run(urls.insert, [_url(crawl, n) for n in (5, 4, 3)], NOW)
    assert set(second) == {(crawl, _fp(4))}
    assert second[crawl, _fp(4)] > max(first.values())
    with store.read() as tx:
        assert [row.url[-1] for row in urls.open_rows(tx, crawl, "a.test")] == ["9", "3", "5", "4"]
        assert [row.url[-1] for row in urls.open_rows(tx, crawl, "a.test", first[crawl, _fp(3)], 1)] == ["5"]


def test_thousands_of_urls_are_inserted_in_one_call(store: Store, crawl: int) -> None:
    inserted = store.run(urls.insert, [_url(crawl, n) for n in range(3217)], NOW)
    assert len(inserted) == len(set(inserted.values())) == 3217
    with store.read() as tx:
        assert [row.url for row in urls.open_rows(tx, crawl, "a.test", 0, 5000)] == [
            f"https://a.test/{n}" for n in range(3217)
        ]


def test_a_row_keeps_what_it_inherits(store: Store, crawl: int) -> None:
    chain = Chain(trail=(1, 2**63), seed=True, cookies=("a=b",), cookie_host="a.test")
    store.run(urls.insert, [_url(crawl, 1, kind=Kind.SITEMAP, depth=3, chain=chain)], NOW)
    with store.read() as tx:
        (row,) = urls.open_rows(tx, crawl, "a.test")
        assert (row.kind, row.depth, row.chain) == ("s", 3, chain)


def test_a_url_is_settled_once(store: Store, crawl: int) -> None:
    store.run(urls.insert, [_url(crawl, 1), _url(crawl, 2)], NOW)
    done = Settle(crawl, _fp(1), 10, "done", "gone", 1)
    assert store.run(urls.settle, [done], NOW) == {(crawl, _fp(1))}
    assert store.run(urls.settle, [done], NOW) == set()
    assert store.run(urls.settle, [done._replace(fence=11, state="failed")], NOW) == set()
    with store.read() as tx:
        row = urls.get(tx, crawl, _fp(1))
        assert row is not None
        assert (row.state, row.reason, row.fence, row.settled_ms) == ("done", "gone", 10, NOW)
        assert urls.get(tx, crawl, _fp(9)) is None


def test_a_retry_stays_open_and_refuses_older_fences(store: Store, crawl: int) -> None:
    store.run(urls.insert, [_url(crawl, 1)], NOW)
    retry = Settle(crawl, _fp(1), 10, "open", "", 1, NOW + 500)
    assert store.run(urls.settle, [retry], NOW) == {(crawl, _fp(1))}
    assert store.run(urls.settle, [retry], NOW) == set()
    assert store.run(urls.settle, [Settle(crawl, _fp(1), 9, "done")], NOW) == set()
    with store.read() as tx:
        (row,) = urls.open_rows(tx, crawl, "a.test")
        assert (row.attempts, row.retry_ms) == (1, NOW + 500)
    assert store.run(urls.settle, [Settle(crawl, _fp(1), 11, "done")], NOW) == {(crawl, _fp(1))}


def test_two_results_for_one_row_in_a_group_count_as_the_later(store: Store, crawl: int) -> None:
    store.run(urls.insert, [_url(crawl, 1)], NOW)
    both = [Settle(crawl, _fp(1), 12, "done", "later"), Settle(crawl, _fp(1), 11, "done", "earlier")]
    assert len(store.run(urls.settle, both, NOW)) == 1
    with store.read() as tx:
        row = urls.get(tx, crawl, _fp(1))
        assert row is not None
        assert row.reason == "later"


def test_a_lost_lease_is_counted_once_and_shuts_out_its_late_result(store: Store, crawl: int) -> None:
    store.run(urls.insert, [_url(crawl, 1)], NOW)
    key = (crawl, _fp(1))
    assert store.run(urls.end_leases, [(*key, 9, False, True)]) == {key: (0, 0)}
    assert store.run(urls.end_leases, [(*key, 10, True, False)]) == {key: (1, 0)}
    assert store.run(urls.end_leases, [(*key, 10, True, False)]) == {}
    assert store.run(urls.settle, [Settle(*key, 10, "done")], NOW) == set()
    assert store.run(urls.end_leases, [(*key, 11, True, True)]) == {key: (2, 1)}


def test_a_replayed_dead_letter_is_open_again(store: Store, crawl: int) -> None:
    with store.begin() as tx:
        queues.open_queues(tx, [(crawl, "a.test", "batch", 2)])
        urls.insert(tx, [_url(crawl, 1), _url(crawl, 2)], NOW)
        urls.settle(tx, [Settle(crawl, _fp(1), 10, "failed", "refused", 4), Settle(crawl, _fp(2), 11, "done")], NOW)
        crawls.add_counts(tx, {(crawl, "open", ""): 2, (crawl, "failed", "refused"): 1, (crawl, "done", ""): 1})
    reopened = store.run(urls.reopen, [(crawl, _fp(1)), (crawl, _fp(2))])
    assert [(row.url, row.reason) for row in reopened] == [("https://a.test/1", "refused")]
    assert store.run(urls.reopen, [(crawl, _fp(1))]) == []
    with store.read() as tx:
        row = urls.get(tx, crawl, _fp(1))
        assert row is not None
        assert (row.state, row.attempts, row.fence) == ("open", 0, 10)


def _commit(tx: Connection, crawl: int, ns: list[int], fence: int) -> int:
    """A group as the commit protocol writes it; how many of its results counted."""
    crawls.lock_budgets(tx, [crawl])
    hosts.upsert(tx, [HostState(host="a.test", next_ms=NOW + fence)])
    queues.open_queues(tx, [(crawl, "a.test", "batch", 0)])
    changed = urls.settle(tx, [Settle(crawl, _fp(n), fence + n, "done") for n in ns], NOW)
    inserted = urls.insert(tx, [_url(crawl, 1000 + n % 7) for n in ns], NOW)
    queues.count_added(tx, {(crawl, "a.test"): len(inserted)})
    pages.insert(tx, [_page(crawl, n, fence=fence + n) for n in ns if (crawl, _fp(n)) in changed])
    requests.insert(tx, [_request(fence + n) for n in ns])
    failures.insert(tx, [])
    crawls.add_pages(tx, {crawl: len(changed)})
    crawls.add_counts(tx, {(crawl, "done", ""): len(changed), (crawl, "open", ""): len(inserted)})
    return len(changed)


def _everything(tx: Connection, crawl: int) -> tuple[object, ...]:
    log = list(requests.by_host(tx))
    return crawls.counts(tx, crawl), pages.chunk(tx, crawl), log, queues.open_of(tx), hosts.get(tx, "a.test")


def test_a_repeated_transaction_changes_nothing(store: Store, crawl: int) -> None:
    store.run(urls.insert, [_url(crawl, n) for n in range(5)], NOW)
    assert store.run(_commit, crawl, [0, 1, 2, 3], 100) == 4
    with store.read() as tx:
        before = _everything(tx, crawl)
    assert store.run(_commit, crawl, [0, 1, 2, 3], 100) == 0
    with store.read() as tx:
        assert _everything(tx, crawl) == before


def test_rival_commits_with_overlapping_rows_neither_deadlock_nor_count_twice(store: Store, crawl: int) -> None:
    store.run(urls.insert, [_url(crawl, n) for n in range(60)], NOW)
    counted: list[int] = []
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        try:
            for round_ in range(15):
                ns = chance.sample(range(60), 30)
                counted.append(store.run(_commit, crawl, ns, 1000 * (1 + seed * 100 + round_)))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert sum(counted) == 60
    with store.read() as tx:
        assert crawls.counts(tx, crawl).pages == 60
        assert len(pages.chunk(tx, crawl)[0]) == 60


def test_rival_inserts_of_the_same_links_give_each_row_to_one(store: Store, crawl: int) -> None:
    won: list[set[tuple[int, bytes]]] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        mine: set[tuple[int, bytes]] = set()
        for _ in range(20):
            mine |= set(store.run(urls.insert, [_url(crawl, n) for n in chance.sample(range(200), 60)], NOW))
        won.append(mine)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(map(len, won)) == len(set().union(*won)) == 200


def test_a_page_reads_back_as_written_and_is_never_replaced(store: Store, crawl: int) -> None:
    full = _page(
        crawl,
        1,
        content_type="text/html",
        charset="utf-8",
        title="Ünï",
        etag='"e"',
        last_modified="Mon",
        canonical="https://a.test/",
        language="en",
        unchanged=True,
        same_as="1-00",
        request_id="r",
    )
    bare = _page(crawl, 2, sha256=None, body=None)
    store.run(pages.insert, [bare, full])
    store.run(pages.insert, [replace(full, title="other")])
    with store.read() as tx:
        assert pages.by_id(tx, full.id) == full
        assert pages.get(tx, crawl, bare.fp) == bare
        assert pages.get(tx, crawl, _fp(3)) is None
        with pytest.raises(UsageError, match="not a page id"):
            pages.by_id(tx, "nonsense")


def test_pages_are_listed_in_chunks_in_the_order_of_their_commits(store: Store, crawl: int) -> None:
    for n in (5, 3, 4):
        store.run(pages.insert, [_page(crawl, n)])
    with store.read() as tx:
        first, cursor = pages.chunk(tx, crawl, limit=2)
        rest, cursor = pages.chunk(tx, crawl, cursor, limit=2)
        assert [page.fetched_ms - NOW for page in first + rest] == [5, 3, 4]
        assert pages.chunk(tx, crawl, cursor) == ([], cursor)


def test_the_last_version_of_a_url_is_found_over_crawls(store: Store, crawl: int) -> None:
    other = store.run(crawls.create, Crawl(id="0193", request_id="r")).n
    third = store.run(crawls.create, Crawl(id="0194", request_id="r")).n
    store.run(pages.insert, [_page(crawl, 1, etag="old"), _page(crawl, 2)])
    store.run(pages.insert, [_page(other, 1, etag="new"), _page(other, 2, status=500)])
    with store.read() as tx:
        found = pages.previous(tx, third, [_fp(1), _fp(2), _fp(3)])
        assert {fp: (page.crawl, page.etag) for fp, page in found.items()} == {
            _fp(1): (other, "new"),
            _fp(2): (crawl, None),
        }
        assert pages.previous(tx, crawl, [_fp(1)])[_fp(1)].crawl == other


def test_pages_of_other_crawls_are_noticed(store: Store, crawl: int) -> None:
    with store.begin() as tx:
        assert not pages.any_other(tx, crawl)
        pages.insert(tx, [_page(crawl, 1)])
        assert not pages.any_other(tx, crawl)
        assert pages.any_other(tx, crawl + 1)


def test_the_oldest_page_with_a_body_stands_for_all_its_equals(store: Store, crawl: int) -> None:
    digest = "ab" * 32
    store.run(pages.insert, [_page(crawl, 7, sha256=digest)])
    store.run(pages.insert, [_page(crawl, 1, sha256=digest), _page(crawl, 2, sha256="cd" * 32, body=None)])
    with store.read() as tx:
        found = pages.find_same(tx, crawl, [digest, "cd" * 32])
        assert set(found) == {digest}
        assert found[digest].id == pages.page_id(crawl, _fp(7))
        assert found[digest].body == _page(crawl, 7).body
        assert pages.find_same(tx, crawl + 1, [digest]) == {}


def test_committed_bytes_only_grow(store: Store, crawl: int) -> None:
    store.run(pages.insert, [_page(crawl, 9)])
    store.run(pages.insert, [_page(crawl, 1)])
    with store.begin() as tx:
        assert pages.committed(tx) == {"s.warc.gz": 950}


def test_the_request_log_is_by_host_and_start_whatever_the_month(store: Store) -> None:
    rows = [
        _request(5, host="b.test"),
        _request(4, start_ms=NOW - 40 * 86_400_000),
        _request(3, start_ms=NOW + 400 * 86_400_000, crawl=None, fault="timeout", nature="gap"),
    ]
    store.run(requests.insert, rows)
    store.run(requests.insert, rows)
    with store.read() as tx:
        assert list(requests.by_host(tx)) == [rows[1], rows[2], rows[0]]
        assert list(requests.by_host(tx, since_ms=NOW)) == [rows[2], rows[0]]


def test_a_request_that_was_reported_by_its_worker_too_was_not_lost(store: Store) -> None:
    """Whoever found the worker dead counts from when its message came in, the worker from when it was sent."""
    known, lost = _request(7), _request(7, start_ms=NOW + 23, status=0, fault="lost")
    other = _request(8, status=0, fault="lost")
    for rows in ([lost, other], [known]):
        store.run(requests.insert, rows)
    with store.read() as tx:
        assert list(requests.by_host(tx)) == [known, other]
        assert requests.known_fences(tx, [7, 8, 9]) == {7, 8}
        assert requests.known_fences(tx, []) == set()


def test_a_presumed_request_gives_way_to_the_known_one(store: Store) -> None:
    presumed = _request(7, ordinal=1, nature="presumed", start_ms=NOW)
    other = _request(8, ordinal=1, nature="presumed")
    store.run(requests.insert, [presumed, other])
    store.run(requests.insert, [_request(7)])
    with store.read() as tx:
        assert list(requests.by_host(tx)) == [_request(7), other]


def _failure(crawl: int, n: int, **values: object) -> Failure:
    given: dict[str, object] = {"id": f"f{n}", "url": f"https://a.test/{n}", "host": "a.test", "cause": "refused"}
    return Failure(crawl=crawl, fp=_fp(n), fence=n, at_ms=NOW + n, **(given | values))  # type: ignore[arg-type]


def test_dead_letters_are_listed_by_what_they_are_and_replayed_once(store: Store, crawl: int) -> None:
    rows = [_failure(crawl, 1), _failure(crawl, 2, host="b.test", cause="timeout"), _failure(crawl, 3, stage="score")]
    store.run(failures.insert, rows)
    store.run(failures.insert, [replace(row, id=row.id + "again") for row in rows])
    with store.begin() as tx:
        assert failures.find(tx, crawl=crawl) == rows
        assert failures.find(tx, host="b.test") == failures.find(tx, cause="timeout") == [rows[1]]
        assert failures.find(tx, stage="score") == failures.find(tx, since_ms=NOW + 3) == [rows[2]]
        assert failures.find(tx, limit=1) == [rows[0]]
        assert failures.find(tx, crawl=crawl + 1) == []
        assert failures.mark_replayed(tx, ["f1", "f2"], NOW) == 2
        assert failures.mark_replayed(tx, ["f1"], NOW) == 0
        assert failures.find(tx) == [rows[2]]
        assert tx.exec_driver_sql("SELECT count(*) FROM failures").scalar() == 3


def test_urls_of_a_dead_host_are_dead_letters(store: Store, crawl: int) -> None:
    with store.begin() as tx:
        queues.open_queues(tx, [(crawl, "a.test", "batch", 2)])
        urls.insert(tx, [_url(crawl, 1), _url(crawl, 2)], NOW)
        queues.mark_dead(tx, crawl, "a.test", "host_unreachable")
        listed = failures.of_dead_hosts(tx, crawl=crawl)
        assert [(row.url, row.cause) for row in listed] == [
            ("https://a.test/1", "host_unreachable"),
            ("https://a.test/2", "host_unreachable"),
        ]
        assert failures.of_dead_hosts(tx, host="b.test") == failures.of_dead_hosts(tx, cause="x") == []


def test_times_of_a_host_only_move_forward(store: Store) -> None:
    store.run(hosts.upsert, [HostState(host="a.test", next_ms=500, blocked_until_ms=900, adaptive_ms=70, failures=2)])
    store.run(hosts.set_operator, "a.test", delay_ms=5000, per_host=None, denied=True)
    store.run(hosts.upsert, [HostState(host="a.test", next_ms=400, blocked_until_ms=1000, slow=True, last_ok_ms=3)])
    store.run(hosts.advance_times, [("a.test", 600, 0), ("b.test", 1, 0)])
    with store.read() as tx:
        assert hosts.get(tx, "a.test") == HostState(
            host="a.test",
            next_ms=600,
            blocked_until_ms=1000,
            operator_delay_ms=5000,
            adaptive_ms=70,
            failures=0,
            slow=True,
            denied=True,
            last_ok_ms=3,
        )
        assert [host.host for host in hosts.chunk(tx)] == ["a.test", "b.test"]
        assert [host.host for host in hosts.chunk(tx, notable_at_ms=10)] == ["a.test"]


def test_newer_robots_rules_replace_older_ones_only(store: Store) -> None:
    new = RobotsState(origin="https://a.test", host="a.test", fetched_ms=9, expires_ms=99, status=200, body=b"\xff\0")
    store.run(hosts.upsert_robots, [new, replace(new, fetched_ms=1, body=b"old")])
    store.run(hosts.upsert_robots, [replace(new, fetched_ms=8, body=b"late")])
    with store.read() as tx:
        assert hosts.get_robots(tx, ["https://a.test", "https://b.test"]) == {"https://a.test": new}
        assert hosts.robots_of_hosts(tx, ["a.test"]) == {"a.test": [("https://a.test", 9, 99, "rules")]}
