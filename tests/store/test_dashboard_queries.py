"""What a person sees at a glance: bounded reads that tell the same as counting would, on both databases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from stored import BEGUN_MS, crawl

from curtsy.core.model import CrawlState, Failure, HostState, Kind, Lane, NewUrl, Page, Request
from curtsy.core.record import Record, Review
from curtsy.rules.urls import fingerprint
from curtsy.store import (
    crawls,
    dashboard_queries,
    failures,
    hosts,
    pages,
    queues,
    rates,
    records,
    requests,
    reviews,
    url_queries,
    urls,
)
from curtsy.store.engine import Store


def page(n: int, i: int, at_ms: int, host: str = "a.test", **fields: Any) -> Page:
    url = f"https://{host}/{i}"
    fp = fingerprint(url)
    given = {"status": 200, "depth": i % 3, "fence": i + 1} | fields
    return Page(id=pages.page_id(n, fp), crawl=n, fp=fp, url=url, host=host, fetched_ms=at_ms, **given)


def request(i: int, n: int = 1, host: str = "a.test", **fields: Any) -> Request:
    given = {
        "start_ms": BEGUN_MS + i * 1000,
        "end_ms": BEGUN_MS + i * 1000 + 50,
        "status": 200,
        "kind": "page",
    } | fields
    return Request(fence=i, crawl=n, host=host, url=f"https://{host}/{i}", **given)


def letter(n: int, i: int, at_ms: int, host: str = "a.test") -> Failure:
    url = f"https://{host}/{i}"
    return Failure(
        id=f"f{n}-{i}", crawl=n, fp=fingerprint(url), url=url, host=host, cause="timeout", fence=i + 1, at_ms=at_ms
    )


def test_pages_per_minute_come_from_the_numbering(store: Store) -> None:
    first, second = crawl(store, CrawlState.RUNNING), crawl(store, CrawlState.RUNNING)
    counts = [3, 0, 5, 2, 0]
    ends = dashboard_queries.moments(BEGUN_MS, BEGUN_MS + 5 * 60_000, 5)
    i = 0
    for part, n in enumerate(counts):
        for k in range(n):  # the two crawls take turns
            which = (first, second)[k % 2]
            store.run(pages.insert, [page(which.n, i, ends[part] + k * 1000)])
            i += 1
    with store.read() as tx:
        assert dashboard_queries.stored_between(tx, [first.n, second.n], ends) == counts
        assert dashboard_queries.pages_between(tx, first.n, ends) == [2, 0, 3, 1, 0]
        assert dashboard_queries.last_page_ms(tx, first.n) == ends[3]
        assert dashboard_queries.last_page_ms(tx, 99) is None
        assert dashboard_queries.stored_between(tx, [], ends) == [0, 0, 0, 0, 0]


def test_pages_of_all_crawls_are_summed_however_many_there_are(store: Store) -> None:
    made = [crawl(store, CrawlState.RUNNING) for _ in range(70)]
    ends = dashboard_queries.moments(BEGUN_MS, BEGUN_MS + 5 * 60_000, 5)
    for at_ms in (ends[1], ends[1] + 59_000, ends[4]):
        store.run(rates.add, {one.n: rates.Done(pages=2, urls=3) for one in made}, at_ms)
    with store.read() as tx:
        assert rates.pages_of_all(tx, ends) == [0, 280, 0, 0, 140]
        assert rates.pages_per_s(tx, ends[4] + 30_000) == pytest.approx(140 / 60, rel=0.2)
        # A URL that is no page counts for the URLs only.
        assert rates.urls_per_s(tx, made[0].n, ends[4] - 10_000, ends[4] + 20_000) == pytest.approx(0.1)
    store.run(rates.forget, ends[4] + rates.KEPT_S * 1000)
    with store.read() as tx:
        assert rates.pages_of_all(tx, ends) == [0, 0, 0, 0, 140]


def test_dead_letters_of_all_crawls_are_those_that_each_one_counts(store: Store) -> None:
    made = [crawl(store, CrawlState.RUNNING) for _ in range(60)]
    for one in made:
        store.run(crawls.add_counts, {(one.n, "failed", "timeout"): 2, (one.n, "open", ""): 3})
    new = NewUrl(
        crawl=made[0].n, fp=fingerprint("https://dead.test/"), url="https://dead.test/", host="dead.test",
        kind=Kind.PAGE,
    )  # fmt: skip
    store.run(_dead, made[0].n, new)
    with store.read() as tx:
        assert dashboard_queries.dead_letters(tx) == {"timeout": 120, "host_unreachable": 1}
        assert crawls.counts(tx, made[0].n).failed == {"timeout": 2, "host_unreachable": 1}


def test_refused_and_silent_requests_are_those_of_the_crawl(store: Store) -> None:
    one, other = crawl(store), crawl(store)
    store.run(queues.open_queues, [(n, "a.test", "batch", 1) for n in (one.n, other.n)])
    for counts in ({(one.n, "a.test"): (2, 0)}, {(one.n, "a.test"): (1, 4)}):
        store.run(queues.mark, unanswered=counts)
    with store.read() as tx:
        (found,) = dashboard_queries.unanswered_hosts(tx, one.n, 5)
        assert (found.host, found.refused, found.silent) == ("a.test", 3, 4)
        assert dashboard_queries.unanswered_hosts(tx, other.n, 5) == []


def test_dead_letters_over_time_and_by_id(store: Store) -> None:
    one = crawl(store)
    ends = dashboard_queries.moments(BEGUN_MS, BEGUN_MS + 3000, 3)
    store.run(failures.insert, [letter(one.n, i, BEGUN_MS + (i % 2) * 2000) for i in range(5)])
    with store.read() as tx:
        assert dashboard_queries.failures_between(tx, one.n, ends) == [3, 0, 2]
        found = dashboard_queries.letter(tx, f"f{one.n}-2")
        assert found is not None
        assert found.url == "https://a.test/2"
        assert dashboard_queries.letter(tx, "nothing") is None
        assert dashboard_queries.letter(tx, f"{one.n}-{'0' * 32}") is None


def test_an_open_url_of_a_dead_host_is_a_dead_letter_too(store: Store) -> None:
    one = crawl(store, CrawlState.RUNNING)
    new = NewUrl(
        crawl=one.n, fp=fingerprint("https://dead.test/"), url="https://dead.test/", host="dead.test", kind=Kind.PAGE
    )
    store.run(_dead, one.n, new)
    with store.read() as tx:
        found = dashboard_queries.letter(tx, f"{one.n}-{new.fp.hex()}")
    assert found is not None
    assert found.cause == "host_unreachable"


def _dead(tx: Any, n: int, new: NewUrl) -> None:
    queues.open_queues(tx, [(n, new.host, Lane.BATCH.value, 1)])
    urls.insert(tx, [new], BEGUN_MS)
    queues.mark_dead(tx, n, new.host, "host_unreachable")


def test_the_requests_of_a_host_are_found_around_its_newest_page(store: Store) -> None:
    one = crawl(store)
    log = [request(i, one.n, "b.test" if i % 10 == 5 else "a.test") for i in range(1, 101)]
    store.run(requests.insert, log)
    store.run(pages.insert, [page(one.n, 54, BEGUN_MS, "b.test", fence=55)])
    with store.read() as tx:
        assert [found.fence for found in dashboard_queries.requests_of_host(tx, "b.test", 5)] == [55, 65, 75, 85, 95]
        assert len(dashboard_queries.requests_of_host(tx, "b.test", 100)) == 10
        assert dashboard_queries.requests_of_host(tx, "c.test", 5) == []
        # Nothing came of it yet: it is found among the newest of all.
        assert len(dashboard_queries.requests_of_host(tx, "a.test", 3)) == 3
        assert [found.fence for found in dashboard_queries.requests_under(tx, 55)] == [55]


def test_a_presumed_request_gives_way_to_what_is_known(store: Store) -> None:
    rows = [request(1, nature="presumed", ordinal=1, start_ms=BEGUN_MS), request(1), request(2, nature="presumed")]
    store.run(requests.insert, rows)
    with store.read() as tx:
        found = dashboard_queries.requests_of_host(tx, "a.test", 9)
    assert [(one.fence, one.nature) for one in found] == [(1, "sent"), (2, "presumed")]


def test_the_requests_of_a_crawl_are_found_in_every_epoch(store: Store) -> None:
    one, other = crawl(store), crawl(store)
    epochs = [1 << 40, 2 << 40]
    log = [request(epoch + i, (one.n, other.n)[i % 2], start_ms=BEGUN_MS + i) for epoch in epochs for i in range(20)]
    store.run(requests.insert, log)
    store.run(pages.insert, [page(one.n, k, BEGUN_MS, fence=epoch + 2) for k, epoch in enumerate(epochs)])
    with store.read() as tx:
        found = dashboard_queries.requests_of_crawl(tx, one.n)
    assert len(found) == 20
    assert {request.crawl for request in found} == {one.n}
    assert found == sorted(found, key=lambda request: request.start_ms)


def test_hosts_of_a_crawl_by_size_and_by_trouble(store: Store) -> None:
    one = crawl(store)
    store.run(
        queues.open_queues, [(one.n, host, "batch", n) for host, n in (("a.test", 5), ("b.test", 9), ("c.test", 1))]
    )
    store.run(hosts.upsert, [HostState(host="a.test", failures=3, slow=True), HostState(host="b.test")])
    store.run(queues.mark_dead, one.n, "c.test", "host_unreachable")
    with store.read() as tx:
        assert [(found.host, found.urls) for found in dashboard_queries.largest_hosts(tx, one.n, 2)] == [
            ("b.test", 9),
            ("a.test", 5),
        ]
        troubled = dashboard_queries.troubled_hosts(tx, one.n, BEGUN_MS, 9)
        assert dashboard_queries.depths(tx, one.n) == []
    assert [(found.host, found.slow, found.state) for found in troubled] == [
        ("a.test", True, "open"),
        ("c.test", False, "dead"),
    ]


def test_the_ledger_is_what_the_commit_counted(store: Store) -> None:
    one = crawl(store)
    store.run(crawls.add_counts, {(one.n, "open", ""): 9, (one.n, "done", ""): 4, (one.n, "failed", "timeout"): 2})
    with store.read() as tx:
        found = dashboard_queries.ledgers(tx, [one.n, 99])
    assert found[one.n] == {"open": {"": 9}, "done": {"": 4}, "skipped": {}, "failed": {"timeout": 2}}
    assert found[99]["open"] == {}


@pytest.mark.parametrize("limited", [False, True])
def test_the_review_queue_knows_what_waits(store: Store, limited: bool) -> None:
    one, other = crawl(store), crawl(store)
    for ordinal, which in enumerate((one, other, one, one)):
        record = Record(
            crawl=which.n, subject="ab", schema="page", schema_hash="h", ordinal=ordinal, url="https://a.test/",
            data={}, status="held",
        )  # fmt: skip
        store.run(records.add, record)
    store.run(reviews.add, Review(record=2, crawl=other.n, decision="reject", who="me", at_ms=BEGUN_MS))
    limit = one.n if limited else None
    with store.read() as tx:
        assert dashboard_queries.review_queue(tx, limit) == ((3, 0) if limited else (4, 1))


def test_the_requests_of_a_url_are_found_by_the_fences_it_bears(store: Store) -> None:
    one, two = crawl(store, CrawlState.RUNNING), crawl(store, CrawlState.RUNNING)
    url = "https://a.test/x"
    fp = fingerprint(url)

    def log(fence: int, n: int = one.n, **fields: Any) -> Request:
        return replace(request(fence, n), url=url, **fields)

    others = [request(fence, one.n) for fence in range(1, 200) if fence not in (40, 90, 150)]
    early, tried, replayed, latest = log(40, fault="timeout", status=0), log(90), log(150), log(300, two.n)
    store.run(requests.insert, [*others, early, tried, replayed, latest])
    with store.read() as tx:  # nothing came of it yet: it stands among the newest of its host
        assert dashboard_queries.requests_of_url(tx, "a.test", url, fp) == [latest, replayed, tried, early]
        assert dashboard_queries.requests_of_url(tx, "b.test", url, fp) == []
    # Far away in the log it is found by what it left there.
    store.run(requests.insert, [request(fence, one.n) for fence in range(100_000, 100_000 + dashboard_queries.AROUND)])
    store.run(pages.insert, [page(one.n, 100_000 + dashboard_queries.AROUND, BEGUN_MS)])
    with store.read() as tx:
        assert dashboard_queries.requests_of_url(tx, "a.test", url, fp) == []
    new = [NewUrl(crawl=n, fp=fp, url=url, host="a.test", kind=Kind.PAGE) for n in (one.n, two.n)]
    store.run(urls.insert, new, BEGUN_MS)
    store.run(urls.settle, [urls.Settle(one.n, fp, 150, "done"), urls.Settle(two.n, fp, 300, "open", attempts=1)], 1)
    store.run(failures.insert, [replace(letter(one.n, 7, BEGUN_MS), url=url, fp=fp, fence=90)])
    with store.read() as tx:
        assert url_queries.known_to(tx, fp) == [(two.n, 300), (one.n, 150)]
        assert dashboard_queries.requests_of_url(tx, "a.test", url, fp) == [latest, replayed, tried, early]
        assert dashboard_queries.requests_of_url(tx, "a.test", url, fp, limit=2) == [latest, replayed]
        found = failures.under(tx, 90, fp)
        assert found is not None
        assert found.url == url
        assert failures.under(tx, 90, fingerprint("another")) is None


def test_a_crawl_is_named_by_its_websites(store: Store) -> None:
    one, several, anywhere, empty = (crawl(store, CrawlState.RUNNING) for _ in range(4))
    named = crawl(store, CrawlState.RUNNING)
    store.run(crawls.describe, named.n, {"name": "Mills"})
    store.run(crawls.extend_members, one.n, ["b.test"])
    store.run(crawls.extend_members, several.n, ["d.test", "c.test"])
    store.run(queues.open_queues, [(anywhere.n, host, Lane.BATCH, 1) for host in ("a.test", "z.test")])
    store.run(pages.insert, [page(anywhere.n, 1, BEGUN_MS, "m.test"), page(anywhere.n, 2, BEGUN_MS, "a.test")])
    with store.read() as tx:
        assert dashboard_queries.names(tx, [one.id, several.id, anywhere.id, empty.id, named.id, "x"]) == {
            one.id: ("b.test", False, False),
            several.id: ("c.test", True, False),
            named.id: ("Mills", False, True),
            anywhere.id: ("m.test", True, False),  # the first that was fetched is that of a seed
        }
