"""The batch lane against a server with files and batches: kills at every step pay no question twice, caps hold."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer
from crawl_folder import CrawlFolder
from small_site import Say, SmallSite

from curtsy.core.failpoints import BATCH_POINTS
from curtsy.core.shutdown import StopFlag
from curtsy.records import batch_lane, stages
from curtsy.records import plan as plans
from curtsy.services import backends
from curtsy.store import llm_cache
from curtsy.store.engine import Store

WORDS = " ".join(f"word{i}" for i in range(120))
SHOP = {
    "title": "Shop",
    "type": "object",
    "properties": {"founded_year": {"type": "integer", "description": "The year in which it began."}},
}
PAGES = 3
RUN = """
import sys, asyncio
from pathlib import Path
from curtsy.core import settings_loading
from curtsy.core.shutdown import StopFlag
from curtsy.records import stages
from curtsy.services import backends

async def run():
    built = backends.build(settings_loading.load(Path(sys.argv[1]), data_dir=Path(sys.argv[2])))
    try:
        await built.open()
        await stages.run_all(built, 1, StopFlag())
    finally:
        await built.close()

asyncio.run(run())
"""


def quote(n: int) -> str:
    return f"Shop number {n} was founded in {1950 + n} by two sisters who baked bread."


def answer(body: dict[str, Any]) -> Any:
    shown = body["messages"][1]["content"]
    n = next(n for n in range(PAGES) if quote(n) in shown)
    return {"founded_year": {"quote": quote(n), "value": 1950 + n}}


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer() as opened:
        opened.answer = answer
        yield opened


@pytest.fixture
def folder(tmp_path: Path, server: BatchServer) -> Iterator[CrawlFolder]:
    pages = {
        f"/{n}": Say(f"<!doctype html><title>Shop {n}</title><p>{quote(n)} {WORDS}".encode()) for n in range(PAGES)
    }
    with SmallSite(pages) as site:
        made = CrawlFolder(
            tmp_path, resolve=[site.resolve_rule], llm_url=server.url, llm_model="small", llm_timeout_s=2.0,
            stage_attempts=2, llm_batch=True, llm_batch_size=PAGES, llm_batch_wait_s=0.2, llm_batch_poll_s=0.0,
        )  # fmt: skip
        made.crawl(*(f"http://a.small.test/{n}" for n in range(PAGES)), **plans.crawl_fields(SHOP))
        yield made
        made.close()


def work(folder: CrawlFolder) -> None:
    """All stages and batches of the crawl, in this process."""

    async def run() -> None:
        built = backends.build(folder.settings())
        try:
            await built.open()
            await asyncio.wait_for(stages.run_all(built, 1, StopFlag()), 120)
        finally:
            await built.close()

    asyncio.run(run())


def years(folder: CrawlFolder) -> list[int]:
    return sorted(one["data"]["founded_year"] for one in folder.run("records")["records"])


def spent(folder: CrawlFolder) -> tuple[int, int]:
    with Store.open(folder.settings().effective_store_url) as store, store.read() as tx:
        used = llm_cache.spent(tx, 1)
    return used.calls, used.prompt_tokens + used.completion_tokens


def assert_clean(folder: CrawlFolder) -> None:
    assert folder.rows("SELECT * FROM llm_questions") == folder.rows("SELECT * FROM llm_batches") == []
    assert folder.rows("SELECT * FROM outbox") == folder.rows("SELECT * FROM results") == []


def test_questions_go_into_one_batch_and_their_answers_into_records(folder: CrawlFolder, server: BatchServer) -> None:
    work(folder)
    assert years(folder) == [1950, 1951, 1952]
    assert (len(server.batches), len(server.paid), server.asked) == (1, PAGES, [])
    assert spent(folder)[0] == PAGES
    assert {one["calls"] for one in folder.run("status")["llm"]["fields"]} == {PAGES}
    assert_clean(folder)


@pytest.mark.parametrize("point", BATCH_POINTS)
def test_a_kill_at_any_step_pays_no_question_twice(folder: CrawlFolder, server: BatchServer, point: str) -> None:
    command = [sys.executable, "-c", RUN, str(folder.config), str(folder.data)]
    killed = subprocess.run(command, env={**os.environ, "CURTSY_FAULT": point}, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    work(folder)
    assert years(folder) == [1950, 1951, 1952]
    assert sorted(server.paid) == sorted(set(server.paid)), "a question was paid twice"
    assert (len(server.paid), server.asked) == (PAGES, [])
    calls, tokens = spent(folder)
    assert (calls, tokens > 0) == (PAGES, True)
    assert_clean(folder)


def test_a_cap_counts_questions_that_wait(folder: CrawlFolder, server: BatchServer) -> None:
    # One question reserves some 900 bytes of prompt and 2000 tokens of answer.
    folder.config.write_text(folder.config.read_text() + "llm_max_tokens_per_crawl = 5000\n")
    work(folder)
    assert len(server.paid) == 1
    assert folder.rows("SELECT cause FROM failures") == [("llm_budget",)] * 2
    assert spent(folder)[1] <= 5000


@pytest.mark.parametrize("end", ["expired", "failed"])
def test_what_a_batch_does_not_answer_is_asked_directly(folder: CrawlFolder, server: BatchServer, end: str) -> None:
    server.ends_as = end
    work(folder)
    assert years(folder) == [1950, 1951, 1952]
    assert (server.paid, len(server.asked)) == ([], PAGES)
    assert spent(folder)[0] == PAGES
    assert_clean(folder)


def test_a_server_without_batches_is_asked_directly(folder: CrawlFolder, server: BatchServer) -> None:
    server.refuses_batches = True
    work(folder)
    assert (years(folder), len(server.asked)) == ([1950, 1951, 1952], PAGES)
    assert_clean(folder)


def test_a_batch_without_an_end_is_canceled_after_a_day(folder: CrawlFolder, server: BatchServer) -> None:
    server.held = True
    settings = folder.settings()

    async def begun() -> None:
        built = backends.build(settings)
        try:
            await built.open()
            stop = StopFlag()
            running = asyncio.create_task(stages.run_all(built, 1, stop))
            while not folder.rows("SELECT 1 FROM llm_batches WHERE state = 'running'"):
                assert not running.done()
                await asyncio.sleep(0.05)
            stop.request()
            await running
        finally:
            await built.close()

    asyncio.run(begun())
    with Store.open(settings.effective_store_url) as store:
        ((made_ms,),) = folder.rows("SELECT made_ms FROM llm_batches")
        batch_lane.step(store, settings, made_ms + batch_lane.WINDOW_MS - 1)
        assert [one["status"] for one in server.batches.values()] == ["in_progress"]
        batch_lane.step(store, settings, made_ms + batch_lane.WINDOW_MS + 1)
    assert [one["status"] for one in server.batches.values()] == ["cancelled"]
    server.paid.clear()
    work(folder)
    assert (years(folder), len(server.asked)) == ([1950, 1951, 1952], PAGES)
    assert_clean(folder)
