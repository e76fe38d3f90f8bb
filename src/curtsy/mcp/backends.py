"""How the tools crawl and read pages: in the local data folder, or through an API. All of it blocks; the server has
threads."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol

from curtsy.api.thread import CrawlThread
from curtsy.client.backend import Backend, Document
from curtsy.client.local import LocalBackend
from curtsy.client.server import ENDED
from curtsy.control.crawl_request import crawl_of, request_from
from curtsy.control.seeds import checked
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, new_id
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load, missing
from curtsy.mcp.reading import Read
from curtsy.rules.urls import hide_credentials, normalise
from curtsy.store import crawls
from curtsy.store.engine import Store

_PAGE_ID = re.compile(r"[1-9][0-9]{0,17}-[0-9a-f]{32}")
#: seconds between two status checks while waiting for a crawl
_LOOK_S = 0.25
#: crawls at a time in this process
_AT_ONCE = 2
_COUNTS = ("pages", "done", "pending", "pending_render", "skipped", "failed", "failed_stages")

#: gets the number of pages from time to time; returns False once the client has gone
OnPages = Callable[[int], bool]


class Crawler(Protocol):
    """Runs crawls and waits for them."""

    def crawl(self, seeds: list[str], options: Mapping[str, Any], within_s: float, on_pages: OnPages) -> str:
        """Starts a crawl and waits until it has ended or its time is up; its id."""

    def resume(self, id: str, within_s: float, on_pages: OnPages) -> str:
        """Continues a crawl whose time was up."""


class LocalCrawler:
    """Runs crawls in this process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._room = threading.BoundedSemaphore(_AT_ONCE)

    def crawl(self, seeds: list[str], options: Mapping[str, Any], within_s: float, on_pages: OnPages) -> str:
        settings = self._settings
        urls = checked(seeds, settings, "seed {}")
        return self._run(settings, crawl_of(request_from(options), settings, new_id()), urls, within_s, on_pages)

    def resume(self, id: str, within_s: float, on_pages: OnPages) -> str:
        url = self._settings.effective_store_url
        with Store.open(url, create=False, looks=True) as store, store.read() as tx:
            stored = crawls.get(tx, id)
            kept = crawls.settings_of(tx, stored.n)
        settings = load(None, kept.get("settings"), **self._settings.model_dump(exclude_unset=True))
        if lacking := missing(kept, settings):
            raise UsageError(f"Crawl {stored.id} was made with {' and '.join(lacking)}, which are not stored.")
        return self._run(settings, stored.id, [], within_s, on_pages)

    def _run(self, settings: Settings, what: Crawl | str, seeds: list[str], within_s: float, on_pages: OnPages) -> str:
        if not self._room.acquire(blocking=False):
            raise UsageError(f"{_AT_ONCE} crawls are running here already: wait for one of them.")
        running = CrawlThread(settings, what, seeds)
        try:
            running.start()
            id = running.begun().id
            end = time.monotonic() + within_s
            while not running.wait(_LOOK_S) and time.monotonic() < end and on_pages(running.counts.pages):
                pass
        finally:
            running.leave()
            self._room.release()
        if running.error is not None:
            raise running.error
        return id


class RemoteCrawler:
    """Submits crawls to an API; its workers do the work, and continue when the time of a call is up."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def crawl(self, seeds: list[str], options: Mapping[str, Any], within_s: float, on_pages: OnPages) -> str:
        return self._follow(self._backend.submit(options, seeds), within_s, on_pages)

    def resume(self, id: str, within_s: float, on_pages: OnPages) -> str:
        found = self._backend.crawl(id)
        if found["state"] == "paused":
            self._backend.change_crawl(found["id"], "resume")
        return self._follow(found["id"], within_s, on_pages)

    def _follow(self, id: str, within_s: float, on_pages: OnPages) -> str:
        end = time.monotonic() + within_s
        while (found := self._backend.crawl(id))["state"] not in ENDED and time.monotonic() < end:
            if not on_pages(found["counts"]["pages"]):
                break
            time.sleep(_LOOK_S)
        return id


def crawler_of(backend: Backend) -> Crawler:
    return LocalCrawler(backend.settings) if isinstance(backend, LocalBackend) else RemoteCrawler(backend)


def status(backend: Backend, id: str) -> Document:
    found = backend.crawl(id)
    counts = {name: found["counts"][name] for name in _COUNTS}
    return {"crawl": found["id"], "state": found["state"], "reason": found["reason"], **counts}


def read(backend: Backend, which: str, crawl: str | None) -> Read:
    """A stored page by its id, or the newest of a URL."""
    if "://" in which:
        url = normalise(which)
        if url is None:
            raise UsageError(f"{hide_credentials(which)!r} is not an http or https URL.")
        found = backend.page_of_url(url, crawl)
    elif _PAGE_ID.fullmatch(which):
        found = backend.page(which)
    else:
        raise UsageError(f"{which[:100]!r} is neither a page id nor a URL.")
    if found is None:
        raise UsageError(f"There is no stored page {which!r}. Crawl its site first, or search for stored pages.")
    return _read(found, backend.content(found))


def only_page(backend: Backend, crawl: str, url: str) -> Read:
    """The page of a crawl of one URL; without a page, the error says why."""
    if pages := backend.pages(crawl, 1):
        return _read(pages[0], backend.content(pages[0]))
    why = backend.explain(normalise(url) or url, crawl)["why"]
    raise UsageError(f"{hide_credentials(url)} was not fetched. {' '.join(why[:3])}")


def known_urls(backend: Backend, crawl: str, limit: int) -> list[Document]:
    """URLs that a crawl knows, in alphabetical order."""
    found = backend.urls(crawl, limit)
    return sorted(({"url": one["url"], "state": one["state"]} for one in found), key=lambda one: str(one["url"]))


def scan(backend: Backend, crawl: str | None, cursor: str | None) -> Iterator[tuple[str, Read]]:
    """Pages to search, each with the cursor that continues after it."""
    for after, page, body in backend.scan_pages(crawl, cursor):
        yield after, _read(page, body)


def _read(page: Document, body: bytes | None) -> Read:
    names = ("id", "crawl", "url", "title", "status", "content_type", "charset")
    return Read(**{name: page[name] for name in names}, fetched=datetime.fromisoformat(page["fetched"]), body=body)
