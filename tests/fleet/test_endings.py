"""How parts of a fleet end: asked to, or killed. Nothing is lost, nobody is asked too early."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import psutil
import pytest
from fleet_folder import FleetFolder
from waiting import until

from curtsy.services.valkey import EmbeddedValkey
from curtsy.tinyweb import TinyWeb

NewFleet = Callable[..., FleetFolder]
#: an answer of the slow host takes 2 s
PATIENT = {"fetch_timeout_s": 4, "slot_s": 7, "url_lease_s": 7}


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=10, pages=40, page_kb=4, faults=("slow",)) as started:
        yield started


def orgs(web: TinyWeb) -> list[str]:
    return [seed for seed in web.seeds if "slow" not in seed]


def frontier_has(fleet: FleetFolder, what: str) -> int:
    (epoch,) = fleet.command("HMGET", "{s00}:epoch", "n")
    return int(fleet.command("ZCARD", f"{{s00}}:e{epoch.decode()}:{what}"))


@pytest.mark.alone
def test_a_worker_that_is_asked_to_end_gives_everything_back_or_commits_it(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web, **PATIENT)
    fleet.worker()
    fleet.beat()
    crawl = fleet.submit(web.seeds, delay_s=0.05)
    fleet.until_pages(crawl, 50)
    until(lambda: frontier_has(fleet, "slots") > 0)
    began = time.monotonic()
    assert fleet.stop("w1") == 0
    took_s = time.monotonic() - began
    assert frontier_has(fleet, "slots") == 0
    assert frontier_has(fleet, "leases") == 0
    assert took_s < 8 + 4
    ends = {key: n for key, n in fleet.metrics().items() if key.startswith("curtsy_shifts_total")}
    assert sum(n for key, n in ends.items() if "broken" in key) == 0, ends
    assert not fleet.ask(lambda f: f.workers())
    fleet.worker("w2")
    counts = fleet.until_ended(crawl)
    assert not counts.failed
    verdict = fleet.verdict()
    assert verdict.polite
    assert verdict.presumed == 0
    assert not any(n for key, n in fleet.metrics().items() if key.startswith("curtsy_lease_expiries_total"))


def test_a_worker_ends_though_its_child_does_not_answer(new_fleet: NewFleet) -> None:
    fleet = new_fleet()
    parent = fleet.worker(seats=2)
    children = fleet.children("w1")
    os.kill(children[0], signal.SIGSTOP)
    assert fleet.stop("w1") == 0
    assert parent.returncode == 0
    until(lambda: not any(map(psutil.pid_exists, children)))
    assert "worker_ended_by_force" in fleet.said("w1")


def test_what_a_killed_child_held_comes_back(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web, **PATIENT)
    fleet.worker()
    fleet.beat()
    crawl = fleet.submit(web.seeds, delay_s=0.05)
    fleet.until_pages(crawl, 50)
    until(lambda: frontier_has(fleet, "slots") > 0)
    for child in fleet.children("w1"):
        os.kill(child, signal.SIGKILL)
    counts = fleet.until_ended(crawl)
    assert not counts.failed
    assert counts.pages == 403
    assert fleet.verdict().polite
    assert sum(n for key, n in fleet.metrics().items() if key.startswith("curtsy_lease_expiries_total")) > 0


def test_a_crawl_outlives_its_worker_its_beat_and_its_valkey(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web)
    fleet.worker()
    fleet.beat()
    crawl = fleet.submit(orgs(web), delay_s=0.05)
    fleet.until_pages(crawl, 40)
    running = EmbeddedValkey.running(fleet.data)
    assert running is not None
    assert running.pid is not None
    os.kill(running.pid, signal.SIGKILL)
    fleet.until_pages(crawl, 150)
    fleet.kill("beat")
    fleet.beat("beat2")
    fleet.until_pages(crawl, 250)
    fleet.kill("w1")
    fleet.worker("w2")
    counts = fleet.until_ended(crawl)
    assert counts.pages == 400
    assert not counts.failed
    assert fleet.verdict().polite


def test_a_crawl_outlives_a_restart_of_the_database(
    new_fleet: NewFleet, web: TinyWeb, request: pytest.FixtureRequest
) -> None:
    fleet = new_fleet(web, "postgresql")
    fleet.worker()
    fleet.beat()
    crawl = fleet.submit(orgs(web), delay_s=0.05)
    fleet.until_pages(crawl, 40)
    fleet.forget_store()
    request.getfixturevalue("postgres").restart()
    counts = fleet.until_ended(crawl)
    assert counts.pages == 400
    assert not counts.failed
    assert fleet.verdict().polite


def test_the_last_one_out_leaves_a_clean_folder(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web)
    fleet.worker()
    fleet.beat()
    crawl = fleet.submit(orgs(web)[:2], delay_s=0.02, max_pages=10)
    fleet.until_ended(crawl)
    fleet.let_go()
    fleet.stop("w1")
    fleet.stop("beat")
    assert EmbeddedValkey.running(fleet.data) is None
    assert fleet.rows("SELECT count(*) FROM meta WHERE key LIKE 'clean:%'") == [(1,)]
