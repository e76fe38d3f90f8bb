"""Handing in a crawl while things break: what the store has is whole, or it is not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import redis

from curtsy.control import submit
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, CrawlState
from curtsy.core.settings import Settings
from curtsy.services import backends
from curtsy.services.backends import Services
from curtsy.store import crawls

SEED = "http://a.test/"


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Services]:
    built = backends.build(Settings(data_dir=folder))
    try:
        await built.open()
        yield built
    finally:
        await built.close()


def crawl() -> Crawl:
    return Crawl(id="one", request_id="r")


def stored(built: Services) -> Crawl:
    with built.store.read() as tx:
        return crawls.get(tx, "last")


def test_seeds_that_a_lost_frontier_did_not_take_stand_in_the_store(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(tmp_path) as built:
            assert built.embedded is not None
            with redis.Redis.from_url(built.embedded.url) as client:
                client.flushall()
            submitted = await submit.submit(built, crawl(), [SEED])
            assert submitted.state is CrawlState.RUNNING
            assert built.scans.pending(submitted.n), "its queues are put back when the frontier answers"
            with built.store.read() as tx:
                assert crawls.counts(tx, submitted.n).pending == 1

    asyncio.run(scene())


def test_a_bad_seed_far_down_cancels_what_was_stored_of_its_crawl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submit, "_CHUNK", 2)

    async def scene() -> None:
        async with opened(tmp_path) as built:
            with pytest.raises(UsageError, match="nonsense"):
                await submit.submit(built, crawl(), [f"{SEED}{i}" for i in range(5)] + ["nonsense"])
            assert (stored(built).state, stored(built).reason) == (CrawlState.CANCELLED, "upload_incomplete")

    asyncio.run(scene())


def test_a_seed_that_is_too_long_is_refused_by_name(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(tmp_path) as built:
            with pytest.raises(UsageError, match=r"http://a\.test/x+\.\.\. has 2,084 characters"):
                await submit.submit(built, Crawl(id="c", request_id="r"), [SEED + "x" * (2084 - len(SEED))])
            fits = await submit.submit(built, Crawl(id="d", request_id="r"), [SEED + "x" * (2083 - len(SEED))])
            with built.store.read() as tx:
                assert [crawl.id for crawl in crawls.list_all(tx)] == [fits.id]

    asyncio.run(scene())


def test_a_crawl_whose_seeds_were_still_arriving_is_not_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submit, "_CHUNK", 2)

    def seeds() -> Iterator[str]:
        yield from (f"{SEED}{i}" for i in range(5))
        raise KeyError("as if it was killed here")

    async def scene() -> None:
        async with opened(tmp_path) as built:
            with pytest.raises(KeyError):
                await submit.submit(built, crawl(), seeds())
            assert stored(built).state is CrawlState.LOADING
            with pytest.raises(UsageError, match="before all its seeds arrived"):
                await submit.resume_crawl(built, "last")

    asyncio.run(scene())


def test_a_crawl_is_taken_up_though_the_frontier_was_lost_on_the_way(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(tmp_path) as built:
            assert built.embedded is not None
            await submit.submit(built, crawl(), [SEED])
            with redis.Redis.from_url(built.embedded.url) as client:
                client.flushall()
            taken = await submit.resume_crawl(built, "last")
            assert taken.state is CrawlState.RUNNING
            assert built.scans.pending(taken.n)

    asyncio.run(scene())


def test_handing_in_the_same_crawl_again_after_a_lost_answer_adds_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(tmp_path) as built:
            first = await submit.submit(built, crawl(), [SEED])
            again = await submit.submit(built, crawl(), [SEED])
            assert again.n == first.n
            with built.store.read() as tx:
                assert crawls.counts(tx, first.n).pending == 1

    asyncio.run(scene())
