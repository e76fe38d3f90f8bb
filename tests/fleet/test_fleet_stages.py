"""Stages, webhooks and schedules in a real fleet: sent by Beat, done by workers, once in effect whoever is killed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from fleet_folder import FleetFolder
from waiting import until

from curtsy.control import schedules as scheduling
from curtsy.core.failpoints import STAGE_POINTS
from curtsy.core.model import Crawl, CrawlState
from curtsy.records import plan
from curtsy.store import crawls, failures, outbox, records, schedules
from curtsy.tinyweb import TinyWeb

NewFleet = Callable[..., FleetFolder]
SECRET = "a secret of some length"


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=3, pages=5, page_kb=2, faults=False) as started:
        yield started


@pytest.fixture
def told() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A receiver of webhooks: its address, and what it got."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/", got
    server.shutdown()
    thread.join()
    server.server_close()


def check_records(fleet: FleetFolder, crawl: Crawl, n: int) -> None:
    """Each page has one record, and nothing is left to do."""
    with fleet.store.read() as tx:
        found, _ = records.chunk(tx, crawl.n, limit=1000, statuses=())
        assert failures.find(tx, crawl=crawl.n) == []
        assert not outbox.has_open(tx, crawl.n)
    assert len(found) == len({record.url for record in found}) == n
    assert {record.request_id for record in found} == {crawl.request_id}


def test_sites_become_records_by_the_schema_that_was_stored_with_the_crawl(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web, on="postgresql")
    fleet.worker()
    fleet.beat()
    crawl = fleet.submit(web.seeds, **plan.crawl_fields("organization", "esg"))
    fleet.until_ended(crawl)
    check_records(fleet, crawl, len(web.seeds))
    with fleet.store.read() as tx:
        found, _ = records.chunk(tx, crawl.n, statuses=())
    assert {(record.kind, record.schema_hash, record.scores["rubric"]) for record in found} == {
        ("site", crawl.schema_hash, "esg")
    }


@pytest.mark.parametrize("on", ["sqlite", "postgresql"])
def test_pages_become_records_and_the_webhook_is_sent(
    new_fleet: NewFleet, web: TinyWeb, told: tuple[str, list[dict[str, Any]]], on: str
) -> None:
    url, got = told
    fleet = new_fleet(web, on=on, allow_private=["127.0.0.0/8"], webhook_secret=SECRET)
    fleet.worker()
    fleet.beat()
    crawl = fleet.submit(web.seeds, schema="page", webhook=url)
    pages = fleet.until_ended(crawl).pages
    assert pages == 15
    check_records(fleet, crawl, pages)
    until(lambda: len(got) > 0)
    assert [(message["event"], message["crawl"], message["pages"]) for message in got] == [
        ("crawl.finished", crawl.id, pages)
    ]


@pytest.mark.parametrize("point", STAGE_POINTS)
def test_a_stage_whose_worker_is_killed_is_done_once_in_effect(new_fleet: NewFleet, web: TinyWeb, point: str) -> None:
    """Every process of the second worker is killed at that point, whenever it comes there for the fourth time."""
    fleet = new_fleet(web, stage_lease_s=2, stage_attempts=50)
    fleet.worker("fetcher", queues="fetch.batch,fetch.slow")
    fleet.beat()
    crawl = fleet.submit(web.seeds, schema="page")
    until(lambda: fleet.crawl_now(crawl).state is CrawlState.EXTRACTING)
    fleet.worker("stages", queues="inference,default", CURTSY_FAULT=f"{point}:4")
    assert fleet.until_ended(crawl).pages == 15
    check_records(fleet, crawl, 15)
    assert "signal 9 (SIGKILL)" in fleet.said("stages")


def test_stages_that_the_broker_did_not_take_are_sent_again_without_waiting_for_their_lease(
    new_fleet: NewFleet, web: TinyWeb
) -> None:
    fleet = new_fleet(web, broker_url="redis://127.0.0.1:1/0")
    crawl = fleet.submit(web.seeds, schema="page")
    with fleet.store.begin() as tx:
        outbox.put(tx, [outbox.Put("extract", crawl.n, "00", 0)])
    fleet.beat()
    until(lambda: fleet.said("beat").count("stages_not_sent") >= 2, within_s=120)
    assert "chore_broke" not in fleet.said("beat")


def test_two_beats_fire_a_schedule_once_and_the_fleet_crawls_it(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web)
    made = scheduling.add(
        fleet.store, fleet.settings(), name="site", cron="@yearly", seeds=web.seeds, crawl={"delay_s": 0.05}
    )
    fleet.worker()
    fleet.beat("beat1")
    fleet.beat("beat2")
    with fleet.store.begin() as tx:
        schedules.enable(tx, made.n, True, int(time.time() * 1000))

    def started() -> bool:
        with fleet.store.read() as tx:
            return [run.state for run in schedules.runs_of(tx, made.n)] == ["started"]

    until(started)
    with fleet.store.read() as tx:
        (crawl,) = crawls.list_all(tx)
    assert fleet.until_ended(crawl).pages == 15
    with fleet.store.read() as tx:
        assert len(crawls.list_all(tx)) == 1
        assert len(schedules.runs_of(tx, made.n)) == 1
