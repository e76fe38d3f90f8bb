"""The parts of the Airflow package in this process, against a real control plane and frontier."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from airflow.providers.openlineage.extractors.base import DefaultExtractor
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred
from airflow_plane import Plane

import curtsy.airflow
from curtsy.airflow import CurtsyCrawlOperator, CurtsyHook, lineage
from curtsy.airflow.crawl_events import GONE, TIMED_OUT, Follower
from curtsy.airflow.crawl_identity import join, key_of
from curtsy.airflow.held_slot import SlotThread
from curtsy.airflow.hook import place_of
from curtsy.airflow.host_waiters import LEAD_S, waiters_of
from curtsy.core.clock import boot
from curtsy.core.errors import UsageError
from curtsy.crawl.external_slots import SlotExpired
from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.politeness_check import judge

pytestmark = pytest.mark.timeout(120)


class Notes:
    """Airflow's task state store, as far as a task sees it."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        return self.kept.get(key, default)

    def set(self, key: str, value: Any) -> None:
        self.kept[key] = value


def context(run: str, notes: Notes | None = None) -> dict[str, Any]:
    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(
        dag_id="dag", run_id=run, task_id="crawl", map_index=-1, pushed=pushed,
        xcom_push=lambda key, value: pushed.update({key: value}),
    )  # fmt: skip
    return {"ti": ti, "task_state_store": notes or Notes(), "outlet_events": {}}


# Which crawl


def test_every_try_joins_the_same_crawl_also_if_its_note_was_lost(plane: Plane) -> None:
    seeds, options = ["http://org-0003.tinyweb.test/"], {"max_pages": 2}
    notes = Notes()
    first = join(plane.server, context("same", notes), seeds, options)
    again = join(plane.server, context("same", notes), seeds, options)
    died = join(plane.server, context("same", Notes()), seeds, options)
    assert first.status["id"] == again.status["id"] == died.status["id"]
    assert (first.before, again.before) == (False, True)
    other = join(plane.server, context("other"), seeds, options)
    assert other.status["id"] != first.status["id"]


def test_after_a_cancelled_crawl_another_one_is_made(plane: Plane) -> None:
    seeds: list[str] = ["http://org-0003.tinyweb.test/"]
    notes = Notes()
    first = join(plane.server, context("cancelled", notes), seeds, {"delay_s": 5})
    plane.server.cancel(first.status["id"])
    second = join(plane.server, context("cancelled", notes), seeds, {"delay_s": 5})
    lost = join(plane.server, context("cancelled", Notes()), seeds, {"delay_s": 5})
    assert first.status["id"] != second.status["id"] == lost.status["id"]
    assert (first.number, second.number, lost.number) == (1, 2, 2)
    plane.server.cancel(second.status["id"])


def test_very_many_seeds_are_sent_as_lines_under_the_same_key(plane: Plane) -> None:
    seeds = [f"http://org-0003.tinyweb.test/{n}" for n in range(5_001)]
    first = join(plane.server, context("many"), seeds, {"delay_s": 5})
    assert join(plane.server, context("many"), seeds, {"delay_s": 5}).status["id"] == first.status["id"]
    plane.server.cancel(first.status["id"])


def test_keys_tell_task_instances_apart() -> None:
    def key(**changes: Any) -> str:
        return key_of(SimpleNamespace(**{"dag_id": "a", "run_id": "b", "task_id": "c", "map_index": -1} | changes))

    assert key() == key()
    assert len({key(), key(dag_id="x"), key(run_id="x"), key(task_id="x"), key(map_index=0)}) == 5
    assert len(key()) < 60
    assert key().isascii()


# The operator


def operator(**given: Any) -> CurtsyCrawlOperator:
    return CurtsyCrawlOperator(task_id="crawl", **given)


@pytest.mark.usefixtures("connection")
def test_dead_letters_fail_the_task_and_a_retry_replays_them_in_the_same_crawl(plane: Plane) -> None:
    notes = Notes()
    crawl = operator(
        seeds="http://error-500.tinyweb.test/error", max_depth="0", deferrable=False, on_dead_letters="fail"
    )
    for _ in range(2):
        with pytest.raises(AirflowException, match="1 dead letters \\(1 server_error\\)"):
            crawl.execute(context("dead", notes))
    id = notes.kept["curtsy_crawl"]["crawl"]
    replayed = list(plane.server.each(plane.server.list_failures, id, replayed=True))
    assert len(replayed) == 2, "the second try asked again, in the same crawl"
    lenient = operator(seeds="http://error-500.tinyweb.test/error", max_depth=0, deferrable=False, max_dead_letters=1)
    given = context("dead", notes)
    assert lenient.execute(given)["dead_letters"] == 1
    assert given["ti"].pushed == {"curtsy_crawl_url": f"{plane.url}/crawls/{id}"}
    assert notes.kept["curtsy_crawl"]["delivered"] is True


