"""The renewal of leases next to commits: what a commit has settled meanwhile is not lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder
from small_site import SmallSite, linking

from curtsy.core.model import Lease
from curtsy.core.observe import counters
from curtsy.crawl.commit import Committer
from curtsy.crawl.results import Returned
from curtsy.frontier.frontier import Frontier

URL = "http://one.small.test/"
LINKS = [f"/{n}" for n in range(20)]


def crawl(tmp_path: Path) -> int:
    """Crawls a small site; returns the number of leases that were reported as lost."""
    before = counters["leases_lost"]
    with SmallSite({"/": linking(*LINKS), **dict.fromkeys(LINKS, linking())}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], heartbeat_s=0.01)
        assert folder.crawl(URL, delay_s=0.0).pages == 1 + len(LINKS)
    return counters["leases_lost"] - before


def test_leases_that_a_commit_settles_during_the_renewal_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, renew = Committer.commit, Frontier.renew_leases
    writing: dict[int, asyncio.Event] = {}
    begun, settled = asyncio.Event(), set[int]()

    async def commit_during_renewal(self: Committer, group: Sequence[Returned]) -> None:
        fences = {returned.result.lease.fence for returned in group}
        ended = asyncio.Event()
        writing.update(dict.fromkeys(fences, ended))
        begun.clear()
        await begun.wait()
        await commit(self, group)
        for fence in fences:
            del writing[fence]
        ended.set()

    async def renew_after_commit(self: Frontier, leases: Iterable[Lease]) -> set[int]:
        held = list(leases)
        begun.set()
        for lease in held:
            if lease.fence in writing:
                await writing[lease.fence].wait()
        lost = await renew(self, held)
        settled.update(lost)
        return lost

    monkeypatch.setattr(Committer, "commit", commit_during_renewal)
    monkeypatch.setattr(Frontier, "renew_leases", renew_after_commit)
    assert crawl(tmp_path) == 0
    assert len(settled) > len(LINKS), "every commit settled leases of a renewal"


def test_a_lease_that_expired_during_its_request_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renew = Frontier.renew_leases
    expired: list[int] = []

    async def renew_without_one(self: Frontier, leases: Iterable[Lease]) -> set[int]:
        held = list(leases)
        lost = await renew(self, held)
        if expired or not held:
            return lost
        expired.append(held[0].fence)
        return lost | set(expired)

    monkeypatch.setattr(Frontier, "renew_leases", renew_without_one)
    assert crawl(tmp_path) == 1
