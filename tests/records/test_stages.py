"""From stored pages to records: the stages of a crawl that names a schema, also over kills."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from crawl_folder import CrawlFolder, finish
from small_site import Say, SmallSite, linking

from curtsy.control import replay
from curtsy.core.failpoints import STAGE_POINTS
from curtsy.core.model import CrawlState
from curtsy.core.settings_loading import load
from curtsy.core.shutdown import StopFlag
from curtsy.grounding import page_schema
from curtsy.grounding.page_schema import Stored
from curtsy.records import extraction, stages
from curtsy.services import backends
from curtsy.services.backends import Services
from curtsy.store import crawls, failures, outbox, records
from curtsy.store.engine import Store

WORDS = " ".join(f"word{i}" for i in range(150))
LONG = Say(
    f"""<!doctype html><html lang="en"><title>Long</title><meta name="description" content="About words">
    <link rel="canonical" href="/long"><h1>Words</h1><h2>and more</h2><p>{WORDS}
    <script type="application/ld+json">{{"@type": "Article", "value": NaN}}</script></html>""".encode()
)
SITE = {"/": linking("/long", "/text", title="Home"), "/long": LONG, "/text": Say(b"plain text", headers=())}

#: a model that is never called: single stages run
NO_BULK = 'llm_url = "http://127.0.0.1:9/v1"\nllm_model = "m"\nllm_timeout_s = 0.5\n'


@pytest.fixture
def site() -> Iterator[SmallSite]:
    with SmallSite(SITE) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path, site: SmallSite) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path, resolve=[site.resolve_rule], stage_lease_s=1)
    yield made
    made.close()


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


async def with_services(folder: CrawlFolder, work: Any, **overrides: Any) -> Any:
    built = backends.build(folder.settings(**overrides))
    try:
        await built.open()
        return await work(built)
    finally:
        await built.close()


def stored_records(folder: CrawlFolder) -> dict[str, Any]:
    rows = folder.rows("SELECT url, data, scores, low_confidence FROM records ORDER BY n")
    found = {url: (json.loads(data), json.loads(scores), bool(low)) for url, data, scores, low in rows}
    assert len(found) == len(rows), "a record twice"
    return found


def state(folder: CrawlFolder) -> str:
    return str(folder.rows("SELECT state FROM crawls ORDER BY n DESC LIMIT 1")[0][0])


def test_a_crawl_with_a_schema_ends_with_a_record_of_each_page(folder: CrawlFolder) -> None:
    shown = folder.run("crawl", "http://a.small.test/", "--delay", "0", "--schema", "page")
    assert shown["state"] == "finished"
    # Several crawls of one process share its counters.
    assert all(shown["counters"][f"stage_{kind}"] >= 3 for kind in ("extract", "score", "store"))
    assert all(shown["counters"][f"stage_{kind}_cpu_us"] > 0 for kind in ("extract", "score", "store"))
    found = stored_records(folder)
    assert set(found) == {f"http://a.small.test/{path}" for path in ("", "long", "text")}
    data, scores, low = found["http://a.small.test/long"]
    assert data["title"] == "Long"
    assert data["description"] == "About words"
    assert data["language"] == "en"
    assert data["canonical"] == "http://a.small.test/long"
    assert data["headings"] == [{"level": 1, "text": "Words"}, {"level": 2, "text": "and more"}]
    assert {"kind": "json-ld", "data": {"@type": "Article", "value": None}} in data["structured"]
    assert data["words"] >= 150
    assert (scores["thin"], low) == (False, False)
    assert found["http://a.small.test/"][2]
    assert folder.rows("SELECT * FROM outbox") == []
    assert folder.rows("SELECT * FROM results") == []
    listed = [*folder.run("records", "last")["records"], *folder.run("records", "--held")["records"]]
    assert {one["url"]: one["data"] for one in listed} == {url: data for url, (data, _, _) in found.items()}
    assert [one["url"] for one in folder.run("records")["records"]] == [data["url"]], "thin pages are held back"
    assert len(folder.run("records", "--held", "--limit", "1")["records"]) == 1


def test_a_crawl_without_a_schema_ends_as_ever(folder: CrawlFolder) -> None:
    folder.crawl("http://a.small.test/")
    assert state(folder) == "finished"
    assert folder.rows("SELECT * FROM outbox") == folder.rows("SELECT * FROM records") == []


def test_an_unknown_schema_is_reported_before_anything_is_written(folder: CrawlFolder) -> None:
    process = folder.start("crawl", "http://a.small.test/", "--schema", "recipe")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "unknown schema: 'recipe'. Use one of article, event, job, organization, page, product" in said


def test_a_crawl_extracts_until_its_outbox_is_empty(folder: CrawlFolder) -> None:
    folder.crawl("http://a.small.test/", schema="page")
    assert state(folder) == "extracting"

    async def work(built: Services) -> None:
        kinds = []
        waiting = stages.sweep(built.store, built.settings)
        assert len(waiting) == 3
        assert stages.sweep(built.store, built.settings) == [], "they are under way"
        while waiting:
            sending = waiting.pop()
            kinds.append(sending.kind)
            assert state(folder) == "extracting"
            waiting += await stages.run(built, sending.kind, sending.n)
            assert await stages.run(built, sending.kind, sending.n) == [], "a repeated message does nothing"
        assert kinds.count("extract") == kinds.count("score") == kinds.count("store") == 3

    run(with_services(folder, work, stage_lease_s=100))
    assert state(folder) == "finished"
    assert len(stored_records(folder)) == 3


def test_no_more_are_in_flight_than_allowed(folder: CrawlFolder) -> None:
    folder.crawl("http://a.small.test/", schema="page")

    async def work(built: Services) -> None:
        assert len(stages.sweep(built.store, built.settings)) == 2
        assert len(stages.sweep(built.store, built.settings)) == 0

    run(with_services(folder, work, stages_in_flight=2, stage_lease_s=100))


def test_a_stage_that_fails_is_tried_again_then_dead_and_replayed_from_there(
    folder: CrawlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def broken(source: Stored) -> list[dict[str, Any]]:
        asked.append(source.page.url)
        raise ValueError("no idea")

    folder.crawl("http://a.small.test/text", schema="page", max_pages=1)
    monkeypatch.setattr(stages, "_BACKOFF_MS", 10)
    monkeypatch.setitem(page_schema.extractors, "page", broken)

    async def work(built: Services) -> None:
        await stages.run_all(built, 1, StopFlag())

    run(with_services(folder, work, stage_attempts=3))
    assert len(asked) == 3
    assert state(folder) == "finished"
    with Store.open(folder.settings().effective_store_url) as store:
        with store.read() as tx:
            (dead,) = failures.find(tx)
        assert (dead.stage, dead.cause, dead.detail, dead.attempts) == ("extract", "error", "ValueError: no idea", 3)
        assert dead.url == "http://a.small.test/text"
        dry = replay.replay(store, replay.Filter(stage="extract"), 1, dry_run=True)
        assert dry.dead_letters == 1
        assert state(folder) == "finished"
        assert replay.replay(store, replay.Filter(stage="extract"), 1).dead_letters == 1
        assert replay.replay(store, replay.Filter(stage="extract"), 1).dead_letters == 0
    assert state(folder) == "extracting"
    monkeypatch.undo()
    run(with_services(folder, work))
    assert state(folder) == "finished"
    assert len(stored_records(folder)) == 1
    assert folder.rows("SELECT count(*) FROM requests WHERE url LIKE '%/text'") == [(1,)], "nothing is fetched again"


def test_a_url_that_is_replayed_while_the_crawl_extracts_is_fetched(folder: CrawlFolder, site: SmallSite) -> None:
    pages = dict(SITE) | {"/": linking("/long", "/shut"), "/shut": Say(status=403)}
    site.pages = pages
    folder.crawl("http://a.small.test/", schema="page")
    assert state(folder) == "extracting"
    with Store.open(folder.settings().effective_store_url) as store:
        pages["/shut"] = LONG
        assert replay.replay(store, replay.Filter(), 1).dead_letters == 1
    assert state(folder) == "running"
    finish(folder.start("crawl", "--resume", "last", "--json"))
    assert state(folder) == "finished"
    assert len(stored_records(folder)) == 3


def test_a_later_stage_never_repeats_an_earlier_one(folder: CrawlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.crawl("http://a.small.test/text", schema="page", max_pages=1)
    scored: list[dict[str, Any]] = []
    real = extraction.scores_of

    def flaky(*given: Any) -> dict[str, Any]:
        scored.append(given[-1])
        if len(scored) < 3:
            raise OSError("the model is away")
        return real(*given)

    extracted: list[str] = []

    def extract(source: Stored) -> list[dict[str, Any]]:
        extracted.append(source.page.url)
        return [{"url": source.page.url, "words": 3}, {"url": source.page.url, "words": 300}]

    monkeypatch.setattr(stages, "_BACKOFF_MS", 10)
    monkeypatch.setattr(extraction, "scores_of", flaky)
    monkeypatch.setitem(page_schema.extractors, "page", extract)

    async def work(built: Services) -> None:
        await stages.run_all(built, 1, StopFlag())

    run(with_services(folder, work))
    assert len(extracted) == 1
    assert folder.rows("SELECT ordinal, low_confidence FROM records ORDER BY ordinal") == [(0, 1), (1, 0)]


def test_a_page_that_kills_its_worker_each_time_becomes_a_dead_letter(folder: CrawlFolder) -> None:
    folder.crawl("http://a.small.test/text", schema="page", max_pages=1)
    with Store.open(folder.settings().effective_store_url) as store:
        for now_ms in range(2_000_000_000_000, 2_000_000_003_000, 1000):
            with store.begin() as tx:
                (row,) = outbox.due(tx, now_ms, 10)
                assert outbox.begin(tx, row.kind, row.n, now_ms, 1000) is not None

    async def work(built: Services) -> None:
        assert await stages.run(built, row.kind, row.n, 2_000_000_009_000) == []

    run(with_services(folder, work, stage_attempts=3))
    assert folder.rows("SELECT stage, cause FROM failures") == [("extract", "kills_worker")]
    assert state(folder) == "finished"


@pytest.mark.parametrize("point", STAGE_POINTS)
@pytest.mark.parametrize("nth", [1, 2, 3, 5, 9])
def test_whatever_is_killed_between_the_steps_each_page_has_one_record(
    folder: CrawlFolder, point: str, nth: int
) -> None:
    folder.config.write_text(folder.config.read_text() + NO_BULK)
    killed_and_resumed(folder, f"{point}:{nth}")


@pytest.mark.parametrize("point", ["stage.begin", "stage.stored"])
def test_a_kill_during_records_in_bulk_leaves_one_record_of_each_page(folder: CrawlFolder, point: str) -> None:
    folder.config.write_text(folder.config.read_text() + "stage_attempts = 1\n")
    killed_and_resumed(folder, point)


def killed_and_resumed(folder: CrawlFolder, fault: str) -> None:
    words = ["crawl", "http://a.small.test/", "--delay", "0", "--schema", "page", "--json"]
    command = [sys.executable, "-m", "curtsy.cli", *words, "--config", str(folder.config)]
    killed = subprocess.run(
        command, cwd=folder.path, env={**os.environ, "CURTSY_FAULT": fault}, capture_output=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    finish(folder.start("crawl", "--resume", "last", "--json"))
    assert state(folder) == "finished"
    assert set(stored_records(folder)) == {f"http://a.small.test/{path}" for path in ("", "long", "text")}
    assert folder.rows("SELECT * FROM outbox") == folder.rows("SELECT * FROM failures") == []


def test_dead_letters_of_stages_show_in_the_exit_code_and_are_mended_by_a_replay(
    tmp_path: Path, site: SmallSite
) -> None:
    folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], stage_lease_s=1, stage_attempts=1)
    folder.config.write_text(folder.config.read_text() + NO_BULK)
    try:
        command = [sys.executable, "-m", "curtsy.cli", "crawl", "http://a.small.test/text", "--schema", "page"]
        killed = subprocess.run(
            [*command, "--config", str(folder.config)], cwd=tmp_path, env={**os.environ, "CURTSY_FAULT": "stage.begin"},
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert killed.returncode == -signal.SIGKILL
        finish(folder.start("crawl", "--resume", "last", "--json"), 1)
        (dead,) = folder.run("failures", "list", "--stage", "extract")["failures"]
        assert (dead["cause"], dead["url"]) == ("kills_worker", "http://a.small.test/text")
        assert folder.run("failures", "replay", "--stage", "extract")["dead_letters"] == 1
        finish(folder.start("crawl", "--resume", "last", "--json"))
        assert len(stored_records(folder)) == 1
    finally:
        folder.close()


def test_pausing_and_cancelling_rest_the_stages(folder: CrawlFolder) -> None:
    folder.crawl("http://a.small.test/", schema="page")
    with Store.open(folder.settings().effective_store_url) as store:
        settings = load(folder.config, data_dir=folder.data)
        store.run(crawls.set_state, 1, CrawlState.CANCELLED, "cancelled", 1)
        assert stages.sweep(store, settings) == []
        with store.read() as tx:
            assert records.counts(tx, 1, None) == {}
