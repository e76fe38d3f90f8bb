"""A record is published without its contradicted fields, and people choose among their values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import contradicting
import orgs
import pytest
from contradicting import ABOUT_PHONE, HOME_PHONE, NAME

from curtsy.core.errors import UsageError, WrongState
from curtsy.core.record import Record
from curtsy.export import record_increments
from curtsy.export.tables import Format
from curtsy.records import review, review_queue, serialize
from curtsy.records.review import Decision
from curtsy.records.review_queue import ReviewFilter
from curtsy.records.review_undo import undo
from curtsy.store import crawls, records
from curtsy.store.engine import Store
from curtsy.store.segments import Segments

PHONE, YEAR = "/contact/phone", "/founded_year"
NOW = 1_800_000_000_000
Make = Callable[..., Record]


@pytest.fixture
def segments(tmp_path: Path) -> Iterator[Segments]:
    made = Segments(tmp_path / "segments")
    yield made
    made.close()


@pytest.fixture
def make(store: Store, segments: Segments) -> Make:
    def record_of(pages: Any = None, **fields: Any) -> Record:
        crawl = orgs.make(store, segments, pages or contradicting.pages(), **fields)
        orgs.run_all(orgs.parts_of(store, segments), crawl)
        (record,) = orgs.all_records(store, crawl)
        assert isinstance(record, Record)
        return record

    return record_of


def decide(store: Store, record: Record, decision: str, **fields: Any) -> Record:
    return review.decide(store, record.n, Decision(decision=decision, who="ada", **fields), NOW)


def waiting(store: Store, **wanted: Any) -> list[int]:
    return [one.n for one in review_queue.waiting(store, None, ReviewFilter(**wanted))[0]]


def quotes(record: Record, path: str) -> list[str]:
    return [one["quote"] for field in record.fields if field["path"] == path for one in field["evidence"]]


def test_a_record_is_published_without_the_field_about_which_its_pages_contradict_each_other(
    store: Store, make: Make
) -> None:
    record = make()
    assert (record.status, record.low_confidence, record.contradicted) == ("published", False, (PHONE,))
    assert record.data == {"name": NAME, "founded_year": 1954}
    assert record.confidence["reasons"] == ["contradicted"]
    assert record.confidence["share"] == 0.6667
    assert [(one["value"], one["note"], one["evidence"][0]["quote"]) for one in record.withheld] == [
        (phone, "contradicted", phone) for phone in (HOME_PHONE, ABOUT_PHONE)
    ]
    line = serialize.line(record)
    assert line["contradicted"] == [PHONE]
    assert HOME_PHONE not in str(line)
    assert waiting(store) == waiting(store, needs="field") == [record.n]
    assert waiting(store, needs="record") == []
    assert waiting(store, reason="contradicted") == [record.n]


def test_values_on_which_pages_agree_have_more_confidence(make: Make) -> None:
    both = make(contradicting.pages(about={"telephone": HOME_PHONE}))
    assert (both.contradicted, both.confidence["share"], both.confidence["reasons"]) == ((), 1.0, [])
    shown = {one["path"]: one["confidence"] for one in serialize.line(both)["fields"]}
    one_page = make(contradicting.pages(about={"telephone": HOME_PHONE})[:1])
    alone = {one["path"]: one["confidence"] for one in serialize.line(one_page)["fields"]}
    assert (alone[PHONE], shown[PHONE]) == (0.9, 0.95)


@pytest.mark.parametrize(
    ("given", "reasons"),
    [
        ({"words": 20}, ["thin", "contradicted"]),
        ({"home": {"foundingDate": "1961"}}, ["unsupported", "contradicted"]),  # the name alone is too little
    ],
)
def test_other_reasons_hold_the_whole_record(
    store: Store, make: Make, given: dict[str, Any], reasons: list[str]
) -> None:
    record = make(contradicting.pages(**given))
    assert (record.status, record.confidence["reasons"]) == ("held", reasons)
    assert PHONE in record.contradicted
    assert (waiting(store, needs="record"), waiting(store, needs="field")) == ([record.n], [])


REQUIRED = {
    "title": "firm", "type": "object", "x-curtsy": {"per": "site"}, "required": ["founded_year"],
    "properties": {
        "name": {"type": "string"}, "founded_year": {"type": "integer"}, "phone": {"type": "string"},
        "email": {"type": "string"},
    },
}  # fmt: skip


def test_a_contradicted_field_that_the_schema_requires_holds_the_record_until_it_is_chosen(
    store: Store, make: Make
) -> None:
    more = {"telephone": HOME_PHONE, "email": f"post@{contradicting.HOST}"}
    record = make(contradicting.pages(home=more, about=more | {"foundingDate": "1961"}), schema=REQUIRED)
    assert (record.status, record.contradicted) == ("held", (YEAR,))
    assert "invalid" in record.confidence["reasons"]
    with pytest.raises(UsageError, match="does not match its schema"):
        decide(store, record, "approve")
    made = decide(store, record, "choose", choice={YEAR: 1961})
    assert (made.status, made.data["founded_year"], made.contradicted) == ("published", 1961, ())
    assert waiting(store) == []


def test_a_chosen_value_is_published_with_its_quotes_and_the_choice_can_be_undone(store: Store, make: Make) -> None:
    record = make()
    made = decide(store, record, "choose", choice={PHONE: ABOUT_PHONE}, note="called them")
    assert (made.status, made.data["contact"], made.contradicted) == ("published", {"phone": ABOUT_PHONE}, ())
    (field,) = [one for one in made.fields if one["path"] == PHONE]
    assert (field["rung"], field["verdict"], field["note"]) == ("person", "supported", "chosen, from structured")
    assert quotes(made, PHONE) == [ABOUT_PHONE]
    (entry,) = review.review_case(store, record.n).history
    assert (entry.decision, entry.correction, entry.note) == ("choose", {PHONE: ABOUT_PHONE}, "called them")
    assert waiting(store) == []
    undone = undo(store, record.n, "ada", NOW)
    assert replace(undone, reviewed_ms=None) == record
    assert waiting(store, needs="field") == [record.n]
    again = review.review_case(store, record.n).record
    assert (again.contradicted, again.withheld) == ((PHONE,), record.withheld)


@pytest.mark.parametrize(
    ("decision", "given"),
    [("choose", {"choice": {PHONE: None}}), ("approve", {}), ("correct", {"correction": {PHONE: None}})],
)
def test_a_field_can_be_left_out(store: Store, make: Make, decision: str, given: dict[str, Any]) -> None:
    record = make()
    made = decide(store, record, decision, **given)
    assert (made.status, made.data, made.contradicted) == ("published", record.data, ())
    assert waiting(store) == []


def test_a_correction_decides_about_its_fields_only(store: Store, make: Make) -> None:
    address = {"address": "Quay 3, Bergen", "email": f"post@{contradicting.HOST}"}
    record = make(contradicting.pages(home={"foundingDate": "1961", **address}, about=address))
    assert (record.status, set(record.contradicted)) == ("published", {PHONE, YEAR})
    made = decide(store, record, "correct", correction={"/contact": {"phone": "+47 55 00 00 00"}})
    assert (made.status, made.contradicted) == ("published", (YEAR,))
    assert made.data["contact"]["phone"] == "+47 55 00 00 00"
    assert waiting(store, needs="field") == [record.n]
    assert decide(store, made, "choose", choice={YEAR: 1954}).contradicted == ()


def test_a_choice_does_not_publish_what_is_held_for_another_reason(store: Store, make: Make) -> None:
    record = make(contradicting.pages(words=20))
    made = decide(store, record, "choose", choice={PHONE: HOME_PHONE})
    assert (made.status, made.data["contact"], made.contradicted) == ("held", {"phone": HOME_PHONE}, ())
    assert decide(store, made, "approve").status == "published"


def test_only_a_value_that_the_pages_state_can_be_chosen(store: Store, make: Make) -> None:
    record = make()
    with pytest.raises(UsageError, match=r"is not one of .*Use the decision `correct`"):
        decide(store, record, "choose", choice={PHONE: "+47 55 00 00 00"})
    with pytest.raises(UsageError, match="has no contradicting values at /name"):
        decide(store, record, "choose", choice={"/name": NAME})
    with pytest.raises(UsageError, match="at least one field"):
        decide(store, record, "choose", choice={})
    with pytest.raises(UsageError, match="with the decision `choose`"):
        decide(store, record, "approve", choice={PHONE: HOME_PHONE})
    decide(store, record, "reject")
    with pytest.raises(WrongState, match="was rejected"):
        decide(store, record, "choose", choice={PHONE: HOME_PHONE})
    assert waiting(store) == []
    undo(store, record.n, "ada", NOW)
    assert waiting(store) == [record.n]


def test_the_queue_lists_both_kinds_in_the_order_of_their_numbers(store: Store, make: Make) -> None:
    made = [make(contradicting.pages(words=words)) for words in (120, 20, 120, 20, 120)]
    assert [one.status for one in made] == ["published", "held", "published", "held", "published"]
    ns = [one.n for one in made]
    assert waiting(store) == ns
    assert review_queue.waiting(store, None, ReviewFilter(), after=ns[0], limit=2) == (
        [review.review_case(store, n).record for n in ns[1:3]], ns[2],
    )  # fmt: skip
    assert review_queue.beside(store, ns[2], None, ReviewFilter()) == (ns[1], ns[3])
    assert review_queue.beside(store, ns[2], None, ReviewFilter(needs="field")) == (ns[0], ns[4])
    with store.read() as tx:
        assert records.with_contradicted_fields(tx, made[0].crawl, made[0].schema_hash) == 1
        assert records.with_contradicted_fields(tx, made[1].crawl, made[1].schema_hash) == 0


def test_a_new_extraction_that_finds_the_same_changes_nothing_before_and_after_an_approval(
    store: Store, make: Make
) -> None:
    record = make()
    same = replace(record, n=0)
    assert store.run(records.add, same, (), True) is None
    decide(store, record, "approve")
    assert store.run(records.add, same, (), True) is None


def test_a_folder_of_increments_gets_a_record_again_when_its_fields_are_decided(
    store: Store, make: Make, tmp_path: Path
) -> None:
    record, out = make(), tmp_path / "parts"
    with store.read() as tx:
        crawl = crawls.by_n(tx, record.crawl)

    def add() -> int:
        return record_increments.add(store, crawl, out, Format.JSONL)

    assert (add(), add()) == (1, 0)
    decide(store, record, "choose", choice={PHONE: HOME_PHONE})
    assert (add(), add()) == (1, 0)
    first, second = sorted(out.glob("*.jsonl"))
    before, after = json.loads(first.read_text()), json.loads(second.read_text())
    assert (before["contradicted"], before["data"]) == ([PHONE], record.data)
    assert (after["contradicted"], after["data"]["contact"]) == ([], {"phone": HOME_PHONE})
