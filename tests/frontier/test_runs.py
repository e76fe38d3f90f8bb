"""Hosts without a delay: all free slots in one call, and runs of URLs on one slot. On Valkey and on Redis."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from frontier_servers import World, blocked, paths, released

from curtsy.core.clock import boot
from curtsy.core.model import Entry, Kind, Lane, Lease
from curtsy.core.outcome import HostEffect
from curtsy.frontier.messages import LeaseReply, ReapedLease, ReapedSlot, Release

pytest_plugins = ["frontier_fixtures"]

PAGES = tuple(f"/{n}" for n in range(1, 13))


def runs(world: World, n: int = 64, run: int = 4) -> list[list[Lease]]:
    """The granted runs, each in order."""
    found: list[list[Lease]] = []
    for lease in world.run(world.frontier.lease([(Lane.BATCH, n)], urls_per_slot=run)).leases:
        if lease.follows:
            assert lease.follows == found[-1][-1].fence
            found[-1].append(lease)
        else:
            found.append([lease])
    return found


def exchange(world: World, *releases: Release) -> LeaseReply:
    return world.run(world.frontier.lease([(Lane.BATCH, 0)], releases))


def passing(one: Lease, successor: Lease, sent_ago_s: float = 0.0, ended_ago_s: float = 0.0) -> Release:
    return released(one, sent_ago_s, ended_ago_s, successor=successor.fence)


def unsent(lease: Lease) -> Release:
    return Release(lease=lease, started=None, ended=boot(), url_back=True)


def out(world: World) -> int:
    return int(world.do("HGET", "%host:a.test", "out") or 0)


# Several slots in one call


def test_one_call_grants_all_slots_of_a_host_without_a_delay(world: World) -> None:
    world.crawl(per_host=4, delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    assert paths(world.lease()) == ["/1", "/2", "/3", "/4"]
    assert world.lease() == []


def test_every_host_gets_a_slot_before_any_gets_another(world: World) -> None:
    world.crawl(per_host=4, delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    world.add(1, "b.test", *PAGES)
    assert sorted(lease.host for lease in world.lease(3))[:2] == ["a.test", "a.test"]
    assert {lease.host for lease in world.lease(2)} == {"b.test", "a.test"}


def test_crawls_that_share_a_host_alternate_within_a_call(world: World) -> None:
    world.crawl(1, per_host=6, delay_s=0.0)
    world.crawl(2, per_host=6, delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    world.add(2, "a.test", "/x", "/y")
    assert [lease.crawl for (lease,) in runs(world)] == [1, 2, 1, 2, 1, 1], "and nobody has a run"


def test_a_delay_that_comes_into_force_counts_from_the_last_start_of_all_slots(world: World) -> None:
    world.crawl(per_host=3, delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    first, second, third = world.lease()
    world.back(first, effect=HostEffect(adaptive_ms=5000))
    world.advance(6)
    assert world.lease() == [], "the others may start at any moment"
    world.back(second)
    world.advance(6)
    assert world.lease() == []
    world.back(third)
    world.advance(4)
    assert world.lease() == []
    world.advance(1.5)
    assert len(world.lease()) == 1


def test_robots_txt_comes_first_and_alone(world: World) -> None:
    world.crawl(per_host=4, delay_s=0.0)
    world.add(1, "a.test", *PAGES, robots=False)
    assert [lease.entry.kind for lease in world.lease()] == [Kind.ROBOTS]
    assert world.lease() == []


def test_a_budget_is_granted_to_the_page(world: World) -> None:
    world.crawl(per_host=2, delay_s=0.0, max_pages=5)
    world.add(1, "a.test", *PAGES)
    found = runs(world)
    assert [paths(run) for run in found] == [["/1", "/2", "/3", "/4"], ["/5"]]
    exchange(world, unsent(found[0][3]), released(found[1][0]))
    assert [paths(run) for run in runs(world)] == [["/4"]]


# Runs


def test_urls_of_a_run_use_one_slot_one_after_another(world: World) -> None:
    world.crawl(delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    ((one, two, three, four),) = runs(world)
    assert paths([one, two, three, four]) == ["/1", "/2", "/3", "/4"]
    expiry = world.do("ZSCORE", "%slots", one.fence & 0xFFFFFFFFFF)
    assert (out(world), world.do("ZCARD", "%slots"), world.do("ZCARD", "%leases")) == (1, 1, 4)
    exchange(world, passing(one, two))
    assert world.lease() == [], "the slot is still out"
    # Several in one call, also the slot that was passed in the same call.
    exchange(world, passing(two, three), passing(three, four))
    assert world.do("ZRANGE", "%slots", 0, -1) == [b"%d" % (four.fence & 0xFFFFFFFFFF)]
    assert world.do("ZSCORE", "%slots", four.fence & 0xFFFFFFFFFF) == expiry, "it was not renewed"
    assert out(world) == 1
    exchange(world, released(four))
    assert (out(world), world.do("ZCARD", "%slots")) == (0, 0)
    world.settle(one, two, three, four)
    assert world.counts() == (1, 0)
    assert world.do("HLEN", "%ld") == 0
    assert paths(world.lease(1)) == ["/5"]


def test_the_rest_of_a_run_goes_back_in_order(world: World) -> None:
    world.crawl(delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    ((one, two, three, four),) = runs(world)
    exchange(world, unsent(four), unsent(three), unsent(two), released(one, effect=blocked(5000)))
    assert world.listed("a.test")[:4] == ["p0 /2", "p0 /3", "p0 /4", "p0 /5"]
    assert (out(world), world.counts()) == (0, (1, 1))
    assert world.lease() == [], "it is blocked"


def test_a_release_that_is_repeated_passes_the_slot_once(world: World) -> None:
    world.crawl(delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    ((one, two, three, _),) = runs(world)
    exchange(world, passing(one, two))
    exchange(world, passing(one, two), passing(two, three))
    exchange(world, passing(one, two), passing(two, three), passing(one, two))
    assert world.do("ZRANGE", "%slots", 0, -1) == [b"%d" % (three.fence & 0xFFFFFFFFFF)]
    assert out(world) == 1


def test_requests_of_a_run_do_not_overlap_in_the_log(world: World) -> None:
    """Each report arrives with its own error: the end of one may seem later than the start of the next."""
    world.crawl(delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    ((one, two, three, four),) = runs(world)
    first = exchange(world, passing(one, two, 0.0, 0.0)).times
    # It claims to have begun half a second before the other ended.
    second = exchange(world, passing(two, three, 0.5, 0.4)).times
    rest = exchange(world, passing(three, four, 0.6, 0.5), released(four, 0.6, 0.5)).times
    times = [*first.values(), *second.values(), *rest.values()]
    assert len(times) == 4
    assert all(a.end_ms <= b.start_ms <= b.end_ms for a, b in pairwise(times))


def test_a_worker_that_dies_in_a_run_leaves_what_is_not_known_yet(world: World) -> None:
    world.crawl(delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    ((one, two, _three, _four),) = runs(world)
    ended = exchange(world, passing(one, two)).times[one.fence].end_ms
    world.settle(one, used=True)
    world.advance(31)
    world.reap()
    items = world.run(world.frontier.reaped())
    (slot,) = [item for item in items if isinstance(item, ReapedSlot)]
    assert slot.fence == two.fence, "a late report of that request takes the place of the presumed one"
    assert slot.leased_ms == ended, "what came before is known"
    lost = [item for item in items if isinstance(item, ReapedLease)]
    assert sorted(item.entry.url for item in lost) == [f"https://a.test/{n}" for n in (2, 3, 4)]
    assert {item.entry.crashes for item in lost} == {0}, "none of them is to blame"
    assert sorted(world.listed("a.test")[:3]) == ["p0 /2", "p0 /3", "p0 /4"]
    assert (out(world), world.counts()) == (0, (1, 0))


def test_a_slot_that_expired_is_not_passed_on(world: World) -> None:
    world.crawl(delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    ((one, two, *_),) = runs(world)
    world.advance(31)
    world.reap()
    exchange(world, passing(one, two, 30.0, 29.0), released(two, 28.0, 27.0))
    assert (out(world), world.do("ZCARD", "%slots")) == (0, 0)
    assert len(world.lease(1)) == 1


def test_what_must_not_be_in_a_run_ends_it(world: World) -> None:
    world.crawl(delay_s=0.0)
    world.add(1, "a.test", "/1", "/2", "http://a.test/other-origin", "/4")
    world.add(1, "b.test", "/1")
    world.add(1, "b.test", "/map.xml", kind=Kind.SITEMAP)
    world.add(1, "c.test", "/1")
    world.add(1, "c.test", "/suspect", crashes=2)
    found = {run[0].host: paths(run) for run in runs(world, run=32)}
    assert found == {"a.test": ["/1", "/2"], "b.test": ["/1"], "c.test": ["/1"]}
    assert world.listed("a.test") == ["p0 http:/other-origin", "p0 /4"]


def test_a_host_with_a_delay_or_another_crawl_has_no_runs(world: World) -> None:
    world.crawl(1, delay_s=0.5)
    world.add(1, "a.test", *PAGES)
    assert [len(run) for run in runs(world)] == [1]
    world.crawl(2, delay_s=0.0)
    world.crawl(3, delay_s=0.0)
    world.add(2, "b.test", *PAGES)
    world.add(3, "b.test", *PAGES)
    assert [len(run) for run in runs(world)] == [1]


def test_the_urls_of_a_host_are_shared_among_its_slots(world: World) -> None:
    world.crawl(per_host=4, delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    assert max(len(run) for run in runs(world, run=32)) <= 1 + len(PAGES) // 4


def test_a_paused_crawl_lists_nothing_of_a_run_that_goes_back(world: World) -> None:
    crawl = world.crawl(delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    ((one, two, three, four),) = runs(world)
    world.run(world.frontier.drop([(crawl.n, "a.test")]))
    exchange(world, unsent(four), unsent(three), unsent(two), released(one))
    assert world.listed("a.test") == []
    world.settle(one)
    assert world.do("HGET", "%crawl:1", "busy") == b"0"


def test_the_slots_of_a_call_share_the_room_for_urls(world: World) -> None:
    world.crawl(delay_s=0.0)
    for host in ("a.test", "b.test", "c.test"):
        world.add(1, host, *PAGES)
    reply = world.run(world.frontier.lease([(Lane.BATCH, 64)], urls_per_slot=32, most_urls=9))
    assert Counter(lease.host for lease in reply.leases) == {"a.test": 3, "b.test": 3, "c.test": 3}
    assert reply.urls_per_slot == 3


def test_a_single_host_gets_all_of_the_room(world: World) -> None:
    world.crawl(delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    assert len(world.run(world.frontier.lease([(Lane.BATCH, 64)], urls_per_slot=32, most_urls=9)).leases) == 9


def test_without_room_a_slot_is_for_one_url(world: World) -> None:
    world.crawl(delay_s=0.0)
    world.add(1, "a.test", *PAGES)
    reply = world.run(world.frontier.lease([(Lane.BATCH, 64)], urls_per_slot=32, most_urls=0))
    assert (len(reply.leases), reply.urls_per_slot) == (1, 1)


def test_a_refill_keeps_up_with_runs(world: World) -> None:
    world.crawl(per_host=2, delay_s=0.0)
    world.add(1, "a.test", *(f"/{n}" for n in range(600)))
    reply = world.run(world.frontier.lease([(Lane.BATCH, 64)], urls_per_slot=200))
    assert len(reply.leases) > 256
    (scan,) = reply.scans
    assert (scan.cursor, scan.head) == (512, 512)
    rows = [(n, None, Entry(url=f"https://a.test/{n}")) for n in (513, 514)]
    assert world.run(world.frontier.fill(scan, rows, more=False))[0] == "ok"
