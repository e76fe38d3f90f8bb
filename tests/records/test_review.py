"""What people decide of records: who and when, corrections with evidence, versions beside, golden cases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orgs
import pytest

from curtsy.core.errors import UnknownRecord, UsageError, WrongState
from curtsy.core.model import Crawl
from curtsy.core.record import Record
from curtsy.extract import record_claims
from curtsy.grounding import judge
from curtsy.grounding import schema as schemas
from curtsy.records import golden_cases, review_undo
from curtsy.records import review as reviewing
from curtsy.records.review import Decision
from curtsy.store import records
from curtsy.store.engine import Store
from curtsy.store.segments import Segments

NOW = 1_800_000_000_000


@dataclass
class Case:
    """A site's record that is held because its pages are thin, and one that is published."""

    store: Store
    segments: Segments
    crawl: Crawl
    thin: Record
    good: Record

    def decide(self, record: Record, decision: str, **fields: Any) -> Record:
        return reviewing.decide(self.store, record.n, Decision(decision=decision, who="ada", **fields), NOW)

    def published(self) -> list[int]:
        return [record.n for record in orgs.all_records(self.store, self.crawl, "published")]


@pytest.fixture
def case(store: Store, tmp_path: Path) -> Iterator[Case]:
    segments = Segments(tmp_path / "segments")
    crawl = orgs.make(store, segments, orgs.bodies([1, 6]), rubric="esg")
    orgs.run_all(orgs.parts_of(store, segments), crawl)
    by_host = {record.subject: record for record in orgs.all_records(store, crawl)}
    thin, good = by_host["site:org-0006.tinyweb.test"], by_host["site:org-0001.tinyweb.test"]
    assert (thin.status, thin.confidence["reasons"], good.status) == ("held", ["thin"], "published")
    yield Case(store, segments, crawl, thin, good)
    segments.close()


def test_a_held_record_is_published_when_somebody_approves_it(case: Case) -> None:
    assert case.published() == [case.good.n]
    case.decide(case.thin, "approve", note="looked at it")
    assert case.published() == sorted([case.thin.n, case.good.n])
    known = reviewing.review_case(case.store, case.thin.n)
    (review,) = known.history
    assert (review.who, review.at_ms, review.decision, review.note) == ("ada", NOW, "approve", "looked at it")
    assert known.record.reviewed_ms == NOW
    assert known.record.data == case.thin.data


def test_a_rejected_record_is_not_published_and_can_be_approved_later(case: Case) -> None:
    case.decide(case.good, "reject")
    assert case.published() == []
    case.decide(case.good, "approve")
    assert case.published() == [case.good.n]
    assert [one.decision for one in reviewing.review_case(case.store, case.good.n).history] == ["reject", "approve"]


def test_a_correction_gets_the_place_where_it_stands_as_evidence(case: Case) -> None:
    wrong = "nobody@example.com"
    case.decide(case.good, "correct", correction={"/contact/email": wrong})
    spoilt = reviewing.review_case(case.store, case.good.n).record
    (field,) = [one for one in spoilt.fields if one["path"] == "/contact/email"]
    assert (field["value"], field["rung"], field["verdict"], field["evidence"]) == (wrong, "person", "judged", [])
    case.decide(case.good, "correct", correction={"/contact/email": case.good.data["contact"]["email"]})
    known = reviewing.review_case(case.store, case.good.n)
    (field,) = [one for one in known.record.fields if one["path"] == "/contact/email"]
    (evidence,) = field["evidence"]
    (text,) = [one.text for one in known.sources if one.sha256 == evidence["sha256"]]
    assert text[evidence["start"] : evidence["end"]] == evidence["quote"] == case.good.data["contact"]["email"]
    assert known.record.data == case.good.data
    assert known.history[-1].before["contact"]["email"] == wrong
    assert known.record.rungs["person"] == 1


def test_a_corrected_number_stands_where_it_stood_and_keeps_its_locator(case: Case) -> None:
    def evidence(record: Record, path: str) -> Any:
        (field,) = [one for one in record.fields if one["path"] == path]
        return [(one["source"], one["locator"], one["quote"]) for one in field["evidence"]]

    same = {path: case.good.data[path[1:]] for path in ("/founded_year", "/name")}
    case.decide(case.good, "correct", correction={"/founded_year": 1801, "/name": "Somebody Else"})
    spoilt = reviewing.review_case(case.store, case.good.n).record
    assert evidence(spoilt, "/founded_year") == []
    made = case.decide(case.good, "correct", correction=same)
    for path, value in same.items():
        ((source, locator, quote),) = evidence(made, path)
        assert str(value) in quote
        assert (source == "text") == (locator == "")


