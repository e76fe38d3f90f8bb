"""Where the frontier says that a URL or a host is, and that looking changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from frontier_servers import World, blocked

from curtsy.frontier.inspect import HostSnapshot, inspect_host, prospect, snapshot

pytest_plugins = ["frontier_fixtures"]


def seen(world: World, path: str, host: str = "a.test") -> HostSnapshot:
    return world.run(inspect_host(world.frontier, host, 1, f"https://{host}{path}"))


def everything(world: World) -> dict[bytes, Any]:
    """All keys with their values."""
    return {key: world.do("DUMP", key.decode()) for key in sorted(world.do("KEYS", "*"))}


def test_a_listed_url_is_behind_those_before_it(world: World) -> None:
    world.crawl(delay_s=5.0)
    world.add(1, "a.test", "/1", "/2", "/3")
    found = seen(world, "/3")
    assert (found.behind, found.listed, found.loaded, found.backlog) == (2, 3, True, False)
    assert (found.leased_ms, found.delayed_until_ms, found.slots_out) == (None, None, 0)
    assert found.due_ms is not None
    assert found.due_ms <= found.now_ms
    assert found.delay_ms == 5000
    assert seen(world, "/never").behind is None


def test_a_leased_url_is_with_a_process_since_then(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1", "/2")
    before = world.now()
    lease = world.one()
    found = seen(world, "/1")
    assert found.leased_ms is not None
    assert before - 1000 <= found.leased_ms <= found.now_ms
    assert found.lease_expiry_ms is not None
    assert found.lease_expiry_ms > found.now_ms
    assert (found.owner, found.slots_out, found.behind, found.due_ms) == ("w1", 1, None, None)
    assert seen(world, "/2").behind == 0
    times = world.back(lease)
    assert times is not None
    assert seen(world, "/1").leased_ms == times.start_ms, "the slot is back, the commit is not done"


def test_a_retry_is_delayed_until_then(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1", "/2")
    lease = world.one()
    world.back(lease)
    world.retry(lease, 30)
    found = seen(world, "/1")
    assert found.delayed_until_ms is not None
    assert 25_000 < found.delayed_until_ms - found.now_ms <= 30_000
    assert found.behind is None
    assert seen(world, "/2").delayed_until_ms is None


def test_a_retry_of_an_address_in_brackets_is_found(world: World) -> None:
    world.crawl()
    world.add(1, "[2606:4700::1]:8443", "/1")
    lease = world.one()
    world.back(lease)
    world.retry(lease, 30)
    assert seen(world, "/1", "[2606:4700::1]:8443").delayed_until_ms is not None


def test_a_host_is_due_or_blocked_until_then(world: World) -> None:
    world.crawl(delay_s=20.0)
    world.add(1, "a.test", "/1", "/2")
    world.finish(world.one())
    found = world.run(inspect_host(world.frontier, "a.test"))
    assert found.due_ms is not None
    assert 15_000 < found.due_ms - found.now_ms <= 20_010
    assert found.blocked_until_ms == 0
    world.advance(25)
    world.back(world.one(), effect=blocked(90_000))
    found = world.run(inspect_host(world.frontier, "a.test"))
    assert 85_000 < found.blocked_until_ms - found.now_ms <= 90_000


def test_a_queue_behind_its_head_waits_in_the_store(world: World) -> None:
    world.crawl(delay_s=60.0)
    world.add(1, "a.test", *[f"/{i}" for i in range(40)])
    found = seen(world, "/39")
    assert (found.behind, found.backlog, found.listed, found.loaded) == (None, True, 16, True)


def test_a_scan_that_was_asked_for_is_pending(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1")
    lease = world.one()
    world.back(lease)
    assert not seen(world, "/1").scanning
    assert world.settle(lease).scans
    assert seen(world, "/1").scanning


def test_a_queue_that_is_not_in_play_is_not_loaded(world: World) -> None:
    world.crawl()
    found = seen(world, "/1")
    assert (found.loaded, found.due_ms, found.owner) == (False, None, None)


def test_looking_changes_nothing(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1", "/2", "/3")
    lease = world.one()
    world.back(lease)
    world.retry(lease, 30)
    before = everything(world)
    for path in ("/1", "/2", "/nowhere"):
        seen(world, path)
    world.run(inspect_host(world.frontier, "nobody.test"))
    assert everything(world) == before


@pytest.mark.parametrize("shift", [0, 1])
def test_only_the_epoch_that_the_store_knows_is_asked(world: World, shift: int) -> None:
    world.crawl()
    world.add(1, "a.test", "/1")
    found = world.run(
        snapshot(world.server.url, world.settings, [world.epoch + shift], "a.test", 1, "https://a.test/1")
    )
    assert (found is None) == bool(shift)


def test_a_guests_prospect_tells_the_wait_and_takes_nothing(world: World) -> None:
    unknown = world.run(prospect(world.frontier, "a.test"))
    assert (unknown.wait_s, unknown.slots_out, unknown.at_ms) == (0.0, 0, 0)
    world.crawl(delay_s=5.0)
    world.add(1, "a.test", "/1", "/2")
    before = everything(world)
    free = world.run(prospect(world.frontier, "a.test", 1.0))
    assert (free.wait_s, free.slots_out) == (0.0, 0)
    assert everything(world) == before, "looking changes nothing"
    lease = world.one()
    taken = world.run(prospect(world.frontier, "a.test"))
    assert (taken.wait_s, taken.slots_out) == (0.1, 1)
    world.back(lease)
    delayed = world.run(prospect(world.frontier, "a.test"))
    assert 4.0 < delayed.wait_s <= 5.1
    assert delayed.at_ms > free.at_ms
    wished = world.run(prospect(world.frontier, "a.test", 60.0))
    assert 50.0 < wished.wait_s <= 60.1
