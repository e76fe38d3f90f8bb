"""A language model's server that fails in every way loses nothing: stages are tried again, die, and are replayed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from crawl_folder import CrawlFolder
from model_server import ModelServer
from small_site import Say, SmallSite, linking

from curtsy.control import replay
from curtsy.core.shutdown import StopFlag
from curtsy.records import plan as plans
from curtsy.records import stages
from curtsy.services import backends
from curtsy.services.backends import Services
from curtsy.services.local_model import what_is_missing
from curtsy.store import crawls, failures, llm_cache
from curtsy.store.engine import Store

WORDS = " ".join(f"word{i}" for i in range(120))
QUOTE = "The Quiet Goose was founded in 1954 by two sisters who baked bread."
SHOP = {
    "title": "Shop",
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "What the shop is called."},
        "founded_year": {"type": ["integer", "null"], "description": "The year in which it began."},
    },
}
GOOD = {"name": {"quote": QUOTE, "value": "The Quiet Goose"}, "founded_year": {"quote": QUOTE, "value": 1954}}
#: what the server does -> what the dead letter says
TROUBLES = {
    "refuses": (503, "llm_unreachable"),
    "forbids": (403, "llm_refused"),
    "hangs": ("hang", "llm_timeout"),
    "speaks garbage": (b"<html>busy</html>", "llm_garbage"),
    "says nothing of use": ("I cannot help with that.", "llm_garbage"),
    "breaks off": ("cut", "llm_unreachable"),
    "is busy": ((429, {"Retry-After": "0"}), "llm_rate_limited"),
}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as opened:
        opened.answer = lambda _: GOOD
        yield opened


@pytest.fixture
def site() -> Iterator[SmallSite]:
    page = Say(f"<!doctype html><title>Home</title><p>{QUOTE} {WORDS}<a href='/more'>x</a>".encode())
    with SmallSite({"/": page, "/more": linking(title="More")}) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path, site: SmallSite, server: ModelServer) -> Iterator[CrawlFolder]:
    made = CrawlFolder(
        tmp_path, resolve=[site.resolve_rule], llm_url=server.url, llm_model="small", llm_timeout_s=3.0,
        stage_lease_s=20, stage_attempts=2,
    )  # fmt: skip
    yield made
    made.close()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_BACKOFF_MS", 10)


def work(folder: CrawlFolder) -> None:
    """All stages of the crawl, in this process."""

    async def run(built: Services) -> None:
        await stages.run_all(built, 1, StopFlag())

    async def with_parts() -> None:
        built = backends.build(folder.settings())
        try:
            await built.open()
            await asyncio.wait_for(run(built), 60)
        finally:
            await built.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(with_parts())


def crawl(folder: CrawlFolder, **plan: Any) -> None:
    folder.crawl("http://a.small.test/", max_pages=1, **(plan or plans.crawl_fields(SHOP)))


def letters(folder: CrawlFolder) -> list[tuple[str, str, int]]:
    with Store.open(folder.settings().effective_store_url) as store, store.read() as tx:
        return [(one.stage, one.cause, one.attempts) for one in failures.find(tx)]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_whatever_the_server_does_the_page_is_fetched_once_and_its_record_comes_in_the_end(
    folder: CrawlFolder, server: ModelServer, site: SmallSite, trouble: str
) -> None:
    step, cause = TROUBLES[trouble]
    server.answer = lambda _: step
    crawl(folder)
    work(folder)
    tries = 1 if cause == "llm_refused" else 2
    assert letters(folder) == [("extract", cause, tries)]
    assert folder.rows("SELECT state FROM crawls") == [("finished",)]
    assert folder.rows("SELECT * FROM records") == []
    server.released.set()
    server.answer = lambda _: GOOD
    with Store.open(folder.settings().effective_store_url) as store:
        assert replay.replay(store, replay.Filter(stage="extract"), 1).dead_letters == 1
    work(folder)
    (record,) = folder.run("records")["records"]
    assert record["data"] == {"name": "The Quiet Goose", "founded_year": 1954}
    assert record["rungs"] == {"llm": 2}
    assert record["usage"]["calls"] == 1
    assert letters(folder) == []
    assert site.paths() == ["/"], "fetched once"


def test_a_dead_letter_of_a_site_has_the_address_that_was_crawled(folder: CrawlFolder, server: ModelServer) -> None:
    server.answer = lambda _: 401
    crawl(folder, **plans.crawl_fields({**SHOP, "x-curtsy": {"per": "site"}}))
    work(folder)
    with Store.open(folder.settings().effective_store_url) as store, store.read() as tx:
        assert [(one.stage, one.url) for one in failures.find(tx)] == [("extract", "http://a.small.test/")]
        assert crawls.counts(tx, 1).failed_stages == {"extract": 1}


def test_a_server_that_is_gone_for_a_while_costs_a_retry_only(folder: CrawlFolder, server: ModelServer) -> None:
    server.script = [503]
    crawl(folder)
    work(folder)
    assert letters(folder) == []
    assert [one["data"]["name"] for one in folder.run("records")["records"]] == ["The Quiet Goose"]


def test_a_busy_server_gets_no_request_for_as_long_as_it_asks(folder: CrawlFolder, server: ModelServer) -> None:
    times: list[float] = []

    def answer(_: Any) -> Any:
        times.append(time.monotonic())
        return (429, {"Retry-After": "1"}) if len(times) == 1 else GOOD

    server.answer = answer
    crawl(folder)
    work(folder)
    first, second = times
    # The pause counts from the time at which the stage began plus its duration; a loaded machine lies in between.
    assert second - first >= 0.9
    assert letters(folder) == []


def test_a_server_that_asks_for_a_long_pause_gets_the_longest_one_of_the_settings(
    folder: CrawlFolder, server: ModelServer
) -> None:
    folder.config.write_text(folder.config.read_text() + "llm_retry_after_cap_s = 0.2\n")
    server.script = [(429, {"Retry-After": "86400"})]
    crawl(folder)
    work(folder)  # it would wait for a day
    assert letters(folder) == []
    assert len(folder.run("records")["records"]) == 1


def test_records_of_a_crawl_are_asked_about_at_the_same_time(
    folder: CrawlFolder, server: ModelServer, site: SmallSite
) -> None:
    texts = {f"/{n}": f"<!doctype html><title>{n}</title><p>Branch {n}. {QUOTE} {WORDS}" for n in range(6)}
    links = "".join(f"<a href='{path}'>x</a>" for path in texts)
    site.pages = {"/": Say(f"<!doctype html><title>List</title>{links}".encode())}
    site.pages |= {path: Say(text.encode()) for path, text in texts.items()}
    config = folder.config.read_text().replace("llm_timeout_s = 3.0", "llm_timeout_s = 15.0")
    folder.config.write_text(config + "llm_concurrency = 3\n")
    arrived, lock, most = threading.Barrier(3), threading.Lock(), [0, 0]

    def answer(_: Any) -> Any:
        with lock:
            most[0] += 1
            most[1] = max(most)
        with contextlib.suppress(threading.BrokenBarrierError):
            arrived.wait(5)
        with lock:
            most[0] -= 1
        return GOOD

    server.answer = answer
    folder.crawl("http://a.small.test/", **plans.crawl_fields(SHOP))
    work(folder)
    assert most[1] == 3
    assert len(folder.run("records")["records"]) == 6
    questions = [one["messages"][1]["content"] for one in server.asked]
    assert len(set(questions)) == len(questions) >= 6


def test_an_answer_is_asked_once_and_paid_once(folder: CrawlFolder, server: ModelServer) -> None:
    crawl(folder)
    work(folder)
    assert len(server.asked) == 1
    with Store.open(folder.settings().effective_store_url) as store, store.read() as tx:
        spent = llm_cache.spent(tx, 1)
    assert (spent.calls, spent.cached) == (1, 0)
    assert spent.prompt_tokens > 100, "the server says less than what was sent"
    assert folder.run("records")["records"][0]["usage"]["prompt_tokens"] == 100
    used = folder.run("status")["llm"]
    assert (used["calls"], used["cached"]) == (1, 0)
    assert [(one["schema"], one["field"], one["calls"]) for one in used["fields"]] == [
        ("Shop", "/founded_year", 1), ("Shop", "/name", 1),
    ]  # fmt: skip
    assert sum(one["prompt_tokens"] for one in used["fields"]) == used["prompt_tokens"]
    told = folder.run("extract", "--diff")
    assert told["diff"]["items"] == []
    assert len(server.asked) == 1, "the answer was kept"
    told = folder.run("extract", "--llm", "none", "--diff")
    assert told["diff"]["counts"] == {}, "without a model there is nothing to say of this page"


def test_a_spent_budget_is_a_dead_letter_that_says_so(folder: CrawlFolder, server: ModelServer) -> None:
    folder.config.write_text(folder.config.read_text() + "llm_max_tokens_per_crawl = 10\n")
    crawl(folder)
    work(folder)
    assert letters(folder) == [("extract", "llm_budget", 1)]
    assert server.asked == []


# What is left without the model

DATA = """<script type="application/ld+json">{"@type": "Organization", "name": "The Quiet Goose"}</script>"""
KNOWN = {**SHOP, "x-curtsy": {"types": ["Organization"]}}


@pytest.fixture
def half_known(site: SmallSite) -> None:
    """The page states the name as structured data: only the year needs a model."""
    site.pages = {"/": Say(f"<!doctype html><title>Home</title>{DATA}<p>{QUOTE} {WORDS}".encode())}


def replayed(folder: CrawlFolder, stage: str = "extract") -> int:
    with Store.open(folder.settings().effective_store_url) as store:
        return replay.replay(store, replay.Filter(stage=stage), 1).dead_letters


@pytest.mark.usefixtures("half_known")
@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_other_rungs_found_is_published_with_the_failure_and_a_replay_completes_it(
    folder: CrawlFolder, server: ModelServer, trouble: str
) -> None:
    step, cause = TROUBLES[trouble]
    server.answer = lambda _: step
    crawl(folder, **plans.crawl_fields(KNOWN))
    work(folder)
    (record,) = folder.run("records")["records"]
    assert record["data"] == {"name": "The Quiet Goose"}
    assert (record["failure"]["stage"], record["failure"]["cause"]) == ("extract", cause)
    assert record["failure"]["fields"] == ["/founded_year"]
    assert [one[:2] for one in letters(folder)] == [("extract", cause)]
    told = folder.run("explain", "http://a.small.test/")
    assert told["incomplete_record"]["cause"] == cause
    assert any("is incomplete" in one and "--stage extract" in one for one in told["why"])
    server.released.set()
    server.answer = lambda _: GOOD
    assert replayed(folder) == 1
    work(folder)
    (record,) = folder.run("records")["records"]
    assert record["data"] == {"name": "The Quiet Goose", "founded_year": 1954}
    assert (record["failure"], record["version"]) == (None, 2)
    assert folder.run("explain", "http://a.small.test/")["incomplete_record"] is None
    assert folder.rows("SELECT status FROM records ORDER BY n") == [("superseded",), ("published",)]
    assert folder.rows("SELECT * FROM outbox") == folder.rows("SELECT * FROM results") == []


@pytest.mark.usefixtures("half_known")
def test_a_spent_budget_costs_only_what_the_model_would_have_said(
    folder: CrawlFolder, server: ModelServer, tmp_path: Path
) -> None:
    whole = folder.config.read_text()
    folder.config.write_text(whole + "llm_max_tokens_per_crawl = 10\n")
    crawl(folder, **plans.crawl_fields(KNOWN))
    work(folder)
    out = tmp_path / "out.jsonl"
    folder.run("export", "--what", "records", "--out", str(out))
    exported = json.loads(out.read_text())
    assert (exported["data"], exported["failure"]["cause"]) == ({"name": "The Quiet Goose"}, "llm_budget")
    table = tmp_path / "out.csv"
    folder.run("export", "--what", "records", "--format", "csv", "--out", str(table))
    assert "llm_budget" in table.read_text()
    folder.config.write_text(whole)
    assert replayed(folder) == 1
    work(folder)
    assert [one["data"] for one in folder.run("records")["records"]] == [
        {"name": "The Quiet Goose", "founded_year": 1954}
    ]


@pytest.mark.usefixtures("half_known")
def test_a_replay_that_fails_again_changes_no_record(folder: CrawlFolder, server: ModelServer) -> None:
    server.answer = lambda _: 403
    crawl(folder, **plans.crawl_fields(KNOWN))
    work(folder)
    assert replayed(folder) == 1
    work(folder)
    assert folder.rows("SELECT version, status FROM records") == [(1, "published")]
    assert [one[:2] for one in letters(folder)] == [("extract", "llm_refused")]


@pytest.mark.usefixtures("half_known")
def test_an_extraction_without_its_model_does_not_replace_a_complete_record(
    folder: CrawlFolder, server: ModelServer
) -> None:
    crawl(folder, **plans.crawl_fields(KNOWN))
    work(folder)
    server.answer = lambda _: 403
    with Store.open(folder.settings().effective_store_url) as store:
        store.run(llm_cache.forget_before, 1 << 60)
    folder.run("extract", code=1)
    (record,) = folder.run("records")["records"]
    assert (record["data"]["founded_year"], record["failure"], record["version"]) == (1954, None, 1)


@pytest.mark.usefixtures("half_known")
def test_a_replay_before_the_record_is_stored_is_not_mixed_with_the_earlier_result(
    folder: CrawlFolder, server: ModelServer
) -> None:
    server.answer = lambda _: 403
    crawl(folder, **plans.crawl_fields(KNOWN))
    step(folder)  # only `extract`: the row of `score` waits
    assert folder.rows("SELECT kind, state FROM outbox ORDER BY kind") == [("extract", "dead"), ("score", "open")]
    server.answer = lambda _: GOOD
    assert replayed(folder) == 1
    work(folder)
    assert [(one["data"], one["version"]) for one in folder.run("records")["records"]] == [
        ({"name": "The Quiet Goose", "founded_year": 1954}, 1)
    ]
    assert folder.rows("SELECT * FROM outbox") == folder.rows("SELECT * FROM results") == []


def step(folder: CrawlFolder) -> None:
    """One stage of the crawl; a kill between its transaction and the next message."""

    async def run() -> None:
        built = backends.build(folder.settings())
        try:
            await built.open()
            (n,) = folder.rows("SELECT n FROM outbox WHERE kind = 'extract'")[0]
            assert await stages.run(built, "extract", n)
        finally:
            await built.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


RUBRIC = """
[groups]
all = 1.0
[[criteria]]
name = "age"
group = "all"
patterns = ['founded']
question = "Is it old?"
"""


def test_scores_without_the_model_come_from_patterns_and_a_replay_asks_again(
    folder: CrawlFolder, server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "shop.toml").write_text(RUBRIC)
    by_question = {"quote": QUOTE, "score": 0.5, "reason": ""}
    broken = [True]

    def answer(body: dict[str, Any]) -> Any:
        if "Is it old?" not in body["messages"][1]["content"]:
            return GOOD
        return 403 if broken else by_question

    server.answer = answer
    crawl(folder, **plans.crawl_fields(SHOP, "shop.toml", folder=tmp_path))
    work(folder)
    (record,) = folder.run("records")["records"]
    assert (record["failure"]["stage"], record["failure"]["cause"]) == ("score", "llm_refused")
    assert record["scores"]["total"] == 100.0
    assert "failure" not in record["scores"]
    broken.clear()
    assert replayed(folder, "score") == 1
    work(folder)
    (record,) = folder.run("records")["records"]
    assert (record["failure"], record["scores"]["total"], record["version"]) == (None, 50.0, 2)
    assert len([one for one in server.asked if "Is it old?" not in one["messages"][1]["content"]]) == 1
    assert folder.rows("SELECT * FROM outbox") == folder.rows("SELECT * FROM results") == []


def test_what_a_model_invents_is_kept_for_the_reviewer_only(folder: CrawlFolder, server: ModelServer) -> None:
    invented = {"quote": "The Quiet Goose moved to Ghent in 1871.", "value": 1871}
    server.answer = lambda _: {**GOOD, "founded_year": invented}
    crawl(folder)
    work(folder)
    shown = folder.run("records", "--held")["records"] + folder.run("records")["records"]
    assert [one["data"] for one in shown] == [{"name": "The Quiet Goose"}]
    assert "1871" not in str(shown)
    known = folder.run("review", "show", shown[0]["id"])
    (withheld,) = known["withheld"]
    assert (withheld["value"], withheld["claimed_quote"], withheld["rung"]) == (1871, invented["quote"], "llm")


@pytest.mark.skipif(what_is_missing() is not None, reason=what_is_missing() or "")
def test_the_real_small_model_invents_on_a_thin_page_and_nothing_of_it_is_exported(
    tmp_path: Path, site: SmallSite
) -> None:
    text = b"<h1>Ask us</h1><p>Our phone number will be here soon. Thank you for your patience.</p>"
    site.pages = {"/": Say(b"<html><body>" + text + b"</body></html>")}
    folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], llm="local")
    try:
        properties = {"phone": {"type": "string", "description": "Its telephone number."}}
        crawl(folder, **plans.crawl_fields({"title": "Firm", "type": "object", "properties": properties}))
        work(folder)
        assert folder.run("records")["records"] == []
        (held,) = folder.run("records", "--held")["records"]
        assert held["data"] == {}
        assert held["usage"]["calls"] >= 1
        known = folder.run("review", "show", held["id"])
        invented = {one["path"]: one["value"] for one in known["withheld"] if one["rung"] == "llm"}
        assert invented, "it answers, whatever the page says"
        assert not any(str(value) in str(held) for value in invented.values())
    finally:
        folder.close()
