"""Tickets, running shifts and worker processes on a real server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from frontier_servers import Server

from curtsy.core.errors import SettingsError
from curtsy.core.settings import Settings
from curtsy.fleet.coordination import Fleet, Worker, beat_problem, shards_of
from curtsy.services.valkey import find_server

T = TypeVar("T")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    program = find_server()
    assert program is not None
    started = Server(program)
    started.start()
    yield started
    started.remove()


@asynccontextmanager
async def _fleet(server: Server, **changes: float) -> AsyncIterator[Fleet]:
    fleet = Fleet(server.url, Settings(**changes))  # type: ignore[arg-type]
    try:
        yield fleet
    finally:
        await fleet.close()


def on(server: Server, work: Callable[[Fleet], Awaitable[T]], **changes: float) -> T:
    async def run() -> T:
        async with _fleet(server, **changes) as fleet:
            await fleet._plain.command("FLUSHALL")
            return await work(fleet)

    return asyncio.run(run())


def _four(name: str = "w", *queues: str) -> Worker:
    return Worker(name=name, queues=queues or ("fetch.batch",), processes=4)


def test_wanted_is_what_due_hosts_need_less_what_runs_and_what_was_promised(server: Server) -> None:
    async def work(fleet: Fleet) -> None:
        await fleet.heartbeat(_four())
        first = await fleet.issue("batch", 600)
        assert len(first.tickets) == 3  # 600 hosts, 256 each
        assert len((await fleet.issue("batch", 600)).tickets) == 0
        assert await fleet.begin("batch", first.tickets[0])
        second = await fleet.issue("batch", 5000)
        assert (len(second.tickets), second.processes, second.running, second.outstanding) == (1, 4, 1, 2)
        await fleet.end("batch", first.tickets[0])
        assert len((await fleet.issue("batch", 5000)).tickets) == 1

    on(server, work)


def test_two_that_ask_at_once_get_no_more_than_one_would(server: Server) -> None:
    async def work(fleet: Fleet) -> None:
        await fleet.heartbeat(_four())
        async with _fleet(server) as other:
            answers = await asyncio.gather(*(f.issue("batch", 5000) for f in (fleet, other) * 10))
        assert sum(len(answer.tickets) for answer in answers) == 4

    on(server, work)


def test_without_workers_one_shift_is_promised(server: Server) -> None:
    async def work(fleet: Fleet) -> None:
        assert len((await fleet.issue("slow", 10_000)).tickets) == 1
        assert len((await fleet.issue("slow", 10_000)).tickets) == 0
        assert len((await fleet.issue("slow", 0)).tickets) == 0

    on(server, work)


def test_a_late_ticket_begins_nothing(server: Server) -> None:
    async def work(fleet: Fleet) -> None:
        ticket = (await fleet.issue("batch", 1)).tickets[0]
        while await fleet.outstanding("batch"):  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0.005)
        assert not await fleet.begin("batch", ticket)
        assert not await fleet.begin("batch", "never issued")
        assert await fleet.running("batch") == 0

    on(server, work, ticket_s=0.05)


def test_a_ticket_is_used_once(server: Server) -> None:
    async def work(fleet: Fleet) -> None:
        ticket = (await fleet.issue("batch", 1)).tickets[0]
        assert await fleet.begin("batch", ticket)
        assert not await fleet.begin("batch", ticket)
        await fleet.renew("batch", ticket)
        assert await fleet.running("batch") == 1

    on(server, work)


def test_processes_count_for_the_queues_that_a_worker_serves(server: Server) -> None:
    async def work(fleet: Fleet) -> None:
        await fleet.heartbeat(_four("a", "fetch.batch", "fetch.slow"))
        await fleet.heartbeat(_four("b", "fetch.batch.0-7"))
        assert [(await fleet.issue(queue, 1)).processes for queue in ("batch", "slow", "high", "batch.0-7")] == [
            4,
            4,
            0,
            4,
        ]
        assert [worker.name for worker in await fleet.workers()] == ["a", "b"]
        await fleet.leave("a")
        assert [worker.name for worker in await fleet.workers()] == ["b"]

    on(server, work)


def test_the_last_tick_of_beat_is_known(server: Server) -> None:
    async def work(fleet: Fleet) -> None:
        assert await fleet.beat_age_s() is None
        await fleet.mark_beat()
        age_s = await fleet.beat_age_s()
        assert age_s is not None
        assert age_s < 5

    on(server, work)
    assert beat_problem(None) == "Beat (curtsy beat) has not run in the last hour"
    assert beat_problem(12.2) == "Beat (curtsy beat) has not run for 12 s"
    assert beat_problem(9.0) is None


def test_doctor_names_a_missing_beat(server: Server, tmp_path: Path) -> None:
    def beat() -> dict[str, object]:
        command = [sys.executable, "-m", "curtsy.cli", "doctor", "--json", "--data-dir", str(tmp_path)]
        environment = os.environ | {"CURTSY_FRONTIER_URL": server.url}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        (found,) = (one for one in json.loads(done.stdout)["checks"] if one["what"] == "beat")
        return dict(found)

    on(server, lambda _: asyncio.sleep(0))
    missing = beat()
    assert "Beat (curtsy beat) has not run" in str(missing["found"])
    assert "curtsy beat" in str(missing["repair"])
    on(server, lambda fleet: fleet.mark_beat())
    assert beat()["found"] == "runs"


def test_metrics_of_all_processes_add_up(server: Server) -> None:
    async def work(fleet: Fleet) -> None:
        await fleet.publish({'curtsy_pages_total{status="2xx"}': 3.0})
        async with _fleet(server) as other:
            await other.publish({'curtsy_pages_total{status="2xx"}': 4.5})
        await fleet.publish({})
        assert await fleet.metrics() == {'curtsy_pages_total{status="2xx"}': 7.5}

    on(server, work)


def test_shards_are_numbers_and_ranges() -> None:
    assert shards_of("0-2,5", 8) == {0, 1, 2, 5}
    for wrong in ("", "x", "3-", "0-8", "8"):
        with pytest.raises(SettingsError):
            shards_of(wrong, 8)
