"""Repeat the extraction over stored pages: another schema, rubric or model for a finished crawl. Nothing is fetched.

The crawl gets the new plan, its pages or sites pass through the stages again, and it finishes after the last one.
Records of the same schema get a new version if their content differs. Records of another schema are added; lists no
longer show the earlier ones. `compare` returns the differences.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from curtsy.core.errors import WrongState
from curtsy.core.model import Crawl, CrawlState
from curtsy.core.record import Record
from curtsy.grounding.json_pointer import step
from curtsy.store import crawls, failures, outbox, pages, records, sites
from curtsy.store.engine import Store
from curtsy.store.outbox import Put

_CHUNK = 1000
#: the parts of the scores that depend on the rubric
_SCORED = ("rubric", "version", "total", "groups")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An extraction that was started."""

    crawl: Crawl
    #: the previous schema of the crawl
    before: str | None
    begun_ms: int
    #: number of pages or sites to extract
    subjects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The difference for one page or site."""

    #: `new` | `changed` | `gone` | `unchanged`
    kind: str
    subject: str
    ordinal: int
    url: str
    #: JSON pointer -> (before, after); None: no value
    values: dict[str, tuple[Any, Any]]
    record: int | None
    before: int | None
    #: the same for its rubric: name, version, total and groups
    scores: dict[str, tuple[Any, Any]] = field(default_factory=dict)


def begin(store: Store, which: str, plan: dict[str, Any], now_ms: int) -> Run:
    """Give a finished crawl another plan (the result of `plan.crawl_fields`) and queue all its pages or sites again.

    The stages of a finished crawl do not run: queued rows start when all are queued. After a crash, call it again.
    """
    with store.read() as tx:
        crawl = crawls.get(tx, which)
    wanted = replace(crawl, **plan)
    store.run(_clear, crawl, now_ms)
    put = 0
    if wanted.per == "site":
        put = store.run(sites.put_every, crawl.n, crawl.request_id)
    else:
        after, some = store.run(_put_pages, crawl, 0, now_ms)
        while some:
            put += some
            after, some = store.run(_put_pages, crawl, after, now_ms)
    store.run(_begin, crawl, wanted, now_ms)
    return Run(crawl=wanted, before=crawl.schema_hash, begun_ms=now_ms, subjects=put)


def _clear(tx: Any, crawl: Crawl, now_ms: int) -> None:
    _check(tx, crawl)
    outbox.drop_stages(tx, crawl.n)
    failures.forget_stages(tx, crawl.n, now_ms)


def _check(tx: Any, crawl: Crawl) -> None:
    crawls.lock_budgets(tx, [crawl.n])
    state = crawls.state_of(tx, crawl.n)
    if state is not CrawlState.FINISHED:
        raise WrongState(f"The crawl {crawl.id} is {state}. Only a finished crawl can be extracted again.")


def _put_pages(tx: Any, crawl: Crawl, after: int, now_ms: int) -> tuple[int, int]:
    found = pages.where(tx, "p.crawl = :crawl AND p.n > :after", {"crawl": crawl.n, "after": after}, "p.n", _CHUNK)
    rows = [
        Put("extract", crawl.n, page.fp.hex(), now_ms, {"url": page.url, "again": True}, crawl.request_id)
        for _, page in found
    ]
    outbox.put(tx, rows)
    return (found[-1][0] if found else after), len(rows)


def _begin(tx: Any, crawl: Crawl, wanted: Crawl, now_ms: int) -> None:
    _check(tx, crawl)
    crawls.set_plan(tx, crawl.n, wanted)
    crawls.set_state(tx, crawl.n, CrawlState.EXTRACTING, crawl.reason, now_ms, only_from=(CrawlState.FINISHED,))


# Differences


def compare(store: Store, run: Run) -> Iterator[Difference]:
    """Yield the differences to the previous records, subject by subject."""
    after = 0
    seen: set[tuple[str, int]] = set()
    while True:
        with store.read() as tx:
            found = records.since(tx, run.crawl.n, run.begun_ms, after)
            pairs = [(record, _before(tx, record, run)) for record in found]
        if not found:
            break
        for record, before in pairs:
            seen.add((record.subject, record.ordinal))
            yield _difference(record, before)
        after = found[-1].n
    if run.before is not None and run.before != run.crawl.schema_hash:
        yield from _gone(store, run, seen)


def _before(tx: Any, record: Record, run: Run) -> Record | None:
    """Return the previous version, or the record of the previous schema for the same subject."""
    known = [one for one in records.of_subject(tx, record.crawl, record.subject) if one.ordinal == record.ordinal]
    if record.version > 1:
        same = [one for one in known if one.schema_hash == record.schema_hash and one.version < record.version]
        return same[-1] if same else None
    earlier = [one for one in known if one.schema_hash == run.before and one.created_ms < run.begun_ms]
    return earlier[-1] if earlier else None


def _gone(store: Store, run: Run, seen: set[tuple[str, int]]) -> Iterator[Difference]:
    """With another schema: subjects that had a record and have none now."""
    after = 0
    while True:
        with store.read() as tx:
            found, after = records.chunk(tx, run.crawl.n, after, 500, None, ("published", "held"), run.before)
            now = {
                (one.subject, one.ordinal)
                for record in found
                for one in records.of_subject(tx, record.crawl, record.subject)
                if one.schema_hash == run.crawl.schema_hash
            }
        if not found:
            return
        for record in found:
            key = (record.subject, record.ordinal)
            if key not in seen and key not in now:
                values = {path: (value, None) for path, value in flat(record.data).items()}
                yield Difference(
                    kind="gone", subject=record.subject, ordinal=record.ordinal, url=record.url, values=values,
                    record=None, before=record.n,
                )  # fmt: skip


def _difference(record: Record, before: Record | None) -> Difference:
    values = _changed({} if before is None else before.data, record.data)
    scores = _changed({} if before is None else _scored(before), _scored(record))
    kind = "new" if before is None else "changed" if values or scores else "unchanged"
    return Difference(
        kind=kind, subject=record.subject, ordinal=record.ordinal, url=record.url, values=values, record=record.n,
        before=None if before is None else before.n, scores=scores,
    )  # fmt: skip


def _changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    then, now = flat(before), flat(after)
    paths = sorted(now.keys() | then.keys())
    return {path: (then.get(path), now.get(path)) for path in paths if then.get(path) != now.get(path)}


def _scored(record: Record) -> dict[str, Any]:
    return {name: record.scores[name] for name in _SCORED if name in record.scores}


def flat(data: Any, path: str = "") -> dict[str, Any]:
    """JSON pointer -> value of every leaf that has one. Lists of plain values are compared as a whole."""
    if isinstance(data, dict):
        found: dict[str, Any] = {}
        for name, inner in data.items():
            found |= flat(inner, step(path, name))
        return found
    if isinstance(data, list):
        return {path: json.loads(json.dumps(data))} if data else {}
    return {} if data is None else {path: data}
