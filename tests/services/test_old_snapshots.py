"""An old snapshot that is loaded into the running server counts as loss, though its run_id is the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import redis
from frontier_servers import Server

from curtsy.core.errors import EpochLost
from curtsy.core.model import Lane, Request
from curtsy.core.settings import Settings
from curtsy.frontier import watch
from curtsy.frontier.frontier import Frontier
from curtsy.services.epochs import open_epoch
from curtsy.services.valkey import find_server
from curtsy.store import requests
from curtsy.store.engine import Store


@pytest.fixture
def server() -> Iterator[Server]:
    program = find_server()
    assert program is not None
    server = Server(program)
    server.start(enable_debug_command="yes")
    yield server
    server.remove()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path}/curtsy.sqlite") as store:
        yield store


@asynccontextmanager
async def frontier(server: Server, folder: Path, store: Store, owner: str = "one") -> AsyncIterator[Frontier]:
    made = Frontier(server.url, Settings(data_dir=folder), owner=owner)
    try:
        await open_epoch(made, store)
        yield made
    finally:
        await made.close()


def tell(server: Server, *words: str) -> None:
    with redis.Redis(unix_socket_path=str(server.socket)) as client:
        client.execute_command(*words)


def test_a_process_that_knows_of_a_later_change_begins_a_new_epoch(
    tmp_path: Path, server: Server, store: Store
) -> None:
    async def scene() -> None:
        async with frontier(server, tmp_path, store) as worker, frontier(server, tmp_path, store, "beat") as beat:
            epoch, run_id = worker.shards[0].epoch or 0, worker.shards[0]._run_id
            await worker.lease([(Lane.BATCH, 8)])
            tell(server, "SAVE")
            await asyncio.sleep(0.002)
            await worker.lease([(Lane.BATCH, 8)])
            await watch.look(beat)
            tell(server, "DEBUG", "RELOAD", "NOSAVE")
            for one in (worker, beat):
                with pytest.raises(EpochLost, match="old snapshot"):
                    await one.shards[0].call("watch", 0)
            await open_epoch(worker, store)
            await open_epoch(beat, store)
            assert (worker.shards[0].epoch or 0) > epoch
            assert beat.shards[0].epoch == worker.shards[0].epoch
            assert worker.shards[0]._run_id == run_id
            assert int(await worker.shards[0].command("HGET", worker.shards[0].epoch_key, "quiet")) > 0
            await worker.lease([(Lane.BATCH, 8)])
            await watch.look(beat)

    asyncio.run(scene())


def test_a_process_that_starts_compares_the_server_with_the_store(tmp_path: Path, server: Server, store: Store) -> None:
    async def scene() -> None:
        async with frontier(server, tmp_path, store) as first:
            epoch = first.shards[0].epoch or 0
        sent = Request(
            fence=epoch << 40 | 7, crawl=None, host="a.test", url="", start_ms=1, end_ms=2, kind="p", status=200
        )
        store.run(requests.insert, [sent])
        async with frontier(server, tmp_path, store, "two") as second:
            assert (second.shards[0].epoch or 0) > epoch

    asyncio.run(scene())


def test_an_unchanged_server_is_adopted_again(tmp_path: Path, server: Server, store: Store) -> None:
    async def scene() -> None:
        async with frontier(server, tmp_path, store) as first:
            await first.lease([(Lane.BATCH, 8)])
            async with frontier(server, tmp_path, store, "two") as second:
                await second.lease([(Lane.BATCH, 8)])
                assert second.shards[0].epoch == first.shards[0].epoch
            tell(server, "SAVE")
            tell(server, "DEBUG", "RELOAD", "NOSAVE")
            await first.lease([(Lane.BATCH, 8)])

    asyncio.run(scene())


def test_a_full_server_keeps_leases_alive_and_takes_results(tmp_path: Path, server: Server, store: Store) -> None:
    async def scene() -> None:
        async with frontier(server, tmp_path, store) as full:
            tell(server, "CONFIG", "SET", "maxmemory", "1")
            await full.renew_leases([])
            await full.lease([(Lane.BATCH, 8)])
            await full.settle([])
            await full.reap()
            assert await full.idle(1)

    asyncio.run(scene())
