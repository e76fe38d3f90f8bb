"""The sink of one process for scans: what is handed out is carried out, what the frontier lacks is put back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from sqlalchemy import text

from curtsy.control import submit
from curtsy.core.model import Crawl, Lane
from curtsy.core.settings import Settings
from curtsy.frontier import inspect
from curtsy.services import backends
from curtsy.services.backends import Services
from curtsy.services.scans import ScanListener
from curtsy.store.engine import Store

SEED = "http://a.test/"


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Services]:
    built = backends.build(Settings(data_dir=folder))
    try:
        await built.open()
        yield built
    finally:
        await built.scans.stop()
        await built.close()


def flush(built: Services) -> None:
    assert built.embedded is not None
    with redis.Redis.from_url(built.embedded.url) as client:
        client.flushall()


async def until_carried_out(built: Services) -> None:
    async with asyncio.timeout(20):
        while built.scans.is_busy:  # noqa: ASYNC110 (the sink has no event for it)
            await asyncio.sleep(0.02)


async def leased(built: Services) -> list[str]:
    reply = await built.frontier.lease([(Lane.BATCH, 5)])
    return [lease.host for lease in reply.leases]


class Heard(ScanListener):
    def __init__(self) -> None:
        self.filled: list[str] = []

    def queue_filled(self, host: str) -> None:
        self.filled.append(host)


def test_scans_that_arrive_before_the_start_are_carried_out_after_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(tmp_path) as built:
            crawl = await submit.submit(built, Crawl(id="one", request_id="r"), [SEED])
            flush(built)
            await built.recover()
            assert built.scans.pending(crawl.n)
            heard = Heard()
            built.scans.start(heard)
            await until_carried_out(built)
            assert heard.filled == ["a.test"]

    asyncio.run(scene())


def test_queues_that_a_lost_frontier_did_not_take_are_put_back_after_a_recovery(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(tmp_path) as built:
            built.scans.start(ScanListener(), recover=built.recover)
            flush(built)
            crawl = await submit.submit(built, Crawl(id="one", request_id="r"), [SEED])
            assert built.scans.pending(crawl.n)
            await until_carried_out(built)
            seen = await inspect.inspect_host(built.frontier, "a.test", crawl.n, SEED)
            assert seen.loaded
            assert seen.listed == 1

    asyncio.run(scene())


def test_a_process_whose_queues_are_put_back_by_another_does_not_wait_for_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(tmp_path) as built:
            built.scans.put_back_later()
            built.scans.start(ScanListener(), sweeps=False)
            built.scans.put_back_later(7)
            await until_carried_out(built)

    asyncio.run(scene())


def test_a_stopped_sink_keeps_what_it_has_for_the_next_start(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(tmp_path) as built:
            crawl = await submit.submit(built, Crawl(id="one", request_id="r"), [SEED])
            built.scans.start(ScanListener())
            await built.scans.stop()
            built.scans.put_back_later(crawl.n)
            assert built.scans.pending(crawl.n)
            built.scans.start(ScanListener())
            await until_carried_out(built)
            assert await leased(built) == ["a.test"]

    asyncio.run(scene())


def test_queues_that_are_empty_at_the_same_time_are_closed_in_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = [f"http://{n}.test/" for n in range(20)]

    async def scene() -> None:
        async with opened(tmp_path) as built:
            crawl = await submit.submit(built, Crawl(id="one", request_id="r"), seeds)
            with built.store.begin() as tx:
                tx.execute(text("UPDATE urls SET state = 'done'"))
            flush(built)
            await built.recover()
            written, answered, all_answered = 0, 0, threading.Event()
            run, fill = Store.run, built.frontier.fill

            def run_after_all(store: Store, fn: Any, *args: Any) -> Any:
                nonlocal written
                written += 1
                assert all_answered.wait(20)
                return run(store, fn, *args)

            async def counted(*args: Any, **kwargs: Any) -> Any:
                nonlocal answered
                reply = await fill(*args, **kwargs)
                answered += 1
                if answered == len(seeds):
                    all_answered.set()
                return reply

            monkeypatch.setattr(Store, "run", run_after_all)
            monkeypatch.setattr(built.frontier, "fill", counted)
            built.scans.start(ScanListener())
            await until_carried_out(built)
            assert written <= 3
            with built.store.read() as tx:
                assert set(tx.execute(text("SELECT state FROM queues")).scalars()) == {"empty"}
            assert not (await inspect.inspect_host(built.frontier, "0.test", crawl.n, seeds[0])).loaded

    asyncio.run(scene())
