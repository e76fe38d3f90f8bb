"""The review queue: filters, neighbors, decisions about many, and undo of one and of many."""

from __future__ import annotations

import re
from typing import Any

import pytest
import stored

from curtsy.core.errors import WrongState
from curtsy.core.record import Record
from curtsy.records import review_queue
from curtsy.records.review import Decision, decide
from curtsy.records.review_queue import ReviewFilter
from curtsy.records.review_undo import undo
from curtsy.store import records, reviews
from curtsy.store.engine import Store

APPROVE, REJECT = Decision(decision="approve", who="Ann"), Decision(decision="reject", who="Ann")


def put(store: Store, n: int = 3, **fields: Any) -> list[int]:
    """Held records of one crawl; every second one is thin and of another host."""
    crawl = stored.crawl(store, schema="shop", schema_hash="0")
    made = []
    for number in range(n):
        odd = number % 2
        field = {"path": "/contact/email" if odd else "/name", "value": "x", "verdict": "supported", "evidence": []}
        given = {
            "url": f"https://{'b' if odd else 'a'}.test/{number}", "fields": (field,), "status": "held",
            "low_confidence": True,
            "confidence": {"share": number / 10, "reasons": ["thin" if odd else "unsupported"]}, **fields,
        }  # fmt: skip
        subject = f"{number:032x}"
        added = store.run(
            records.add,
            Record(crawl=crawl.n, subject=subject, schema="shop", schema_hash="0", data={"name": "x"}, **given),
        )
        assert added is not None
        made.append(added.n)
    return made


def state(store: Store, n: int) -> tuple[str, int | None, bool]:
    with store.read() as tx:
        found = records.get(tx, n)
    assert found is not None
    return found.status, found.reviewed_ms, found.low_confidence


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ({}, [0, 1, 2, 3]), ({"reason": "thin"}, [1, 3]), ({"host": "A.test"}, [0, 2]), ({"field": "/contact"}, [1, 3]),
        ({"field": "/con"}, []), ({"min_confidence": 0.2}, [2, 3]), ({"max_confidence": 0.1}, [0, 1]),
        ({"reason": "thin", "max_confidence": 0.1}, [1]), ({"schema": "other"}, []),
    ],
)  # fmt: skip
def test_filters_select_held_records(store: Store, wanted: dict[str, Any], numbers: list[int]) -> None:
    made = put(store, 4)
    found, following = review_queue.waiting(store, None, ReviewFilter(**wanted))
    assert ([one.n for one in found], following) == ([made[number] for number in numbers], None)


def test_a_list_examines_a_limited_number_of_records_and_continues(store: Store) -> None:
    made = put(store, 5)
    wanted = ReviewFilter(min_confidence=0.4)
    assert review_queue.waiting(store, None, wanted, window=3) == ([], made[2])
    found, following = review_queue.waiting(store, None, wanted, after=made[2], window=3)
    assert ([one.n for one in found], following) == ([made[4]], None)
    found, following = review_queue.waiting(store, None, ReviewFilter(), limit=2)
    assert ([one.n for one in found], following) == (made[:2], made[1])


@pytest.mark.parametrize("chunk", [1, 200])
def test_the_next_and_the_previous_record_match_the_filters(
    store: Store, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(review_queue, "_CHUNK", chunk)
    first, second, third, fourth = put(store, 4)
    thin = ReviewFilter(reason="thin")
    assert review_queue.beside(store, second, None, ReviewFilter()) == (first, third)
    assert review_queue.beside(store, third, None, thin) == (second, fourth)
    assert review_queue.beside(store, second, None, thin) == (None, fourth)
    other = put(store, 1)[0]
    with store.read() as tx:
        crawl = records.get(tx, first)
    assert crawl is not None
    assert review_queue.beside(store, fourth, None, ReviewFilter()) == (third, other)
    assert review_queue.beside(store, fourth, crawl.crawl, ReviewFilter()) == (third, None)


def test_every_decision_is_undone_in_turn_and_stays_in_the_list(store: Store) -> None:
    (n,) = put(store, 1)
    decide(store, n, APPROVE, 1000)
    decide(store, n, REJECT, 2000)
    assert state(store, n)[0] == "rejected"
    assert undo(store, n, "Bob", 3000).status == "published"
    assert state(store, n) == ("published", 1000, False)
    undo(store, n, "Bob", 4000, note="too early")
    assert state(store, n) == ("held", None, True)
    with pytest.raises(WrongState, match="no decision to undo"):
        undo(store, n, "Bob", 5000)
    decide(store, n, REJECT, 6000)
    undo(store, n, "Bob", 7000)
    assert state(store, n)[0] == "held"
    with store.read() as tx:
        history = [(one.decision, one.who, one.note) for one in reviews.of(tx, n)]
    assert [one[0] for one in history] == ["approve", "reject", "undo", "undo", "reject", "undo"]
    assert history[3] == ("undo", "Bob", "too early")


def test_an_older_version_that_stepped_back_is_published_again(store: Store) -> None:
    (old,) = put(store, 1, status="published", reviewed_ms=500)
    with store.read() as tx:
        known = records.get(tx, old)
    assert known is not None
    added = store.run(records.add, Record(**{**_fields(known), "n": 0, "data": {"name": "y"}}), (), True)
    assert added is not None
    assert added.status == "held"
    decide(store, added.n, APPROVE, 1000)
    assert (state(store, old)[0], state(store, added.n)[0]) == ("superseded", "published")
    undo(store, added.n, "Bob", 2000)
    assert (state(store, old)[0], state(store, added.n)[0]) == ("published", "held")


def _fields(record: Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in Record.__dataclass_fields__}


def test_many_are_decided_and_undone_except_those_that_changed_since(store: Store) -> None:
    first, second, third = put(store, 3)
    done = review_queue.decide_many(store, [first, second, 999, first], REJECT, 1000)
    assert done.records == (first, second)
    assert [n for n, _ in done.refused] == [999]
    assert re.fullmatch(r"[0-9a-f-]{36}", done.batch)
    decide(store, second, APPROVE, 2000)
    undone = review_queue.undo_many(store, done.batch, "Bob", 3000)
    assert undone.records == (first,)
    assert [n for n, _ in undone.refused] == [second]
    assert [state(store, n)[0] for n in (first, second, third)] == ["held", "published", "held"]
    assert review_queue.undo_many(store, "unknown", "Bob", 4000).records == ()


def test_a_decision_of_an_earlier_version_of_the_program_cannot_be_undone(store: Store) -> None:
    (n,) = put(store, 1)
    decide(store, n, APPROVE, 1000)
    with store.begin() as tx:
        tx.exec_driver_sql("UPDATE reviews SET undo = NULL")
    with pytest.raises(WrongState, match="older than this function"):
        undo(store, n, "Bob", 2000)
