"""Records on SQLite and PostgreSQL: versions, states, sources, the review queue, answers of models, deletion."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import orgs
import pytest
import stored
from sqlalchemy import text

from curtsy.core.claims import Usage
from curtsy.core.model import Crawl, Definition
from curtsy.core.record import Record, Review
from curtsy.core.settings import Settings
from curtsy.records.crawl_model import StoredBudget, StoredCache
from curtsy.rules.urls import fingerprint
from curtsy.store import crawls, definitions, deletion, llm_cache, outbox, records, reviews, sites, sources
from curtsy.store.engine import Store
from curtsy.store.migrations import statements
from curtsy.store.segments import Segments
from curtsy.store.sources import Source

FIELD = {"path": "/name", "value": "A", "rung": "llm", "verdict": "supported", "evidence": []}
FIRST = Record(
    crawl=1, subject="site:a.test", kind="site", schema="s", schema_hash="h", url="https://a.test/", data={"name": "A"},
    fields=(FIELD,), withheld=({**FIELD, "path": "/year", "value": 7, "verdict": "unsupported"},), created_ms=10,
    as_of=3, confidence={"share": 0.5, "words": 200, "low": False, "reasons": []},
)  # fmt: skip
OTHER = replace(FIRST, data={"name": "B"}, created_ms=20, as_of=4)
SOURCE = Source("00" * 16, "5" * 64, "text", "https://a.test/", "A is here \ud800\0 and there")


def test_the_first_record_of_a_key_stays_unless_it_is_extracted_again(store: Store) -> None:
    with store.begin() as tx:
        first = records.add(tx, FIRST)
        assert first is not None
        assert records.add(tx, OTHER) is None
        assert records.add(tx, replace(FIRST, as_of=9), again=True) is None, "it says the same"
        assert records.get(tx, first.n) == replace(first, as_of=9)
        second = records.add(tx, OTHER, again=True)
        assert second is not None
        assert (second.version, second.status) == (2, "published")
        assert [record.n for record in records.chunk(tx, 1)[0]] == [second.n]
        assert [record.n for record in records.chunk(tx, 1, statuses=("superseded",))[0]] == [first.n]
        assert records.counts(tx, 1, "h") == {"published": 1, "superseded": 1}


@pytest.mark.parametrize("status", ["published", "rejected"])
def test_a_reviewed_record_is_never_replaced(store: Store, status: str) -> None:
    with store.begin() as tx:
        first = records.add(tx, FIRST)
        assert first is not None
        records.decided(tx, replace(first, status=status, reviewed_ms=5))
        second = records.add(tx, OTHER, again=True)
        assert second is not None
        assert (second.version, second.status, second.confidence["reasons"]) == (2, "held", ["reviewed_before"])
        kept = records.get(tx, first.n)
        assert kept is not None
        assert (kept.status, kept.data) == (status, {"name": "A"})
        records.decided(tx, replace(second, status="published", reviewed_ms=6))
        assert [record.n for record in records.chunk(tx, 1)[0]] == [second.n], "only one version is published"


@pytest.mark.parametrize("status", ["published", "rejected"])
def test_a_decision_stands_however_often_it_is_extracted_again(store: Store, status: str) -> None:
    with store.begin() as tx:
        first = records.add(tx, FIRST)
        assert first is not None
        records.decided(tx, replace(first, status=status, reviewed_ms=5))
        second = records.add(tx, OTHER, again=True)
        third = records.add(tx, replace(OTHER, data={"name": "C"}), again=True)
        assert second is not None
        assert third is not None
        assert (third.version, third.status, third.confidence["reasons"]) == (3, "held", ["reviewed_before"])
        assert records.counts(tx, 1, "h") == {"held": 1, status: 1, "superseded": 1}
        assert records.add(tx, replace(OTHER, data={"name": "C"}, as_of=8), again=True) is None, "it waits already"
        records.decided(tx, replace(third, status="rejected", reviewed_ms=6))
        assert records.add(tx, FIRST, again=True) is None, "that is decided"
        thin = {**OTHER.confidence, "reasons": ["thin"]}
        fourth = records.add(tx, replace(OTHER, status="held", confidence=thin), again=True)
        assert fourth is not None
        assert fourth.confidence["reasons"] == ["thin", "reviewed_before"]
        assert records.counts(tx, 1, "h") == Counter({"held": 1, "superseded": 1}) + Counter([status, "rejected"])
        assert records.add(tx, FIRST, again=True) is None
        assert records.counts(tx, 1, "h") == Counter(superseded=2) + Counter([status, "rejected"]), "it waits no more"


@pytest.mark.parametrize(
    ("status", "data", "expected"),
    [
        ("rejected", {"name": "A"}, "held"),
        ("published", {"name": "B"}, "held"),
        ("published", {"name": "A"}, "published"),
    ],
)
def test_a_changed_schema_does_not_undo_a_decision(
    store: Store, status: str, data: dict[str, str], expected: str
) -> None:
    with store.begin() as tx:
        first = records.add(tx, FIRST)
        assert first is not None
        records.decided(tx, replace(first, status=status, data=data, reviewed_ms=5))
        changed = records.add(tx, replace(FIRST, schema_hash="changed"), again=True)
        assert changed is not None
        assert (changed.version, changed.status) == (1, expected)
        assert ("reviewed_before" in changed.confidence["reasons"]) is (expected == "held")
        another = records.add(tx, replace(FIRST, schema="another", schema_hash="another"), again=True)
        assert another is not None
        assert another.status == "published"


def test_what_a_person_published_can_be_relied_on(store: Store) -> None:
    with store.begin() as tx:
        held = records.add(tx, replace(FIRST, status="held", low_confidence=True))
        rejected = records.add(tx, replace(FIRST, subject="site:b.test", status="held", low_confidence=True))
        assert held is not None
        assert rejected is not None
        records.decided(tx, replace(held, status="published", reviewed_ms=5))
        records.decided(tx, replace(rejected, status="rejected", reviewed_ms=5))
        assert [record.n for record in records.chunk(tx, 1, low_confidence=False)[0]] == [held.n]
        assert [record.n for record in records.chunk(tx, 1, low_confidence=True, statuses=())[0]] == [rejected.n]


def test_lists_are_of_one_schema_state_and_crawl(store: Store) -> None:
    with store.begin() as tx:
        for i in range(6):
            status = "held" if i % 2 else "published"
            records.add(
                tx, replace(FIRST, subject=f"site:{i}", status=status, crawl=1 + i // 4, schema_hash="hi"[i // 3])
            )
        assert [r.subject for r in records.chunk(tx, 1)[0]] == ["site:0", "site:2"]
        assert [r.subject for r in records.chunk(tx, 1, schema_hash="h", statuses=())[0]] == [
            "site:0",
            "site:1",
            "site:2",
        ]
        queue, after = records.chunk(tx, None, 0, 2, statuses=("held",))
        assert [r.subject for r in queue] == ["site:1", "site:3"]
        assert [r.subject for r in records.chunk(tx, None, after, statuses=("held",))[0]] == ["site:5"]
        assert records.chunk(tx, 1, statuses=("unheard of",))[0] == []


def test_the_review_queue_is_found_by_its_index(store: Store) -> None:
    """Also among very many records, of which few are held."""
    queries = [
        "SELECT n FROM records WHERE n > 0 AND status = 'held' ORDER BY n LIMIT 100",
        "SELECT n FROM records WHERE n > 0 AND crawl = 1 AND status = 'held' ORDER BY n LIMIT 100",
        "SELECT n FROM records WHERE n > 0 AND crawl = 1 AND schema_hash = 'h' AND status = 'published' "
        "ORDER BY n LIMIT 100",
    ]
    with store.begin() as tx:
        series = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 20000)"
        columns = "crawl, subject, schema_hash, schema, url, data, scores, low_confidence, created_ms, status"
        values = "1 + i % 3, 'site:' || i, 'h', 's', 'u', '{}', '{}', false, 1"
        state = "CASE WHEN i % 1000 = 0 THEN 'held' ELSE 'published' END"
        tx.execute(text(f"INSERT INTO records ({columns}) {series} SELECT {values}, {state} FROM c"))
        tx.execute(text("ANALYZE"))
        explain = "EXPLAIN " if tx.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN "
        plans = [" ".join(str(row) for row in tx.execute(text(explain + query))) for query in queries]
    assert "records_queue" in plans[0] or "records_held" in plans[0]
    assert "records_held" in plans[1] or "records_queue" in plans[1]
    assert "Seq Scan" not in "".join(plans)
    assert "TEMP B-TREE" not in "".join(plans)


def test_sources_stay_with_the_records_that_cite_them(store: Store) -> None:
    with store.begin() as tx:
        first = records.add(tx, FIRST, [SOURCE])
        second = records.add(tx, replace(FIRST, schema_hash="i"), [SOURCE, SOURCE._replace(page="11" * 16)])
        assert first is not None
        assert second is not None
        (kept,) = sources.of(tx, first.n)
        assert kept.text == "A is here ?\ufffd and there"
        assert len(kept.text) == len(SOURCE.text), "spans count as before"
        assert [source.page for source in sources.of(tx, second.n)] == ["00" * 16, "11" * 16]


def test_decisions_are_kept_one_after_another(store: Store) -> None:
    with store.begin() as tx:
        one = Review(record=7, crawl=1, decision="reject", who="ada", at_ms=5, before={"name": "A"})
        reviews.add(tx, one)
        reviews.add(tx, replace(one, decision="correct", correction={"/name": None}, golden=True, at_ms=6))
        assert [(r.decision, r.correction, r.before) for r in reviews.of(tx, 7)] == [
            ("reject", None, {"name": "A"}), ("correct", {"/name": None}, {"name": "A"}),
        ]  # fmt: skip
        assert [r.decision for r in reviews.golden(tx, None, every=False)] == ["correct"]
        assert reviews.golden(tx, 2, every=True) == []


def test_definitions_are_written_with_the_crawl_and_kept(store: Store) -> None:
    one = Definition(hash="h", kind="schema", name="s", body="{}")
    made = stored.crawl(store, schema="s", schema_hash="h", per="site", definitions=(one,))
    stored.crawl(store, schema="s", schema_hash="h", per="site", definitions=(replace(one, body="another"),))
    with store.read() as tx:
        assert definitions.get(tx, "h") == one
        assert definitions.get(tx, "i") is None
        found = crawls.by_n(tx, made.n)
    assert (found.schema, found.schema_hash, found.per, found.definitions) == ("s", "h", "site", ())


def test_answers_and_budgets_of_models_hold_over_processes(store: Store) -> None:
    StoredCache(store, 1, "site:a").put("key", "said")
    assert StoredCache(store, 2, "site:b").get("key") == "said"
    settings = Settings(llm_max_tokens_per_crawl=100)
    most, used = Usage(calls=1, prompt_tokens=50, completion_tokens=10), Usage(calls=1, prompt_tokens=20)
    one, two = StoredBudget(store, 1, settings), StoredBudget(store, 1, settings)
    assert one.take(most)
    assert not two.take(most), "120 tokens are more than 100"
    one.settle(most, used)
    assert two.take(most)
    two.settle(most, used)
    with store.read() as tx:
        assert llm_cache.spent(tx, 1) == Usage(calls=2, prompt_tokens=40)
        assert llm_cache.spent(tx, 2) == Usage()
    with store.read() as tx:
        assert llm_cache.has_before(tx, 1 << 60)
        assert not llm_cache.has_before(tx, 1)
    assert store.run(llm_cache.forget_before, 1 << 60) == 1


def test_old_records_that_were_doubtful_are_held_after_the_migration(store: Store) -> None:
    """The statements of the migration over a table as it was before."""
    with store.begin() as tx:
        database = tx.dialect.name
        for name in ("records", "definitions", "sources", "citations", "reviews", "llm_cache", "llm_usage"):
            tx.exec_driver_sql(f"DROP TABLE {name}")
        (before,) = [one for one in statements("0005", database) if "CREATE TABLE records" in one]
        tx.exec_driver_sql(before)
        tx.exec_driver_sql("CREATE INDEX records_crawl ON records (crawl, n)")
        for n, low in ((1, "false"), (2, "true")):
            values = f"{n}, 1, 's{n}', 'h', 0, 's', 'u', '{{}}', '{{}}', {low}, 1, ''"
            tx.exec_driver_sql(f"INSERT INTO records VALUES ({values})")
        for statement in (*statements("0006", database), *statements("0015", database), *statements("0026", database)):
            if "TABLE crawls" not in statement:
                tx.exec_driver_sql(statement)
        assert [(r.n, r.status) for r in records.chunk(tx, 1, statuses=())[0]] == [(1, "published"), (2, "held")]


# Sites


def site_rows(store: Store) -> list[Any]:
    with store.read() as tx:
        return [tuple(row) for row in tx.execute(text("SELECT kind, subject, state FROM outbox ORDER BY n"))]


@pytest.fixture
def segments(tmp_path: Path) -> Any:
    opened = Segments(tmp_path / "segments")
    yield opened
    opened.close()


def test_a_site_is_put_when_its_last_url_is_done(store: Store, segments: Segments) -> None:
    crawl = stored.crawl(store, schema="s", schema_hash="h", per="site")
    stored.add_pages(store, segments, crawl, [("https://a.test/", b"a"), ("https://b.test/", b"b")])
    assert store.run(sites.close, crawl.n, "a.test")
    assert store.run(sites.close, crawl.n, "a.test")
    assert site_rows(store) == [("extract", "site:a.test", "open")]
    assert store.run(sites.put_all, crawl.n) == 1
    assert [row[1] for row in site_rows(store)] == ["site:a.test", "site:b.test"]


def test_a_site_is_not_put_while_it_has_open_urls_or_where_no_site_is_wanted(store: Store, segments: Segments) -> None:
    crawl = stored.crawl(store, schema="s", schema_hash="h", per="site")
    plain = stored.crawl(store, schema="page", schema_hash="p", per="page")
    for made in (crawl, plain):
        stored.add_pages(store, segments, made, [("https://a.test/", b"a")])
    assert store.run(sites.put_ready, crawl.n, ["a.test"]) == 0, "its queue is open"
    store.run(sites.close, plain.n, "a.test")
    store.run(sites.put_all, plain.n)
    assert site_rows(store) == []


def test_a_site_that_got_pages_after_its_record_is_extracted_once_more(store: Store, segments: Segments) -> None:
    pages = orgs.bodies([1])
    crawl = orgs.make(store, segments, [page for page in pages if not page[0].endswith("/contact")])
    parts = orgs.parts_of(store, segments)
    orgs.run_all(parts, crawl)
    (first,) = orgs.all_records(store, crawl)
    assert "contact" not in first.data or not first.data["contact"].get("address")
    assert store.run(sites.put_all, crawl.n) == 0, "nothing is new"
    late = [page for page in pages if page[0].endswith("/contact")]
    stored.add_pages(store, segments, crawl, late, fence=99)
    store.run(sites.close, crawl.n, "org-0001.tinyweb.test")
    store.run(crawls.set_state, crawl.n, stored.CrawlState.EXTRACTING, None, 1)
    orgs.run_all(parts, crawl)
    (now,) = orgs.all_records(store, crawl, "published")
    assert (now.version, now.data["contact"]["email"]) == (2, "contact@org-0001.tinyweb.test")
    assert store.run(sites.put_all, crawl.n) == 0


def test_a_site_whose_pages_did_not_change_since_the_last_crawl_has_its_record(
    store: Store, segments: Segments
) -> None:
    """Of a page that was not modified the body of the last crawl is read."""
    crawl = orgs.make(store, segments, orgs.bodies([1]), status=304, content_type=None)
    orgs.run_all(orgs.parts_of(store, segments), crawl)
    (record,) = orgs.all_records(store, crawl)
    assert record.data["name"] == "Amber Water Foundation"


# Deletion


def left(store: Store) -> dict[str, int]:
    names = ("records", "sources", "citations", "reviews", "llm_cache", "results", "llm_usage")
    with store.read() as tx:
        return {name: int(tx.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()) for name in names}


def delete(store: Store, segments: Segments, **which: Any) -> None:
    store.run(lambda tx: deletion.add(tx, "d", 1, **which))
    with store.read() as tx:
        (one,) = deletion.pending(tx)
    assert deletion.carry_out(store, segments, one, 1 << 60, lambda: False)


def test_with_a_page_goes_whatever_was_made_of_it(store: Store, segments: Segments) -> None:
    crawl = orgs.make(store, segments, orgs.bodies([1, 2]))
    orgs.run_all(orgs.parts_of(store, segments), crawl)
    one, two = orgs.all_records(store, crawl)
    with store.begin() as tx:
        reviews.add(tx, Review(record=one.n, crawl=crawl.n, decision="approve", who="ada", at_ms=1))
        for record in (one, two):
            llm_cache.put(tx, record.subject, "said", crawl.n, record.subject, 1)
    cited = next(field["evidence"][0]["url"] for field in one.fields if field["path"] == "/headquarters")
    delete(store, segments, fp=fingerprint(cited), crawl=crawl.n)
    assert orgs.all_records(store, crawl) == [two], "a value of that page was in the site's record"
    found = left(store)
    assert (found["reviews"], found["llm_cache"]) == (0, 1)
    with store.read() as tx:
        assert tx.execute(text("SELECT count(*) FROM sources WHERE url = :url"), {"url": cited}).scalar_one() == 0
        assert sources.of(tx, two.n)


def test_a_site_whose_page_is_deleted_between_two_stages_starts_again(store: Store, segments: Segments) -> None:
    crawl = orgs.make(store, segments, orgs.bodies([1]))
    parts = orgs.parts_of(store, segments)
    with store.read() as tx:
        (row,) = outbox.due_of(tx, crawl.n, 1 << 60, 10)
    (sending,) = orgs.run_one(parts, orgs.StageMessage(row.kind, row.n, ""))
    assert sending.kind == "score"
    delete(store, segments, fp=fingerprint("http://org-0001.tinyweb.test/contact"), crawl=crawl.n)
    assert left(store)["results"] == 0
    assert site_rows(store) == [("extract", "site:org-0001.tinyweb.test", "open")]
    orgs.run_all(parts, crawl)
    (record,) = orgs.all_records(store, crawl)
    assert "address" not in record.data.get("contact", {})


def test_with_a_crawl_goes_everything(store: Store, segments: Segments) -> None:
    crawl = orgs.make(store, segments, orgs.bodies([1]))
    kept = orgs.make(store, segments, orgs.bodies([2]))
    for made in (crawl, kept):
        orgs.run_all(orgs.parts_of(store, segments), made)
        with store.begin() as tx:
            (record, *_), _ = records.chunk(tx, made.n)
            reviews.add(tx, Review(record=record.n, crawl=made.n, decision="approve", who="ada", at_ms=1))
            llm_cache.put(tx, record.subject, "said", made.n, record.subject, 1)
            llm_cache.spend(tx, made.n, Usage(calls=1))
    delete(store, segments, crawl=crawl.n, whole=True)
    with store.read() as tx:
        for name in ("records", "sources", "citations", "reviews", "llm_cache", "llm_usage"):
            owners = set(tx.execute(text(f"SELECT DISTINCT crawl FROM {name}")).scalars())
            assert owners == {kept.n}, name


def test_a_crawl_may_get_another_plan(store: Store) -> None:
    made = stored.crawl(store, schema="s", schema_hash="h", per="page")
    one = Definition(hash="i", kind="schema", name="t", body="{}")
    plan = Crawl(id="", request_id="", schema="t", schema_hash="i", per="site", llm="none", definitions=(one,))
    store.run(crawls.set_plan, made.n, plan)
    with store.read() as tx:
        found = crawls.by_n(tx, made.n)
        assert (found.schema, found.schema_hash, found.per, found.llm) == ("t", "i", "site", "none")
        assert definitions.get(tx, "i") == one
