"""Templates on SQLite and PostgreSQL: whatever workers do at the same time, an outdated selector is never activated."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import stored
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from curtsy.core.settings import Settings
from curtsy.rules.urls import fingerprint
from curtsy.store import deletion, templates
from curtsy.store.engine import Store
from curtsy.store.segments import Segments
from curtsy.store.template_rows import Kind, NewSelector, Outcome, Reading

PLACES = ({"path": "p.a"}, {"path": "p.b"}, {"path": "p.c", "label": "maker"})


def make(store: Store, key: str = "k", at: int = 1) -> int:
    kind = Kind("h", "Thing", "a.test", "/*", key, [key])
    n: int | None = store.run(templates.find_or_create, kind, lambda rows: None, at)
    assert n is not None
    return n


def new(leaf: str = "/maker", place: Any = PLACES[0]) -> NewSelector:
    return NewSelector(leaf, place, 3, 10, 9)


def learn(store: Store, n: int, *found: NewSelector, revision: int | None = None) -> bool:
    with store.read() as tx:
        row = templates.get(tx, n)
    assert row is not None
    made: bool = store.run(templates.learn, n, row.revision if revision is None else revision, found, 9, 5)
    return made


def active(store: Store, n: int) -> list[tuple[str, Any]]:
    with store.read() as tx:
        return [(one.leaf, one.place) for one in templates.active(tx, [n])]


def read(page: int, at: int = 7, **given: Any) -> Reading:
    return Reading(1, f"{page:032x}", given.get("places", {"x": ["/maker"]}), given.get("absent", ()), at)


def test_one_skeleton_is_one_template(store: Store) -> None:
    assert make(store) == make(store) != make(store, "other")


def test_workers_that_see_similar_pages_at_once_create_one_template(store: Store) -> None:
    found: list[int | None] = []
    start = threading.Barrier(4)

    def work(number: int) -> None:
        kind = Kind("h", "Thing", "a.test", "/*", f"k{number}", ["same"])
        start.wait(30)
        found.append(store.run(templates.find_or_create, kind, lambda rows: rows[0] if rows else None, 1))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 4
    assert len(set(found)) == 1


def test_one_worker_checks_one_page_of_many(store: Store) -> None:
    n = make(store)
    found = []
    for page in range(20):
        store.run(templates.note_used, n, 1, f"{page:032x}", Outcome(), 9)
        found += [store.run(templates.claim_check, n, 5) for _ in range(2)]
    assert [at // 2 + 1 for at, claimed in enumerate(found) if claimed] == [5, 10, 15, 20]


def test_a_shape_has_a_limited_number_of_templates(store: Store) -> None:
    for number in range(templates.MAX_TEMPLATES):
        make(store, f"k{number}")
    kind = Kind("h", "Thing", "a.test", "/*", "more", ["more"])
    assert store.run(templates.find_or_create, kind, lambda rows: None, 1) is None


def test_pages_that_are_read_add_to_what_is_known(store: Store) -> None:
    n = make(store)
    store.run(templates.note_read, n, read(1, places={"x": ["/maker"], "y": []}, absent=["/weight"]), Outcome())
    store.run(templates.note_read, n, read(2, places={"y": ["/weight"]}), Outcome())
    store.run(templates.note_read, n, read(2, places={"y": ["/weight"]}), Outcome())
    with store.read() as tx:
        row = templates.get(tx, n)
        assert row is not None
        assert (row.pages, row.asked, row.absent) == (2, 2, {"/weight": 1}), "a page counts once"
        assert row.known == {"x": (("/weight",), ("/maker",)), "y": (("/weight",), ("/weight",))}
        assert [one.absent for one in templates.pages_of(tx, n, True, 10)] == [("/weight",), ()]


def test_a_selector_that_finds_nothing_any_more_is_retired(store: Store) -> None:
    n = make(store)
    learn(store, n, new(), new("/maker", PLACES[1]))
    with store.read() as tx:
        one, other = templates.active(tx, [n])
    for page in range(30):
        store.run(templates.note_used, n, 1, f"{page:032x}", Outcome(used=[one.n]), 9)
    for page in range(30, 30 + templates.MAX_MISSED):
        assert len(active(store, n)) == 2
        store.run(templates.note_used, n, 1, f"{page:032x}", Outcome(used=[other.n], missed=[one.n]), 9)
    with store.read() as tx:
        assert [(row.state, row.why) for row in templates.selectors_of(tx, n)] == [
            ("retired", "missed"),
            ("active", ""),
        ]
        row = templates.get(tx, n)
    assert row is not None
    assert row.revision == 2


def test_a_rarely_used_selector_is_given_more_time(store: Store) -> None:
    n = make(store)
    learn(store, n, new(), new("/maker", PLACES[1]))
    with store.read() as tx:
        often, rare = templates.active(tx, [n])
    for page in range(60):
        is_rare = page % 20 == 0
        used, missed = ([rare.n], [often.n]) if is_rare else ([often.n], [rare.n])
        store.run(templates.note_used, n, 1, f"{page:032x}", Outcome(used=used, missed=missed), 9)
    assert len(active(store, n)) == 2


def test_a_template_that_a_newer_one_replaces_loses_its_selectors(store: Store) -> None:
    old, newer = make(store), make(store, "newer")
    learn(store, old, new())
    for page in range(templates.MAX_BEHIND):
        assert active(store, old)
        store.run(templates.note_read, newer, read(page), Outcome(older=[old]))
    with store.read() as tx:
        assert [row.why for row in templates.selectors_of(tx, old)] == ["layout"]


def test_what_was_learned_before_a_retirement_is_not_used(store: Store) -> None:
    n = make(store)
    learn(store, n, new())
    with store.read() as tx:
        (one,), row = templates.active(tx, [n]), templates.get(tx, n)
    assert row is not None
    store.run(templates.retire, one.n, "forgotten", 9)
    assert not learn(store, n, new(), revision=row.revision), "computed from the state before"
    assert active(store, n) == []
    assert learn(store, n, new())


def test_a_deleted_page_goes_and_with_the_last_one_its_template(store: Store, tmp_path: Path) -> None:
    segments = Segments(Settings(data_dir=tmp_path).segments_dir)
    crawl = stored.crawl(store)
    urls = ["http://a.test/1", "http://a.test/2"]
    stored.add_pages(store, segments, crawl, [(url, url.encode()) for url in urls])
    n = make(store)
    for url in urls:
        reading = read(1)._replace(crawl=crawl.n, page=fingerprint(url).hex())
        store.run(templates.note_read, n, reading, Outcome())
    learn(store, n, new())
    for url, left in zip(urls, (1, 0), strict=True):
        store.run(deletion.add, url, 1, fp=fingerprint(url))
        with store.read() as tx:
            (one,) = deletion.pending(tx)
        assert deletion.carry_out(store, segments, one, 2, lambda: False)
        with store.read() as tx:
            assert tx.execute(text("SELECT count(*) FROM template_pages")).scalar() == left
            assert tx.execute(text("SELECT count(*) FROM templates")).scalar() == left
            assert tx.execute(text("SELECT count(*) FROM selectors")).scalar() == left
    segments.close()


# Concurrent workers

_STEP = st.one_of(
    st.tuples(st.just("look"), st.integers(0, 2)),
    st.tuples(st.just("learn"), st.integers(0, 2), st.lists(st.sampled_from(PLACES), min_size=1, max_size=3)),
    st.tuples(st.just("retire"), st.integers(0, 5)),
    st.tuples(st.just("correct")),
    st.tuples(st.just("read"), st.integers(0, 9)),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_STEP, max_size=25))
def test_random_histories_of_three_workers_keep_the_invariants(store: Store, steps: list[Any]) -> None:
    """Workers look (take a snapshot) and learn (write what came of it); others retire, correct and read in between."""
    with store.begin() as tx:
        for table in ("selectors", "template_pages", "templates"):
            tx.execute(text(f"DELETE FROM {table}"))
    n = make(store)
    snapshots: dict[int, int] = {}
    changes = 0  # retirements and corrections so far
    seen_at: dict[int, int] = {}
    for at, step in enumerate(steps, 10):
        before = active(store, n)
        if step[0] == "look":
            with store.read() as tx:
                row = templates.get(tx, n)
            assert row is not None
            snapshots[step[1]], seen_at[step[1]] = row.revision, changes
        elif step[0] == "learn" and step[1] in snapshots:
            done = learn(store, n, *(new("/maker", place) for place in step[2]), revision=snapshots[step[1]])
            if seen_at[step[1]] != changes:
                assert not done, "its snapshot is older than a retirement"
                assert active(store, n) == before
        elif step[0] == "retire":
            with store.read() as tx:
                some = templates.active(tx, [n])
            if some:
                store.run(templates.retire, some[step[1] % len(some)].n, "contradicted", at)
                changes += 1
        elif step[0] == "correct":
            store.run(templates.revise, n, {}, at)
            changes += 1
        elif step[0] == "read":
            store.run(templates.note_read, n, read(step[1], at), Outcome())
        now = [(leaf, repr(sorted(place.items()))) for leaf, place in active(store, n)]
        assert len(now) == len(set(now)), "no place is active twice"


def test_threads_that_learn_and_retire_at_once_lose_nothing(store: Store) -> None:
    n = make(store)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for at in range(10):
                store.run(templates.note_read, n, read(number * 100 + at, places={f"{number}-{at}": []}), Outcome())
                learn(store, n, new(f"/f{number}"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    with store.read() as tx:
        row = templates.get(tx, n)
    assert row is not None
    assert (row.asked, len(row.known)) == (40, 40), "no reading was lost"
    found = active(store, n)
    assert len(found) == len({leaf for leaf, _ in found})
