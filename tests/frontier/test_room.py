"""Queues beyond `queues_in_play`: who is told of room, who makes room, and that nobody is forgotten."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from frontier_servers import Server, World, blocked, released

from curtsy.core.model import Entry, Lane

pytest_plugins = ["frontier_fixtures"]


@pytest.fixture
def small(frontier_server: Server) -> Iterator[World]:
    """Two queues may be in play; a.test and b.test are, c.test waits."""
    world = World(frontier_server, queues_in_play=2)
    world.crawl()
    for name in ("a.test", "b.test", "c.test"):
        world.add(1, name, "/1", "/2")
    world.run(world.frontier.waits([Lane.BATCH]))
    yield world
    world.close()


def test_no_process_is_notified_of_room_while_there_is_none(small: World) -> None:
    reply = small.run(small.frontier.room())
    assert (reply.rooms, reply.parked) == ([], [])


def test_a_queue_that_leaves_makes_room_and_one_process_is_notified(small: World) -> None:
    small.run(small.frontier.drop([(1, "a.test")]))
    rooms = small.run(small.frontier.room()).rooms
    assert [(room.shard, room.lane, room.room) for room in rooms] == [(0, Lane.BATCH, 1)]
    assert small.run(small.frontier.room()).rooms == [], "somebody sees to it"
    small.advance(6)
    assert small.run(small.frontier.room()).rooms == rooms, "whoever was told may have died"


def test_no_process_is_notified_if_no_queue_waits(small: World) -> None:
    small.run(small.frontier.drop([(1, "a.test")]))
    (room,) = small.run(small.frontier.room()).rooms
    small.run(small.frontier.lane_loaded(room, none_wait=True, pause_ms=0))
    small.advance(100)
    assert small.run(small.frontier.room()).rooms == []


def test_what_came_to_wait_after_the_store_was_read_is_not_forgotten(small: World) -> None:
    small.run(small.frontier.drop([(1, "a.test")]))
    (room,) = small.run(small.frontier.room()).rooms
    small.run(small.frontier.waits([Lane.BATCH]))
    small.run(small.frontier.lane_loaded(room, none_wait=True, pause_ms=0))
    assert len(small.run(small.frontier.room()).rooms) == 1


def test_a_lane_whose_queues_wait_for_a_time_is_left_until_then(small: World) -> None:
    small.run(small.frontier.drop([(1, "a.test")]))
    (room,) = small.run(small.frontier.room()).rooms
    small.run(small.frontier.lane_loaded(room, none_wait=False, pause_ms=30_000))
    small.advance(29)
    assert small.run(small.frontier.room()).rooms == []
    small.advance(2)
    assert len(small.run(small.frontier.room()).rooms) == 1


def test_a_host_that_may_not_be_asked_for_long_makes_room(small: World) -> None:
    leases = {lease.host: lease for lease in small.lease()}
    assert set(leases) == {"a.test", "b.test"}
    small.run(small.frontier.lease([], [released(leases["a.test"], effect=blocked(3_600_000))]))
    reply = small.run(small.frontier.room())
    ((crawl, host, until),) = reply.parked
    assert (crawl, host) == (1, "a.test")
    assert 3_590_000 < until - small.now() < 3_601_000
    assert small.lane_of("a.test") is None
    assert small.listed("a.test") == []
    assert [room.room for room in small.run(small.frontier.room()).rooms] == [1]


def test_a_parked_queue_keeps_its_host_from_being_asked_early(small: World) -> None:
    lease = next(lease for lease in small.lease() if lease.host == "a.test")
    small.run(small.frontier.lease([], [released(lease, effect=blocked(3_600_000))]))
    small.settle(lease)
    small.run(small.frontier.room())
    reply = small.run(small.frontier.put_back([(1, "a.test")]))
    small.fill(reply.scans[0], (2, "/2"))
    small.advance(3_500)
    assert all(lease.host != "a.test" for lease in small.lease())
    small.advance(200)
    assert any(lease.host == "a.test" for lease in small.lease())


def test_a_host_with_a_request_in_flight_or_due_soon_does_not_make_room(small: World) -> None:
    leases = {lease.host: lease for lease in small.lease()}
    small.run(small.frontier.lease([], [released(leases["a.test"], effect=blocked(60_000))]))
    assert small.run(small.frontier.room()).parked == []


def test_the_bound_holds_over_all_shards_and_robots_that_moved_pass_it(frontier_server: Server) -> None:
    world = World(frontier_server, shards=2, queues_in_play=4)
    try:
        world.crawl()
        names = [f"h{i}.test" for i in range(20)]
        rows = [(1, name, i + 1, Entry(url=f"https://{name}/")) for i, name in enumerate(names)]
        reply = world.run(world.frontier.push(rows))
        assert len(reply.hosts) == 4
        assert {host for _, host in reply.waiting} | reply.hosts == set(names)
        moved = reply.waiting[0][1]
        again = world.run(world.frontier.push([(1, moved, 0, Entry(url=f"https://{moved}/robots.txt"))], front=True))
        assert (again.waiting, again.hosts) == ([], {moved})
    finally:
        world.close()
