"""Lanes and shards: none starves another, and a worker that is bound to shards owns their hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fleet_folder import FleetFolder
from waiting import until
from xxhash import xxh32_intdigest

from curtsy.core.model import Lane
from curtsy.tinyweb import TinyWeb

NewFleet = Callable[..., FleetFolder]


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=12, pages=30, page_kb=4, faults=("error-503",)) as started:
        yield started


def orgs(web: TinyWeb) -> list[str]:
    return [seed for seed in web.seeds if "error-503" not in seed]


@pytest.mark.alone
def test_lane_high_is_served_at_once_while_a_batch_crawl_holds_the_seats(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web)
    fleet.worker("batch", "fetch.high,fetch.batch,fetch.slow", seats=1)
    fleet.worker("high", "fetch.high", seats=1)
    fleet.beat()
    batch = fleet.submit(orgs(web)[:10], delay_s=0.04)
    fleet.until_pages(batch, 20)
    high = fleet.submit(orgs(web)[11:], delay_s=0.1, lane=Lane.HIGH, max_pages=10)
    until(lambda: fleet.counts_of(high).pages > 0)
    assert fleet.crawl_now(batch).state == "running"
    first_ms = min(start for (start,) in fleet.rows("SELECT start_ms FROM requests WHERE crawl = ?", high.n))
    assert first_ms - high.created_ms < 1000
    assert fleet.until_ended(high).pages == 10
    assert fleet.metrics()['curtsy_shifts_total{end="done",lane="high"}'] >= 1
    fleet.until_ended(batch)
    assert fleet.verdict().polite


def test_a_failing_host_goes_to_lane_slow_by_itself_and_comes_back(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web)
    fleet.worker("batch", "fetch.batch", seats=1)
    fleet.beat()
    crawl = fleet.submit([seed for seed in web.seeds if "error-503" in seed], delay_s=0.05)
    until(lambda: fleet.broker("LLEN", "fetch.slow") > 0)
    assert fleet.crawl_now(crawl).state == "running"
    fleet.worker("slow", "fetch.slow", seats=1)
    counts = fleet.until_ended(crawl)
    assert counts.failed == {"server_error": 1}
    assert counts.pages >= 3
    served = fleet.metrics()
    assert any(key.startswith("curtsy_shifts_total") and 'lane="slow"' in key for key in served)


def test_a_crawl_of_lane_slow_is_served_by_slow_shifts(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web)
    fleet.worker("slow", "fetch.slow", seats=1)
    fleet.beat()
    crawl = fleet.submit(orgs(web)[:2], delay_s=0.02, lane=Lane.SLOW, max_pages=10)
    assert fleet.until_ended(crawl).pages == 10


def test_workers_bound_to_shards_own_their_hosts(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web, shards=4)
    words = ("--config", str(fleet.config), "--data-dir", str(fleet.data))
    fleet.start_part("low", "curtsy.cli", "worker", "--shards", "0-1", "--concurrency", "1", "--no-high", *words)
    fleet.beat()
    until(lambda: any(worker.shards == "0-1" for worker in fleet.ask(lambda f: f.workers())))
    crawl = fleet.submit(orgs(web), delay_s=0.02)
    hosts = [seed.split("/")[2] for seed in orgs(web)]
    low = {host for host in hosts if xxh32_intdigest(host.encode()) % 4 < 2}
    assert low
    assert low != set(hosts)

    def asked() -> set[str]:
        return {host for (host,) in fleet.rows("SELECT DISTINCT host FROM requests WHERE nature = 'sent'")}

    until(lambda: fleet.counts_of(crawl).pages == 30 * len(low))
    assert asked() == low
    fleet.worker("rest", seats=1)
    assert fleet.until_ended(crawl).pages == 30 * len(hosts)
    assert fleet.verdict().polite
