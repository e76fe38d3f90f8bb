"""The backend of this machine: it reads and changes the store directly, and notifies a running frontier."""

from __future__ import annotations

import asyncio
import getpass
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, TypeVar

from curtsy.client import documents
from curtsy.client.backend import Document, ResumeCommand
from curtsy.client.remote import BAD_CURSOR
from curtsy.control import changes as comparing
from curtsy.control import crawls as control
from curtsy.control import differences, retention, submit
from curtsy.control import explain as explaining
from curtsy.control import replay as replaying
from curtsy.control import schedules as scheduling
from curtsy.control.crawl_request import crawl_of, request_from
from curtsy.control.hosts import resolve_host
from curtsy.core import clock
from curtsy.core.errors import Damaged, UsageError
from curtsy.core.model import INTERRUPTED, Crawl, Page, new_id
from curtsy.core.settings import Settings
from curtsy.core.times import since_ms, timestamp
from curtsy.export import bundle as bundles
from curtsy.export import page_details, writing
from curtsy.export.page_rows import PageRows, segments_of
from curtsy.export.request import ExportRequest
from curtsy.export.targets import Target
from curtsy.records import extraction, learned_selectors, plan, review, review_queue, serialize
from curtsy.records.review_queue import ReviewFilter
from curtsy.records.review_undo import undo
from curtsy.rules.folding import Folding
from curtsy.rules.urls import fingerprint
from curtsy.services import backends
from curtsy.services.document_process import limits_of
from curtsy.services.valkey import EmbeddedValkey
from curtsy.store import crawls, deletion, pages, records, responses, schedules, url_queries
from curtsy.store.crawls import CrawlFilter
from curtsy.store.engine import Store
from curtsy.store.segments import SegmentStore, read_page

T = TypeVar("T")

#: changed pages whose texts are compared, and lines that are shown of each
_MOST_TEXTS, _MOST_LINES = 50, 20
#: seeds that a status names
_MOST_SEEDS = 3

_CHANGES = {"pause": control.pause, "resume": control.resume, "cancel": control.cancel}
_SCHEDULE_CHANGES = {"pause": scheduling.pause, "resume": scheduling.resume, "remove": scheduling.remove}
_LETTER = ("id", "url", "host", "stage", "cause", "detail", "status", "attempts", "request_id")


def frontier_runs(settings: Settings) -> bool:
    """Whether a frontier must be notified of a change. Without one, the next process reads it from the store."""
    return settings.frontier_url is not None or EmbeddedValkey.running(settings.data_dir) is not None


def with_services(settings: Settings, step: Callable[[backends.Services], Awaitable[T]]) -> T:
    """Runs a step that needs store and frontier; the embedded server of the data folder is started if needed."""

    async def run() -> T:
        built = backends.build(settings)
        try:
            await built.open()
            return await step(built)
        finally:
            await built.close()

    return asyncio.run(run())


