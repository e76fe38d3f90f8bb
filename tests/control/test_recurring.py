"""Runs of one schedule over a real site: bodies are stored once, and the change report says what happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from crawl_folder import CrawlFolder
from small_site import Asked, Say, SmallSite, linking

from curtsy.control import changes, retention, submit
from curtsy.control import schedules as scheduling
from curtsy.crawl import run as crawling
from curtsy.services import backends
from curtsy.store import schedules
from curtsy.store.engine import Store

HOUR = 3_600_000
NOON = 1_773_144_000_000


def page(text: str) -> Say:
    return Say(f"<!doctype html><title>{text}</title>{text * 200}".encode())


def tagged(asked: Asked) -> Say:
    """Answers 304 to whoever has it."""
    if asked.headers.get("if-none-match") == '"1"':
        return Say(status=304, headers=(("ETag", '"1"'),))
    return Say(page("tagged").body, headers=(("Content-Type", "text/html"), ("ETag", '"1"')))


@pytest.fixture
def pages() -> dict[str, Any]:
    return {
        "/": linking("/same", "/tagged", "/edited", "/deleted", "/moved", "/lost"),
        "/same": page("same"),
        "/tagged": tagged,
        "/edited": page("first"),
        "/deleted": page("deleted"),
        "/moved": page("moved"),
        "/lost": page("lost"),
    }


@pytest.fixture
def site(pages: dict[str, Any]) -> Iterator[SmallSite]:
    with SmallSite(pages) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path, site: SmallSite) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
    yield made
    made.close()


def run_schedule(folder: CrawlFolder, at_ms: int) -> str:
    """One run, to its end; the id of its crawl."""

    async def once() -> str:
        built = backends.build(folder.settings())
        try:
            await built.open()
            (id,) = await scheduling.fire(built, at_ms)
            crawl = await submit.resume_crawl(built, id)
            await asyncio.wait_for(crawling.run(built, crawl.n), 60)
            return id
        finally:
            await built.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(once())


def test_unchanged_bodies_are_stored_once_and_the_report_tells_what_changed(
    folder: CrawlFolder, site: SmallSite, pages: dict[str, Any]
) -> None:
    with Store.open(folder.settings().effective_store_url) as store:
        scheduling.add(
            store, folder.settings(), name="site", cron="@hourly", seeds=["http://a.small.test/"],
            crawl={"delay_s": 0.01}, now_ms=NOON - 1,
        )  # fmt: skip
        first = run_schedule(folder, NOON)
        pages["/"] = linking("/same", "/tagged", "/edited", "/deleted", "/moved", "/copy")
        pages["/edited"] = page("second")
        pages["/copy"] = pages["/lost"]  # the body of a page of the first run, at another place
        pages["/moved"] = Say(status=301, headers=(("Location", "/copy"),))
        del pages["/deleted"], pages["/lost"]
        second = run_schedule(folder, NOON + HOUR)
        report = changes.report_of(store, second)
        assert report.against.id == first
        found, _ = changes.chunk(store, report)
        counted = changes.counts(store, report)
    kinds = {change.url.removeprefix("http://a.small.test"): change.kind for change in found}
    assert kinds == {
        "/": "changed",
        "/same": "unchanged",
        "/tagged": "unchanged",
        "/edited": "changed",
        "/copy": "new",
        "/deleted": "gone",
        "/lost": "gone",
        "/moved": "moved",
    }
    assert sum(counted.values()) == len(kinds)
    rows = {
        url.removeprefix("http://a.small.test"): (bool(unchanged), same_as)
        for url, unchanged, same_as in folder.rows("SELECT url, unchanged, same_as FROM pages WHERE crawl = 2")
    }
    assert rows["/same"] == rows["/tagged"] == (True, None)
    assert rows["/edited"] == (False, None)
    ((lost,),) = folder.rows("SELECT lower(hex(fp)) FROM pages WHERE crawl = 1 AND url LIKE '%/lost'")
    assert rows["/copy"] == (False, f"1-{lost}"), "a revisit record refers to the body of the earlier run"
    assert any(asked.headers.get("if-none-match") == '"1"' for asked in site.asked)
    places = folder.rows("SELECT url, count(DISTINCT segment || ':' || body_offset) FROM pages GROUP BY url")
    stored = {url.removeprefix("http://a.small.test"): n for url, n in places}
    assert (stored["/same"], stored["/tagged"], stored["/edited"]) == (1, 1, 2)


def test_crawls_of_no_schedule_do_not_share_bodies_of_other_urls(folder: CrawlFolder, pages: dict[str, Any]) -> None:
    pages["/copy"] = pages["/lost"]
    folder.crawl("http://a.small.test/lost")
    folder.crawl("http://a.small.test/copy")
    assert folder.rows("SELECT same_as FROM pages WHERE crawl = 2") == [(None,)]


def test_the_body_of_a_revisit_reads_back(folder: CrawlFolder, pages: dict[str, Any], tmp_path: Path) -> None:
    with Store.open(folder.settings().effective_store_url) as store:
        scheduling.add(
            store, folder.settings(), name="site", cron="@hourly", seeds=["http://a.small.test/lost"],
            crawl={"delay_s": 0.01}, now_ms=NOON - 1,
        )  # fmt: skip
        run_schedule(folder, NOON)
        pages["/lost"] = linking("/copy")
        pages["/copy"] = page("lost")
        second = run_schedule(folder, NOON + HOUR)
    out = tmp_path / "pages"
    folder.run("export", second, "--out", str(out), "--format", "markdown")
    assert any("lostlost" in path.read_text() for path in out.rglob("*.md"))


def test_crawls_beyond_the_runs_to_keep_are_deleted_and_what_they_shared_stays(
    folder: CrawlFolder, pages: dict[str, Any], tmp_path: Path
) -> None:
    with Store.open(folder.settings().effective_store_url) as store:
        scheduling.add(
            store, folder.settings(), name="site", cron="@hourly", seeds=["http://a.small.test/same"], keep=1,
            crawl={"delay_s": 0.01}, now_ms=NOON - 1,
        )  # fmt: skip
        first, second = run_schedule(folder, NOON), run_schedule(folder, NOON + HOUR)
        built = backends.build(folder.settings())
        later_ms = int(time.time() * 1000) + 120_000
        try:
            retention.sweep(built, later_ms)
            retention.sweep(built, later_ms)
        finally:
            asyncio.run(built.close())
        with store.read() as tx:
            runs = {run.crawl_id: run.crawl for run in schedules.runs_of(tx, 1)}
    assert [id for (id,) in folder.rows("SELECT id FROM crawls")] == [second]
    assert (runs[first], runs[second]) == (None, 2)
    out = tmp_path / "pages"
    folder.run("export", second, "--out", str(out), "--format", "markdown")
    assert any("samesame" in path.read_text() for path in out.rglob("*.md"))
