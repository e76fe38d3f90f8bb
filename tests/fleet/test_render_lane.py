"""The lane render in a fleet: its own queue and workers with a browser; one that dies in the middle loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psutil
import pytest
from fleet_folder import FleetFolder
from waiting import until

from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.facts import org_host

NewFleet = Callable[..., FleetFolder]
SHORT_VISITS = {"render_timeout_s": 9, "render_slot_s": 11, "render_concurrency": 2}


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=6, pages=6, faults=False) as started:
        yield started


def browsers_of(fleet: FleetFolder, name: str) -> list[psutil.Process]:
    found = psutil.Process(fleet.parts[name].pid).children(recursive=True)
    return [process for process in found if "chrom" in process.name()]


def test_pages_that_need_a_browser_go_to_workers_that_have_one_and_come_back_when_such_a_worker_dies(
    new_fleet: NewFleet, web: TinyWeb
) -> None:
    fleet = new_fleet(web, **SHORT_VISITS)
    fleet.worker("plain", "fetch.batch,fetch.slow", seats=1)
    fleet.beat()
    crawl = fleet.submit([f"http://{org_host(4)}/"], delay_s=0.1, render="auto")
    until(lambda: fleet.broker("LLEN", "render") > 0)
    assert fleet.counts_of(crawl).pages == 0, "nobody has a browser yet"
    told = fleet.run("explain", f"http://{org_host(4)}/")
    assert told["waits_for_rendering"]
    assert "waits for rendering" in told["why"][0]
    assert any("needed a browser" in said for said in fleet.run("explain", org_host(4))["why"])
    fleet.worker("render", "render", seats=1)
    until(lambda: bool(fleet.rows("SELECT 1 FROM pages")))
    until(lambda: fleet.command("ZCARD", "{fleet}:shifts:render") > 0 and bool(browsers_of(fleet, "render")))
    browsers = browsers_of(fleet, "render")
    fleet.kill("render")
    until(lambda: not any(process.is_running() for process in browsers))
    fleet.worker("another", "render", seats=1)
    counts = fleet.until_ended(crawl)
    assert (counts.pages, counts.failed) == (6, {})
    assert {kind for (kind,) in fleet.rows("SELECT kind FROM requests WHERE status = 200 AND kind IN ('p', 'b')")} == {
        "p",
        "b",
    }
    assert fleet.rows("SELECT DISTINCT kind FROM urls WHERE state = 'done' AND reason = ''") == [("b",)]
    assert fleet.verdict().polite
    assert any(key.startswith("curtsy_shifts_total") and 'lane="render"' in key for key in fleet.metrics())
    fleet.stop("another")
