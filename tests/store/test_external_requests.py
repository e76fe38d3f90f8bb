"""Requests of external clients: kept once, in their order, held by one process at a time."""

from __future__ import annotations

import threading

from curtsy.store import external_requests
from curtsy.store.engine import Store
from curtsy.store.external_requests import MOST_CRASHES, Held, NewRequest, Settled

NOW, LATER = 1_000, 40_000


def request(name: str, rank: int = 0, host: str = "a.test") -> NewRequest:
    return NewRequest(key=name.encode(), host=host, url=f"http://{host}/{name}", rank=rank, payload=f"of {name}")


def begun(store: Store, *rows: NewRequest) -> int:
    run = store.run(external_requests.begin, "spider", NOW)
    store.run(external_requests.add, run, rows, NOW)
    return run


def taken(store: Store, run: int, holder: str = "me", host: str = "a.test") -> Held | None:
    found = store.run(external_requests.take, run, [host], holder, LATER)
    return found[0] if found else None


def names(store: Store, run: int) -> list[str]:
    """All that is open, as it is handed out."""
    found = []
    while (held := taken(store, run)) is not None:
        found.append(held.payload.removeprefix("of "))
    return found


def test_of_equal_priority_the_older_goes_first_within_one_batch_too(store: Store) -> None:
    order = [f"{(n * 37) % 100:02d}" for n in range(100)]
    run = begun(store, *(request(name) for name in order), request("first", rank=-1))
    store.run(external_requests.add, run, [request("last"), request("second", rank=-1)], NOW)
    assert names(store, run) == ["first", "second", *order, "last"]


def test_a_request_is_kept_once(store: Store) -> None:
    run = begun(store, request("a"), request("b"))
    again = NewRequest(key=b"a", host="a.test", url="http://a.test/a", rank=-5, payload="of another")
    assert store.run(external_requests.add, run, [again, request("c"), request("c", rank=-9)], NOW) == {b"c"}
    assert names(store, run) == ["a", "b", "c"]


def test_processes_that_add_the_same_in_opposite_orders_do_not_wait_for_each_other(store_url: str) -> None:
    rows = [request(f"{n:03d}") for n in range(200)]
    with Store.open(store_url) as store:
        run = begun(store)
    fresh: list[int] = []

    def add(mine: list[NewRequest]) -> None:
        with Store.open(store_url) as own:
            parts = (mine[start : start + 50] for start in range(0, len(mine), 50))
            fresh.extend(len(own.run(external_requests.add, run, part, NOW)) for part in parts)

    threads = [threading.Thread(target=add, args=(mine,)) for mine in (rows, rows[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(fresh) == len(rows)
    with Store.open(store_url) as store:
        assert sorted(names(store, run)) == [f"{n:03d}" for n in range(200)]


def test_only_the_holder_settles_and_a_host_gives_one_at_a_time(store: Store) -> None:
    run = begun(store, request("a"), request("b"), request("c", host="b.test"))
    assert store.run(external_requests.open_hosts, run) == ["a.test", "b.test"]
    held = taken(store, run)
    assert held is not None
    store.run(external_requests.settle, [Settled(n=held.n)], "somebody else", NOW)
    assert store.run(external_requests.renew, [held.n], "me", LATER) == {held.n}
    store.run(external_requests.settle, [Settled(n=held.n, state="failed", cause="status 503")], "me", NOW)
    assert store.run(external_requests.renew, [held.n], "me", LATER) == set()
    (letter,) = store.run(external_requests.failed)
    assert (letter.url, letter.cause) == ("http://a.test/a", "status 503")
    assert store.run(external_requests.has_pending, run)


def test_what_a_dead_process_held_is_open_again_until_it_has_killed_too_many(store: Store) -> None:
    run = begun(store, request("a"))
    for crash in range(1, MOST_CRASHES + 1):
        assert taken(store, run) is not None, crash
        assert store.run(external_requests.reopen_expired, run, LATER) == 0, "it has not lapsed yet"
        assert store.run(external_requests.reopen_expired, run, LATER + 1) == 1
    assert taken(store, run) is None
    (letter,) = store.run(external_requests.failed)
    assert letter.cause == "kills_worker"
    assert store.run(external_requests.replay, [letter.n], NOW) == 1
    held = taken(store, run)
    assert held is not None
    assert held.crashes == 0


def test_a_run_ends_when_nothing_of_it_is_left_and_continues_with_a_replay(store: Store) -> None:
    run = begun(store, request("a"))
    assert not store.run(external_requests.end, run, NOW)
    held = taken(store, run)
    assert held is not None
    assert not store.run(external_requests.end, run, NOW)
    assert store.run(external_requests.give_back, run, "me") == 1
    held = taken(store, run)
    assert held is not None
    store.run(external_requests.settle, [Settled(n=held.n, state="failed", cause="callback")], "me", NOW)
    assert store.run(external_requests.end, run, NOW)
    assert store.run(external_requests.replay, [held.n], NOW) == 1
    assert store.run(external_requests.begin, "spider", NOW) == run, "the same one"
    (found,) = store.run(external_requests.runs)
    assert (found.state, found.open, found.failed) == ("running", 1, 0)
