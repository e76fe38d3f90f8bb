"""A page that crashes the Celery child which reads it, again and again, is condemned; all other pages are fetched."""

from __future__ import annotations

import json
from collections.abc import Callable

from fleet_folder import FleetFolder
from waiting import until

from curtsy.store import failures
from curtsy.tinyweb import TinyWeb

#: the app of a worker that crashes while it reads the page whose URL ends like this
DEADLY = """
import ctypes
from curtsy.crawl import results
of_url = results.of_url
def deadly(lease, *args):
    if lease.entry.url.endswith("/about"):
        ctypes.string_at(0)
    return of_url(lease, *args)
results.of_url = deadly
from curtsy.celery_app import app
"""


def test_a_page_that_crashes_celery_children_is_condemned_and_nothing_else(
    new_fleet: Callable[..., FleetFolder],
) -> None:
    with TinyWeb.start(hosts=1, pages=6, page_kb=2, faults=False) as web:
        fleet = new_fleet(web)
        (fleet.path / "deadly.py").write_text(DEADLY)
        words = ("worker", "-n", "w1@test", "-Q", "fetch.high,fetch.batch,fetch.slow", "-c", "1")
        fleet.start_part("w1", "celery", "-A", "deadly", *words)
        until(lambda: fleet.has_seats("w1"))
        fleet.beat()
        crawl = fleet.submit(web.seeds)
        counts = fleet.until_ended(crawl, timeout_s=240)
        with fleet.store.read() as tx:
            letters = failures.find(tx, crawl=crawl.n)
        said = [json.loads(line) for name in ("w1", "beat") for line in fleet.said(name).splitlines()]
        verdict = fleet.verdict()
    assert (counts.pages, counts.failed) == (5, {"kills_worker": 1})
    assert [(letter.url, letter.cause) for letter in letters] == [(f"{web.seeds[0]}about", "kills_worker")]
    lost = [line for line in said if "exited with 'signal 11" in line.get("message", "")]
    assert len(lost) == 4, "twice beside others, twice alone"
    assert any("string_at" in line["trace"] for line in said if line["event"] == "process_crashed")
    assert verdict.overlaps == 0