@pytest.mark.usefixtures("connection")
def test_a_crawl_that_takes_too_long_is_cancelled(plane: Plane) -> None:
    from datetime import timedelta

    notes = Notes()
    crawl = operator(
        seeds=["http://org-0004.tinyweb.test/"], delay_s=5, deferrable=False, crawl_timeout=timedelta(seconds=1)
    )
    with pytest.raises(AirflowException, match="exceeded crawl_timeout"):
        crawl.execute(context("late", notes))
    assert plane.server.crawl(notes.kept["curtsy_crawl"]["crawl"])["state"] == "cancelled"


@pytest.mark.usefixtures("connection")
def test_killed_on_a_worker_the_crawl_is_cancelled_and_the_task_fails_for_good(plane: Plane) -> None:
    notes = Notes()
    crawl = operator(seeds=["http://org-0004.tinyweb.test/"], delay_s=5, deferrable=False)

    def kill() -> None:
        while "curtsy_crawl" not in notes.kept or crawl._held is None:
            time.sleep(0.02)
        crawl.on_kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(AirflowFailException, match="cancelled"):
        crawl.execute(context("killed", notes))
    killer.join()


@pytest.mark.usefixtures("connection")
def test_a_crawl_that_the_earlier_try_cancelled_late_is_made_anew(plane: Plane) -> None:
    notes = Notes()
    crawl = operator(seeds=["http://org-0004.tinyweb.test/"], delay_s=5)
    with pytest.raises(TaskDeferred):
        crawl.execute(context("cleared", notes))
    first = notes.kept["curtsy_crawl"]["crawl"]
    with pytest.raises(TaskDeferred) as joined:  # the cleared task's next try is faster than the trigger's end
        crawl.execute(context("cleared", notes))
    event = {**plane.server.cancel(first), "state": "cancelled"}
    with pytest.raises(TaskDeferred):
        crawl.execute_complete(context("cleared", notes), event, **joined.value.kwargs)
    second = notes.kept["curtsy_crawl"]["crawl"]
    assert second != first
    with pytest.raises(AirflowFailException):  # but what is cancelled in the dashboard stays so
        crawl.execute_complete(context("cleared", notes), event, number=1, joined_at=None)
    plane.server.cancel(second)


@pytest.mark.usefixtures("connection")
def test_what_cannot_be_crawled_is_not_tried_again() -> None:
    with pytest.raises(AirflowFailException):
        operator(seeds="ftp://example.com/").execute(context("refused"))
    with pytest.raises(AirflowFailException, match="no seeds"):
        operator(seeds="").execute(context("none"))
    with pytest.raises(ValueError, match="on_dead_letters"):
        operator(seeds="http://example.com/", on_dead_letters="maybe")


# Following


def test_the_follower_survives_a_restart_of_the_api(plane: Plane) -> None:
    id = plane.server.submit(seeds=["http://org-0010.tinyweb.test/"], max_pages=4, delay_s=1)["id"]
    told: list[str] = []

    async def follow() -> dict[str, Any]:
        async with Follower(plane.url, None, told.append) as follower:
            waiting = asyncio.create_task(follower.until_ended(id, 0.2, lambda: None))
            await asyncio.sleep(0.5)
            for api in api_processes(plane):
                api.kill()
            return await waiting

    status = asyncio.run(follow())
    assert (status["state"], status["counts"]["pages"]) == ("finished", 4)
    assert told, "it was away"


def api_processes(plane: Plane) -> list[psutil.Process]:
    """The API server and its children, as `curtsy up` started them."""
    family = psutil.Process(plane.process.pid).children(recursive=True)
    listening = [one for one in family if any(at.laddr and at.laddr.port == plane.port for at in one.net_connections())]
    assert listening
    return listening


def test_the_follower_gives_up_on_time_and_on_what_is_not_there(plane: Plane) -> None:
    id = plane.server.submit(seeds=["http://org-0011.tinyweb.test/"], delay_s=5)["id"]

    async def follow() -> list[str]:
        async with Follower(plane.url, None) as follower:
            end = time.monotonic() + 0.5
            late = await follower.until_ended(id, 0.1, lambda: end - time.monotonic())
            gone = await follower.until_ended("0" * 8 + "-dead", 0.1, lambda: None)
            await follower.cancel(id)
            await follower.cancel(id)  # twice is no harm
            ended = await follower.until_ended(id, 0.1, lambda: None)
            return [late["state"], gone["state"], ended["state"]]

    assert asyncio.run(follow()) == [TIMED_OUT, GONE, "cancelled"]


