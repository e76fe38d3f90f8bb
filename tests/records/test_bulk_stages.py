"""Records of many pages in one pass: the same records as one by one, and what fails is tried alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import stored

from curtsy.core import clock
from curtsy.core.model import Crawl
from curtsy.core.record import Record
from curtsy.core.settings import Settings
from curtsy.core.shutdown import StopFlag
from curtsy.records import bulk_stages, extraction, reextraction, stages
from curtsy.records import plan as plans
from curtsy.records.extraction import Parts
from curtsy.store import crawls, failures, outbox, records
from curtsy.store.engine import Store
from curtsy.store.segments import Segments

FORMS = sorted((Path(__file__).parents[1] / "golden" / "main_content").glob("*.html"))[:24]


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    settings = Settings(data_dir=tmp_path / "data", llm="none", stage_attempts=2)
    with Store.open(settings.effective_store_url) as store:
        segments = Segments(settings.segments_dir)
        yield Parts(settings, store, segments)
        segments.close()


@pytest.fixture
def crawl(parts: Parts) -> Crawl:
    made = stored.crawl(parts.store)
    pages = [(f"https://a.test/{at}", path.read_bytes()) for at, path in enumerate(FORMS)]
    stored.add_pages(parts.store, parts.segments, made, pages)
    return made


def extract(parts: Parts, crawl: Crawl, schema: str = "article", rubric: str | None = None) -> list[Record]:
    reextraction.begin(parts.store, crawl.id, plans.crawl_fields(schema, rubric), clock.now_ms())
    asyncio.run(stages.run_all(parts, crawl.n, StopFlag()))
    with parts.store.read() as tx:
        assert crawls.state_of(tx, crawl.n).value == "finished"
        return records.chunk(tx, crawl.n, statuses=("published", "held"))[0]


def said(found: list[Record]) -> list[Any]:
    return sorted((one.subject, one.data, one.fields, one.scores, one.status) for one in found)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_BACKOFF_MS", 10)


@pytest.mark.parametrize("schema", ["article", "page"])
def test_records_in_bulk_are_those_of_single_stages(
    parts: Parts, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, schema: str
) -> None:
    monkeypatch.setattr(bulk_stages, "MOST_ROWS", 7)
    passes = []
    whole = bulk_stages.run_some
    monkeypatch.setattr(bulk_stages, "run_some", lambda *given: passes.append(1) or whole(*given))
    many = extract(parts, crawl, schema)
    assert len(many) >= 10
    assert len(passes) >= 5, "four passes with rows, and one without"
    with parts.store.begin() as tx:
        tx.exec_driver_sql("DELETE FROM records")
    monkeypatch.setattr(bulk_stages, "suits", lambda *_: False)
    assert str(said(extract(parts, crawl, schema))) == str(said(many))


def test_a_page_that_fails_does_not_keep_back_the_others_and_is_tried_again(
    parts: Parts, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []
    whole = extraction.extract

    def broken(parts: Parts, crawl: Crawl, row: outbox.Row, found: Any) -> Any:
        tries.append(row.subject)
        if row.payload["url"].endswith("/3"):
            raise RuntimeError("broken")
        return whole(parts, crawl, row, found)

    monkeypatch.setattr(extraction, "extract", broken)
    monkeypatch.setitem(stages._WORK, "extract", broken)
    found = extract(parts, crawl, "page")
    assert len(found) == len(FORMS) - 1
    assert len(tries) == len(FORMS) + 1, "in the pass, and once more alone"
    with parts.store.read() as tx:
        assert [(one.url, one.cause, one.attempts) for one in failures.find(tx)] == [("https://a.test/3", "error", 2)]


def test_a_pass_without_time_gives_its_rows_back_as_they_were(
    parts: Parts, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_stages, "_MOST_S", -1.0)
    reextraction.begin(parts.store, crawl.id, plans.crawl_fields("page"), clock.now_ms())
    done = bulk_stages.run_some(parts, crawl.n, clock.now_ms(), 5_000, stages._store)
    assert (done.begun, done.failed) == (len(FORMS), [])
    with parts.store.read() as tx:
        rows = tx.exec_driver_sql("SELECT attempts, begun_ms FROM outbox").all()
    assert rows == [(0, None)] * (len(FORMS) - 1)


def test_rows_that_were_begun_before_are_not_taken_in_bulk(parts: Parts, crawl: Crawl) -> None:
    """Their process was killed: each is tried alone, so that the page that kills is found."""
    reextraction.begin(parts.store, crawl.id, plans.crawl_fields("page"), clock.now_ms())
    with parts.store.begin() as tx:
        tx.exec_driver_sql("UPDATE outbox SET begun_ms = 1")
    assert bulk_stages.run_some(parts, crawl.n, clock.now_ms(), 5_000, stages._store).begun == 0
    asyncio.run(stages.run_all(parts, crawl.n, StopFlag()))
    with parts.store.read() as tx:
        assert sum(records.counts(tx, crawl.n, None).values()) == len(FORMS)


def test_models_and_functions_of_users_are_not_for_bulk(parts: Parts, crawl: Crawl) -> None:
    plain = replace(crawl, schema="page", schema_hash=None)
    assert bulk_stages.suits(parts, plain)
    assert not bulk_stages.suits(parts, replace(plain, llm="endpoint"))
    assert not bulk_stages.suits(parts, replace(plain, schema=None))
    asked = parts.settings.model_copy(update={"llm": None, "llm_url": "http://127.0.0.1:9/v1"})
    assert not bulk_stages.suits(replace(parts, settings=asked), plain)
