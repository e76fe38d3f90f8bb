"""Pages that wait for a browser: queues of their own beside the plain ones, one slot per host over all lanes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from frontier_servers import World, paths, released

from curtsy.core.model import CrawlState, Entry, Kind, Lane, Lease
from curtsy.frontier import watch
from curtsy.frontier.inspect import inspect_host
from curtsy.frontier.messages import Rules, Scan, Settled, SettleReply

pytest_plugins = ["frontier_fixtures"]


def visits(world: World, n: int = 64) -> list[Lease]:
    return world.lease(n, lane=Lane.RENDER)


def add(world: World, *names: str, crawl: int = 1, host: str = "a.test") -> None:
    world.add(crawl, host, *names, kind=Kind.BROWSER)


def due(world: World, host: str = "a.test") -> float | None:
    found = world.do("ZSCORE", "%due:render", host)
    return None if found is None else float(found)


def turn_over(world: World, lease: Lease) -> SettleReply:
    """Its plain response was no page: the row waits for a browser, as the store knows."""
    entry = replace(lease.entry, kind=Kind.BROWSER)
    return world.run(world.frontier.settle([Settled(lease=lease, retry_ms=world.now(), entry=entry)]))


def fill(world: World, scan: Scan, *rows: tuple[int, str], more: bool = False) -> tuple[str, list[Scan]]:
    kind = Kind.BROWSER if scan.render else Kind.PAGE
    texts = [(seq, None, Entry(url=f"https://{scan.host}{path}", kind=kind)) for seq, path in rows]
    return world.run(world.frontier.fill(scan, texts, more=more))


def only(scans: list[Scan]) -> Scan:
    assert len(scans) == 1, scans
    return scans[0]


# Lanes


def test_plain_lanes_take_no_pages_for_browsers_and_browsers_no_plain_ones(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/plain")
    add(world, "/shown", host="b.test")
    assert [lease.entry.kind for lease in world.lease()] == [Kind.PAGE]
    found = visits(world)
    assert [(lease.host, lease.entry.kind, lease.lane) for lease in found] == [("b.test", Kind.BROWSER, Lane.RENDER)]
    assert found[0].crawl == 1


def test_a_visit_and_a_plain_request_share_the_slot_and_the_delay(world: World) -> None:
    world.crawl(delay_s=60.0)
    world.add(1, "a.test", "/1", "/2")
    add(world, "/b")
    first = world.one()
    assert visits(world) == [], "the host is in use"
    world.finish(first)
    assert visits(world) == [], "the delay holds over lanes"
    world.advance(61)
    visit = visits(world)[0]
    assert world.lease() == []
    world.advance(20)
    times = world.back(visit, sent_ago_s=20, broken_off=True)
    assert times is not None
    assert times.next_ms >= times.end_ms + 60_000, "the delay runs from the end of a visit"
    assert world.lease() == []


def test_the_slot_of_a_visit_lasts_longer(world: World) -> None:
    world.crawl()
    add(world, "/b")
    visit = visits(world)[0]
    assert visit.valid_until - visit.asked_at == pytest.approx(world.settings.render_slot_s - 3.0)
    world.advance(31)
    world.reap()
    assert int(world.do("HGET", "%host:a.test", "out")) == 1
    world.advance(40)
    world.reap()
    assert int(world.do("HGET", "%host:a.test", "out")) == 0
    assert world.listed("a.test", "1b") == ["b0 /b"], "its lease ran out long before"  # type: ignore[arg-type]


def test_plain_pages_and_visits_alternate(world: World) -> None:
    world.crawl(delay_s=10.0)
    world.add(1, "a.test", "/1", "/2", "/3")
    add(world, "/b1", "/b2", "/b3")
    taken = ""
    for _ in range(6):
        plain = world.lease()
        found = plain or visits(world)
        if not found:  # the other lane goes first for a moment
            world.advance(0.3)
            found = world.lease() or visits(world)
        taken += found[0].entry.kind.value
        world.finish(found[0])
        # At the moment when the delay is over only one of the two is due.
        world.advance(10.05)
        both = {due(world), world.due().get("a.test")} - {None}
        assert len(both) < 2 or max(both) - min(both) == 250  # type: ignore[type-var,operator]
    assert taken in ("pbpbpb", "bpbpbp")


def test_crawls_alternate_in_the_lane_render_too(world: World) -> None:
    for n in (1, 2):
        world.crawl(n, delay_s=10.0)
        add(world, "/1", "/2", "/3", crawl=n)
    turns = []
    for _ in range(4):
        visit = visits(world)[0]
        turns.append(visit.crawl)
        world.finish(visit)
        world.advance(11)
    assert turns in ([1, 2, 1, 2], [2, 1, 2, 1])


def test_robots_are_asked_for_first_and_hold_for_both_lanes(world: World) -> None:
    world.crawl(delay_s=10.0)
    world.add(1, "a.test", "/b", kind=Kind.BROWSER, robots=False)
    world.add(1, "a.test", "/p", robots=False)
    asked = visits(world)[0]
    assert asked.entry.url == "https://a.test/robots.txt"
    assert world.lease() == []
    rules = Rules(host="a.test", origin="https://a.test", until_ms=world.now() + 10**9, fetched_ms=5)
    world.run(world.frontier.settle([Settled(lease=asked)], rules=[rules], releases=[released(asked)]))
    world.advance(10.5)
    assert {lease.robots_ms for lease in (*visits(world), *world.lease())} == {5}


# Queues


def test_a_page_that_needs_a_browser_is_found_by_a_scan_of_the_other_queue(world: World) -> None:
    world.crawl(delay_s=0)
    world.add(1, "a.test", "/1", "/2")
    first = world.one()
    world.back(first)
    scan = only([s for s in turn_over(world, first).scans if s.render])
    assert scan.cursor is None
    assert fill(world, scan, (1, "/1")) == ("ok", [])
    world.advance(0.3)
    assert paths(visits(world)) == ["/1"]
    assert world.counts() == (2, 1), "two queues, the visit under way"


def test_one_that_comes_during_that_scan_is_looked_for_again(world: World) -> None:
    world.crawl(delay_s=0)
    world.add(1, "a.test", "/1", "/2")
    first = world.one()
    world.back(first)
    scan = only([s for s in turn_over(world, first).scans if s.render])
    world.advance(0.3)
    second = world.one()
    world.back(second)
    assert [s for s in turn_over(world, second).scans if s.render] == [], "a scan is under way"
    answer, scans = fill(world, scan, (1, "/1"))
    assert answer == "ok"
    world.advance(0.3)
    again = [*scans, *world.run(world.frontier.lease([(Lane.RENDER, 1)])).scans]
    assert only(again).render, "it may not have been read"


def test_a_queue_leaves_alone_and_the_other_stays(world: World) -> None:
    world.crawl(delay_s=0)
    world.add(1, "a.test", "/1")
    add(world, "/b")
    page = world.one()
    world.back(page)
    scan = only(world.settle(page, used=True).scans)
    assert not scan.render
    assert fill(world, scan)[0] == "empty"
    left, idle, _ = world.run(world.frontier.leave(scan))
    assert (left, idle) == (True, False)
    world.advance(0.3)
    assert paths(visits(world)) == ["/b"]


def test_both_queues_of_a_crawl_on_a_host_count_as_one_in_play(world: World) -> None:
    world.crawl(delay_s=0)
    world.add(1, "a.test", "/1")
    add(world, "/b")
    assert int(world.do("HGET", "%play", "batch")) == 1
    view = world.run(watch.look(world.frontier, detail=True))
    assert (view.in_play[Lane.BATCH], view.in_play[Lane.RENDER]) == (1, 1), "as one of its lane, and as one of render"
    world.run(world.frontier.drop([(1, "a.test")]))
    assert int(world.do("HGET", "%play", "batch")) == 0
    assert world.run(watch.look(world.frontier, detail=True)).in_play[Lane.RENDER] == 0
    assert world.counts() == (0, 0)
    assert due(world) is None


def test_a_pause_drops_both_and_what_the_store_has_comes_back(world: World) -> None:
    crawl = world.crawl(delay_s=0)
    add(world, "/b")
    world.run(world.frontier.set_crawl(replace(crawl, state=CrawlState.PAUSED)))
    assert visits(world) == []
    assert world.counts() == (0, 0)
    world.run(world.frontier.set_crawl(crawl))
    reply = world.run(world.frontier.put_back([], [(1, "a.test")]))
    scan = only(reply.scans)
    assert scan.render
    fill(world, scan, (1, "/b"))
    assert paths(visits(world)) == ["/b"]


def test_a_retry_waits_and_comes_back_to_the_browser(world: World) -> None:
    world.crawl(delay_s=0)
    add(world, "/b")
    visit = visits(world)[0]
    world.back(visit)
    world.retry(visit, 30)
    assert visits(world) == []
    world.advance(31)
    again = visits(world)[0]
    assert (again.entry.kind, again.entry.attempts) == (Kind.BROWSER, 1)


def test_max_pages_are_spent_by_visits_and_given_back_by_pages_that_need_one(world: World) -> None:
    world.crawl(delay_s=0, max_pages=1)
    world.add(1, "a.test", "/1")
    add(world, "/b", host="b.test")
    page = world.one()
    assert visits(world) == [], "the only page is granted"
    world.back(page)
    scan = only([s for s in turn_over(world, page).scans if s.render])
    assert paths(visits(world)) == ["/b"], "what was granted came back"
    fill(world, scan, (1, "/1"))
    assert visits(world) == []


# Suspects


def test_a_suspect_is_visited_alone_and_never_by_plain_shifts(world: World) -> None:
    world.crawl(delay_s=0)
    world.add(1, "a.test", "/bad", kind=Kind.BROWSER, crashes=2)
    assert visits(world) == []
    reply = world.run(world.frontier.lease([(Lane.RENDER, 0)]))
    assert (reply.suspects, reply.render_suspects) == (0, 1)
    assert world.solo() == [], "that asks plain suspects only"
    alone = world.run(world.frontier.lease([(Lane.RENDER, 1)], solo=True)).leases
    assert [(lease.solo, lease.lane) for lease in alone] == [(True, Lane.RENDER)]


# Watching


def test_a_shift_is_wanted_only_while_a_page_for_a_browser_is_listed(world: World) -> None:
    world.crawl(delay_s=10.0)
    world.add(1, "a.test", "/1", "/2", "/3")
    add(world, "/b")
    assert world.run(watch.look(world.frontier)).hosts(Lane.RENDER) == 1
    visit = visits(world)[0]
    assert world.run(watch.look(world.frontier, detail=True)).in_flight[Lane.RENDER] == 1
    world.back(visit)
    world.advance(11)
    view = world.run(watch.look(world.frontier))
    assert (view.hosts(Lane.RENDER), view.hosts(Lane.BATCH)) == (0, 1), "its commit is waited for, plain pages are not"


def test_looking_tells_where_a_page_for_a_browser_stands(world: World) -> None:
    world.crawl(delay_s=0)
    add(world, "/b1", "/b2")
    seen = world.run(inspect_host(world.frontier, "a.test", 1, "https://a.test/b2", render=True))
    assert (seen.loaded, seen.listed, seen.behind) == (True, 2, 1)
    assert seen.due_ms is not None