SHOP = {
    "title": "Shop",
    "type": "object",
    "properties": {
        "opened": {"type": "integer"},
        "green": {"type": "boolean"},
        "accepts": {
            "type": "array",
            "items": {"enum": ["bikes", "toys"], "x-curtsy": {"css": "li", "allow_judged": True}},
        },
    },
}


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> Iterator[Record]:
    segments = Segments(tmp_path / "shop")
    words = " ".join(f"word{i}" for i in range(120))
    text = f"<p>The shop opened its doors in 2009, with two benches.<p>\N{COPYRIGHT SIGN} 2031 The shop<p>{words}"
    crawl = orgs.make(store, segments, [("https://a.test/", f"<!doctype html><ul><li>Bikes</ul>{text}".encode())], SHOP)
    orgs.run_all(orgs.parts_of(store, segments), crawl)
    (record,) = orgs.all_records(store, crawl)
    yield record
    segments.close()


@pytest.mark.parametrize(
    ("correction", "quotes"),
    [
        ({"/accepts": ["toys"]}, []),
        ({"/accepts": ["bikes"]}, ["Bikes"]),
        ({"/green": True}, []),
        ({"/opened": 2009}, ["The shop opened its doors in 2009, with two benches."]),
        ({"/opened": 2031}, []),
        ({"/opened": 7}, []),
    ],
)
def test_a_correction_has_evidence_only_where_it_stands(
    store: Store, shop: Record, correction: dict[str, Any], quotes: list[str]
) -> None:
    made = reviewing.decide(store, shop.n, Decision(decision="correct", who="ada", correction=correction), NOW)
    (path,) = correction
    found = [field for field in made.fields if field["path"].startswith(path)]
    assert [one["quote"] for field in found for one in field["evidence"]] == quotes
    assert {field["rung"] for field in found} == {"person"}


def test_items_of_a_list_have_no_gaps_and_say_something_once(store: Store, shop: Record) -> None:
    def correct(correction: dict[str, Any]) -> Any:
        decision = Decision(decision="correct", who="ada", correction=correction)
        return reviewing.decide(store, shop.n, decision, NOW).data.get("accepts")

    with pytest.raises(UsageError, match="The next item of /accepts is /accepts/1"):
        correct({"/accepts/7": "toys"})
    assert correct({"/accepts/1": "toys"}) == ["bikes", "toys"]
    assert correct({"/accepts": ["toys", "toys"]}) == ["toys"]
    with pytest.raises(UsageError, match=r"/accepts is a list in the schema Shop. Give it as JSON"):
        correct({"/accepts": "toys"})


def test_a_correction_takes_values_away_and_replaces_lists(case: Case) -> None:
    claims = case.good.data["sustainability_claims"]
    made = case.decide(
        case.good, "correct", correction={"/founded_year": None, "/sustainability_claims": [claims[1], claims[0]]}
    )
    assert "founded_year" not in made.data
    assert made.data["sustainability_claims"] == [claims[1], claims[0]]
    assert made.scores["total"] is not None
    assert made.scores["total"] != case.good.scores["total"], "it is scored by what is left"
    paths = [field["path"] for field in made.fields]
    assert paths.count("/sustainability_claims/0") == 1
    assert "/sustainability_claims/2" not in paths


def test_fields_name_their_values_after_an_item_was_taken_away(case: Case) -> None:
    claims = case.good.data["sustainability_claims"]
    made = case.decide(case.good, "correct", correction={"/sustainability_claims/1": None})
    assert made.data["sustainability_claims"] == [claims[0], *claims[2:]]
    by_path = {field["path"]: field["value"] for field in made.fields}
    assert [by_path[f"/sustainability_claims/{i}"] for i in range(3)] == made.data["sustainability_claims"]
    assert "/sustainability_claims/3" not in by_path


def test_a_judgement_that_waits_is_published_when_it_is_approved(store: Store, tmp_path: Path) -> None:
    """Booleans and words of a list go to review, unless the schema allows them."""
    segments = Segments(tmp_path / "more")
    colour = {"enum": ["red", "blue"], "x-curtsy": {"css": "b"}}
    name = {"type": "string", "x-curtsy": {"css": "h1"}}
    schema = {"title": "Shop", "type": "object", "properties": {"name": name, "colour": colour}}
    text = " ".join(f"word{i}" for i in range(120))
    body = f"<!doctype html><h1>The Quiet Goose</h1><p>All of our doors are <b>blue</b> here. {text}".encode()
    crawl = orgs.make(store, segments, [("https://a.test/", body)], schema)
    orgs.run_all(orgs.parts_of(store, segments), crawl)
    (record,) = orgs.all_records(store, crawl)
    assert (record.status, record.confidence["reasons"]) == ("held", ["judged"])
    assert record.data == {"name": "The Quiet Goose"}
    (waiting,) = record.withheld
    assert (waiting["value"], waiting["verdict"]) == ("blue", "judged")
    made = reviewing.decide(store, record.n, Decision(decision="approve", who="ada"), NOW)
    assert (made.data, made.withheld) == ({"name": "The Quiet Goose", "colour": "blue"}, ())
    (field,) = [one for one in made.fields if one["path"] == "/colour"]
    assert (field["rung"], field["verdict"]) == ("person", "judged")
    assert field["evidence"]
    segments.close()


