"""Results on their way into the store: when a group is handed over, and how long its results are held."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from curtsy.core.model import Entry, Lane, Lease
from curtsy.core.outcome import HostEffect, Outcome
from curtsy.core.settings import Settings
from curtsy.crawl import commit_queue
from curtsy.crawl.commit_queue import CommitQueue
from curtsy.crawl.results import Result, Returned, not_sent
from curtsy.frontier.messages import Times

TIMES = Times(1, 2, 3)


def result(fence: int) -> Result:
    lease = Lease(
        fence=fence, shard=0, host="a.example", crawl=1, crawl_version=0, lane=Lane.BATCH,
        entry=Entry(url=f"https://a.example/{fence}"), delay_ms=0, per_host=1, robots_ms=1, valid_until=1e9,
    )  # fmt: skip
    return not_sent(lease, "robots")


async def nothing(_group: Sequence[Returned]) -> None: ...


def bring(queue: CommitQueue, result: Result) -> None:
    queue.hold(result)
    queue.collect(result.lease.fence, TIMES)


def groups(settings: Settings | None = None) -> CommitQueue:
    return CommitQueue(settings or Settings(commit_pages=3, commit_s=1000), nothing, lambda: None)


def test_a_group_is_handed_over_when_it_is_full_or_all_is_quiet() -> None:
    full, quiet = groups(), groups()
    for fence in (1, 2):
        bring(full, result(fence))
        full.hand_over(idle=False)
    assert full.is_begun
    bring(full, result(3))
    full.hand_over(idle=False)
    assert not full.is_begun
    bring(quiet, result(1))
    quiet.hand_over(idle=True)
    assert not quiet.is_begun


def test_both_forms_of_a_body_count_as_its_bytes() -> None:
    for gzipped, full in ((b"", False), (bytes(200_000), True)):
        some = groups(Settings(commit_mb=1, commit_s=1000))
        outcome = Outcome(url="https://a.example/1", body=bytes(900_000), gzipped=gzipped, ended=1.0)
        bring(some, replace(result(1), outcome=outcome))
        some.hand_over(idle=False)
        assert some.is_begun is not full


def test_a_group_is_handed_over_early_while_the_frontier_has_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(commit_queue, "boot", lambda: now)
    some = groups()
    bring(some, result(1))
    some.hand_over(idle=False, starved=True)
    assert some.is_begun, "others of its time belong to it"
    now += 0.06
    some.hand_over(idle=False)
    assert some.is_begun
    some.hand_over(idle=False, starved=True)
    assert not some.is_begun
    bring(some, result(2))
    now += 0.06
    some.hand_over(idle=False, starved=True)
    assert some.is_begun, "the store has not taken the last one"


def test_a_result_that_blocks_its_host_is_handed_over_at_once() -> None:
    some = groups()
    bring(some, replace(result(1), effect=HostEffect(block_ms=1000)))
    some.hand_over(idle=False)
    assert not some.is_begun


def test_a_page_that_is_still_being_read_joins_a_group_when_it_is_complete() -> None:
    some = groups()
    bring(some, replace(result(1), is_complete=False))
    assert not some.is_begun
    some.hold(result(1))
    assert some.is_begun


def test_a_page_that_was_read_before_its_slot_came_back_joins_with_its_slot() -> None:
    some = groups()
    some.hold(replace(result(1), is_complete=False))
    some.hold(result(1))
    assert not some.is_begun
    some.collect(1, TIMES)
    assert some.is_begun


def test_a_dropped_result_joins_no_group() -> None:
    some = groups()
    bring(some, replace(result(1), is_complete=False))
    some.hold(replace(result(2), is_complete=False))
    some.drop(1)
    some.drop(2)
    some.collect(2, TIMES)
    assert not some.is_begun
    assert some.held == {}


def test_results_are_held_until_their_group_is_durable() -> None:
    asyncio.run(_hold_three())


async def _hold_three() -> None:
    entered, go, over = asyncio.Event(), asyncio.Event(), asyncio.Event()
    left: list[set[int]] = []

    async def commit(_group: Sequence[Returned]) -> None:
        entered.set()
        await go.wait()

    def durable() -> None:
        left.append(set(some.held))
        if not some.held:
            over.set()

    some = CommitQueue(Settings(commit_pages=1), commit, durable)
    writer = asyncio.get_running_loop().create_task(some.write())
    for fence in (1, 2, 3, 4):
        some.hold(result(fence))
        some.collect(fence, TIMES)
        some.hand_over(idle=False)
        await entered.wait()
    assert (some.is_full, some.is_empty, set(some.held)) == (True, False, {1, 2, 3, 4})
    go.set()
    await over.wait()
    # Two groups that wait are committed together, never three.
    assert left == [{2, 3, 4}, {4}, set()]
    assert some.is_empty
    writer.cancel()
