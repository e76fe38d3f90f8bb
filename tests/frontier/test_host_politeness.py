"""What the frontier promises to hosts: slots, delays, robots first, blocks, quiet periods. On Valkey and on Redis."""

from __future__ import annotations

import pytest
from frontier_servers import World, blocked, paths, released, robots_of

from curtsy.core.clock import boot
from curtsy.core.model import Entry, HostState, Kind, Lane, Lease
from curtsy.core.outcome import HostEffect
from curtsy.frontier.messages import Rules

pytest_plugins = ["frontier_fixtures"]


# Slots and delays


def test_a_host_in_use_is_not_on_the_bench(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1", "/2")
    lease = world.one()
    assert world.due() == {}
    world.advance(20)
    assert world.lease() == []
    world.back(lease)
    assert list(world.due()) == ["a.test"]


def test_the_next_start_is_a_delay_after_the_last_start_as_sent(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1", "/2")
    lease = world.one()
    world.advance(5)
    times = world.back(lease, sent_ago_s=4, ended_ago_s=1)
    assert times is not None
    assert times.next_ms == times.start_ms + 60_000 + 10
    assert times.end_ms - times.start_ms == pytest.approx(3000, abs=2)
    assert times.start_ms == pytest.approx(world.now() - 4000, abs=500)
    world.advance(55)
    assert world.lease() == []
    world.advance(1.5)
    assert paths(world.lease()) == ["/2"]


def test_a_transfer_that_was_broken_off_counts_its_delay_from_its_end(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1", "/2")
    lease = world.one()
    world.advance(20)
    times = world.back(lease, sent_ago_s=19, ended_ago_s=1, broken_off=True)
    assert times is not None
    assert times.next_ms == times.end_ms + 60_000 + 10


def test_a_slot_that_sent_nothing_gives_the_turn_back_without_moving_the_next_start(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1", "/2")
    lease = world.one()
    assert world.back(lease, sent_ago_s=None) is None
    assert paths(world.lease()) == ["/2"]


def test_a_url_that_goes_back_stands_at_the_head_of_its_list(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1", "/2")
    lease = world.one()
    world.back(lease, sent_ago_s=None, url_back=True)
    assert world.listed("a.test") == ["p0 /1", "p0 /2"]
    assert world.counts() == (1, 0)
    again = world.one()
    assert again.entry == lease.entry
    assert again.fence > lease.fence


def test_a_host_may_be_left_alone_for_a_moment(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1")
    world.back(world.one(), sent_ago_s=None, url_back=True, wait_ms=20_000)
    assert world.lease() == []
    world.advance(21)
    assert paths(world.lease()) == ["/1"]


def test_a_release_that_comes_twice_counts_once(world: World) -> None:
    world.crawl(per_host=2, delay_s=0.0)
    world.add(1, "a.test", "/1", "/2", "/3")
    first, second = world.lease(2)
    world.run(world.frontier.lease([(Lane.BATCH, 0)], [released(first), released(first)]))
    world.back(first)
    assert world.do("HGET", "%host:a.test", "out") == b"1"
    world.back(second)
    assert world.do("HGET", "%host:a.test", "out") == b"0"


def test_with_more_than_one_per_host_the_next_slot_waits_for_the_report_of_the_start(world: World) -> None:
    world.crawl(per_host=2, delay_s=12.0)
    world.add(1, "a.test", "/1", "/2", "/3")
    first = world.one()
    assert first.per_host == 2
    world.advance(13)
    assert world.lease() == []
    world.run(world.frontier.lease([(Lane.BATCH, 0)], started=[(first.fence, boot() - 5)]))
    world.advance(6)
    assert world.lease() == []
    world.advance(2)
    assert len(world.lease()) == 1
    assert world.lease() == []


def test_a_release_does_not_stand_in_for_the_report_of_another_slot(world: World) -> None:
    world.crawl(per_host=3, delay_s=2.0)
    world.add(1, "a.test", "/1", "/2", "/3")
    first = world.one()
    world.run(world.frontier.lease([(Lane.BATCH, 0)], started=[(first.fence, boot())]))
    world.advance(3)
    second = world.one()
    world.back(first, sent_ago_s=3)
    assert world.lease() == [], "the second may start at any moment"
    world.back(second)
    assert world.lease() == []
    world.advance(3)
    assert paths(world.lease()) == ["/3"]


def test_a_slot_given_out_while_one_was_allowed_keeps_the_others_waiting_when_more_are(world: World) -> None:
    world.crawl(1, per_host=3, delay_s=5.0)
    world.crawl(2, per_host=1, delay_s=5.0)
    world.add(1, "a.test", "/1", "/2", "/3")
    world.add(2, "a.test", "/4")
    first = world.one()
    assert first.per_host == 1, "its worker does not report the start"
    world.run(world.frontier.drop([(2, "a.test")]))
    world.advance(6)
    assert world.lease() == [], "it may start at any moment"
    world.back(first)
    assert world.lease() == []
    world.advance(6)
    assert world.one().per_host == 3


def test_a_slot_of_that_kind_that_expires_lets_the_others_continue(world: World) -> None:
    world.crawl(per_host=3, delay_s=5.0)
    world.introduce("a.test", operator_per_host=1)
    world.add(1, "a.test", "/1", "/2", "/3")
    assert world.one().per_host == 1
    world.introduce("a.test", again=True, operator_per_host=3)
    world.advance(29)
    assert world.lease() == []
    world.advance(2)
    world.reap()
    assert world.lease() == []
    world.advance(6)
    assert world.one().per_host == 3


def test_a_start_holds_as_it_was_reported_first(world: World) -> None:
    """What is told again comes a little later each time: by it a request would seem too close to the one after it."""
    world.crawl(per_host=2, delay_s=12.0)
    world.add(1, "a.test", "/1", "/2")
    first = world.one()
    world.run(world.frontier.lease([(Lane.BATCH, 0)], started=[(first.fence, boot())]))
    told = int(world.do("HGET", "%host:a.test", "ls"))
    world.advance(13)
    second = world.one()
    late = world.back(first, sent_ago_s=11, ended_ago_s=5)
    assert late is not None
    assert late.start_ms == told
    again = world.back(first, sent_ago_s=9, ended_ago_s=3)
    assert again is not None
    assert (again.start_ms, again.end_ms) == (late.start_ms, late.end_ms)
    times = world.back(second)
    assert times is not None
    assert times.start_ms - late.start_ms >= 12_000


def test_of_a_request_whose_end_was_never_told_the_slot_is_what_is_known(world: World) -> None:
    world.crawl(per_host=2)
    world.add(1, "a.test", "/1")
    first = world.one()
    world.run(world.frontier.lease([(Lane.BATCH, 0)], started=[(first.fence, boot())]))
    world.advance(31)
    world.reap()
    slot, url = world.run(world.frontier.reaped())
    assert (slot.fence, url.fence, url.times) == (first.fence, first.fence, None)
    assert world.do("HLEN", "%ld") == 0


def test_the_delay_in_force_is_the_greatest_and_per_host_the_least(world: World) -> None:
    world.crawl(1, delay_s=20.0, per_host=8)
    world.crawl(2, delay_s=30.0, per_host=4)
    world.add(1, "a.test", "/1", "/2")
    world.add(2, "a.test", "/1")
    lease = world.one()
    assert (lease.delay_ms, lease.per_host) == (30_000, 4)
    world.back(lease, effect=HostEffect(adaptive_ms=40_000))
    assert list(world.due().values()) == [pytest.approx(world.now() + 40_010, abs=500)]
    world.introduce("a.test", again=True, operator_delay_ms=50_000, operator_per_host=2)
    world.advance(51)
    lease = world.one()
    assert (lease.delay_ms, lease.per_host, lease.adaptive_ms) == (50_000, 2, 40_000)
    world.introduce("a.test", again=True)
    world.back(lease)
    world.advance(41)
    assert world.one().delay_ms == 40_000


def test_a_raised_delay_counts_from_the_last_start(world: World) -> None:
    world.crawl(1, delay_s=10.0)
    world.add(1, "a.test", "/1", "/2", "/3")
    world.back(world.one())
    world.crawl(2, delay_s=100.0)
    world.add(2, "a.test", "/other")
    world.advance(90)
    assert world.lease() == []
    world.advance(11)
    assert len(world.lease()) == 1


def test_a_crawl_that_comes_to_want_more_care_gets_it(world: World) -> None:
    world.crawl(1, delay_s=10.0)
    world.add(1, "a.test", "/1", "/2")
    world.back(world.one())
    world.crawl(1, delay_s=100.0)
    world.advance(50)
    assert world.lease() == []
    world.advance(51)
    assert world.one().delay_ms == 100_000


def test_effects_travel_with_the_slot(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1", "/2")
    world.back(world.one(), effect=blocked(300_000, failures=3))
    world.advance(299)
    assert world.lease() == []
    world.advance(2)
    assert world.one().failures == 3


def test_facts_told_again_never_shorten_a_block_that_the_store_does_not_know_yet(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1")
    world.back(world.one(), sent_ago_s=None, url_back=True, effect=blocked(300_000))
    world.introduce("a.test", again=True)
    assert world.lease() == []
    world.introduce("a.test", again=True, blocked_until_ms=world.now() + 400_000)
    world.advance(399)
    assert world.lease() == []
    world.advance(2)
    assert len(world.lease()) == 1


# Expiry


def test_a_delay_that_the_operator_takes_back_is_gone_at_once(world: World) -> None:
    """Although the store's next start still counts it."""
    world.crawl(delay_s=5.0)
    world.add(1, "a.test", "/1", "/2")
    world.introduce("a.test", again=True, operator_delay_ms=600_000)
    times = world.finish(world.one())
    assert times is not None
    assert world.due()["a.test"] == times.next_ms
    world.introduce("a.test", again=True, next_ms=times.next_ms)
    assert world.due()["a.test"] == times.start_ms + 5010
    world.advance(6)
    assert world.one().delay_ms == 5000


def test_the_operator_may_lift_a_block_but_not_the_delay(world: World) -> None:
    world.crawl(delay_s=5.0)
    world.add(1, "a.test", "/1", "/2")
    lease = world.one()
    times = world.back(lease, effect=blocked(600_000))
    assert times is not None
    world.retry(lease, 600)
    state = HostState(host="a.test", next_ms=times.start_ms + 7000)
    world.run(world.frontier.set_hosts([state], lift=True))
    assert world.due()["a.test"] == times.start_ms + 5010, "the last start is known here"
    world.advance(6)
    assert paths([world.one()]) == ["/2"]


def test_a_block_is_lifted_from_a_host_that_this_epoch_has_not_asked_yet(world: World) -> None:
    world.crawl(delay_s=5.0)
    far = world.now() + 600_000
    world.introduce("a.test", next_ms=far, blocked_until_ms=far)
    world.add(1, "a.test", "/1")
    assert world.due()["a.test"] == far
    soon = world.now() + 5000
    world.run(world.frontier.set_hosts([HostState(host="a.test", next_ms=soon)], lift=True))
    assert world.due()["a.test"] == soon


def test_retries_of_a_host_are_hastened_and_those_of_others_are_not(world: World) -> None:
    world.crawl(delay_s=0.0)
    for host in ("a.test", "a.test:81"):
        world.add(1, host, "/1%20x")
    for lease in world.lease():
        world.back(lease)
        world.retry(lease, 600)
    assert world.lease() == []
    assert world.run(world.frontier.make_retries_due("a.test")) == 1
    world.advance(1)
    assert [lease.entry.url for lease in world.lease()] == ["https://a.test/1%20x"]
    assert world.run(world.frontier.make_retries_due("a.test")) == 0


def test_an_expired_slot_counts_its_delay_from_its_expiry(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1", "/2")
    lease = world.one()
    world.advance(31)
    assert world.lease() == [], "nobody but the reaper takes an expired slot back"
    world.reap()
    slot, url = world.run(world.frontier.reaped())
    assert (slot.host, slot.fence, slot.delay_ms, slot.per_host, slot.crawl) == ("a.test", lease.fence, 60_000, 1, 1)
    assert slot.expiry_ms - slot.leased_ms == 30_000
    assert url.fence == lease.fence
    assert world.due() == {"a.test": slot.expiry_ms + 60_010}
    world.run(world.frontier.forget_reaped([slot, url]))
    assert world.run(world.frontier.reaped()) == []


def test_an_effect_arrives_even_when_slot_and_lease_were_reaped(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1")
    lease = world.one()
    world.advance(31)
    world.reap()
    world.back(lease, effect=blocked(500_000))
    assert list(world.due().values()) == [pytest.approx(world.now() + 500_000, abs=500)]


# Robots


def robots_known(world: World, lease: Lease, *, ttl_s: float = 3600, **more: object) -> None:
    origin = lease.entry.url.removesuffix("/robots.txt")
    until = world.now() + int(ttl_s * 1000)
    world.back(lease)
    world.settle(lease, rules=(Rules(host=lease.host, origin=origin, until_ms=until, fetched_ms=5, **more),))


def test_an_origin_offers_its_robots_entry_first(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1", robots=False)
    lease = world.one()
    assert robots_of(lease)
    assert lease.entry.url == "https://a.test/robots.txt"
    robots_known(world, lease, delay_ms=40_000)
    assert world.lease() == []
    world.advance(41)
    page = world.one()
    assert (paths([page]), page.robots_ms, page.delay_ms) == (["/1"], 5, 40_000)


def test_a_robots_entry_may_keep_its_slot_until_its_rules_are_committed(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1", robots=False)
    lease = world.one()
    times = world.back(lease, hold=True)
    world.advance(5)
    assert world.lease() == []
    assert times is not None
    robots_known(world, lease)
    world.advance(2)
    assert paths(world.lease()) == ["/1"]


def test_robots_being_fetched_keep_the_others_of_the_origin_waiting(world: World) -> None:
    world.crawl(delay_s=1.0, per_host=4)
    world.add(1, "a.test", "/1", robots=False)
    lease = world.one()
    world.run(world.frontier.lease([(Lane.BATCH, 0)], started=[(lease.fence, boot())]))
    world.advance(10)
    assert world.lease() == []


def test_robots_followed_through_a_redirect_stay_pending(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1", robots=False)
    lease = world.one()
    until = world.now() + 100_000
    world.back(lease)
    pending = Rules(host="a.test", origin="https://a.test", until_ms=until, fetched_ms=0, pending=True)
    world.settle(lease, rules=(pending,))
    world.advance(50)
    assert world.lease() == []
    followed = Entry(url="https://a.test/elsewhere.txt", kind=Kind.ROBOTS)
    world.run(world.frontier.push([(1, "a.test", 0, followed)], front=True))
    lease = world.one()
    assert lease.entry == followed
    world.back(lease)
    rules = Rules(host="a.test", origin="https://a.test", until_ms=world.now() + 900_000, fetched_ms=8)
    world.settle(lease, rules=(rules,))
    world.advance(2)
    assert world.one().robots_ms == 8


def test_robots_rules_expire(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1", "/2", robots=False)
    robots_known(world, world.one(), ttl_s=100)
    world.advance(2)
    world.finish(world.one())
    world.advance(100)
    assert robots_of(world.one())


def test_robots_that_crash_their_worker_are_offered_again_and_become_suspect(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1", robots=False)
    for _ in range(2):
        lease = world.one()
        assert robots_of(lease)
        world.run(world.frontier.report_crashes([lease.fence]))
        world.advance(33)
        world.reap()
        world.advance(2)
    assert world.lease() == []
    (lease,) = world.solo()
    assert (lease.entry.url, lease.entry.crashes) == ("https://a.test/robots.txt", 2)
    robots_known(world, lease)
    world.advance(2)
    assert paths(world.lease()) == ["/1"]


def test_http_and_https_of_a_name_are_one_unit_with_separate_robots(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/s", "http://a.test/h", robots=False)
    robots_known(world, world.one())
    world.advance(2)
    world.finish(world.one())
    assert world.lease() == []
    world.advance(2)
    lease = world.one()
    assert lease.entry.url == "http://a.test/robots.txt"
    robots_known(world, lease)
    world.advance(2)
    assert world.one().entry.url == "http://a.test/h"


def test_an_origin_on_another_port_of_a_wider_unit_has_robots_of_its_own(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1", "https://www.a.test:8443/2")
    world.finish(world.one())
    world.advance(2)
    lease = world.one()
    assert lease.entry.url == "https://www.a.test:8443/robots.txt"
    robots_known(world, lease)
    world.advance(2)
    assert world.one().entry.url == "https://www.a.test:8443/2"


# Lanes and turns


def test_crawls_that_share_a_host_alternate(world: World) -> None:
    for n in (1, 2, 3):
        world.crawl(n, delay_s=1.0)
        world.add(n, "a.test", "/1", "/2", "/3")
    order = []
    for _ in range(9):
        lease = world.one()
        order.append(lease.crawl)
        world.finish(lease)
        world.advance(2)
    assert order == [1, 2, 3] * 3


@pytest.mark.parametrize("first", [1, 2])
def test_a_better_lane_has_four_turns_of_five(world: World, first: int) -> None:
    world.crawl(1, delay_s=1.0)
    world.crawl(2, delay_s=1.0, lane=Lane.HIGH)
    for n in (first, 3 - first):
        world.add(n, "a.test", *[f"/{n}-{i}" for i in range(12)])
    order = []
    for _ in range(10):
        assert world.lane_of("a.test") == "high"
        (lease,) = world.lease(lane=Lane.HIGH)
        order.append(lease.crawl)
        world.finish(lease)
        world.advance(2)
    assert order == [2, 2, 2, 2, 1] * 2


def test_a_slow_host_stands_in_the_slow_lane_only_and_comes_back(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1", "/2", "/3")
    world.back(world.one(), effect=HostEffect(slow=True, failures=1))
    assert world.lane_of("a.test") == "slow"
    world.advance(2)
    assert world.lease() == []
    (lease,) = world.lease(lane=Lane.SLOW)
    assert lease.lane is Lane.SLOW
    world.back(lease, effect=HostEffect(slow=False))
    assert world.lane_of("a.test") == "batch"


def test_a_ring_of_many_crawls_is_served_to_its_last(world: World) -> None:
    for n in range(1, 21):
        world.crawl(n, delay_s=0.0)
        world.add(n, "a.test", "/1")
        if n < 20:
            world.do("UNLINK", f"%q:a.test:{n}")
    assert world.one().crawl == 20


# Affinity


def test_a_process_gets_its_own_hosts_then_free_ones_then_those_whose_owner_lets_them_wait(world: World) -> None:
    other = world.another("w2")
    world.run(other.renew_leases([]))
    world.crawl(delay_s=10.0)
    world.add(1, "theirs.test", "/1", "/2")
    (lease,) = world.lease(by=other)
    world.back(lease)
    world.add(1, "mine.test", "/1", "/2")
    world.back(world.one())
    world.advance(11)
    world.add(1, "free.test", "/1")
    assert [lease.host for lease in world.lease(2)] == ["mine.test", "free.test"]
    assert [lease.host for lease in world.lease(2)] == ["theirs.test"], "overdue by more than 50 ms"


def test_a_host_of_a_living_owner_is_left_to_it_for_a_moment(world: World) -> None:
    other = world.another("w2")
    world.run(other.renew_leases([]))
    world.crawl(delay_s=1000.0)
    world.add(1, "theirs.test", "/1", "/2")
    (lease,) = world.lease(by=other)
    world.back(lease)
    due = int(world.due()["theirs.test"])
    now = world.now()
    world.do("ZADD", "%due:batch", now + 2_000_000, "theirs.test")
    world.do("HDEL", "%host:theirs.test", "ls")
    assert due > now
    world.do("ZADD", "%due:batch", world.now() + 30, "theirs.test")
    world.advance(0.03)
    reply = world.run(world.frontier.lease([(Lane.BATCH, 1)]))
    if not reply.leases:  # a slow machine may have let the 50 ms pass
        assert reply.next_ms is not None
        assert reply.next_ms > reply.now_ms
        assert [lease.host for lease in world.lease(by=other)] == ["theirs.test"]


def test_a_host_whose_owner_is_gone_is_free(world: World) -> None:
    other = world.another("w2")
    world.run(other.renew_leases([]))
    world.crawl(delay_s=10.0)
    world.add(1, "theirs.test", "/1", "/2")
    (lease,) = world.lease(by=other)
    world.back(lease)
    world.do("DEL", "%owner:w2")
    world.do("HDEL", "%host:theirs.test", "ls")
    world.do("ZADD", "%due:batch", world.now(), "theirs.test")
    assert [lease.host for lease in world.lease()] == ["theirs.test"]


# Guests


def test_an_external_client_gets_its_slot_like_a_crawl(world: World) -> None:
    frontier = world.frontier
    assert world.run(frontier.slot("a.test"))[:2] == (None, -1)
    world.crawl(delay_s=20.0)
    world.add(1, "a.test", "/1", "/2")
    fence, wait_ms, delay_ms, per_host = world.run(frontier.slot("a.test"))
    assert fence is not None
    assert (wait_ms, delay_ms, per_host) == (0, 20_000, 1)
    assert world.lease() == []
    assert world.run(frontier.slot("a.test"))[0] is None
    world.back(guest(world, fence), sent_ago_s=0)
    none, wait_ms, *_ = world.run(frontier.slot("a.test"))
    assert none is None
    assert wait_ms == pytest.approx(20_010, abs=500)
    world.advance(21)
    assert paths(world.lease()) == ["/1"]


def test_a_host_that_no_crawl_wants_has_one_slot_for_guests(world: World) -> None:
    world.introduce("a.test")
    fence = world.run(world.frontier.slot("a.test", 5.0)).fence
    assert fence is not None
    assert world.run(world.frontier.slot("a.test"))[0] is None
    world.back(guest(world, fence))
    assert world.run(world.frontier.slot("a.test", 5.0))[1] == pytest.approx(5010, abs=500)
    assert 0 < world.do("PTTL", "%host:a.test") < 200_000, "nobody wants it any more"


def guest(world: World, fence: int) -> Lease:
    return Lease(
        fence=fence, shard=0, host="a.test", crawl=0, crawl_version=0, lane=Lane.BATCH, entry=Entry(url="-"),
        delay_ms=0, per_host=1, robots_ms=0, valid_until=0,
    )  # fmt: skip


def test_a_shorter_delay_of_a_crawl_applies_from_the_next_slot_on(world: World) -> None:
    world.crawl(delay_s=60.0)
    world.add(1, "a.test", "/1", "/2", "/3")
    world.finish(world.one())
    world.crawl(delay_s=1.0, per_host=2)
    world.advance(30)
    assert world.lease() == [], "the turn that was given out under the old delay keeps it"
    world.advance(31)
    lease = world.one()
    assert (lease.delay_ms, lease.per_host) == (1000, 2)
    world.finish(lease)
    world.advance(1.1)
    assert len(world.lease()) == 1


def test_less_care_of_one_crawl_does_not_undo_that_of_another(world: World) -> None:
    world.crawl(1, delay_s=60.0)
    world.crawl(2, delay_s=30.0)
    for n in (1, 2):
        world.add(n, "a.test", "/1", "/2", "/3")
    world.finish(world.one())
    world.crawl(1, delay_s=1.0)
    world.advance(61)
    assert world.one().delay_ms == 30_000