@pytest.mark.parametrize(
    ("correction", "said"),
    [
        ({"/founded_year": "long ago"}, "founded_year"),
        ({"/nothing": 1}, "no /nothing"),
        ({"/name": None}, "does not match its schema"),
        ({}, "1 to 1000"),
        ({"/name": "half \ud83d"}, "lone surrogate"),
        ({"/contact": {"email": "a\udc80@example.com"}}, "lone surrogate"),
        ({"/name": "Al\0der"}, r"contains U\+0000"),
    ],
)
def test_a_correction_that_does_not_fit_changes_nothing(case: Case, correction: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        case.decide(case.good, "correct", correction=correction)
    known = reviewing.review_case(case.store, case.good.n)
    assert (known.record, known.history) == (case.good, ())


def paged(store: Store, segments: Segments) -> Record:
    """A held record of the schema `page`."""
    body = b"<!doctype html><html lang=en><title>Lamp</title><h1>Old lamp</h1><h2>Better lamps</h2><p>Some words."
    crawl = orgs.make(store, segments, [("https://a.test/", body)], "page")
    orgs.run_all(orgs.parts_of(store, segments), crawl)
    (record,) = orgs.all_records(store, crawl)
    assert record.status == "held"
    return record


def test_a_correction_of_page_metadata_replaces_its_evidence(store: Store, tmp_path: Path) -> None:
    segments = Segments(tmp_path / "segments")
    record, parts = paged(store, segments), orgs.parts_of(store, segments)

    def correct(correction: dict[str, Any]) -> Record:
        made = Decision(decision="correct", who="ada", correction=correction)
        return reviewing.decide(store, record.n, made, NOW, parts)

    def said(record: Record, path: str) -> list[tuple[Any, str, list[str]]]:
        found = [one for one in record.fields if one["path"] == path]
        return [(one["value"], one["rung"], [each["quote"] for each in one["evidence"]]) for one in found]

    with pytest.raises(UsageError, match=r"does not match its schema: .*title"):
        correct({"/title": 5})
    made = correct({"/title": "Better lamps", "/language": None, "/headings": [{"level": 1, "text": "Lamps"}]})
    kept = reviewing.review_case(store, record.n).record
    assert (kept.data, kept.fields, kept.rungs) == (made.data, made.fields, made.rungs)
    assert (made.status, made.data["title"], made.data["language"]) == ("published", "Better lamps", None)
    assert said(made, "/title") == [("Better lamps", "person", ["Better lamps"])]
    assert said(made, "/language") == []
    assert said(made, "/headings/0") == [({"level": 1, "text": "Lamps"}, "person", [])]
    assert said(made, "/headings/1") == []
    assert made.rungs == {"function": len(made.data) - 2, "person": 2}
    review_undo.undo(store, record.n, "ada", NOW)
    assert said(correct({"/language": "de"}), "/language") == [("de", "person", [])]
    segments.close()


def test_a_decision_stands_whatever_fails_in_learning_from_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = Segments(tmp_path / "segments")
    schema = {"title": "Shop", "type": "object", "properties": {"name": {"type": "string", "x-curtsy": {"css": "h1"}}}}
    crawl = orgs.make(store, segments, [("https://a.test/", b"<!doctype html><h1>Old lamp</h1>")], schema)
    parts = orgs.parts_of(store, segments)
    orgs.run_all(parts, crawl)
    (record,) = orgs.all_records(store, crawl)
    failed: list[str] = []

    def fail(*_: Any) -> None:
        failed.append("here")
        raise KeyError("no such leaf")

    monkeypatch.setattr("curtsy.records.selector_learning.values_of", fail)
    decision = Decision(decision="correct", who="ada", correction={"/name": "New lamp"})
    made = reviewing.decide(store, record.n, decision, NOW, parts)
    assert failed
    known = reviewing.review_case(store, record.n)
    assert (known.record.data, len(known.history)) == ({"name": "New lamp"}, 1)
    assert known.record.fields == made.fields
    assert [(one["value"], one["rung"]) for one in made.fields] == [("New lamp", "person")]
    segments.close()


def test_what_cannot_be_decided_is_reported(case: Case) -> None:
    with pytest.raises(UnknownRecord):
        reviewing.decide(case.store, 10_000, Decision(decision="approve", who="ada"), NOW)
    with pytest.raises(UsageError, match="Unknown decision"):
        case.decide(case.good, "praise")
    with pytest.raises(UsageError, match="name of the reviewer"):
        reviewing.decide(case.store, case.good.n, Decision(decision="approve", who=" "), NOW)
    with pytest.raises(UsageError, match="corrected values"):
        case.decide(case.good, "approve", correction={"/name": "x"})
    with case.store.begin() as tx:
        newer = records.add(tx, orgs.replace_data(case.good, name="Another"), again=True)
    assert newer is not None
    with pytest.raises(WrongState, match="superseded"):
        case.decide(case.good, "approve")


def test_a_record_that_does_not_fit_its_schema_says_why_and_is_not_published_by_approval(
    store: Store, tmp_path: Path
) -> None:
    segments = Segments(tmp_path / "more")
    name, phone = ({"type": "string", "x-curtsy": {"css": css}} for css in ("h1", "b.phone"))
    properties = {"name": name, "phone": phone}
    schema = {"title": "Shop", "type": "object", "properties": properties, "required": ["name", "phone"]}
    body = f"<!doctype html><h1>The Quiet Goose</h1><p>{' '.join(f'word{i}' for i in range(120))}".encode()
    crawl = orgs.make(store, segments, [("https://a.test/", body)], schema)
    orgs.run_all(orgs.parts_of(store, segments), crawl)
    (record,) = orgs.all_records(store, crawl)
    assert (record.status, record.confidence["reasons"]) == ("held", ["invalid"])
    assert ["phone" in problem for problem in record.confidence["problems"]] == [True]
    with pytest.raises(UsageError, match=r"does not match its schema: .*phone.* Correct or reject it"):
        reviewing.decide(store, record.n, Decision(decision="approve", who="ada"), NOW)
    assert reviewing.review_case(store, record.n).history == ()
    put_right = Decision(decision="correct", who="ada", correction={"/phone": "+43 1 234"})
    assert reviewing.decide(store, record.n, put_right, NOW).status == "published"
    segments.close()


def test_a_version_beside_a_reviewed_one_waits_and_takes_its_place_when_approved(case: Case) -> None:
    case.decide(case.good, "approve")
    with case.store.begin() as tx:
        newer = records.add(tx, orgs.replace_data(case.good, name="Another"), again=True)
    assert newer is not None
    assert (newer.version, newer.status) == (2, "held")
    assert case.published() == [case.good.n]
    case.decide(newer, "approve")
    assert case.published() == [newer.n]


def test_golden_cases_hold_what_is_needed_to_extract_again(case: Case, tmp_path: Path) -> None:
    case.decide(case.thin, "approve")
    case.decide(case.good, "correct", correction={"/mission": "to do something else"}, golden=True)
    out = tmp_path / "golden"
    (folder,) = golden_cases.export_golden(case.store, case.segments, out)
    told = json.loads((folder / "case.json").read_text("utf-8"))
    assert told["expected"]["mission"] == "to do something else"
    assert told["review"] == {"decision": "correct", "who": "ada", "at_ms": NOW, "note": ""}
    schema = schemas.restore(told["schema"])
    pages = [
        record_claims.sources_of(f"1-{i:032x}", page["url"], (folder / page["body"]).read_bytes(), page["content_type"])
        for i, page in enumerate(told["pages"])
    ]
    fields = judge.settle(schema, record_claims.extract(schema, pages).claims)
    assert judge.assemble(schema, fields)["name"] == told["expected"]["name"]
    assert len(golden_cases.export_golden(case.store, case.segments, out, every=True)) == 2
    only = golden_cases.export_golden(case.store, case.segments, out, only=frozenset([case.thin.n]))
    assert [path.name for path in only] == [f"organization-{case.thin.n}"]
    assert golden_cases.export_golden(case.store, case.segments, out, crawl=case.crawl.n + 1, every=True) == []
    with pytest.raises(UnknownRecord):
        golden_cases.export_golden(case.store, case.segments, out, only=frozenset([4242]))
    case.decide(case.thin, "reject")
    with pytest.raises(UsageError, match=f"Record {case.thin.n} cannot be a golden case"):
        golden_cases.export_golden(case.store, case.segments, out, only=frozenset([case.thin.n]))
