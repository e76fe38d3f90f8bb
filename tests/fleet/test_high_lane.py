"""A crawl of lane high that is submitted over the API while a batch crawl of 50,000 URLs runs, by the server's log."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fleet_folder import FleetFolder
from waiting import until

from curtsy.client.http import Client
from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.pages import OrgSite, Shape

NewFleet = Callable[..., FleetFolder]
HOSTS, PAGES = 500, 100
DELAY_S = 0.5


@pytest.fixture
def web(tmp_path: Path) -> Iterator[TinyWeb]:
    log = tmp_path / "access.log"
    with TinyWeb.start(hosts=HOSTS + 1, pages=PAGES, page_kb=4, faults=False, log=log) as started:
        yield started


def api(fleet: FleetFolder) -> Client:
    """Of a real `curtsy serve` over the folder of the fleet."""
    words = ("--config", str(fleet.config), "--data-dir", str(fleet.data))
    served = fleet.start_part("serve", "curtsy.cli", "serve", "--port", "0", "--processes", "1", *words)
    until(lambda: "Serving on " in fleet.said("serve") or served.poll() is not None)
    found = re.search(r"Serving on (http://\S+?)/\s", fleet.said("serve"))
    assert found is not None, fleet.said("serve")
    return Client(found[1])


@pytest.mark.alone
def test_lane_high_is_asked_within_a_second_of_the_202(new_fleet: NewFleet, web: TinyWeb) -> None:
    *hosts, high = web.hosts
    shape = Shape(pages=PAGES, page_kb=4)
    seeds = [f"http://{host}{path}" for host in hosts for path in OrgSite(host, shape).paths]
    assert len(seeds) == HOSTS * PAGES == 50_000
    fleet = new_fleet(web, on="postgresql")
    fleet.worker("batch", seats=2)
    fleet.worker("high", "fetch.high", seats=1)
    fleet.beat()
    client = api(fleet)
    batch = client.submit({"delay_s": 1.0}, seeds)
    until(lambda: client.get(f"/v1/crawls/{batch}")["counts"]["done"] >= HOSTS, every_s=0.1)

    client.post("/v1/crawls", {"seeds": [f"http://{high}/"], "lane": "high", "delay_s": DELAY_S})
    accepted_us = time.time_ns() // 1000
    until(lambda: len([line for line in web.requests() if line.name == high]) >= 2, every_s=0.2)
    status = client.get(f"/v1/crawls/{batch}")
    assert status["state"] == "running"
    assert status["counts"]["pending"] > 0
    client.post(f"/v1/crawls/{batch}/cancel")

    robots, page = [line for line in web.requests() if line.name == high][:2]
    assert (robots.path, page.path) == ("/robots.txt", "/")
    assert robots.start_us - accepted_us < 1_000_000
    assert page.start_us - robots.start_us < (DELAY_S + 1) * 1_000_000