# Slots


@pytest.fixture
def desk(plane: Plane) -> Iterator[SlotThread]:
    assert plane.url
    with SlotThread(plane.settings()) as opened:
        yield opened


def test_turns_of_tasks_and_crawls_keep_the_delay(desk: SlotThread, plane: Plane, web: TinyWeb) -> None:
    import http.client

    host = "org-0011.tinyweb.test"
    crawl = plane.server.submit(seeds=[f"http://{host}/news/"], max_pages=5, delay_s=0.5)["id"]
    for _ in range(5):
        held = desk.take(host, 0.5)
        assert held is not None
        with desk.holding(held):
            connection = http.client.HTTPConnection("127.0.0.1", web.port)
            connection.request("GET", "/", headers={"Host": host})
            connection.getresponse().read()
            connection.close()
    plane.server.wait(crawl, 60)
    lines = [line for line in web.requests() if line.host.partition(":")[0] == host and line.start_us > 0]
    recent = lines[-10:]
    assert len(recent) == 10
    assert judge(recent, 0.5).ok, judge(recent, 0.5).summary()


def test_a_slot_that_is_not_free_in_time_is_not_taken(desk: SlotThread) -> None:
    first = desk.take("busy.test", 30.0)
    assert first is not None
    assert desk.take("busy.test", 30.0, within_s=0.3) is None
    desk.give_back(first)
    assert desk.take("busy.test", 30.0, within_s=0.3) is None, "its delay has begun"


def test_what_still_runs_when_its_slot_expires_is_aborted(plane: Plane) -> None:
    short = plane.settings().model_copy(update={"slot_margin_s": 28.5})
    with SlotThread(short) as desk:
        held = desk.take("long.test")
        assert held is not None
        began = boot()
        with pytest.raises(SlotExpired), desk.holding(held):
            time.sleep(20)
        assert boot() - began < 5
        with pytest.raises(SlotExpired):
            held.check()


def test_of_those_that_wait_for_a_host_one_is_sent_at_a_time(desk: SlotThread, plane: Plane) -> None:
    host = "line.test"
    first = desk.take(host)
    assert first is not None
    desk.give_back(first)

    async def wait_in_line() -> None:
        sent: asyncio.Queue[None] = asyncio.Queue()

        async def one() -> None:
            async with waiters_of(plane.settings()) as waiters:
                await waiters.wait(host, 0.1)
            await sent.put(None)

        tasks = [asyncio.create_task(one()) for _ in range(3)]
        for _ in tasks:
            await sent.get()
            with pytest.raises(TimeoutError):  # no task takes the slot, so no other is sent
                await asyncio.wait_for(sent.get(), LEAD_S + 0.6)
            held = await asyncio.to_thread(desk.take, host)
            assert held is not None
            await asyncio.to_thread(desk.give_back, held)

    asyncio.run(wait_in_line())


# The connection


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"host": "crawler.example.com", "port": 8080}, "http://crawler.example.com:8080"),
        ({"host": "crawler.example.com", "schema": "https"}, "https://crawler.example.com"),
        ({"host": "https://crawler.example.com/curtsy/"}, "https://crawler.example.com/curtsy"),
        ({"host": "http://127.0.0.1:8080", "port": 9090}, "http://127.0.0.1:8080"),
        ({"host": "::1", "port": 8080}, "http://[::1]:8080"),
        ({}, "http://127.0.0.1"),
    ],
)
def test_the_connection_says_where_the_api_is(given: dict[str, Any], url: str) -> None:
    empty = {"host": None, "port": None, "schema": None, "password": "secret", "extra_dejson": {}}
    place = place_of(SimpleNamespace(**empty | given))
    assert place.url == place.dashboard == url
    assert "secret" not in repr(place)


def test_the_connections_other_settings_are_settings(plane: Plane) -> None:
    def settings(extra: dict[str, Any]) -> Any:
        given = {"host": "x", "port": None, "schema": None, "password": None, "extra_dejson": extra}
        return place_of(SimpleNamespace(**given)).settings()

    assert settings({"data_dir": "/somewhere", "settings": '{"delay_s": 2}'}).delay_s == 2
    with pytest.raises(UsageError, match="JSON"):
        settings({"settings": "delay_s = 2"})


