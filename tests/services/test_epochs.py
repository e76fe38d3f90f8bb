"""A frontier server that is cut off, restarted or steps its clock, and the epochs that the store allots for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import redis

from curtsy.core.errors import EpochLost, FrontierUnavailable
from curtsy.core.model import Lane
from curtsy.core.settings import Settings
from curtsy.core.threads import in_thread
from curtsy.frontier.frontier import Frontier
from curtsy.services.epochs import _next_epoch, open_epoch
from curtsy.services.valkey import EmbeddedValkey
from curtsy.store.engine import Store


@asynccontextmanager
async def frontier_in(folder: Path) -> AsyncIterator[tuple[Frontier, Store, redis.Redis]]:
    embedded = EmbeddedValkey.enter(folder)
    store = Store.open(f"sqlite:///{folder}/curtsy.sqlite")
    frontier = Frontier(embedded.url, Settings(data_dir=folder), owner="one")
    client = redis.Redis.from_url(embedded.url)
    try:
        await open_epoch(frontier, store)
        yield frontier, store, client
    finally:
        client.close()
        await frontier.close()
        store.close()
        embedded.leave()


def test_looking_at_the_epoch_does_not_disturb_calls_in_flight(tmp_path: Path) -> None:
    async def scene() -> None:
        async with frontier_in(tmp_path) as (frontier, _, _client):
            shard = frontier.shards[0]
            epoch = shard.epoch
            leases = [asyncio.create_task(frontier.lease([(Lane.BATCH, 8)])) for _ in range(5)]
            looks = [asyncio.create_task(shard.facts()) for _ in range(5)]
            await asyncio.gather(*leases, *looks)
            assert shard.epoch == epoch

    asyncio.run(scene())


def test_a_flushed_frontier_is_refused_until_it_has_a_new_epoch(tmp_path: Path) -> None:
    async def scene() -> None:
        async with frontier_in(tmp_path) as (frontier, store, client):
            before = frontier.shards[0].epoch or 0
            client.flushall()
            with pytest.raises(EpochLost):
                await frontier.lease([(Lane.BATCH, 8)])
            await open_epoch(frontier, store)
            assert (frontier.shards[0].epoch or 0) > before
            await frontier.lease([(Lane.BATCH, 8)])

    asyncio.run(scene())


def test_a_frontier_whose_clock_stepped_is_rebuilt_and_not_adopted_again(tmp_path: Path) -> None:
    async def scene() -> None:
        async with frontier_in(tmp_path) as (frontier, store, client):
            before = frontier.shards[0].epoch or 0
            await frontier.lease([(Lane.BATCH, 8)])
            client.hset(frontier.shards[0].epoch_key, "skew", "5000")
            with pytest.raises(EpochLost):
                await frontier.lease([(Lane.BATCH, 8)])
            await open_epoch(frontier, store)
            assert (frontier.shards[0].epoch or 0) > before
            await frontier.lease([(Lane.BATCH, 8)])

    asyncio.run(scene())


def test_an_epoch_that_the_store_does_not_call_the_ruling_one_any_more_is_not_leased_under(tmp_path: Path) -> None:
    """A process stood still while it rebuilt; another took over; then the server was emptied."""

    async def scene() -> None:
        async with frontier_in(tmp_path) as (frontier, store, client):
            shard = frontier.shards[0]
            begin = shard.begin_epoch

            async def stand_still(*words: Any, **more: Any) -> int:
                await in_thread(store.run, _next_epoch, 0, 30_000)
                return await begin(*words, **more)

            client.flushall()
            with patch.object(shard, "begin_epoch", stand_still), pytest.raises(FrontierUnavailable):
                await open_epoch(frontier, store)
            with pytest.raises(EpochLost):
                await frontier.lease([(Lane.BATCH, 8)])
            await open_epoch(frontier, store)
            await frontier.lease([(Lane.BATCH, 8)])

    asyncio.run(scene())
