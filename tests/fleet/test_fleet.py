"""A fleet of real processes: Beat sends shifts, workers crawl, and everything comes to its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from fleet_folder import FleetFolder

from curtsy.tinyweb import TinyWeb

NewFleet = Callable[..., FleetFolder]


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=10, pages=12, page_kb=4, faults=False) as started:
        yield started


@pytest.mark.alone
@pytest.mark.parametrize("on", ["sqlite", "postgresql"])
def test_a_crawl_of_ten_hosts_ends_politely_and_no_process_waits(new_fleet: NewFleet, web: TinyWeb, on: str) -> None:
    fleet = new_fleet(web, on)
    fleet.worker()
    fleet.beat()
    crawl = fleet.submit(web.seeds, delay_s=0.2)
    counts = fleet.until_ended(crawl)
    assert counts.pages == 120
    assert not counts.failed
    assert fleet.verdict().polite
    assert fleet.stop("w1") == 0
    shifts = [json.loads(line) for line in fleet.said("w1").splitlines() if '"shift_ended"' in line]
    assert shifts
    assert all(line["request_id"] for line in shifts)
    took_s, waited_s = fleet.seat_time()
    assert took_s > 0
    # The share is judged by the benchmark: of three seconds one late wake-up of a busy machine is more than 1 %.
    assert waited_s < 0.01 * took_s + 0.2
