"""Crawls of this process, stored pages and records, and clients of servers: what `curtsy.api` offers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from curtsy.api import arguments
from curtsy.api.notebook import Record
from curtsy.api.page import Page, view
from curtsy.api.progress import Display, shown_html, shown_line
from curtsy.api.thread import CrawlThread
from curtsy.client.http import key_from_environment
from curtsy.client.local import LocalBackend
from curtsy.client.server import AsyncServer, Server
from curtsy.control import seeds as seed_check
from curtsy.control.crawl_request import crawl_of, request_from
from curtsy.core import observe
from curtsy.core.errors import UsageError
from curtsy.core.model import Counts, Crawl, new_id
from curtsy.core.model import Page as StoredPage
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load, missing
from curtsy.export import page_rows as export
from curtsy.fetch import chromium
from curtsy.records import crawl_model, serialize
from curtsy.services.document_process import limits_of
from curtsy.store import crawls
from curtsy.store import pages as page_rows
from curtsy.store.engine import Store
from curtsy.store.segments import SegmentStore, read_page

#: pages that are read from the store at a time, and about how many bytes of bodies: the limit of memory
_BATCH = 16
_BATCH_BYTES = 8_000_000
_BETWEEN = "p.crawl = :crawl AND p.n > :after AND p.n <= :upto"
#: seconds between queries for new pages; on PostgreSQL a query waits for commits in progress
_LOOK_S = {"sqlite": 0.1, "postgresql": 0.5}


def crawl(
    *seeds: str,
    scope: str = "host",
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    max_pages: int | None = None,
    max_depth: int | None = None,
    delay_s: float | None = None,
    per_host: int | None = None,
    lane: str = "batch",
    sitemaps: bool = True,
    cookies: bool = False,
    render: str = "never",
    schema: str | dict[str, Any] | None = None,
    rubric: str | None = None,
    llm: str | None = None,
    verify: bool | None = None,
    judge_model: str | None = None,
    name: str | None = None,
    tags: Iterable[str] = (),
    extract: Callable[[Page], Any] | None = None,
    score: Callable[..., Any] | None = None,
    data_dir: str | Path | None = None,
    config: str | Path | None = None,
    progress: bool = False,
    **settings: Any,
) -> Crawling:
    """Create a crawl that runs in this process, as `curtsy crawl` does; iterate over it to get its pages.

    `extract(page)` returns the data of a record, a list of them, or None. `score(schema, data, quotes)` returns a
    number from 0 to 100. `records()` has the results. `settings` are those of docs/reference/settings.md, such as
    `allow_private=("10.0.0.0/8",)`. The crawl starts with the first page that you request, or with `begin()`.
    """
    seeds = arguments.seeds(seeds)
    arguments.options(settings, crawl)
    found = _settings(config, data_dir, settings)
    schema, rubric = arguments.makers(extract, score, schema, rubric)
    request = request_from({
        "scope": scope, "include": arguments.texts("include", include), "exclude": arguments.texts("exclude", exclude),
        "max_pages": max_pages, "max_depth": max_depth, "delay_s": delay_s, "per_host": per_host, "lane": lane,
        "sitemaps": sitemaps, "cookies": cookies, "render": render, "schema": schema, "rubric": rubric, "llm": llm,
        "verify": verify, "judge_model": judge_model,
        "name": name, "tags": arguments.texts("tags", tags, "words"),
    })  # fmt: skip
    made = crawl_of(request, found, new_id())
    _check_installed(made, found)
    seed_check.checked(seeds, found, "seed {}")  # raises for a seed that can never be fetched
    return Crawling(found, made, seeds, None, progress)


def resume(
    id: str = "last",
    *,
    max_pages: int | None = None,
    delay_s: float | None = None,
    per_host: int | None = None,
    extract: Callable[[Page], Any] | None = None,
    score: Callable[..., Any] | None = None,
    data_dir: str | Path | None = None,
    config: str | Path | None = None,
    progress: bool = False,
    **settings: Any,
) -> Crawling:
    """Resume a crawl that was stopped, paused, or had dead letters replayed.

    Iterate over it to get the pages that are committed from then on.
    """
    arguments.makers(extract, score, None, None)  # registers the functions that the crawl names
    options = {"max_pages": max_pages, "delay_s": delay_s, "per_host": per_host}
    changed = {name: value for name, value in options.items() if value is not None}
    checked = request_from(changed)
    arguments.options(settings, resume)
    found = _settings(config, data_dir, settings)
    with Store.open(found.effective_store_url, create=False) as store, store.read() as tx:
        stored = crawls.get(tx, arguments.crawl_id(id))
        kept = crawls.settings_of(tx, stored.n)
    found = _settings(config, data_dir, settings, kept.get("settings"))
    if lacking := missing(kept, found):
        raise UsageError(
            f"Crawl {stored.id} was made with {' and '.join(lacking)}, which are not stored. Give them again."
        )
    _check_installed(stored, found)
    return Crawling(found, stored.id, (), {name: getattr(checked, name) for name in changed}, progress)


def pages(
    crawl: str = "last", *, data_dir: str | Path | None = None, config: str | Path | None = None, **settings: Any
) -> Iterator[Page]:
    """The stored pages of a crawl, in the order of their commits."""
    where = _settings(config, data_dir, settings)
    with Store.open(where.effective_store_url, create=False, looks=True) as store:
        with store.read() as tx:
            found = crawls.get(tx, arguments.crawl_id(crawl))
        segments = export.segments_of(where)
        try:
            for page in export.pages_of(store, found.n):
                yield _page(store, segments, page, found.id, where)
        finally:
            segments.close()


def records(
    crawl: str = "last", *, status: str = "published", data_dir: str | Path | None = None,
    config: str | Path | None = None, **settings: Any,
) -> Iterator[Record]:  # fmt: skip
    """The records of a crawl, as `curtsy records` prints them; by default the published ones."""
    if status not in serialize.STATUSES:
        raise UsageError(f"There is no status {status!r}. Use one of: {', '.join(serialize.STATUSES)}.")
    backend = LocalBackend(_settings(config, data_dir, settings))
    for record in backend.records(arguments.crawl_id(crawl), status):
        yield Record(record | {"created": datetime.fromisoformat(record["created"])})


class Crawling:
    """A crawl in this process. It yields each page once, in the order of their commits.

    It does not wait for its reader: unread pages are in the store, not in memory. Leaving the loop early, by `break` or
    an error, finishes the requests in flight; `resume` continues the crawl later.
    """

    def __init__(
        self, settings: Settings, what: Crawl | str, seeds: Iterable[str], changes: Mapping[str, Any] | None,
        progress: bool,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._display = Display(self) if progress else None
        on_progress = None if self._display is None else self._display.update
        self._running = CrawlThread(settings, what, seeds, changes, on_progress)
        self._what = what
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._segments: SegmentStore | None = None
        #: number of the last page that was read; no new page appears up to `_upto`
        self._after = self._upto = 0
        self._began = self._left = False

    # What it is

    @property
    def id(self) -> str:
        return self._what if isinstance(self._what, str) else self._what.id

    @property
    def counts(self) -> Counts:
        """Counts of pages and of URLs by state, reason and cause, and of failed records by stage.

        They are updated twice a second while the crawl runs here.
        """
        if (self._began and not self._running.ended) or not self._is_stored:
            return self._running.counts
        with self._looking() as tx:
            n = crawls.get(tx, self.id, members=False).n
            return crawls.counts(tx, n)

    @property
    def state(self) -> str:
        """`new`, then the state in the store: `running`, `finished`, ..."""
        if not self._is_stored:
            return "new"
        with self._looking() as tx:
            return crawls.get(tx, self.id, members=False).state.value

    @property
    def _is_stored(self) -> bool:
        return isinstance(self._what, str) or self._running.crawl is not None

    @contextmanager
    def _looking(self) -> Iterator[Any]:
        with Store.open(self._settings.effective_store_url, create=False, looks=True) as store, store.read() as tx:
            yield tx

    def __repr__(self) -> str:
        return f"<Crawling {self.id}: {shown_line(self._running.counts)}>"

    def _repr_html_(self) -> str:
        return shown_html(self.id, self._running.counts, self._running.ended)

    # Its pages

    def begin(self) -> Crawling:
        """Start the crawl; returns when its seeds are stored."""
        with self._lock:
            if self._left:
                raise UsageError(self._over())
            if not self._began:
                if isinstance(self._what, str):
                    self._after = self._last_page()
                self._began = True
                observe.configure(self._settings.log_level, self._settings.log_format)
                self._running.start()
        self._running.begun()
        with self._lock:
            if self._store is None and not self._left:
                self._store = Store.open(self._settings.effective_store_url)
                self._segments = export.segments_of(self._settings)
        return self

    def _last_page(self) -> int:
        """The last page before the crawl is resumed: only later pages are yielded."""
        with Store.open(self._settings.effective_store_url, create=False) as store:
            with store.read() as tx:
                n = crawls.get(tx, self.id, members=False).n
            return export.settled(store, n)

    def _over(self) -> str:
        """What to do with a crawl whose pages were already yielded."""
        if not self._is_stored:
            return "This crawl never started: create a new one."
        if (state := self.state) in ("finished", "cancelled"):
            return f"This crawl is {state} and yields its pages once. Read the stored pages with pages({self.id!r})."
        return f"This crawl was stopped. Resume it: resume({self.id!r}). Read its stored pages: pages({self.id!r})."

    def __iter__(self) -> Iterator[Page]:
        try:
            self.begin()
            while (taken := self._take()) is not None:
                yield from taken
        finally:
            self.leave()

    async def __aiter__(self) -> AsyncIterator[Page]:
        try:
            await asyncio.to_thread(self.begin)
            while (taken := await asyncio.to_thread(self._take)) is not None:
                for page in taken:
                    yield page
        finally:
            # Also while the loop is closing: the crawl's thread stops by itself once it is requested.
            self._running.stop()
            await asyncio.to_thread(self.leave)

    def _take(self) -> list[Page] | None:
        """The next few pages; an empty list if no page is ready, None at the end. Raises the error of the crawl."""
        with self._lock:
            store, segments, stored = self._store, self._segments, self._running.crawl
            if self._left or store is None or segments is None or stored is None:
                return None
            ended = self._running.ended  # before the query: it sees everything that was committed until then
            asked = self._after >= self._upto
            if asked:
                self._upto = max(self._upto, export.settled(store, stored.n))
            values = {"crawl": stored.n, "after": self._after, "upto": self._upto}
            with store.read() as tx:
                found = page_rows.where(tx, _BETWEEN, values, "p.n", _BATCH)
            taken: list[Page] = []
            for n, page in found:
                taken.append(_page(store, segments, page, stored.id, self._settings))
                self._after = n
                if sum(len(one.content or b"") for one in taken) > _BATCH_BYTES:
                    break
            if not found:
                self._after = self._upto  # the pages were deleted
        if not taken and ended and asked:
            if self._running.error is not None:
                raise self._running.error
            return None
        if not taken:
            self._running.wait(_LOOK_S[store.dialect])
        return taken

    # Leaving it

    def stop(self) -> None:
        """Stop the crawl: requests in flight finish, then the loop over its pages ends. Twice: stop at once."""
        self._running.stop()

    def leave(self) -> None:
        """Stop the crawl unless it has ended, and wait for that."""
        self._running.leave()
        with self._lock:
            self._left = True
            store, segments, self._store, self._segments = self._store, self._segments, None, None
        if segments is not None:
            segments.close()
        if store is not None:
            store.close()
        if self._display is not None:
            self._display.close(self._running.counts)

    def __enter__(self) -> Crawling:
        return self.begin()

    def __exit__(self, *_: object) -> None:
        self.leave()

    async def __aenter__(self) -> Crawling:
        return await asyncio.to_thread(self.begin)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.leave)


def connect(url: str, key: str | None = None, request_id: str | None = None) -> Server:
    """A client of `curtsy serve` with a method per API call. The key may be in CURTSY_API_KEY."""
    return Server(url, key or key_from_environment(), request_id)


def connect_async(url: str, key: str | None = None, request_id: str | None = None) -> AsyncServer:
    """The same client with async methods."""
    return AsyncServer(url, key or key_from_environment(), request_id)


def _settings(
    config: str | Path | None, data_dir: str | Path | None, settings: Mapping[str, Any], kept: Any = None
) -> Settings:
    return load(arguments.path("config", config), kept, data_dir=arguments.path("data_dir", data_dir), **settings)


def _check_installed(crawl: Crawl, settings: Settings) -> None:
    """A crawl that needs a browser or the local model does not start without it."""
    if crawl.render != "never":
        chromium.check_installed(settings)
    if crawl.schema is not None:
        crawl_model.check_installed(settings, crawl)


def _page(store: Store, segments: SegmentStore, page: StoredPage, crawl: str, settings: Settings) -> Page:
    with store.read() as tx:
        record = read_page(tx, segments, page)
    return view(page, crawl, None if record is None else record.body, limits_of(settings))
