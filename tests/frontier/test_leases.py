"""What the frontier promises to workers and the store: URL leases, crashes, fences, epochs. On Valkey and on Redis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from frontier_servers import Server, World, blocked, paths, released

from curtsy.core.errors import EpochLost, FrontierUnavailable, SettingsError
from curtsy.core.model import Entry, HostState, Lane, Lease
from curtsy.core.outcome import HostEffect
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.messages import Rules, Scan, Settled, epoch_of

pytest_plugins = ["frontier_fixtures"]


# URL leases


def test_a_settled_lease_is_over(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1")
    lease = world.one()
    world.back(lease)
    assert world.counts() == (1, 1)
    world.settle(lease)
    assert world.counts() == (1, 0)
    assert world.do("HLEN", "%ld") == 0
    world.settle(lease)
    assert world.counts() == (1, 0)


def test_a_lease_that_ends_blames_no_url_and_its_url_returns_to_the_head(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1", "/2", depth=3)
    lease = world.one()
    times = world.back(lease, sent_ago_s=2, ended_ago_s=1)
    assert times is not None
    world.advance(31)
    world.reap()
    (item,) = world.run(world.frontier.reaped())
    assert item.times == (times.start_ms, times.end_ms)
    assert item.entry == lease.entry
    assert (item.crashed, item.condemned, item.solo, item.own_robots) == (False, False, False, False)
    assert world.listed("a.test") == ["p3 /1", "p3 /2"]
    assert world.counts() == (1, 0)


def test_the_lease_of_a_process_that_crashed_ends_at_once_and_counts(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1", "/2", depth=3)
    lease = world.one()
    times = world.back(lease, sent_ago_s=2, ended_ago_s=1)
    assert times is not None
    assert world.run(world.frontier.report_crashes([lease.fence, lease.fence + 7])) == 1
    world.reap()
    (item,) = world.run(world.frontier.reaped())
    assert item.times == (times.start_ms, times.end_ms)
    assert item.entry == replace(lease.entry, crashes=1)
    assert (item.crashed, item.condemned, item.solo, item.own_robots) == (True, False, False, False)
    assert world.listed("a.test") == ["p3,0,1,0 /1", "p3 /2"]
    assert world.counts() == (1, 0)
    assert world.do("HLEN", "%ld") == 0


def test_a_suspect_whose_process_is_killed_is_never_condemned(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1", crashes=2)
    assert world.lease() == []
    for _ in range(5):
        (lease,) = world.solo()
        world.advance(31)
        world.reap()
        items = world.run(world.frontier.reaped())
        assert [
            (item.crashed, item.entry) for item in items if item.fence == lease.fence and hasattr(item, "crashed")
        ] == [(False, lease.entry)]
        world.run(world.frontier.forget_reaped(items))
        world.advance(2)
        assert world.lease() == []


def test_a_heartbeat_renews_leases_and_tells_which_are_lost(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1")
    world.add(1, "b.test", "/1")
    kept, lost = world.lease()
    for _ in range(3):
        world.advance(20)
        assert world.run(world.frontier.renew_leases([kept])) == set()
        world.reap()
    assert world.run(world.frontier.renew_leases([kept, lost])) == {lost.fence}


def test_a_url_with_two_crashes_is_leased_alone(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1", "/2", crashes=2)
    world.add(1, "b.test", "/1", crashes=2)
    reply = world.run(world.frontier.lease([(Lane.BATCH, 10), (Lane.SLOW, 10)]))
    assert (reply.leases, reply.suspects) == ([], 2)
    reply = world.run(world.frontier.lease([(Lane.BATCH, 10), (Lane.SLOW, 10)], solo=True))
    assert [lease.solo for lease in reply.leases] == [True]
    world.finish(reply.leases[0])
    world.advance(2)
    assert len(world.solo()) == 1


def test_only_crashes_while_alone_condemn_a_url(world: World) -> None:
    world.crawl(delay_s=1.0, max_pages=5)
    world.add(1, "a.test", "/1", "/2")
    for crashes in (1, 2):
        assert crash(world, world.one())[-1].entry.crashes == crashes
    for solo_crashes in (1, 2):
        assert world.lease() == []
        (lease,) = world.solo()
        item = crash(world, lease)[-1]
        assert (item.entry.solo_crashes, item.condemned) == (solo_crashes, solo_crashes == 2)
    assert item.fence == lease.fence
    assert world.counts() == (1, 1), "busy until the dead letter is durable"
    assert world.do("HGET", "%crawl:1", "left") == b"4"
    assert world.run(world.frontier.renew_leases([lease])) == set()
    world.advance(100)
    world.reap()
    assert world.run(world.frontier.reaped()) == []
    world.settle(lease)
    assert world.counts() == (1, 0)
    assert world.do("HGET", "%crawl:1", "left") == b"5"
    assert paths(world.lease()) == ["/2"]


def crash(world: World, lease: Lease) -> list:
    world.run(world.frontier.report_crashes([lease.fence]))
    world.advance(31)
    world.reap()
    items = world.run(world.frontier.reaped())
    world.run(world.frontier.forget_reaped(items))
    world.advance(2)
    return items


def test_a_retry_comes_back_at_its_time_behind_the_other_pages_of_its_host(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1", "/2", "/3")
    lease = world.one()
    world.back(lease)
    world.retry(lease, 100)
    assert world.counts() == (1, 1)
    world.advance(98)
    world.finish(world.one())
    world.advance(3)
    world.finish(world.one())
    assert world.listed("a.test") == ["p0,1,0,0 /1"]
    world.advance(2)
    again = world.one()
    assert (paths([again]), again.entry.attempts) == (["/1"], 1)


def test_leases_name_the_time_of_the_next_chance(world: World) -> None:
    world.crawl(delay_s=50.0)
    world.add(1, "a.test", "/1", "/2")
    reply = world.run(world.frontier.lease([(Lane.BATCH, 4)]))
    assert reply.next_ms is None
    times = world.back(reply.leases[0])
    reply = world.run(world.frontier.lease([(Lane.BATCH, 4)]))
    assert times is not None
    assert reply.next_ms == times.next_ms


# Epochs


def test_fences_grow_over_epochs(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1")
    old = world.one()
    world.rebuild()
    world.crawl()
    world.add(1, "a.test", "/1")
    assert world.one().fence > old.fence + (1 << 39)


RULES = Rules(host="a.test", origin="https://a.test", until_ms=1, fetched_ms=1)
SCAN = Scan(shard=0, host="a.test", crawl=1, token="1.1", cursor=None, head=16)
VERBS: dict[str, Callable[[Frontier, World], object]] = {
    "lease": lambda f, w: f.lease([(Lane.BATCH, 1)]),
    "beat": lambda f, w: f.renew_leases([]),
    "slot": lambda f, w: f.slot("a.test"),
    "settle": lambda f, w: f.settle(
        [], rules=[Rules(host="a.test", origin="https://a.test", until_ms=1, fetched_ms=1)]
    ),
    "push": lambda f, w: f.push([(1, "a.test", 1, Entry(url="https://a.test/1"))]),
    "put_back": lambda f, w: f.put_back([(1, "a.test")]),
    "introduce": lambda f, w: f.set_hosts([HostState(host="a.test")]),
    "set_crawl": lambda f, w: f.set_crawl(w.crawl(2)),
    "drop": lambda f, w: f.drop([(1, "a.test")]),
    "forget": lambda f, w: f.forget(1),
    "fill": lambda f, w: f.fill(SCAN, [], more=False),
    "leave": lambda f, w: f.leave(SCAN),
    "reap": lambda f, w: f.reap(),
    "unseen": lambda f, w: f.unseen(1, [5]),
    "see": lambda f, w: f.see(1, [5]),
    "idle": lambda f, w: f.idle(1),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_refused_under_another_epoch(world: World, verb: str) -> None:
    behind = world.another("w2")
    world.rebuild()
    with pytest.raises(EpochLost):
        world.run(VERBS[verb](behind, world))


def test_a_flushed_server_is_a_loss(world: World) -> None:
    world.crawl()
    world.do("FLUSHALL")
    with pytest.raises(EpochLost):
        world.lease()
    facts = world.run(world.frontier.shards[0].facts())
    assert (facts.number, facts.valid) == (None, False)


def test_who_was_overtaken_does_not_begin_its_epoch_over_a_newer_one(world: World) -> None:
    slow = world.another("slow").shards[0]
    seen = world.run(slow.facts())
    world.rebuild()
    with pytest.raises(EpochLost):
        world.run(slow.begin_epoch(world.epoch - 1, seen.run_id, 0, over=seen.number))
    assert slow.epoch is None
    assert world.run(slow.facts()).number == world.epoch
    assert world.lease() == [], "the newer one goes on"


def test_the_stores_number_is_begun_over_a_larger_one_that_is_not_its_own(world: World) -> None:
    shard = world.frontier.shards[0]
    world.do("HSET", shard.epoch_key, "n", 900)
    seen = world.run(shard.facts())
    world.run(shard.begin_epoch(7, seen.run_id, 0, over=seen.number))
    assert world.run(shard.facts()).number == 7


def test_a_restarted_server_is_a_loss_on_the_first_new_connection(frontier_server: Server) -> None:
    server = Server(frontier_server.program)
    server.start()
    world = World(server)
    try:
        shard = world.frontier.shards[0]
        fields = world.do("HMGET", shard.epoch_key, "n", "run_id", "layout")
        server.stop()
        with pytest.raises(FrontierUnavailable):
            world.lease()
        server.start()
        raw = Frontier(server.url, world.settings, "restorer").shards[0]
        # What an old snapshot would bring back: the same epoch, another run of the server.
        world.run(raw.command("HSET", raw.epoch_key, "n", fields[0], "run_id", fields[1], "layout", fields[2]))
        world.run(raw.close())
        with pytest.raises(EpochLost):
            world.lease()
        facts = world.run(shard.facts())
        assert (facts.number, facts.valid) == (world.epoch, False)
    finally:
        world.close()
        server.remove()


def test_another_layout_is_a_loss(world: World) -> None:
    shard = world.frontier.shards[0]
    assert world.run(shard.facts()).valid
    world.do("HSET", shard.epoch_key, "layout", "0")
    assert not world.run(shard.facts()).valid


def test_a_step_of_the_servers_clock_is_a_loss(world: World) -> None:
    world.lease()
    world.do("HINCRBY", world.frontier.shards[0].epoch_key, "skew", 1500)
    with pytest.raises(EpochLost, match="clock"):
        world.lease()


def test_a_server_that_evicts_is_refused(world: World) -> None:
    world.run(world.frontier.check_policy())
    world.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(SettingsError, match="noeviction"):
            world.run(world.frontier.check_policy())
    finally:
        world.do("CONFIG", "SET", "maxmemory-policy", "noeviction")


def test_a_release_of_an_older_epoch_carries_effects_and_touches_no_slot(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1")
    old = world.one()
    world.rebuild()
    world.crawl()
    world.add(1, "a.test", "/1")
    new = world.one()
    assert old.fence & 0xFFFF == new.fence & 0xFFFF, "the same counter"
    reply = world.run(
        world.frontier.lease([(Lane.BATCH, 0)], [released(old, 1, url_back=True, effect=blocked(200_000))])
    )
    assert old.fence in reply.times
    assert world.do("ZCARD", "%slots") == 1
    assert world.do("HGET", "%host:a.test", "out") == b"1"
    assert world.listed("a.test") == []
    world.run(world.frontier.settle([Settled(lease=old)]))
    assert world.counts() == (1, 1)
    world.back(new)
    assert list(world.due().values()) == [pytest.approx(world.now() + 200_000, abs=500)]


def test_effects_that_come_before_their_host_is_introduced_win_over_the_store(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1")
    old = world.one()
    world.rebuild()
    world.crawl()
    world.back(old, effect=HostEffect(block_ms=100_000, adaptive_ms=90_000, failures=4, slow=True))
    assert world.do("PTTL", "%host:a.test") > 0, "nobody wants the host yet"
    reply = world.run(world.frontier.push([(1, "a.test", 1, Entry(url="https://a.test/1"))]))
    assert reply.hosts == {"a.test"}
    world.introduce("a.test", adaptive_ms=1, failures=1)
    assert world.do("PTTL", "%host:a.test") == -1
    assert world.lane_of("a.test") == "slow"
    world.advance(101)
    (lease,) = world.lease(lane=Lane.SLOW)
    assert (lease.adaptive_ms, lease.failures) == (90_000, 4)


def test_no_host_is_asked_before_the_quiet_time_and_its_delay(world: World) -> None:
    world.rebuild(quiet_s=30)
    world.crawl(delay_s=60.0)
    world.add(1, "a.test", "/1")
    world.advance(50)
    world.add(1, "later.test", "/1")
    world.advance(39)
    assert world.lease() == []
    assert world.run(world.frontier.slot("a.test"))[0] is None
    world.advance(2)
    assert {lease.host for lease in world.lease()} == {"a.test", "later.test"}


def test_a_long_delay_counts_from_the_quiet_time_even_for_hosts_met_much_later(world: World) -> None:
    world.rebuild(quiet_s=30)
    world.crawl(delay_s=600.0)
    world.advance(300)
    world.add(1, "a.test", "/1")
    assert world.lease() == []
    world.advance(331)
    assert len(world.lease()) == 1


def test_a_persisted_time_later_than_the_quiet_time_holds(world: World) -> None:
    world.rebuild(quiet_s=30)
    world.crawl(delay_s=1.0)
    world.introduce("a.test", next_ms=world.now() + 500_000)
    world.introduce("b.test", blocked_until_ms=world.now() + 500_000)
    for host in ("a.test", "b.test"):
        world.add(1, host, "/1")
    world.advance(499)
    assert world.lease() == []
    world.advance(2)
    assert len(world.lease()) == 2


def test_a_clean_start_needs_no_quiet_time(world: World) -> None:
    world.rebuild()
    world.crawl()
    world.add(1, "a.test", "/1")
    assert len(world.lease()) == 1


def test_keys_of_older_epochs_are_removed(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1")
    world.rebuild()
    world.crawl()
    world.add(1, "b.test", "/1")
    assert world.run(world.frontier.shards[0].unlink_older()) > 3
    old = world.do("KEYS", "{s00}:e1:*")
    assert old == []
    assert len(world.lease()) == 1


# Shards


def test_hosts_are_spread_over_shards_and_a_lease_takes_no_more_than_wanted(frontier_server: Server) -> None:
    world = World(frontier_server, shards=4)
    try:
        world.crawl(delay_s=1.0)
        for i in range(40):
            world.add(1, f"host-{i}.test", "/1")
        used = {world.frontier.shard_of(f"host-{i}.test").number for i in range(40)}
        assert used == {0, 1, 2, 3}
        first = world.lease(10)
        assert len(first) == 10
        assert {epoch_of(lease.fence) for lease in first} <= {shard.epoch for shard in world.frontier.shards}
        rest = world.lease(64)
        assert len({lease.host for lease in (*first, *rest)}) == 40
        for lease in (*first, *rest):
            assert world.frontier.shard_of(lease.host).number == lease.shard
        world.run(world.frontier.lease([(Lane.BATCH, 0)], [released(lease) for lease in (*first, *rest)]))
        world.settle(*first, *rest)
        assert all(world.do("ZCARD", "%slots", shard=i) + world.do("HLEN", "%ld", shard=i) == 0 for i in range(4))
        assert world.run(world.frontier.idle(1)) is False
        assert world.run(world.frontier.renew_leases(first)) == {lease.fence for lease in first}
    finally:
        world.close()


def test_a_suspect_is_alone_over_all_shards(frontier_server: Server) -> None:
    world = World(frontier_server, shards=4)
    try:
        world.crawl(delay_s=1.0)
        for i in range(12):
            world.add(1, f"host-{i}.test", "/1", crashes=2)
        assert world.lease() == []
        assert len(world.solo()) == 1
    finally:
        world.close()


def test_a_budget_goes_where_the_work_is(frontier_server: Server) -> None:
    """One page is left, and all that is open stands in the last shard: split evenly, nothing could ever use it."""
    world = World(frontier_server, shards=3)
    try:
        crawl = world.crawl(max_pages=1)
        host = next(name for i in range(99) if world.frontier.shard_of(name := f"h{i}.test").number == 2)
        world.add(1, host, "/1", "/2")
        assert world.lease() == []
        assert world.run(world.frontier.idle(1)), "the check for completion looks, and sets the budget anew"
        world.run(world.frontier.set_crawl(crawl))
        (lease,) = world.lease()
        world.finish(lease)
        world.advance(61)
        assert world.lease() == []
    finally:
        world.close()
