"""A drained worker finishes its shift and takes no new one: real Celery workers, told over the fleet's keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fleet_folder import FleetFolder
from waiting import until, wait_for

from curtsy.fleet.coordination import Worker
from curtsy.tinyweb import TinyWeb

NewFleet = Callable[..., FleetFolder]


@pytest.fixture
def web(tmp_path: Path) -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=2, pages=6, faults=False, slow=1, log=tmp_path / "access.log") as started:
        yield started


def worker(fleet: FleetFolder, name: str) -> Worker:
    return next(one for one in fleet.ask(lambda f: f.workers()) if one.name == f"{name}@test")


def drain(fleet: FleetFolder, name: str, drained: bool = True) -> None:
    fleet.ask(lambda f: f.drain(f"{name}@test", drained))
    until(lambda: worker(fleet, name).drained is drained)


def shifts(fleet: FleetFolder, name: str) -> int:
    """Shifts that the worker has ended."""
    return fleet.said(name).count('"shift_ended"')


def test_a_drained_worker_finishes_its_shift_and_takes_no_new_one(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web)
    fleet.worker("first", seats=1)
    fleet.beat()
    # A response of the slow host takes 1.5 s, so one of the heartbeats, every 2 s, finds a shift.
    other, host = web.hosts
    crawl = fleet.submit([f"http://{host}/"], delay_s=0.2)
    busy = wait_for(lambda: worker(fleet, "first") if worker(fleet, "first").activities else None)
    assert busy.activities[0].task in ("shift batch", "shift slow")
    assert (busy.started_ms or 0) > 0
    assert (busy.memory_mb or 0) > 20

    drain(fleet, "first")
    assert worker(fleet, "first").queues == ()
    fleet.worker("second", seats=1)
    fleet.until_ended(crawl)
    # The crawl can end before the shift has returned.
    done = wait_for(lambda: shifts(fleet, "first"))
    assert "shift_broken_off" not in fleet.said("first")

    before = shifts(fleet, "second")
    crawl = fleet.submit([f"http://{other}/"])
    fleet.until_ended(crawl)
    wait_for(lambda: shifts(fleet, "second") > before)
    assert shifts(fleet, "first") == done, "it took nothing"

    drain(fleet, "first", drained=False)
    drain(fleet, "second")
    fleet.submit([f"http://{host}/again"])
    until(lambda: shifts(fleet, "first") > done)
