"""Lease replies carry the crawls that were paused or have ended; a process may be bound to shards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from frontier_servers import Cluster, Server, World

from curtsy.core.clock import boot
from curtsy.core.errors import EpochLost
from curtsy.core.model import CrawlState, Lane
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.shard import CONFIRMED_S

pytest_plugins = ["frontier_fixtures"]


def halted(world: World, by: Frontier | None = None) -> set[int]:
    return world.run((by or world.frontier).lease([(Lane.BATCH, 0)])).halted


def test_every_process_is_notified_once_of_a_crawl_that_was_paused_or_ended(world: World) -> None:
    other = world.another("w2")
    for n in (1, 2, 3):
        world.crawl(n)
    assert halted(world) == set()
    world.crawl(1, state=CrawlState.PAUSED)
    world.crawl(2, state=CrawlState.CANCELLED)
    assert halted(world) == {1, 2}
    assert halted(world) == set()
    world.crawl(3, state=CrawlState.FINISHED)
    assert halted(world) == {3}
    assert halted(world, other) == {1, 2, 3}


def test_a_repeated_pause_of_a_crawl_changes_nothing(world: World) -> None:
    world.crawl()
    world.crawl(state=CrawlState.PAUSED)
    assert halted(world) == {1}
    world.crawl(state=CrawlState.PAUSED)
    world.crawl(state=CrawlState.CANCELLED)
    assert halted(world) == set()


def test_a_resumed_crawl_is_not_named_and_a_second_pause_is_news(world: World) -> None:
    world.crawl()
    world.crawl(state=CrawlState.PAUSED)
    world.crawl()
    assert halted(world) == set()
    world.crawl(state=CrawlState.PAUSED)
    assert halted(world) == {1}


def test_a_crawl_that_is_forgotten_leaves_no_trace_among_the_halted(world: World) -> None:
    world.crawl()
    world.crawl(state=CrawlState.FINISHED)
    world.run(world.frontier.forget(1))
    assert world.do("EXISTS", "%halted") == 0


def test_the_end_of_a_crawl_is_news_even_after_it_was_forgotten(world: World) -> None:
    other = world.another("w2")
    world.crawl()

    def has_halts() -> bool:
        return world.run(other.lease([(Lane.BATCH, 0)])).has_halts

    assert not has_halts()
    world.crawl(state=CrawlState.FINISHED)
    world.run(world.frontier.forget(1))
    assert has_halts()
    assert not has_halts()


def test_only_the_newest_are_named(world: World) -> None:
    for n in range(1, 1004):
        world.crawl(n)
        world.crawl(n, state=CrawlState.CANCELLED)
    assert halted(world) == set(range(4, 1004))


def test_a_new_epoch_begins_without_news(world: World) -> None:
    world.crawl()
    world.crawl(state=CrawlState.PAUSED)
    halted(world)
    world.rebuild()
    world.crawl()
    world.crawl(state=CrawlState.PAUSED)
    assert halted(world) == {1}


# Shards


@pytest.fixture
def sharded(frontier_server: Server | Cluster) -> Iterator[World]:
    world = World(frontier_server, shards=4)
    world.crawl(delay_s=1.0)
    for i in range(40):
        world.add(1, f"host-{i}.test", "/1")
    yield world
    world.close()


def test_a_bound_process_leases_from_its_shards_only(sharded: World) -> None:
    sharded.frontier.bind({1, 3})
    leases = [lease for _ in range(8) for lease in sharded.lease()]
    assert {lease.shard for lease in leases} == {1, 3}
    other = sharded.another("w2")
    rest = sharded.lease(by=other)
    assert {lease.shard for lease in rest} == {0, 2}
    # What others leased goes back through any process.
    for lease in rest:
        sharded.finish(lease)
    assert all(sharded.do("ZCARD", "%slots", shard=i) == 0 for i in (0, 2))


def test_the_next_shard_that_is_asked_reports_a_pause(sharded: World) -> None:
    halted(sharded)
    sharded.crawl(1, state=CrawlState.PAUSED)
    assert halted(sharded) == {1}


# Servers that take over from each other


def test_nothing_is_leased_under_an_epoch_that_the_store_has_not_confirmed_lately(world: World) -> None:
    shard = world.frontier.shards[0]
    world.crawl(delay_s=0.0)
    world.add(1, "a.test", "/1", "/2", "/3")
    moves = world.frontier.servers.moves
    shard.confirm(boot() - CONFIRMED_S - 0.001)
    assert len(world.lease()) == (0 if moves else 1)
    if moves:
        assert world.run(world.frontier.slot("b.test"))[:2] == (None, 1000)
    shard.confirm(boot() - CONFIRMED_S + 5)
    assert len(world.lease()) == (1 if moves else 0)


def test_slots_go_back_also_while_nothing_may_be_leased(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1")
    lease = world.one()
    world.frontier.shards[0].confirm(0.0)
    assert world.back(lease) is not None
    assert world.do("ZCARD", "%slots") == 0


# A shard that is away


def test_what_other_shards_granted_is_kept_when_one_is_unavailable(sharded: World) -> None:
    frontier = sharded.frontier
    away = frontier.shards[2]
    sharded.lease(1)  # the next call begins with shard 1
    epoch, away.epoch = away.epoch, None
    reply = sharded.run(frontier.lease([(Lane.BATCH, 64)]))
    assert isinstance(reply.trouble, EpochLost)
    assert {lease.shard for lease in reply.leases} == reply.asked == {1}
    with pytest.raises(EpochLost):
        sharded.lease()  # it begins with the one that is away: nothing would be lost
    away.epoch = epoch
    reply = sharded.run(frontier.lease([(Lane.BATCH, 64)]))
    assert (reply.trouble, reply.asked) == (None, {0, 1, 2, 3})


def test_leases_of_other_shards_are_renewed_when_one_is_unavailable(sharded: World) -> None:
    leases = sharded.lease()
    sharded.frontier.shards[1].epoch = None
    sharded.advance(20)
    with pytest.raises(EpochLost):
        sharded.run(sharded.frontier.renew_leases(leases))
    soon = str(sharded.now() + 29_000)
    for i in (0, 2, 3):
        assert sharded.do("ZCOUNT", f"{{s{i:02d}}}:e{i + 1}:leases", "-inf", soon, shard=i) == 0
