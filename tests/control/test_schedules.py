"""Schedules fire once, catch up once, and let a run that is still going be: on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from curtsy.control import schedules as scheduling
from curtsy.core.errors import UsageError
from curtsy.core.model import CrawlState, Run, Schedule
from curtsy.core.settings import Settings
from curtsy.services import backends
from curtsy.store import crawls, schedules
from curtsy.store.engine import Store

HOUR = 3_600_000
NOON = 1_773_144_000_000  # 2026-03-10 12:00 UTC


@pytest.fixture
def settings(tmp_path: Path, store_url: str) -> Settings:
    return Settings(data_dir=tmp_path / "data", store_url=store_url)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with Store.open(settings.effective_store_url) as opened:
        yield opened


def add(store: Store, settings: Settings, **fields: Any) -> Schedule:
    given: dict[str, Any] = {"name": "news", "cron": "@hourly", "seeds": ["https://a.test/"], "now_ms": NOON - 1}
    return scheduling.add(store, settings, **{**given, **fields})


def runs(store: Store, schedule: Schedule) -> list[Run]:
    """Oldest first."""
    with store.read() as tx:
        return schedules.runs_of(tx, schedule.n)[::-1]


def end(store: Store, id: str) -> None:
    with store.begin() as tx:
        crawls.set_state(tx, crawls.get(tx, id).n, CrawlState.FINISHED, None, NOON)


def fire(settings: Settings, *times_ms: int, beats: int = 1) -> list[list[str]]:
    """What each Beat has made, over these times; the Beats fire at once."""

    async def all_beats() -> list[list[str]]:
        built = [backends.build(settings) for _ in range(beats)]
        made: list[list[str]] = [[] for _ in built]
        try:
            for one in built:
                await one.open()
            for at_ms in times_ms:
                for i, ids in enumerate(await asyncio.gather(*(scheduling.fire(one, at_ms) for one in built))):
                    made[i] += ids
        finally:
            for one in built:
                await one.close()
        return made

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(all_beats())


def test_a_schedule_fires_at_its_time_and_makes_the_crawl_it_describes(store: Store, settings: Settings) -> None:
    made = add(store, settings, crawl={"max_pages": 7, "scope": "domain", "schema": "page"})
    assert made.next_ms == NOON
    assert fire(settings, NOON - 1) == [[]]
    ((id,),) = fire(settings, NOON, NOON + 1)
    (run,) = runs(store, made)
    with store.read() as tx:
        crawl = crawls.get(tx, id)
        after = schedules.get(tx, "news")
    assert (run.state, run.planned_ms, run.crawl, run.crawl_id, run.note) == ("started", NOON, crawl.n, id, "")
    assert (crawl.max_pages, crawl.scope, crawl.schema, crawl.schedule) == (7, "domain", "page", made.n)
    assert crawl.state is CrawlState.RUNNING
    assert after.next_ms == NOON + HOUR


def test_two_beats_fire_once(store: Store, settings: Settings) -> None:
    made = [add(store, settings, name=f"s{i}") for i in range(5)]
    first, second = fire(settings, NOON, beats=2)
    assert len(first) + len(second) == 5
    assert all(len(runs(store, one)) == 1 for one in made)
    with store.read() as tx:
        assert len(crawls.list_all(tx)) == 5


def test_missed_times_give_one_run(store: Store, settings: Settings) -> None:
    made = add(store, settings)
    ((id,),) = fire(settings, NOON + 5 * HOUR + 10)
    (run,) = runs(store, made)
    assert (run.planned_ms, run.note) == (NOON, "replaces 5 more that were missed")
    end(store, id)
    ((_,),) = fire(settings, NOON + 6 * HOUR)
    assert [run.planned_ms for run in runs(store, made)] == [NOON, NOON + 6 * HOUR]


def test_a_run_that_is_due_while_the_last_is_going_is_skipped_and_noted(store: Store, settings: Settings) -> None:
    made = add(store, settings)
    ((id,),) = fire(settings, NOON, NOON + HOUR, NOON + 2 * HOUR)
    assert [(run.state, run.note) for run in runs(store, made)] == [
        ("started", ""),
        ("skipped", "the run of 2026-03-10 12:00 UTC had not ended"),
        ("skipped", "the run of 2026-03-10 12:00 UTC had not ended"),
    ]
    end(store, id)
    assert len(fire(settings, NOON + 3 * HOUR)[0]) == 1


def test_or_it_waits_if_the_schedule_says_so(store: Store, settings: Settings) -> None:
    made = add(store, settings, overlap="queue")
    ((id,),) = fire(settings, NOON, NOON + HOUR, NOON + 2 * HOUR)
    assert [run.state for run in runs(store, made)] == ["started", "queued", "skipped"]
    assert runs(store, made)[2].note == "another run was already waiting"
    end(store, id)
    ((later,),) = fire(settings, NOON + 2 * HOUR + 1)
    assert [run.state for run in runs(store, made)] == ["started", "started", "skipped"]
    assert (runs(store, made)[1].crawl_id, runs(store, made)[1].note) == (later, "")


def test_a_beat_that_dies_between_the_plan_and_the_crawl_leaves_it_to_the_next(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = add(store, settings)

    async def die(*_: Any) -> None:
        raise SystemError("killed")

    monkeypatch.setattr(scheduling.submit, "submit", die)
    with pytest.raises(SystemError):
        fire(settings, NOON)
    monkeypatch.undo()
    (run,) = runs(store, made)
    assert run.state == "planned"
    assert fire(settings, NOON + 59_000) == [[]], "somebody may be at it"
    assert fire(settings, NOON + 60_000) == [[run.crawl_id]]
    assert [(r.state, r.crawl_id) for r in runs(store, made)] == [("started", run.crawl_id)]


def test_and_one_that_dies_after_the_crawl_was_made_makes_no_second(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = add(store, settings)

    def die(*_: Any) -> None:
        raise SystemError("killed")

    monkeypatch.setattr(scheduling, "_started", die)
    with pytest.raises(SystemError):
        fire(settings, NOON)
    monkeypatch.undo()
    assert fire(settings, NOON + 60_000) == [[runs(store, made)[0].crawl_id]]
    with store.read() as tx:
        (crawl,) = crawls.list_all(tx)
    assert [(r.state, r.crawl) for r in runs(store, made)] == [("started", crawl.n)]


def test_a_paused_schedule_rests_and_does_not_make_up_for_it(store: Store, settings: Settings) -> None:
    made = add(store, settings)
    assert not scheduling.pause(store, "news").enabled
    assert fire(settings, NOON + HOUR) == [[]]
    again = scheduling.resume(store, "news", NOON + HOUR + 5)
    assert (again.enabled, again.next_ms) == (True, NOON + 2 * HOUR)
    assert fire(settings, NOON + HOUR + 6) == [[]]
    assert runs(store, made) == []
    scheduling.remove(store, "news")
    assert fire(settings, NOON + 2 * HOUR) == [[]]


def test_a_run_that_is_queued_waits_until_a_paused_schedule_is_resumed(store: Store, settings: Settings) -> None:
    made = add(store, settings, overlap="queue")
    ((id,),) = fire(settings, NOON, NOON + HOUR)
    scheduling.pause(store, "news")
    end(store, id)
    assert fire(settings, NOON + HOUR + 1, NOON + 3 * HOUR) == [[]]
    assert [run.state for run in runs(store, made)] == ["started", "queued"]
    scheduling.resume(store, "news", NOON + 3 * HOUR + 5)
    ((later,),) = fire(settings, NOON + 3 * HOUR + 6)
    assert [(run.state, run.note) for run in runs(store, made)] == [("started", ""), ("started", "")]
    assert runs(store, made)[1].crawl_id == later


def test_nor_is_one_started_that_a_beat_left_behind(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = add(store, settings)

    async def die(*_: Any) -> None:
        raise SystemError("killed")

    monkeypatch.setattr(scheduling.submit, "submit", die)
    with pytest.raises(SystemError):
        fire(settings, NOON)
    monkeypatch.undo()
    scheduling.pause(store, "news")
    assert fire(settings, NOON + 60_000) == [[]]
    scheduling.resume(store, "news", NOON + 60_001)
    assert fire(settings, NOON + 60_002) == [[runs(store, made)[0].crawl_id]]


def test_a_run_that_cannot_be_made_is_noted_and_not_tried_for_ever(store: Store, settings: Settings) -> None:
    made = add(store, settings, crawl={"webhook": "https://hook.test/", "webhook_secret": "x" * 16})
    with store.begin() as tx:
        tx.exec_driver_sql('UPDATE schedules SET crawl = \'{"schema": "lost"}\'')
    assert fire(settings, NOON, NOON + 70_000) == [[]]
    (run,) = runs(store, made)
    assert run.state == "skipped"
    assert "unknown schema: 'lost'" in run.note


def test_crawls_beyond_the_runs_to_keep_are_named(store: Store, settings: Settings) -> None:
    add(store, settings, keep=2)
    add(store, settings, name="all")
    ids = []
    for hour in range(4):
        for made in fire(settings, NOON + hour * HOUR)[0]:
            with store.read() as tx:
                kept = crawls.get(tx, made).schedule == schedules.get(tx, "news").n
            ids += [made] if kept else []
            end(store, made)
    with store.read() as tx:
        assert sorted(scheduling.expired_crawls(tx)) == sorted(ids[:2])


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": ""}, "needs a name"),
        ({"name": "a/b"}, "must not contain '/'"),
        ({"name": ".."}, "be '.' or '..'"),
        ({"cron": "* *"}, "not a cron expression"),
        ({"cron": "0 0 30 2 *"}, "never fires"),
        ({"zone": "Nowhere"}, "no time zone"),
        ({"seeds": []}, "at least one URL"),
        ({"seeds": ["nonsense"]}, "not an http or https URL"),
        ({"overlap": "both"}, "skip or queue"),
        ({"keep": 0}, "number of runs to keep"),
        ({"crawl": {"max_pages": 0}}, "max_pages"),
        ({"crawl": {"colour": "red"}}, "colour"),
        ({"crawl": {"schema": "recipe"}}, "unknown schema: 'recipe'"),
        ({"crawl": {"include": ["("]}}, "[(]"),
        ({"crawl": {"webhook": "https://hook.test/"}}, "needs a secret"),
    ],
)
def test_invalid_input_is_reported_before_anything_is_written(
    store: Store, settings: Settings, fields: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        add(store, settings, **fields)
    with store.read() as tx:
        assert schedules.list_all(tx) == []
