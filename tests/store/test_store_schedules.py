"""Schedules, their runs, records and results of stages: the same on SQLite and PostgreSQL."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from curtsy.core.errors import NameTaken, UsageError
from curtsy.core.model import Crawl, CrawlState, Schedule
from curtsy.core.record import Record
from curtsy.store import crawls, records, schedules
from curtsy.store.engine import Store

NOW = 1_000_000
NEWS = Schedule(id="018f-news", name="news", cron="@hourly", seeds=("https://a.test/",), next_ms=NOW, created_ms=NOW)
RECORD = Record(
    crawl=1, subject="00ff", schema="page", schema_hash="1234", url="https://a.test/", data={"title": "Ä \ud800"},
    scores={"words": 3}, low_confidence=True, created_ms=NOW, request_id="r",
)  # fmt: skip


def test_a_schedule_is_found_by_name_id_and_beginning(store: Store) -> None:
    with store.begin() as tx:
        made = schedules.create(tx, replace(NEWS, crawl={"max_pages": 5}, keep=3))
        assert made == replace(NEWS, n=made.n, crawl={"max_pages": 5}, keep=3)
        assert schedules.get(tx, "news") == schedules.get(tx, "018f-news") == schedules.get(tx, "018f") == made
        assert schedules.list_all(tx) == [made]
        assert schedules.list_all(tx, after=made.n) == []
    with store.read() as tx, pytest.raises(UsageError, match="no schedule 'old'"):
        schedules.get(tx, "old")
    with store.begin() as tx, pytest.raises(UsageError, match="schedule 'news' already"):
        schedules.create(tx, replace(NEWS, id="other"))


def test_one_of_several_schedules_gets_a_name_and_the_others_are_refused(store: Store) -> None:
    barrier = threading.Barrier(4)

    def make(i: int) -> bool:
        barrier.wait()
        try:
            store.run(schedules.create, replace(NEWS, id=f"id-{i}"))
        except NameTaken:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(make, range(4))) == [False, False, False, True]
    with store.read() as tx:
        (made,) = schedules.list_all(tx)
    assert store.run(schedules.create, made).n == made.n, "the same one again changes nothing"


def test_a_schedule_advances_once(store: Store) -> None:
    with store.begin() as tx:
        made = schedules.create(tx, NEWS)
        assert schedules.due(tx, NOW - 1) == []
        assert schedules.due(tx, NOW) == [made]
        assert schedules.advance(tx, made, NOW + 10)
        assert not schedules.advance(tx, made, NOW + 10)
        assert schedules.due(tx, NOW) == []
        schedules.enable(tx, made.n, False, None)
        assert schedules.due(tx, NOW + 100) == []


def test_a_run_is_planned_claimed_and_started_once(store: Store) -> None:
    with store.begin() as tx:
        n = schedules.create(tx, NEWS).n
        assert schedules.plan(tx, n, NOW, "planned", "c1", "", NOW)
        assert not schedules.plan(tx, n, NOW, "planned", "c2", "", NOW)
        (run,) = schedules.waiting(tx, "planned")
        assert schedules.claim(tx, run, NOW, 100)
        assert not schedules.claim(tx, run, NOW + 99, 100)
        assert schedules.claim(tx, run, NOW + 100, 100)
        assert schedules.going(tx, n) == NOW
        crawl = crawls.create(tx, Crawl(id="c1", request_id="r", state=CrawlState.RUNNING, schedule=n))
        assert schedules.set_run(tx, run, "started", "planned", crawl=crawl.n)
        assert not schedules.set_run(tx, run, "started", "planned", crawl=crawl.n)
        assert schedules.going(tx, n) == NOW
        crawls.set_state(tx, crawl.n, CrawlState.FINISHED, None, NOW)
        assert schedules.going(tx, n) is None


def test_the_previous_crawl_and_what_is_beyond_the_runs_to_keep(store: Store) -> None:
    with store.begin() as tx:
        made = schedules.create(tx, replace(NEWS, keep=1))
        numbers = []
        for i in range(3):
            crawl = crawls.create(tx, Crawl(id=f"c{i}", request_id="r", state=CrawlState.FINISHED, schedule=made.n))
            schedules.plan(tx, made.n, NOW + i, "planned", crawl.id, "", NOW)
            (run,) = schedules.waiting(tx, "planned")
            schedules.set_run(tx, run, "started", "planned", crawl=crawl.n)
            numbers.append(crawl.n)
        schedules.plan(tx, made.n, NOW + 9, "skipped", "c9", "still going", NOW)
        assert [schedules.previous_crawl(tx, made.n, n) for n in numbers] == [None, *numbers[:2]]
        assert schedules.crawls_of(tx, made.n, 2) == numbers[:0:-1]
        assert schedules.expired_crawls(tx, made) == ["c1", "c0"]
        assert schedules.expired_crawls(tx, replace(made, keep=None)) == []
        assert [(run.state, run.note) for run in schedules.runs_of(tx, made.n, limit=2)] == [
            ("skipped", "still going"),
            ("started", ""),
        ]
        schedules.remove(tx, made.n)
        assert schedules.list_all(tx) == []
        assert schedules.runs_of(tx, made.n) == []
        assert crawls.get(tx, "c0").schedule == made.n


def test_the_first_record_of_a_key_stays(store: Store) -> None:
    with store.begin() as tx:
        assert records.add(tx, RECORD) is not None
        assert records.add(tx, replace(RECORD, ordinal=1, low_confidence=False)) is not None
        assert records.add(tx, replace(RECORD, data={"title": "later"})) is None
        found, after = records.chunk(tx, 1)
        assert [(r.ordinal, r.data, r.low_confidence) for r in found] == [
            (0, {"title": "Ä ?"}, True),
            (1, {"title": "Ä ?"}, False),
        ]
        assert records.chunk(tx, 1, after) == ([], after)
        assert [r.ordinal for r in records.chunk(tx, 1, low_confidence=True)[0]] == [0]
        assert [r.ordinal for r in records.chunk(tx, 1, low_confidence=False)[0]] == [1]
        assert sum(records.counts(tx, 1, None).values()) == 2


def test_the_first_result_of_a_stage_stays(store: Store) -> None:
    with store.begin() as tx:
        records.save_result(tx, 1, "00ff", "extract", {"title": "first"}, NOW)
        records.save_result(tx, 1, "00ff", "extract", {"title": "second"}, NOW)
        records.save_result(tx, 1, "00ff", "score", {"words": 3}, NOW)
        assert records.results(tx, 1, "00ff") == {"extract": {"title": "first"}, "score": {"words": 3}}
        records.forget_results(tx, 1, "00ff")
        assert records.results(tx, 1, "00ff") == {}


def test_a_crawl_keeps_its_schema_schedule_and_webhook(store: Store) -> None:
    wish = Crawl(
        id="c", request_id="r", schema="page", schedule=4, webhook="https://hook.test/", webhook_secret="s3cret"
    )
    with store.begin() as tx:
        crawls.create(tx, wish)
        found = crawls.get(tx, "c")
    assert (found.schema, found.schedule, found.webhook, found.webhook_secret) == (
        "page", 4, "https://hook.test/", "s3cret",
    )  # fmt: skip
    assert "s3cret" not in repr(found)
