"""Runs of URLs in one process: their order, what ends them, and how long they may be."""

from __future__ import annotations

import pytest

from curtsy.core.clock import boot
from curtsy.core.model import Entry, Lane, Lease
from curtsy.crawl.url_runs import WINDOW_S, UrlRuns


def lease(fence: int, follows: int = 0, *, host: str = "a.test", asked_ago_s: float = 0.0) -> Lease:
    now = boot()
    return Lease(
        fence=fence, shard=0, host=host, crawl=1, crawl_version=0, lane=Lane.BATCH, entry=Entry(url=f"https://{host}/"),
        delay_ms=0, per_host=1, robots_ms=1, valid_until=now + 27, asked_at=now - asked_ago_s, follows=follows,
    )  # fmt: skip


def run(runs: UrlRuns, *fences: int, **more: object) -> list[Lease]:
    made = [lease(n, before, **more) for before, n in zip((0, *fences), fences, strict=False)]  # type: ignore[arg-type]
    for one in made[1:]:
        runs.add(one, None)
    return made


def test_urls_follow_each_other() -> None:
    runs = UrlRuns(lambda: True)
    one, two, three = run(runs, 1, 2, 3)
    assert runs.next_after(one) == (two, None)
    assert runs.next_after(two) == (three, None)
    assert runs.next_after(three) is None
    assert not runs


def test_a_run_ends_when_the_process_takes_no_more_work() -> None:
    runs = UrlRuns(lambda: False)
    one, two, three = run(runs, 1, 2, 3)
    assert runs.next_after(one) is None
    assert runs.rest_after(one) == [three, two], "the last one first: each goes to the head of its list"
    assert not runs


def test_nothing_of_a_run_starts_long_after_it_was_leased() -> None:
    runs = UrlRuns(lambda: True)
    one, two = run(runs, 1, 2, asked_ago_s=WINDOW_S + 0.01)
    assert runs.next_after(one) is None
    assert runs.rest_after(one) == [two]


def test_runs_of_one_host_are_stopped_together() -> None:
    runs = UrlRuns(lambda: True)
    _, two, three = run(runs, 1, 2, 3)
    _, five = run(runs, 4, 5)
    seven, eight = run(runs, 7, 8, host="b.test")
    assert runs.stop(lambda one: one.host == "a.test") == [five, three, two]
    assert list(runs.leases) == [eight]
    assert runs.next_after(seven) == (eight, None)
    assert runs.stop(lambda one: True) == []


@pytest.mark.parametrize(("takes_s", "longest"), [(0.0, 32), (0.001, 32), (0.05, 3), (0.2, 1)])
def test_runs_are_as_long_as_the_process_works_off_in_time(takes_s: float, longest: int) -> None:
    runs = UrlRuns(lambda: True)
    for _ in range(200):
        runs.note(takes_s)
    assert runs.longest() == longest


def test_requests_in_flight_and_urls_that_follow_them_take_room() -> None:
    runs = UrlRuns(lambda: True)
    assert runs.room(0) == 512
    run(runs, 1, 2, 3)
    assert runs.room(10) == 512 - 10 - 2
    assert runs.room(600) == 0
