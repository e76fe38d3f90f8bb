"""Beat sends as many shifts as there is due work for, and no more: two Beats, a dead fleet, late tickets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fleet_folder import FleetFolder
from waiting import until

from curtsy.fleet.coordination import Worker
from curtsy.fleet.worker_process import WorkerProcess
from curtsy.tinyweb import TinyWeb

NewFleet = Callable[..., FleetFolder]
SUM = "return redis.call('ZCARD', KEYS[1]) + redis.call('ZCARD', KEYS[2])"


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=6, pages=20, page_kb=4, faults=False) as started:
        yield started


def test_two_beats_send_no_double_shifts(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web)
    fleet.worker(seats=3)
    fleet.beat("beat1")
    fleet.beat("beat2")
    crawl = fleet.submit(web.seeds, delay_s=0.1)
    most = 0

    def ended() -> bool:
        nonlocal most
        most = max(most, fleet.command("EVAL", SUM, 2, "{fleet}:tickets:batch", "{fleet}:shifts:batch"))
        return fleet.crawl_now(crawl).state == "finished"

    until(ended, 60)
    assert most == 1  # six hosts need one shift at a time
    assert fleet.counts_of(crawl).pages == 120
    assert fleet.verdict().polite


def test_a_fleet_that_returns_finds_no_flood_and_late_tickets_return_at_once(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web, ticket_s=0.1, log_level="debug")
    fleet.beat()
    crawl = fleet.submit(web.seeds, delay_s=0.05)
    until(lambda: fleet.said("beat").count("shifts_withheld") >= 4)
    assert fleet.broker("LLEN", "fetch.batch") == 1
    assert fleet.counts_of(crawl).pages == 0
    fleet.worker()
    assert fleet.until_ended(crawl).pages == 120
    assert fleet.metrics()['curtsy_shifts_total{end="late",lane="batch"}'] >= 1
    assert fleet.broker("LLEN", "fetch.batch") <= 1


def test_a_crawl_that_is_resumed_while_no_shift_runs_continues(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web)
    fleet.worker()
    fleet.beat()
    crawl = fleet.submit(web.seeds, delay_s=0.1)
    fleet.until_pages(crawl, 10)
    fleet.run("pause", crawl.id)
    until(lambda: fleet.command("ZCARD", "{fleet}:shifts:batch") == 0)
    fleet.run("resume", crawl.id)
    assert fleet.until_ended(crawl).pages == 120


def test_a_shift_that_finds_no_database_uses_its_ticket_and_is_followed_by_another(new_fleet: NewFleet) -> None:
    fleet = new_fleet(store_url="postgresql://nobody@127.0.0.1:1/none")
    (ticket,) = fleet.ask(lambda f: f.issue("batch", 1)).tickets
    seat = WorkerProcess(fleet.settings(), lambda: False, fleet.frontier_url)
    assert seat.work_shift("batch", ticket) == "broken"
    assert fleet.ask(lambda f: f.outstanding("batch")) == 0
    assert fleet.ask(lambda f: f.running("batch")) == 1  # until it expires: a pause before the next
    until(lambda: len(fleet.ask(lambda f: f.issue("batch", 1)).tickets) == 1)
    assert seat.work_shift("batch", ticket) == "late"
    seat.close()


def test_shifts_that_wait_are_never_more_than_the_seats(new_fleet: NewFleet, web: TinyWeb) -> None:
    """Six hosts, one request per shift: tickets run out while their messages wait for a worker that is stopped."""
    fleet = new_fleet(web, ticket_s=0.2, concurrency=1, log_level="debug")
    fleet.ask(lambda f: f.heartbeat(Worker(name="w@test", queues=("fetch.batch",), processes=4)))
    fleet.beat()
    fleet.submit(web.seeds, delay_s=0.05)
    until(lambda: fleet.said("beat").count("shifts_withheld") >= 4)
    assert fleet.broker("LLEN", "fetch.batch") <= 4