class LocalBackend:
    """Implements `Backend` over the store of these settings.

    `program` and `options` are how explanations write commands for the reader.
    """

    def __init__(self, settings: Settings, program: str = "curtsy", options: str = "") -> None:
        self.settings = settings
        self._program, self._options = program, options

    def _store(self, *, looks: bool = True, create: bool = False) -> Store:
        return Store.open(self.settings.effective_store_url, create=create, looks=looks)

    # Crawls

    def submit(self, options: Mapping[str, Any], seeds: Iterable[str]) -> str:
        crawl = crawl_of(request_from(options), self.settings, new_id())
        return with_services(self.settings, lambda built: submit.submit(built, crawl, seeds)).id

    def crawl(self, id: str) -> Document:
        with self._store() as store:
            found = control.status(store, id)
            with store.read() as tx:
                seeds, n = url_queries.seeds(tx, found.crawl.n, _MOST_SEEDS)
        return self._status(found) | {"seeds": seeds, "seed_count": n}

    def _status(self, found: control.Status, attended: bool | None = None) -> Document:
        """The status, with the state and reason that people see."""
        state = found.shown_state(control.attended(self.settings) if attended is None else attended)
        shown = documents.of_status(found) | {"state": state, "reason": found.shown_reason}
        return shown | ({"pages_per_s": 0.0, "estimated_end": None} if state == INTERRUPTED else {})

    def crawls(self, **filters: str | None) -> Iterable[Document]:
        now_ms, attended = clock.now_ms(), control.attended(self.settings)
        with self._store() as store, store.read() as tx:
            schedule = filters.get("schedule")
            wanted = CrawlFilter(
                search=filters.get("q"), tag=filters.get("tag"), owner=filters.get("owner"),
                schedule=None if schedule is None else schedules.get(tx, schedule).n,
            )  # fmt: skip
            found = [control.status_in(tx, crawl, now_ms) for crawl in crawls.list_all(tx, wanted=wanted)]
        return [self._status(one, attended) for one in found]

    def change_crawl(self, id: str, verb: str) -> Document:
        # Processes that crawl read the new state from the store within a second.
        with self._store(looks=False) as store:
            crawl = asyncio.run(_CHANGES[verb](None, store, id))
            return documents.of_status(control.status(store, crawl.id))

    def how_to_resume(self, id: str, command: ResumeCommand) -> str | None:
        with self._store() as store:
            with store.read() as tx:
                crawl = crawls.get(tx, id)
                kept = crawls.settings_of(tx, crawl.n)
            if missing := plan.missing_functions(store, crawl):
                return plan.resume_call(crawl, missing)
        return command(crawl.id, kept)

    def delete(self, crawl: str | None, url: str | None, host: str | None) -> Document:
        settings = self.settings
        with self._store(looks=False) as store:
            found = None if crawl is None else self._crawl(store, crawl)
            if found is None or url is not None or host is not None:
                n = None if found is None else found.n
                id = retention.delete_pages(store, settings.politeness_unit, url=url, host=host, crawl=n)
            elif frontier_runs(settings):
                which = found.id
                id = with_services(settings, lambda built: retention.delete_crawl(built, built.store, which))
            else:
                id = asyncio.run(retention.delete_crawl(None, store, found.id, lingers=False))
            # While a frontier runs, the row of a crawl that was active stays for a minute.
            retention.delete_some(store, settings, float("inf"))
            with store.read() as tx:
                return {"id": id, "done": all(one.id != id for one in deletion.pending(tx, 1000))}

    def explain(self, target: str, crawl: str | None) -> Document:
        settings, now_ms = self.settings, clock.now_ms()
        with self._store() as store, store.read() as tx:
            url, host = explaining.target(target, settings.politeness_unit)
            if url is not None:
                facts = explaining.of_url(tx, url, settings, crawls.get(tx, crawl) if crawl else None)
                facts = explaining.with_frontier(tx, facts, settings)
                return explaining.document(replace(facts, program=self._program, options=self._options), now_ms)
            host = resolve_host(tx, host, settings.politeness_unit)
            seen = explaining.frontier_snapshot(tx, settings, host)
            why, fields = explaining.of_host(tx, host, now_ms, seen, self._program, self._options)
            return fields | {"why": why}

    def changes(self, crawl: str, against: str | None, kind: str | None, limit: int) -> Document:
        with self._store() as store:
            report = comparing.report_of(store, crawl, against)
            found = comparing.listed(lambda one, most: comparing.chunk(store, report, one, limit=most)[0], kind, limit)
            counts = comparing.counts(store, report)
            with closing(segments_of(self.settings)) as segments:
                changed = [one.url for one in found if one.kind == "changed"][:_MOST_TEXTS]
                texts = {url: differences.texts(store, segments, report, url, _MOST_LINES) for url in changed}
            values = [one._asdict() for one in differences.values(store, report)]
        items = [
            {
                "kind": one.kind, "url": one.url, "why": one.why or None, "sha256_before": one.sha256_before,
                "sha256": one.sha256, "before": timestamp(one.before_ms), "at": timestamp(one.at_ms),
                "text": texts.get(one.url),
            }
            for one in found
        ]  # fmt: skip
        compared = {"crawl": report.crawl.id, "against": report.against.id}
        return compared | {"counts": counts, "items": items, "values": values}

    # Dead letters

    def failures(self, filters: Mapping[str, str], limit: int) -> list[Document]:
        with self._store() as store:
            found = replaying.find(store, self._filter(store, filters, limit))
            with store.read() as tx:
                ids = crawls.ids(tx, {one.crawl for one in found})
        return [
            {name: getattr(one, name) for name in _LETTER}
            | {"crawl": ids.get(one.crawl), "at": timestamp(one.at_ms), "replayed": timestamp(one.replayed_ms)}
            for one in found
        ]

    def replay(self, filters: Mapping[str, str], limit: int | None, dry_run: bool) -> Document:
        with self._store(looks=dry_run) as store:
            done = replaying.replay(store, self._filter(store, filters, limit), clock.now_ms(), dry_run=dry_run)
        if done.queues and frontier_runs(self.settings):
            with_services(self.settings, lambda built: replaying.put_back_replayed(built, done))
        return {
            "dead_letters": done.dead_letters, "crawls": list(done.crawls),
            "of_cancelled_crawls": done.of_cancelled_crawls, "dry_run": dry_run,
        }  # fmt: skip

    def _filter(self, store: Store, filters: Mapping[str, str], limit: int | None) -> replaying.Filter:
        host = filters.get("host")
        with store.read() as tx:
            return replaying.Filter(
                crawl=crawls.get(tx, filters["crawl"], members=False).n if "crawl" in filters else None,
                host=None if host is None else resolve_host(tx, host, self.settings.politeness_unit),
                stage=filters.get("stage"),
                cause=filters.get("cause"),
                since_ms=since_ms(filters.get("since"), time.time()),
                limit=limit,
            )

    # Records

    def records(
        self, crawl: str, status: str = "published", low_confidence: bool | None = None, every_schema: bool = False
    ) -> Iterator[Document]:
        with self._store() as store:
            found = serialize.of_crawl(
                store, crawl, statuses=(status,), low_confidence=low_confidence, every_schema=every_schema
            )
            yield from map(documents.of_record, found)

    def reviews(self, crawl: str | None, limit: int, **filters: Any) -> list[Document]:
        with self._store() as store:
            n = None if crawl is None else self._crawl(store, crawl).n
            found, _ = review_queue.waiting(store, n, ReviewFilter(**filters), limit=limit, window=10**9)
            return [documents.of_review(store, review.ReviewCase(record=one, sources=(), history=())) for one in found]

    def review(self, record: int) -> Document:
        with self._store() as store:
            return documents.of_review(store, review.review_case(store, record))

    def decide(self, record: int, decision: Mapping[str, Any]) -> Document:
        made = _decision(decision)
        with self._store(looks=False) as store, closing(segments_of(self.settings)) as segments:
            parts = extraction.Parts(self.settings, store, segments)
            review.decide(store, record, made, clock.now_ms(), parts)
            return documents.of_review(store, review.review_case(store, record))

    def decide_many(self, ids: list[int], decision: Mapping[str, Any]) -> Document:
        with self._store(looks=False) as store:
            return documents.of_many(review_queue.decide_many(store, ids, _decision(decision), clock.now_ms()))

    def undo_review(self, record: int, by: str | None, note: str) -> Document:
        with self._store(looks=False) as store:
            undo(store, record, by or getpass.getuser(), clock.now_ms(), note=note)
            return documents.of_review(store, review.review_case(store, record))

    def undo_batch(self, batch: str, by: str | None, note: str) -> Document:
        with self._store(looks=False) as store:
            return documents.of_many(
                review_queue.undo_many(store, batch, by or getpass.getuser(), clock.now_ms(), note)
            )

    # Learned selectors

    def selectors(self, host: str | None, schema: str | None, state: str | None, limit: int) -> list[Document]:
        with self._store() as store:
            found = learned_selectors.find(store, 0, limit, host=host, schema=schema, state=state)
        return [documents.of_selector(one) for one in found]

    def selector(self, n: int) -> Document:
        with self._store() as store:
            return documents.of_selector(learned_selectors.show(store, n))

    def forget_selector(self, n: int) -> Document:
        with self._store(looks=False) as store:
            return documents.of_selector(learned_selectors.forget(store, n, clock.now_ms()))

    # Schedules

    def schedules(self) -> list[Document]:
        with self._store() as store, store.read() as tx:
            return [documents.of_schedule(one) for one in schedules.list_all(tx, limit=100_000)]

    def add_schedule(self, seeds: list[str], **fields: Any) -> Document:
        # A schedule may be the first thing in a data folder.
        with self._store(looks=False, create=True) as store:
            return documents.of_schedule(scheduling.add(store, self.settings, seeds=seeds, **fields))

    def change_schedule(self, id: str, verb: str) -> Document:
        with self._store(looks=False) as store:
            return documents.of_schedule(_SCHEDULE_CHANGES[verb](store, id))

    def schedule(self, id: str) -> Document:
        with self._store() as store, store.read() as tx:
            return documents.of_schedule(schedules.get(tx, id))

    def edit_schedule(self, id: str, changes: Mapping[str, Any]) -> Document:
        values = dict(changes)
        with self._store(looks=False) as store:
            if "crawl" in values:
                with store.read() as tx:
                    values["crawl"] = schedules.get(tx, id).crawl | values["crawl"]
            return documents.of_schedule(scheduling.edit(store, self.settings, id, values))

    def run_schedule(self, id: str) -> Document:
        with self._store(looks=False) as store:
            return documents.of_run(scheduling.Outcome(run=scheduling.run_now(store, id)))

    def schedule_runs(self, id: str, limit: int) -> list[Document]:
        with self._store() as store, store.read() as tx:
            return [documents.of_run(one) for one in scheduling.outcomes(tx, schedules.get(tx, id).n, limit=limit)]

    # Pages

    def pages(self, crawl: str, limit: int) -> list[Document]:
        with self._store() as store, store.read() as tx:
            of = crawls.get(tx, crawl, members=False)
            return [documents.of_page(page, of.id) for page in pages.chunk(tx, of.n, 0, limit)[0]]

    def urls(self, crawl: str, limit: int) -> list[Document]:
        with self._store() as store, store.read() as tx:
            found = url_queries.known(tx, crawls.get(tx, crawl, members=False).n, b"", limit)
        names = ("url", "state", "reason", "depth", "lastmod")
        return [{name: getattr(one, name) or (0 if name == "depth" else None) for name in names} for one in found]

    def page(self, id: str) -> Document | None:
        with self._store() as store, store.read() as tx:
            return self._shown(tx, pages.by_id(tx, id))

    def page_of_url(self, url: str, crawl: str | None) -> Document | None:
        with self._store() as store, store.read() as tx:
            of = None if crawl is None else crawls.get(tx, crawl).n
            folded = Folding.of(self.settings).links(url)
            found = _page_of(tx, url, of) or (None if folded == url else _page_of(tx, folded, of))
            return self._shown(tx, found)

    @staticmethod
    def _shown(tx: Any, page: Page | None) -> Document | None:
        id = None if page is None else crawls.ids(tx, [page.crawl]).get(page.crawl)
        return None if page is None or id is None else documents.of_page(page, id)

    def content(self, page: Document) -> bytes | None:
        with self._store() as store, closing(segments_of(self.settings)) as segments, store.read() as tx:
            if not page.get("is_page", True):
                other = responses.by_id(tx, page["id"])
                return None if other is None else segments.read(other.body).body
            found = pages.by_id(tx, page["id"])
            return None if found is None else _body(tx, segments, found)

    def scan_pages(self, crawl: str | None, cursor: str | None) -> Iterator[tuple[str, Document, bytes | None]]:
        """Pages of one crawl or of all, newest first."""
        if cursor and (not cursor.isdecimal() or len(cursor) > 18):
            raise UsageError(BAD_CURSOR)
        given: dict[str, Any] = {"below": int(cursor) if cursor else 1 << 62}
        condition = "p.n < :below"
        with self._store() as store, closing(segments_of(self.settings)) as segments:
            if crawl is not None:
                given["crawl"] = self._crawl(store, crawl).n
                condition += " AND p.crawl = :crawl"
            while True:
                with store.read() as tx:
                    found = pages.where(tx, condition, given, "p.n DESC", 100)
                    ids = crawls.ids(tx, sorted({page.crawl for _, page in found}))
                if not found:
                    return
                for n, page in found:
                    given["below"] = n
                    with store.read() as tx:
                        body = _body(tx, segments, page)
                    yield str(n), documents.of_page(page, ids.get(page.crawl, "")), body

    def count_pages(self, crawl: str | None) -> int:
        with self._store() as store, store.read() as tx:
            return pages.how_many(tx, None if crawl is None else crawls.get(tx, crawl).n)

    def page_details(self, target: str, crawl: str | None, parts: Collection[str]) -> Document:
        with self._store() as store:
            return page_details.document(page_details.find(store, self.settings, target, crawl), parts)

    # Exports

    def export(
        self,
        crawl: str,
        wanted: ExportRequest,
        target: Target,
        *,
        incremental: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Document:
        with self._store() as store, closing(segments_of(self.settings)) as segments:
            found = self._crawl(store, crawl, members=True)
            rows = PageRows(store, segments, found, wanted.content, limits_of(self.settings), progress)
            n, files = writing.write(rows, wanted, target, incremental=incremental)
            held = _held(store, found) if wanted.what in ("records", "tables") else 0
            others = _others(store, found) if wanted.format == "warc" and not n and not incremental else 0
        return {"id": found.id, "rows": n, "files": files, "held": held, "others": others}

    def bundle(self, crawl: str, target: Target) -> Document:
        with self._store() as store, closing(segments_of(self.settings)) as segments:
            found = self._crawl(store, crawl, members=True)
            audit = bundles.audit_of(store, self.settings, found)
            files = bundles.write(PageRows(store, segments, found), target, audit)
            return {"id": found.id, "files": files, "held": _held(store, found)}

    @staticmethod
    def _crawl(store: Store, id: str, members: bool = False) -> Crawl:
        with store.read() as tx:
            return crawls.get(tx, id, members=members)


def _decision(fields: Mapping[str, Any]) -> review.Decision:
    """A decision of `by`, or of the person at this terminal."""
    given = dict(fields)
    who = given.pop("by", None) or getpass.getuser()
    return review.Decision(who=who, **given)


def _others(store: Store, crawl: Crawl) -> int:
    """The number of its redirects and errors."""
    with store.read() as tx:
        return responses.how_many(tx, crawl.n)


def _body(tx: Any, segments: SegmentStore, page: Page) -> bytes | None:
    try:
        record = read_page(tx, segments, page)
    except Damaged:  # one such page must not end a search
        return None
    return None if record is None else record.body


def _held(store: Store, crawl: Crawl) -> int:
    """Records that wait for a review."""
    if crawl.schema is None:
        return 0
    with store.read() as tx:
        return records.counts(tx, crawl.n, crawl.schema_hash).get("held", 0)


def _page_of(tx: Any, url: str, crawl: int | None) -> Page | None:
    """The page of a URL in a crawl; without one, the newest."""
    if crawl is not None:
        return pages.get(tx, crawl, fingerprint(url))
    newest = pages.where(tx, "p.fp = :fp", {"fp": fingerprint(url)}, "p.n DESC", 1)
    return newest[0][1] if newest else None
