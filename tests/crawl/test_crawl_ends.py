"""How a crawl ends, and how a deployment begins again: dead hosts, spent budgets, clean marks, shared settings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import redis
import uvloop
from crawl_folder import CrawlFolder
from dns_server import dns_serving
from small_site import Asked, Say, SmallSite, linking

from curtsy.control import submit
from curtsy.core.errors import SettingsError
from curtsy.core.model import Counts, Crawl
from curtsy.crawl import run
from curtsy.crawl.maintenance import Maintenance
from curtsy.services import backends
from curtsy.services.epochs import write_clean


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path)
    yield made
    made.close()


def rules_of(site: SmallSite, dead: str) -> tuple[str, ...]:
    # Port 9 (discard) on loopback: nobody listens, connections are refused.
    return (f"{dead}=127.0.0.1:9", site.resolve_rule)


def test_a_link_to_a_host_that_died_before_does_not_keep_the_crawl_from_ending(tmp_path: Path) -> None:
    slow = {f"/{i}": linking(f"/{i + 1}", f"http://dead.small.test/{i}") for i in range(60)}
    with SmallSite({"/": linking("/0"), **slow}) as site:
        folder = CrawlFolder(tmp_path, resolve=list(rules_of(site, "dead.small.test")), host_patience_s=1)
        try:
            counts = folder.crawl("http://a.small.test/", "http://dead.small.test/", delay_s=0.1)
        finally:
            folder.close()
    assert counts.pending == 0
    assert counts.pages == 61
    assert sum(counts.failed.values()) == 61
    assert folder.rows("SELECT state FROM crawls") == [("finished",)]


def test_a_crawl_whose_disk_takes_nothing_says_so_and_ends_soon_when_it_is_asked_to(tmp_path: Path) -> None:
    with SmallSite({"/": linking()}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], drain_s=60)
        folder.data.mkdir()
        (folder.data / "segments").touch()  # no folder can be made there
        crawl = folder.start("crawl", "http://a.small.test/")
        try:
            assert crawl.stderr is not None
            assert any("cannot be written" in line for line in crawl.stderr)
            crawl.terminate()
            # Far less than the drain, and than the half minute that a database may take to come back.
            assert crawl.wait(25) == 3
        finally:
            folder.close()
    assert folder.ends() == {"http://a.small.test/": "open"}


def test_a_spent_budget_stays_spent_when_the_frontier_is_lost(folder: CrawlFolder) -> None:
    pages = {f"/{i}": linking(*(f"/{j}" for j in range(i, i + 20))) for i in range(600)}

    async def scene(site: SmallSite) -> int:
        settings = folder.settings(resolve=(site.resolve_rule,), slot_s=4)
        built = backends.build(settings)
        await built.open()
        try:
            seeds = [f"http://h{n}.small.test/0" for n in range(8)]
            crawl = Crawl(id=str(uuid4()), request_id="t", created_ms=1, delay_s=0.01, max_pages=60, scope="host")
            crawl = await submit.submit(built, crawl, seeds)
            running = asyncio.create_task(run.run(built, crawl.n))
            while len(site.paths()) < 30:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert built.embedded is not None
            client = redis.Redis.from_url(built.embedded.url)
            client.flushall()
            client.close()
            before = len(site.paths())
            counts = await asyncio.wait_for(running, 60)
        finally:
            await built.close()
        assert counts.pages == 60
        return before

    with SmallSite({"/": linking("/0"), **pages}) as site, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        before = runner.run(scene(site))
        asked = len(site.paths())
    # What was not committed when the frontier was lost may be asked a second time; not the whole site.
    assert asked <= 60 + before + 2 * 8


def test_a_clean_mark_is_gone_once_its_epoch_is_used_again(folder: CrawlFolder) -> None:
    async def marked() -> None:
        built = backends.build(folder.settings())
        await built.open()
        assert await write_clean(built.frontier, built.store)
        # Killed here: the server lives on, the mark stands.
        assert built.embedded is not None
        built.embedded._close()
        await built.frontier.close()
        built.store.close()

    async def lost() -> int:
        built = backends.build(folder.settings())
        await built.open()
        assert built.embedded is not None
        client = redis.Redis.from_url(built.embedded.url)
        client.flushall()
        await built.open()
        quiet = int(client.hget("{s00}:epoch", "quiet") or 0)
        client.close()
        await built.close()
        return quiet

    asyncio.run(marked())
    assert asyncio.run(lost()) > time.time() * 1000


def test_the_unit_of_politeness_cannot_change_under_an_unfinished_crawl(folder: CrawlFolder) -> None:
    async def begin() -> None:
        built = backends.build(folder.settings())
        await built.open()
        crawl = Crawl(id=str(uuid4()), request_id="t", created_ms=1)
        await submit.submit(built, crawl, ["http://a.small.test/"])
        await built.close()

    asyncio.run(begin())
    with pytest.raises(SettingsError, match="politeness_unit is host"):
        backends.build(folder.settings(politeness_unit="domain"))


def test_another_number_of_shards_is_a_rebuild_with_a_quiet_time(folder: CrawlFolder) -> None:
    async def epochs(shards: int) -> list[tuple[int, int]]:
        built = backends.build(folder.settings(shards=shards))
        await built.open()
        assert built.embedded is not None
        client = redis.Redis.from_url(built.embedded.url)
        found = [client.hmget(shard.epoch_key, ["n", "quiet"]) for shard in built.frontier.shards]
        client.close()
        await built.close()
        return [(int(n or 0), int(quiet or 0)) for n, quiet in found]

    one = asyncio.run(epochs(1))
    three = asyncio.run(epochs(3))
    assert one[0][1] == 0
    assert all(n > one[0][0] and quiet > time.time() * 1000 for n, quiet in three)


def test_a_page_that_was_not_modified_is_logged_as_it_was_answered(folder: CrawlFolder) -> None:
    def page(asked: Asked) -> Say:
        if "if-none-match" in asked.headers:
            return Say(b"", 304, (("ETag", '"1"'),))
        return Say(linking("/a").body, 200, (("Content-Type", "text/html"), ("ETag", '"1"')))

    with SmallSite({"/": page, "/a": linking()}) as site:
        other = CrawlFolder(folder.path, resolve=[site.resolve_rule])
        other.crawl("http://a.small.test/")
        counts = other.crawl("http://a.small.test/")
        other.close()
    assert counts.pages == 2
    assert (304, "http://a.small.test/") in other.rows("SELECT status, url FROM requests WHERE crawl = 2")
    assert other.rows("SELECT count(*) FROM pages WHERE crawl = 2 AND unchanged") == [(2,)]


def test_a_name_that_does_not_exist_is_looked_up_twice(folder: CrawlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curtsy.rules.politeness.MISSING_NAME_MS", 300)
    monkeypatch.setattr("curtsy.fetch.dns._MISSING_TTL_S", 0.2)

    async def scene() -> tuple[Counts, int]:
        async with dns_serving({}) as names:
            built = backends.build(folder.settings(dns_servers=(names.address,)))
            await built.open()
            try:
                crawl = Crawl(id=str(uuid4()), request_id="t", created_ms=1)
                crawl = await submit.submit(built, crawl, ["http://missing.example/", "http://missing.example/a"])
                return await asyncio.wait_for(run.run(built, crawl.n), 30), names.asked["missing.example"]
            finally:
                await built.close()

    counts, asked = asyncio.run(scene())
    assert counts.failed == {"no_such_host": 2}
    assert counts.pending == 0
    assert asked >= 2


def test_a_crawl_over_several_shards_is_found_again_when_they_are_lost(tmp_path: Path) -> None:
    pages = {f"/{i}": linking(f"/{i + 1}") for i in range(20)}

    async def scene(folder: CrawlFolder) -> Counts:
        built = backends.build(folder.settings())
        await built.open()
        try:
            crawl = Crawl(id=str(uuid4()), request_id="t", created_ms=1, delay_s=0.02, max_pages=40)
            seeds = [f"http://h{n}.small.test/0" for n in range(4)]
            crawl = await submit.submit(built, crawl, seeds)
            assert built.embedded is not None
            client = redis.Redis.from_url(built.embedded.url)
            client.flushall()
            client.close()
            return await asyncio.wait_for(run.run(built, crawl.n), 60)
        finally:
            await built.close()

    with SmallSite(pages) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], shards=3)
        try:
            counts = asyncio.run(scene(folder))
        finally:
            folder.close()
    assert counts.pages == 40
    assert counts.pending == 0


def test_maintenance_continues_after_an_unexpected_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks: list[int] = []
    tick = Maintenance.tick

    async def broken_at_first(self: Maintenance) -> None:
        ticks.append(1)
        if len(ticks) == 1:
            raise RuntimeError("nobody foresaw this")
        await tick(self)

    monkeypatch.setattr(Maintenance, "tick", broken_at_first)
    with SmallSite({f"/{i}": linking(f"/{i + 1}") for i in range(20)}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        try:
            counts = folder.crawl("http://a.small.test/0", delay_s=0.1)
        finally:
            folder.close()
    assert counts.pages == 20
    assert len(ticks) > 2
