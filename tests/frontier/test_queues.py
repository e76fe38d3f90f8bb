"""What stands in Valkey and what waits in the store: heads, refill, rescan, budgets, pauses, the filter, completion."""

from __future__ import annotations

import pytest
from frontier_servers import Server, World, paths

from curtsy.core.model import CrawlState, Entry, Kind, Lane
from curtsy.frontier.messages import Scan

pytest_plugins = ["frontier_fixtures"]


def only(scans: list[Scan]) -> Scan:
    assert len(scans) == 1, scans
    return scans[0]


def scan_of(world: World) -> Scan:
    """The scan that the next lease asks for."""
    return only(world.run(world.frontier.lease([(Lane.BATCH, 64)])).scans)


def emptied(world: World) -> Scan:
    """A queue whose only page was settled: the rescan that this asks for."""
    world.crawl()
    world.add(1, "a.test", "/1")
    lease = world.one()
    world.back(lease)
    return only(world.settle(lease).scans)


# Heads, refill, rescan


@pytest.mark.parametrize(("delay_s", "head"), [(0.0, 512), (0.5, 120), (2.0, 30), (60.0, 16)])
def test_the_head_of_a_queue_is_bounded_by_its_delay(world: World, delay_s: float, head: int) -> None:
    world.crawl(delay_s=delay_s)
    world.add(1, "a.test", *[f"/{i}" for i in range(600)])
    assert len(world.listed("a.test")) == head
    world.add(1, "a.test", "/more")
    assert len(world.listed("a.test")) == head, "behind a backlog flag nothing is listed"


def test_a_row_that_is_pushed_several_times_at_once_is_listed_once(world: World) -> None:
    world.crawl()
    row = (1, "a.test", 1, Entry(url="https://a.test/1"))
    world.introduce(*world.run(world.frontier.push([row, row, (1, "a.test", 2, Entry(url="https://a.test/2"))])).hosts)
    assert len(world.listed("a.test")) == 2


def test_a_queue_that_comes_back_while_a_page_of_it_is_leased_is_refilled_and_rescanned_later(world: World) -> None:
    crawl = world.crawl(delay_s=10.0)
    world.add(1, "a.test", *[f"/{i}" for i in range(20)])
    lease = world.one()
    world.run(world.frontier.drop([(1, "a.test")]))
    world.run(world.frontier.set_crawl(crawl))
    scan = only(world.run(world.frontier.put_back([(1, "a.test")])).scans)
    assert scan.cursor == 16, "what was listed may be leased; what lies behind the cursor was never listed"
    assert world.fill(scan, (17, "/16"), more=False) == ("ok", [])
    world.finish(lease)
    world.advance(11)
    last = world.one()
    assert paths([last]) == ["/16"]
    world.back(last)
    assert only(world.settle(last).scans).cursor is None, "the others are found by the rescan"


def test_a_queue_that_left_with_nothing_in_flight_keeps_no_cursor(world: World) -> None:
    world.crawl(delay_s=10.0)
    world.add(1, "a.test", *[f"/{i}" for i in range(20)])
    first = world.one()
    world.run(world.frontier.drop([(1, "a.test")]))
    assert world.do("HGET", "%host:a.test", "k:1") == b"16"
    world.finish(first)
    assert world.do("HGET", "%host:a.test", "k:1") is None
    assert only(world.run(world.frontier.put_back([(1, "a.test")])).scans).cursor is None
    world.run(world.frontier.drop([(1, "a.test")]))
    assert world.do("HGET", "%host:a.test", "k:1") is None


def test_a_flagged_queue_is_refilled_behind_its_cursor_when_it_is_half_empty(world: World) -> None:
    world.crawl(delay_s=10.0)
    world.add(1, "a.test", *[f"/{i}" for i in range(20)])
    for _ in range(8):
        reply = world.run(world.frontier.lease([(Lane.BATCH, 1)]))
        assert reply.scans == []
        world.finish(reply.leases[0])
        world.advance(11)
    reply = world.run(world.frontier.lease([(Lane.BATCH, 1)]))
    scan = only(reply.scans)
    assert (scan.host, scan.crawl, scan.cursor, scan.head) == ("a.test", 1, 16, 16)
    assert world.fill(scan, (17, "/16"), (18, "/17"), more=True) == ("ok", [])
    assert len(world.listed("a.test")) == 9
    assert world.do("HMGET", "%host:a.test", "b:1", "k:1") == [b"1", b"18"]


def test_a_scan_is_asked_of_one_process_only(world: World) -> None:
    emptied(world)
    world.advance(2)
    assert world.run(world.frontier.lease([(Lane.BATCH, 64)])).scans == []
    assert world.run(world.frontier.put_back([(1, "a.test")])).scans == []


