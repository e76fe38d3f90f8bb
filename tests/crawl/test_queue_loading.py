"""Crawls with more hosts than may be in play: all of them are crawled, none is loaded beyond the bound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder

from curtsy.frontier.frontier import Frontier
from curtsy.tinyweb import TinyWeb


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=12, pages=4) as web:
        yield web


@pytest.mark.parametrize("shards", [1, 2])
def test_hosts_beyond_the_bound_are_crawled_as_others_leave(
    tmp_path: Path, web: TinyWeb, shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the loading of waiting queues can end this crawl: the sweep of the minute is put off, and counted out.
    monkeypatch.setattr("curtsy.crawl.maintenance._SWEEP_S", 1e9)
    most = 0
    room = Frontier.room

    async def watched(frontier: Frontier) -> object:
        nonlocal most
        loaded = [int(await shard.command("HGET", "%play", "batch") or 0) for shard in frontier.shards]
        most = max(most, sum(loaded))
        return await room(frontier)

    monkeypatch.setattr(Frontier, "room", watched)
    folder = CrawlFolder(tmp_path, web, queues_in_play=4, shards=shards, delay_s=0.05)
    try:
        counts = folder.crawl(*[f"http://org-{i:04d}.tinyweb.test/" for i in range(12)])
        assert counts.pending == 0
        hosts = {row[0] for row in folder.rows("SELECT DISTINCT host FROM pages")}
        assert hosts == {f"org-{i:04d}.tinyweb.test" for i in range(12)}
        assert 0 < most <= 4
    finally:
        folder.close()
