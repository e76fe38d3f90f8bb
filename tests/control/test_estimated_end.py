"""The estimated end of a crawl: not before its slowest host can be done."""

from __future__ import annotations

from typing import Any

import pytest
from stored import crawl

from curtsy.control import crawls as control
from curtsy.control.hosts import set_operator_values
from curtsy.core.model import Crawl, CrawlState, HostState, Kind, Lane, NewUrl
from curtsy.rules.urls import fingerprint
from curtsy.store import crawls, hosts, queues, rates, urls
from curtsy.store.engine import Store

NOW_MS = 1_700_000_060_000


def running(store: Store, open_urls: dict[str, int], **fields: Any) -> Crawl:
    """A crawl with so many open URLs of each host, that settled 10 URLs per second in the last minute."""
    made = crawl(store, CrawlState.RUNNING, started_ms=NOW_MS - 3_600_000, **fields)
    store.run(_fill, made.n, open_urls)
    return made


def _fill(tx: Any, n: int, open_urls: dict[str, int]) -> None:
    names = [(host, f"https://{host}/{i}") for host, some in open_urls.items() for i in range(some)]
    rows = [NewUrl(crawl=n, fp=fingerprint(url), url=url, host=host, kind=Kind.PAGE) for host, url in names]
    queues.open_queues(tx, [(n, host, Lane.BATCH.value, some) for host, some in open_urls.items()])
    urls.insert(tx, rows, NOW_MS)
    crawls.add_counts(tx, {(n, "open", ""): len(rows)})
    for second in range(60):
        rates.add(tx, {n: rates.Done(pages=0, urls=10)}, NOW_MS - 1000 * second - 1)


def left_s(store: Store, made: Crawl) -> float | None:
    ends_ms = control.status(store, made.id, NOW_MS).ends_ms
    return None if ends_ms is None else (ends_ms - NOW_MS) / 1000


def test_the_slowest_host_decides(store: Store) -> None:
    made = running(store, {"slow.test": 96, "a.test": 1, "b.test": 1}, delay_s=1.0)
    assert left_s(store, made) == 96


def test_many_hosts_end_by_the_rate(store: Store) -> None:
    made = running(store, {f"h{n}.test": 2 for n in range(100)}, delay_s=1.0)
    assert left_s(store, made) == pytest.approx(20, rel=0.2)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"robots_delay_ms": 5000}, 50),
        ({"adaptive_ms": 3000}, 30),
        ({"blocked_until_ms": NOW_MS + 60_000}, 70),
        ({"robots_delay_ms": 500}, 10),
    ],
)
def test_the_delay_is_that_of_the_host(store: Store, state: dict[str, int], expected: float) -> None:
    store.run(hosts.upsert, [HostState(host="a.test", **state)])  # type: ignore[arg-type]
    assert left_s(store, running(store, {"a.test": 10}, delay_s=1.0)) == expected


def test_the_operators_delay_for_a_host_counts(store: Store) -> None:
    store.run(hosts.upsert, [HostState(host="a.test", robots_delay_ms=2000)])
    store.run(set_operator_values, "a.test", {"operator_delay_ms": 4000})
    assert left_s(store, running(store, {"a.test": 10}, delay_s=1.0)) == 40


def test_the_page_limit_ends_it_earlier(store: Store) -> None:
    assert left_s(store, running(store, {"a.test": 500}, delay_s=1.0, max_pages=20)) == 20


def test_without_a_delay_of_its_own_the_stored_settings_count(store: Store) -> None:
    made = running(store, {"a.test": 10})
    assert left_s(store, made) == 10
    store.run(crawls.keep_settings, made.n, {"settings": {"delay_s": 7.0}})
    assert left_s(store, made) == 70


def test_urls_that_become_no_pages_count_for_the_rate(store: Store) -> None:
    made = running(store, {"a.test": 10}, delay_s=0.0)
    found = control.status(store, made.id, NOW_MS)
    assert found.pages_per_s == 0
    assert found.urls_per_s == pytest.approx(10, rel=0.2)
    assert left_s(store, made) == pytest.approx(1, rel=0.3)