def test_a_queue_is_rescanned_only_when_nothing_of_it_is_in_flight(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1", "/2", "/3")
    first = world.one()
    world.back(first)
    world.advance(2)
    second = world.one()
    world.back(second)
    world.advance(2)
    third = world.one()
    world.back(third)
    world.advance(2)
    assert world.run(world.frontier.lease([(Lane.BATCH, 64)])).scans == []
    assert world.settle(first).scans == []
    assert world.retry(second, 20).scans == []
    assert world.settle(third).scans == []
    world.advance(21)
    last = world.one()
    world.back(last)
    assert only(world.settle(last).scans).cursor is None


def test_a_rescan_that_finds_nothing_lets_the_queue_leave(world: World) -> None:
    scan = emptied(world)
    assert world.fill(scan) == ("empty", [])
    assert world.run(world.frontier.leave(scan)) == (True, True, [])
    assert world.counts() == (0, 0)
    assert world.do("HGETALL", "%play") in ([b"batch", b"0"], {b"batch": b"0"})
    assert world.due() == {}
    assert world.run(world.frontier.idle(1))
    assert world.do("PTTL", "%host:a.test") > 60_000, "its times stand as long as they bind"


def test_a_rescan_brings_back_what_was_left_out(world: World) -> None:
    scan = emptied(world)
    assert world.fill(scan, (1, "/lost")) == ("ok", [])
    world.advance(61)
    assert paths(world.lease()) == ["/lost"]


def test_rows_with_a_retry_time_are_delayed_by_a_scan(world: World) -> None:
    scan = emptied(world)
    entry = Entry(url="https://a.test/late", attempts=2)
    reply = world.run(world.frontier.fill(scan, [(5, world.now() + 200_000, entry)], more=False))
    assert reply == ("ok", [])
    assert world.counts() == (1, 1)
    world.advance(199)
    assert world.lease() == []
    world.advance(2)
    assert world.one().entry == entry


def test_a_push_during_a_scan_only_raises_the_flag(world: World) -> None:
    scan = emptied(world)
    world.add(1, "a.test", "/new")
    assert world.listed("a.test") == []
    answer, scans = world.fill(scan)
    assert answer == "ok"
    again = only(scans)
    assert again.cursor is None
    assert world.fill(again, (2, "/new")) == ("ok", [])
    assert world.listed("a.test") == ["p0 /new"]


def test_leaving_checks_again_that_nothing_came_meanwhile(world: World) -> None:
    scan = emptied(world)
    assert world.fill(scan)[0] == "empty"
    world.add(1, "a.test", "/new")
    left, idle, scans = world.run(world.frontier.leave(scan))
    assert (left, idle) == (False, False)
    assert only(scans).cursor is None
    assert world.counts() == (1, 0)


def test_a_scan_that_was_lost_is_asked_for_again(world: World) -> None:
    scan = emptied(world)
    assert world.reap() == []
    world.advance(11)
    again = only(world.reap())
    assert again.token != scan.token
    assert world.fill(scan, (1, "/x")) == ("stale", [])
    assert world.run(world.frontier.leave(scan)) == (False, False, [])
    assert world.fill(again)[0] == "empty"


def test_a_scan_that_comes_late_changes_nothing_even_if_nobody_asked_again(world: World) -> None:
    scan = emptied(world)
    world.advance(11)
    world.add(1, "a.test", "/new")
    assert world.fill(scan, (1, "/1"), (2, "/new")) == ("stale", [])
    assert world.listed("a.test") == ["p0 /new"]


def test_a_row_that_a_scan_has_read_is_not_listed_again_by_its_push(world: World) -> None:
    scan = emptied(world)
    assert world.fill(scan, (2, "/new")) == ("ok", [])
    world.add(1, "a.test", "/new")
    assert world.listed("a.test") == ["p0 /new"]
    world.add(1, "a.test", "/newer")
    assert world.listed("a.test") == ["p0 /new", "p0 /newer"]


def test_scans_of_one_moment_have_different_tokens(world: World) -> None:
    scan = emptied(world)
    world.run(world.frontier.drop([(1, "a.test")]))
    again = only(world.run(world.frontier.put_back([(1, "a.test")])).scans)
    assert world.fill(scan, (1, "/x")) == ("stale", [])
    assert world.fill(again, (1, "/x")) == ("ok", [])


def test_queues_come_back_with_their_flag_raised(world: World) -> None:
    world.crawl()
    reply = world.run(world.frontier.put_back([(1, "a.test"), (9, "b.test")]))
    assert (reply.hosts, reply.crawls) == ({"a.test"}, {9})
    scan = only(reply.scans)
    assert scan.cursor is None
    world.introduce("a.test")
    assert world.fill(scan, (1, "/1"), more=True) == ("ok", [])
    assert paths(world.lease()) == ["/1"]


def test_a_push_tells_which_hosts_and_crawls_the_frontier_does_not_know(world: World) -> None:
    reply = world.run(world.frontier.push([(1, "a.test", 1, Entry(url="https://a.test/1"))]))
    assert (reply.hosts, reply.crawls) == (set(), {1})
    world.crawl()
    reply = world.run(world.frontier.push([(1, "a.test", 1, Entry(url="https://a.test/1"))]))
    assert (reply.hosts, reply.crawls) == ({"a.test"}, set())
    assert world.lease() == [], "a host is asked only after it was introduced"
    world.introduce("a.test")
    assert len(world.lease()) == 1


def test_no_more_queues_are_in_play_than_allowed(frontier_server: Server) -> None:
    world = World(frontier_server, queues_in_play=2)
    try:
        world.crawl()
        rows = [(1, f"{c}.test", i + 1, Entry(url=f"https://{c}.test/")) for i, c in enumerate("abc")]
        reply = world.run(world.frontier.push(rows))
        assert (reply.waiting, reply.hosts) == ([(1, "c.test")], {"a.test", "b.test"})
        assert world.run(world.frontier.put_back([(1, "c.test")])).waiting == [(1, "c.test")]
        world.run(world.frontier.drop([(1, "a.test")]))
        reply = world.run(world.frontier.put_back([(1, "c.test")]))
        assert (reply.waiting, len(reply.scans)) == ([], 1)
    finally:
        world.close()


# Pauses and ends


def test_a_paused_crawl_is_never_leased_and_resumes_by_rescan(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1", "/2")
    world.add(1, "b.test", "/1")
    world.crawl(state=CrawlState.PAUSED)
    world.run(world.frontier.drop([(1, "b.test")]))
    assert world.lease() == []
    assert world.counts() == (0, 0)
    assert world.listed("a.test") == world.listed("b.test") == []
    world.add(1, "c.test", "/1")
    assert world.counts() == (0, 0)
    world.crawl()
    reply = world.run(world.frontier.put_back([(1, "a.test")]))
    assert world.fill(only(reply.scans), (1, "/1"), (2, "/2"))[0] == "ok"
    assert paths(world.lease()) == ["/1"]


def test_a_pause_leaves_the_other_crawls_of_a_host_alone(world: World) -> None:
    world.crawl(1, delay_s=50.0)
    world.crawl(2, delay_s=1.0)
    world.add(1, "a.test", "/1")
    world.add(2, "a.test", "/2", "/3")
    world.run(world.frontier.drop([(1, "a.test")]))
    lease = world.one()
    assert (lease.crawl, lease.delay_ms) == (2, 1000)


def test_what_a_dropped_queue_had_in_flight_stays_counted(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1", "/2")
    lease = world.one()
    world.run(world.frontier.drop([(1, "a.test")]))
    assert world.counts() == (0, 1)
    assert not world.run(world.frontier.idle(1))
    world.back(lease)
    assert world.do("PTTL", "%host:a.test") > 0
    assert world.settle(lease).idle == {1}
    assert world.run(world.frontier.idle(1))


def test_an_ended_crawl_is_forgotten_without_a_trace(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1")
    world.run(world.frontier.see(1, list(range(1000))))
    lease = world.one()
    world.run(world.frontier.drop([(1, "a.test")]))
    world.run(world.frontier.forget(1))
    assert world.do("KEYS", "%seen:*") == []
    assert world.lease() == []
    world.back(lease)
    world.settle(lease)
    assert world.do("EXISTS", "%crawl:1") == 0
    assert world.do("HGET", "%play", "batch") == b"0"


def test_a_crawl_forgotten_while_its_queues_stand_gives_their_places_up(world: World) -> None:
    world.crawl(delay_s=1.0)
    world.add(1, "a.test", "/1")
    world.run(world.frontier.forget(1))
    assert world.lease() == []
    assert world.do("HGET", "%play", "batch") == b"0"


# Budgets


def test_a_lease_grants_no_more_than_the_budget_has_left(world: World) -> None:
    world.crawl(max_pages=3, pages=1)
    for host in ("a.test", "b.test", "c.test", "d.test"):
        world.add(1, host, "/1")
    granted = world.lease()
    assert len(granted) == 2
    assert world.lease() == []
    first, second = granted
    world.back(first)
    world.settle(first, used=False)
    assert len(world.lease()) == 1, "a page that was not used is granted to a host passed over"
    world.back(second)
    assert world.settle(second, used=True).idle == set()
    assert world.lease() == []


def test_a_url_put_back_gives_its_budget_back(world: World) -> None:
    world.crawl(max_pages=1)
    world.add(1, "a.test", "/1")
    world.back(world.one(), sent_ago_s=None, url_back=True)
    assert len(world.lease()) == 1


def test_budget_given_back_goes_to_a_host_that_can_use_it(world: World) -> None:
    world.crawl(max_pages=1)
    hosts = [f"{c}.test" for c in "abcdefgh"]
    for host in hosts:
        world.add(1, host, "/1")
    lease = world.one()
    assert world.lease() == []
    waiting = sorted(set(hosts) - {lease.host})
    for host in waiting[1:]:
        world.run(world.frontier.drop([(1, host)]))
    world.back(lease)
    world.settle(lease, used=False)
    assert [lease.host for lease in world.lease()] == waiting[:1]


def test_a_crawl_whose_budget_is_spent_is_idle(world: World) -> None:
    world.crawl(max_pages=1)
    world.add(1, "a.test", "/1", "/2")
    lease = world.one()
    assert not world.run(world.frontier.idle(1))
    world.back(lease)
    assert world.settle(lease, used=True).idle == {1}
    assert world.run(world.frontier.idle(1))


def test_a_raised_budget_brings_every_starved_host_back(world: World) -> None:
    crawl = world.crawl(max_pages=1)
    for i in range(30):
        world.add(1, f"h{i}.test", "/1")
    world.finish(world.one())
    assert world.lease() == []
    world.run(world.frontier.set_crawl(crawl, keep_budget=True))
    assert world.lease() == []
    world.crawl(max_pages=100, pages=1)
    assert len(world.lease()) == 29


def test_a_kept_budget_of_an_unknown_crawl_is_still_a_budget(world: World) -> None:
    crawl = world.crawl(max_pages=2)
    world.rebuild()
    world.run(world.frontier.set_crawl(crawl, keep_budget=True))
    for host in ("a.test", "b.test", "c.test"):
        world.add(1, host, "/1")
    assert len(world.lease()) == 2


def test_sitemaps_and_robots_need_no_budget(world: World) -> None:
    world.crawl(max_pages=0)
    rows = [(1, "a.test", 1, Entry(url="https://a.test/sitemap.xml", kind=Kind.SITEMAP))]
    world.run(world.frontier.push(rows))
    world.introduce("a.test")
    assert paths(world.lease()) == ["/sitemap.xml"]


# Completion


def test_a_crawl_is_idle_when_nothing_of_it_is_listed_delayed_or_leased(world: World) -> None:
    world.crawl()
    assert world.run(world.frontier.idle(1))
    world.add(1, "a.test", "/1")
    assert not world.run(world.frontier.idle(1))
    lease = world.one()
    world.back(lease)
    scan = only(world.settle(lease).scans)
    assert not world.run(world.frontier.idle(1)), "the queue has not left yet"
    world.fill(scan)
    world.run(world.frontier.leave(scan))
    assert world.run(world.frontier.idle(1))


# The filter


def test_the_filter_remembers_over_generations(world: World) -> None:
    shorts = [i * 7919 * 1_000_003 % (1 << 63) for i in range(40_000)]
    assert world.run(world.frontier.unseen(1, shorts[:3])) == [0, 1, 2]
    world.run(world.frontier.see(1, shorts))
    assert int(world.do("HGET", "%seen:1", "g")) == 1
    assert world.run(world.frontier.unseen(1, shorts)) == []
    assert world.run(world.frontier.unseen(1, [5, shorts[0], 6])) == [0, 2]
    assert world.run(world.frontier.unseen(2, shorts[:2])) == [0, 1]
    assert world.do("OBJECT", "ENCODING", "%seen:1:0:5") == b"intset"
    assert int(world.do("HGET", "%seen", "total")) == 40_000


def test_over_the_cap_whole_buckets_of_the_largest_filter_go(world: World) -> None:
    world.frontier._seen_cap = 20_000
    large = [i * 1_000_003 for i in range(19_000)]
    small = [i * 1_000_003 for i in range(600)]
    world.run(world.frontier.see(1, large))
    world.run(world.frontier.see(2, small))
    assert world.run(world.frontier.unseen(1, large)) == []
    world.run(world.frontier.see(2, [i + 1 for i in small]))
    assert int(world.do("HGET", "%seen", "total")) <= 20_000
    assert world.run(world.frontier.unseen(2, small)) == []
    gone = len(world.run(world.frontier.unseen(1, large)))
    assert 0 < gone < 2000
    kept = sum(world.do("SCARD", key.decode()) for key in world.do("KEYS", "%seen:?:*"))
    assert kept == int(world.do("HGET", "%seen", "total"))


def test_a_filter_that_was_cut_and_filled_again_is_forgotten_whole(world: World) -> None:
    world.frontier._seen_cap = 3000
    for at in range(0, 12_000, 500):
        world.run(world.frontier.see(1, [i * 1_000_003 for i in range(at, at + 500)]))
    world.run(world.frontier.forget(1))
    assert world.do("KEYS", "%seen:*") == []
    assert int(world.do("HGET", "%seen", "total")) == 0