@pytest.mark.usefixtures("connection")
def test_the_hook_finds_the_api_and_says_when_it_is_unavailable(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CurtsyHook().test_connection() == (True, "The API is ready and accepts the key.")
    monkeypatch.setenv("AIRFLOW_CONN_CURTSY_DEFAULT", "curtsy://127.0.0.1:1")
    assert CurtsyHook().test_connection()[0] is False


# Deprecated names


@pytest.mark.parametrize(
    ("old", "new"), [("TurnOver", "SlotExpired"), ("current_turn", "current_slot"), ("host_turn", "host_slot")]
)
def test_a_deprecated_name_of_the_package_works_with_a_warning(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"curtsy.airflow.{old} is now called {new}"):
        assert getattr(curtsy.airflow, old) is getattr(curtsy.airflow, new)


def test_the_deprecated_argument_of_the_operator_works_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="The argument `wishes` is now called `options`"):
        operator = CurtsyCrawlOperator(task_id="t", seeds=["http://a.test/"], wishes={"per_host": 2})
    assert operator.options == {"per_host": 2}
    with pytest.warns(DeprecationWarning, match="The attribute `wishes` is now called `options`"):
        assert operator.wishes == {"per_host": 2}


def test_the_deprecated_method_of_a_slot_works_with_a_warning(desk: SlotThread) -> None:
    held = desk.take("renamed.test")
    assert held is not None
    with pytest.warns(DeprecationWarning, match="HeldSlot.told is now called report_response"):
        held.told(503, {"Retry-After": "9"}, "http://renamed.test/")
    report = held.report()
    assert (report.status, report.headers, report.url) == (503, (("retry-after", "9"),), "http://renamed.test/")
    desk.give_back(held)


def test_without_patience_a_free_slot_is_taken_and_a_busy_one_is_not_waited_for(desk: SlotThread) -> None:
    held = desk.take("patience.test", within_s=0)
    assert held is not None
    began = time.monotonic()
    assert desk.take("patience.test", within_s=0) is None
    assert time.monotonic() - began < 1
    desk.give_back(held)


@pytest.mark.usefixtures("connection")
def test_a_target_that_cannot_be_written_fails_before_the_crawl_starts(plane: Plane) -> None:
    before = plane.server.list_crawls()["items"]
    crawl = operator(seeds=["http://org-0004.tinyweb.test/"], export_to="pages.nonsense")
    with pytest.raises(AirflowFailException, match="nonsense"):
        crawl.execute(context("nonsense"))
    assert plane.server.list_crawls()["items"] == before


@pytest.mark.usefixtures("connection")
def test_lineage_names_the_sites_the_crawl_and_the_files(plane: Plane, tmp_path: Path) -> None:
    seeds = ["http://org-0004.tinyweb.test/", "http://org-0004.tinyweb.test/about", "http://org-0005.tinyweb.test/"]
    target = tmp_path / "pages.jsonl"
    crawl = operator(seeds=seeds, max_pages=3, deferrable=False, export_to=str(target))
    assert crawl.get_openlineage_facets_on_complete(None) is None
    result = crawl.execute(context("lineage"))
    # As Airflow's provider asks it.
    found = DefaultExtractor(crawl).extract_on_complete(SimpleNamespace())
    assert [(one.namespace, one.name) for one in found.inputs] == [
        ("http://org-0004.tinyweb.test", "/"), ("http://org-0005.tinyweb.test", "/"),
    ]  # fmt: skip
    outputs = {(one.namespace, one.name): one.outputFacets["outputStatistics"].rowCount for one in found.outputs}
    api = result["url"].partition("/crawls/")[0]
    assert outputs == {(api, f"crawls/{result['crawl_id']}"): 3, ("file", str(target)): 3}


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("s3://bucket/2026/pages.parquet", ("s3://bucket", "2026/pages.parquet")),
        ("/data/pages.csv", ("file", "/data/pages.csv")),
    ],
)
def test_names_of_files_follow_openlineage(target: str, named: tuple[str, str]) -> None:
    assert lineage._file(target) == named
    assert lineage._origin("https://user:secret@a.test:8443/x") == "https://a.test:8443"


@pytest.mark.usefixtures("connection")
def test_an_option_that_does_not_exist_fails_before_the_crawl_starts(plane: Plane) -> None:
    before = plane.server.list_crawls()["items"]
    with pytest.raises(AirflowFailException, match="nonsense"):
        operator(seeds=["http://org-0004.tinyweb.test/"], options={"nonsense": 1}).execute(context("options"))
    assert plane.server.list_crawls()["items"] == before


def test_the_default_of_deferrable_is_the_deployments_if_it_sets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert operator(seeds=["http://a.test/"]).deferrable is True
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "False")
    assert operator(seeds=["http://a.test/"]).deferrable is False
    assert operator(seeds=["http://a.test/"], deferrable=True).deferrable is True


def test_the_old_name_of_the_poll_interval_works_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="poll_interval"):
        assert operator(seeds=["http://a.test/"], poll_s=3.0).poll_interval == 3.0
