"""Crawls of the tiny web's organisations as they stand when everything is fetched, made without fetching."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import stored

from curtsy.core.model import Crawl, CrawlState
from curtsy.core.record import Record
from curtsy.core.settings import Settings
from curtsy.core.shutdown import StopFlag
from curtsy.records import plan, stages
from curtsy.records.extraction import Parts
from curtsy.records.stages import StageMessage
from curtsy.store import queues, records, sites
from curtsy.store.engine import Store
from curtsy.store.segments import SegmentStore
from curtsy.tinyweb.facts import Kind, kind_of, org_host
from curtsy.tinyweb.pages import SECTIONS, OrgSite, Shape


def bodies(numbers: Iterable[int]) -> list[tuple[str, bytes]]:
    """(URL, body) of the sections and documents of those organisations' sites."""
    found = []
    for number in numbers:
        site = OrgSite(org_host(number), Shape(), 1)
        answers = [(path, site.answer(path)) for path in (*SECTIONS, site.document) if path]
        found += [
            (f"http://{site.host}{path}", answer.wire[len(answer.head) :])
            for path, answer in answers
            if answer.status == 200
        ]
    return found


def make(
    store: Store, segments: SegmentStore, pages: list[tuple[str, bytes]], schema: str | dict[str, Any] = "organization",
    rubric: str | None = None, llm: str | None = None, **fields: Any,
) -> Crawl:  # fmt: skip
    """All of it is fetched and nothing extracted; sites are put."""
    made = stored.crawl(store, CrawlState.EXTRACTING, **plan.crawl_fields(schema, rubric, llm))
    found = stored.add_pages(store, segments, made, pages, **fields)

    def put(tx: Any) -> None:
        for host in {page.host for page in found}:
            queues.mark_empty_if_none(tx, made.n, host)
        if made.per == "site":
            sites.put_all(tx, made.n)
        else:
            puts = [stages.Put("extract", made.n, page.fp.hex(), 0, {"url": page.url}, "made") for page in found]
            stages.outbox.put(tx, puts)

    store.run(put)
    return made


def run_all(parts: Parts, crawl: Crawl, seconds: float = 120) -> None:
    asyncio.run(asyncio.wait_for(stages.run_all(parts, crawl.n, StopFlag()), seconds))


def run_one(parts: Parts, sending: StageMessage, now_ms: int | None = None) -> list[StageMessage]:
    return asyncio.run(stages.run(parts, sending.kind, sending.n, now_ms))


def all_records(store: Store, crawl: Crawl, *statuses: str) -> list[Any]:
    with store.read() as tx:
        return records.chunk(tx, crawl.n, 0, 10_000, statuses=statuses)[0]


def parts_of(store: Store, segments: SegmentStore, **settings: Any) -> Parts:
    return Parts(Settings(**settings), store, segments)


def replace_data(record: Record, **values: Any) -> Record:
    """The same that says something else."""
    return replace(record, n=0, data={**record.data, **values}, status="published", reviewed_ms=None)


def another(record: Record, **fields: Any) -> Record:
    return replace(record, n=0, **fields)


def is_thin(number: int) -> bool:
    """Without a browser there are under 100 words to read."""
    return kind_of(number) in (Kind.THIN, Kind.SCRIPT, Kind.FETCHED)
