"""The stages on SQLite and PostgreSQL: rivals for one row, the last of a crawl, results that stay."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from curtsy.control import replay
from curtsy.core.model import Crawl, CrawlState, Page
from curtsy.core.settings import Settings
from curtsy.grounding import page_schema, schema
from curtsy.records import stages
from curtsy.records.stages import StageMessage
from curtsy.store import crawls, failures, outbox, pages, records
from curtsy.store.engine import Store
from curtsy.store.segments import Segments
from curtsy.store.warc import WarcItem

NOW = 1_700_000_000_000
BODY = b"<!doctype html><title>A page</title><p>" + b"word " * 120


@dataclass
class Parts:
    """What stages need of a process."""

    store: Store
    segments: Segments
    settings: Settings


@pytest.fixture
def parts(store: Store, tmp_path: Path) -> Iterator[Any]:
    opened = Parts(store, Segments(tmp_path / "segments"), Settings(stage_attempts=2))
    yield opened
    opened.segments.close()


def make(parts: Parts, n: int) -> int:
    """A crawl with so many stored pages, all of them fetched."""
    urls = [f"https://a.test/{i}" for i in range(n)]
    items = [
        WarcItem(url=url, fetched_ms=NOW, status=200, headers=(), body=body, sha256=sha256(body).hexdigest())
        for url, body in ((url, BODY + url.encode()) for url in urls)
    ]
    refs = parts.segments.append(items)
    with parts.store.begin() as tx:
        crawl = crawls.create(tx, Crawl(id="c", request_id="req", state=CrawlState.EXTRACTING, schema="page"))
        rows = [
            Page(
                id="", crawl=crawl.n, fp=bytes([i]) * 16, url=url, host="a.test", status=200, fetched_ms=NOW, depth=0,
                content_type="text/html", sha256=items[i].sha256, body=refs[i], fence=100 + i,
            )
            for i, url in enumerate(urls)
        ]  # fmt: skip
        pages.insert(tx, rows)
        outbox.put(tx, [outbox.Put("extract", crawl.n, page.fp.hex(), NOW, {}, "req") for page in rows])
    return crawl.n


def run(parts: Any, sending: StageMessage, now_ms: int = NOW) -> list[StageMessage]:
    return asyncio.run(stages.run(parts, sending.kind, sending.n, now_ms))


def at_once(parts: Any, *sendings: StageMessage) -> list[StageMessage]:
    """All of them in threads that begin together; what is to be sent next."""
    barrier = threading.Barrier(len(sendings))

    def one(sending: StageMessage) -> list[StageMessage]:
        barrier.wait()
        return run(parts, sending)

    with ThreadPoolExecutor(len(sendings)) as pool:
        return [following for found in pool.map(one, sendings) for following in found]


def state(parts: Parts, crawl: int) -> CrawlState:
    with parts.store.read() as tx:
        return crawls.by_n(tx, crawl).state


def test_a_page_becomes_a_record(parts: Any) -> None:
    crawl = make(parts, 1)
    sendings = stages.sweep(parts.store, parts.settings, NOW)
    kinds = []
    while sendings:
        sending = sendings.pop()
        kinds.append(sending.kind)
        sendings += run(parts, sending)
    assert kinds == ["extract", "score", "store"]
    with parts.store.read() as tx:
        (record,), _ = records.chunk(tx, crawl)
    assert (record.url, record.data["title"], record.request_id) == ("https://a.test/0", "A page", "req")
    assert record.schema_hash == schema.load("page").hash
    assert state(parts, crawl) is CrawlState.FINISHED


def test_rivals_for_one_row_make_one_record(parts: Any) -> None:
    crawl = make(parts, 1)
    (sending,) = stages.sweep(parts.store, parts.settings, NOW)
    for _ in range(3):
        found = at_once(parts, *[sending] * 4)
        assert len(found) <= 1, "the next stage is sent by whoever was first"
        if found:
            (sending,) = found
    with parts.store.read() as tx:
        assert sum(records.counts(tx, crawl, None).values()) == 1
    assert state(parts, crawl) is CrawlState.FINISHED


def test_whoever_does_the_last_stage_finishes_the_crawl(parts: Any) -> None:
    crawl = make(parts, 8)
    sendings = stages.sweep(parts.store, parts.settings, NOW)
    while sendings:
        sendings = at_once(parts, *sendings)
    assert state(parts, crawl) is CrawlState.FINISHED
    with parts.store.read() as tx:
        assert sum(records.counts(tx, crawl, None).values()) == 8


def test_a_crawl_whose_last_stage_was_killed_before_it_said_so_is_finished_by_the_sweep(parts: Any) -> None:
    crawl = make(parts, 1)
    with parts.store.begin() as tx:
        (row,) = outbox.due(tx, NOW, 10)
        outbox.done(tx, row.n)
    assert stages.sweep(parts.store, parts.settings, NOW) == []
    assert state(parts, crawl) is CrawlState.FINISHED


def test_dead_letters_of_a_stage_are_replayed_from_there(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = make(parts, 2)
    monkeypatch.setitem(page_schema.extractors, "page", lambda source: 1 / 0)
    for now_ms in (NOW, NOW + 10_000):
        for sending in stages.sweep(parts.store, parts.settings, now_ms):
            assert run(parts, sending, now_ms) == []
    assert state(parts, crawl) is CrawlState.FINISHED
    with parts.store.read() as tx:
        dead = failures.find(tx, crawl=crawl, stage="extract")
    assert [(f.cause, f.attempts, f.host, f.request_id) for f in dead] == [("error", 2, "a.test", "req")] * 2
    monkeypatch.undo()
    assert replay.replay(parts.store, replay.Filter(limit=1), NOW).dead_letters == 1
    assert state(parts, crawl) is CrawlState.EXTRACTING
    sendings = stages.sweep(parts.store, parts.settings, NOW)
    while sendings:
        sendings += run(parts, sendings.pop())
    with parts.store.read() as tx:
        assert sum(records.counts(tx, crawl, None).values()) == 1
        assert len(failures.find(tx, crawl=crawl)) == 1
    assert state(parts, crawl) is CrawlState.FINISHED


def test_an_error_that_quotes_what_no_database_takes_is_a_dead_letter(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = make(parts, 1)

    def fails(_source: Any) -> Any:
        raise stages.StageFault("function_failed", "half \udc80, zero \0", False)

    monkeypatch.setitem(page_schema.extractors, "page", fails)
    (sending,) = stages.sweep(parts.store, parts.settings, NOW)
    assert run(parts, sending) == []
    assert state(parts, crawl) is CrawlState.FINISHED
    with parts.store.read() as tx:
        (dead,) = failures.find(tx, crawl=crawl, stage="extract")
    assert (dead.cause, dead.detail) == ("function_failed", "half \\udc80, zero \\x00")


def test_a_page_that_was_deleted_meanwhile_has_no_record(parts: Any) -> None:
    crawl = make(parts, 1)
    with parts.store.begin() as tx:
        tx.exec_driver_sql("DELETE FROM pages")
    sendings = stages.sweep(parts.store, parts.settings, NOW)
    while sendings:
        sendings += run(parts, sendings.pop())
    with parts.store.read() as tx:
        assert sum(records.counts(tx, crawl, None).values()) == 0
        assert failures.find(tx, crawl=crawl) == []
    assert state(parts, crawl) is CrawlState.FINISHED
