"""Where the tools look and work: the local data folder, or a control plane. All of it waits; the server has threads."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Protocol

from curtsy.api.thread import CrawlThread
from curtsy.client.server import ENDED, Server
from curtsy.control import crawl_request, uploads
from curtsy.control import crawls as control
from curtsy.core.errors import Damaged, UsageError
from curtsy.core.model import Counts, Crawl, Page, new_id
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load, missing
from curtsy.export import pages as export
from curtsy.mcp.reading import Read
from curtsy.rules.urls import fingerprint, normalise, veiled
from curtsy.store import crawls, pages
from curtsy.store.engine import Store
from curtsy.store.segments import SegmentStore, read_page

_PAGE_ID = re.compile(r"[1-9][0-9]{0,17}-[0-9a-f]{32}")
#: how often a crawl is looked at while it is waited for
_LOOK_S = 0.25
#: crawls at a time in this process
_AT_ONCE = 2
#: pages of a crawl that are named in an answer
_NAMED = 50
_NO_PLACE = "That is no `go_on` of an answer of this server."

#: told how many pages there are, now and then; False: nobody waits for it any more
Told = Callable[[int], bool]


class Backend(Protocol):
    def crawl(self, seeds: list[str], wish: dict[str, Any], within_s: float, told: Told) -> str:
        """Makes a crawl and waits until it has ended, or its time is up; its id."""

    def resume(self, id: str, within_s: float, told: Told) -> str:
        """Goes on with one whose time was up."""

    def status(self, id: str) -> dict[str, Any]: ...

    def first_pages(self, id: str) -> list[dict[str, Any]]:
        """Some of its pages, without their bodies."""

    def page(self, which: str, crawl: str | None) -> Read:
        """By its id, or the newest of a URL."""

    def pages(self, crawl: str | None, go_on: str | None) -> Iterator[tuple[str, Read]]:
        """To search through: each with what is to be said to go on after it."""

    def stored(self, crawl: str | None) -> int:
        """How many there are to search through."""


class Local:
    """The data folder of these settings; crawls run in this process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._room = threading.BoundedSemaphore(_AT_ONCE)

    def crawl(self, seeds: list[str], wish: dict[str, Any], within_s: float, told: Told) -> str:
        settings = self._settings
        checked = uploads.checked(seeds, settings, "seed {}")
        return self._run(
            settings,
            crawl_request.crawl_of(crawl_request.CrawlRequest(**wish), settings, new_id()),
            checked,
            within_s,
            told,
        )

    def resume(self, id: str, within_s: float, told: Told) -> str:
        with self._store() as store, store.read() as tx:
            stored = crawls.get(tx, id)
            kept = crawls.settings_of(tx, stored.n)
        given = self._settings.model_dump(exclude_unset=True)
        settings = load(None, kept.get("settings"), **given)
        if lacking := missing(kept, settings):
            raise UsageError(f"Crawl {stored.id} was made with {' and '.join(lacking)}, which are not stored.")
        return self._run(settings, stored.id, [], within_s, told)

    def _run(self, settings: Settings, what: Crawl | str, seeds: list[str], within_s: float, told: Told) -> str:
        if not self._room.acquire(blocking=False):
            raise UsageError(f"{_AT_ONCE} crawls are running here already: wait for one of them.")
        running = CrawlThread(settings, what, seeds)
        try:
            running.start()
            id = running.begun().id
            end = time.monotonic() + within_s
            while not running.wait(_LOOK_S) and time.monotonic() < end and told(running.counts.pages):
                pass
        finally:
            running.leave()
            self._room.release()
        if running.error is not None:
            raise running.error
        return id

    def status(self, id: str) -> dict[str, Any]:
        with self._store() as store:
            found = control.status(store, id)
        crawl = found.crawl
        return _status(crawl.id, crawl.state.value, crawl.reason, found.counts)

    def first_pages(self, id: str) -> list[dict[str, Any]]:
        with self._store() as store, store.read() as tx:
            found, _ = pages.chunk(tx, crawls.get(tx, id).n, 0, _NAMED)
        return [{"id": page.id, "url": page.url, "title": page.title} for page in found]

    def page(self, which: str, crawl: str | None) -> Read:
        with self._store() as store:
            with store.read() as tx:
                found = self._find(tx, which, crawl)
                id = None if found is None else crawls.ids(tx, [found.crawl]).get(found.crawl)
            if found is None or id is None:
                raise UsageError(_no_page(which))
            with closing(export.segments_of(self._settings)) as segments, store.read() as tx:
                record = read_page(tx, segments, found)
        return _read(found, id, None if record is None else record.body)

    def _find(self, tx: Any, which: str, crawl: str | None) -> Page | None:
        if "://" not in which:
            return pages.by_id(tx, _checked_id(which))
        url = normalise(which)
        if url is None:
            raise UsageError(f"{veiled(which)!r} is no http or https URL.")
        if crawl is not None:
            return pages.get(tx, crawls.get(tx, crawl).n, fingerprint(url))
        newest = pages.where(tx, "p.fp = :fp", {"fp": fingerprint(url)}, "p.n DESC", 1)
        return newest[0][1] if newest else None

    def pages(self, crawl: str | None, go_on: str | None) -> Iterator[tuple[str, Read]]:
        """Newest first, of one crawl or of all."""
        segments = export.segments_of(self._settings)
        with self._store() as store, closing(segments):
            given: dict[str, Any] = {"below": _number(go_on)}
            condition = "p.n < :below"
            if crawl is not None:
                with store.read() as tx:
                    given["crawl"] = crawls.get(tx, crawl).n
                condition += " AND p.crawl = :crawl"
            while True:
                with store.read() as tx:
                    found = pages.where(tx, condition, given, "p.n DESC", 100)
                    ids = crawls.ids(tx, sorted({page.crawl for _, page in found}))
                if not found:
                    return
                for n, page in found:
                    given["below"] = n
                    yield str(n), _read(page, ids.get(page.crawl, ""), _body(store, segments, page))

    def stored(self, crawl: str | None) -> int:
        with self._store() as store, store.read() as tx:
            return pages.how_many(tx, None if crawl is None else crawls.get(tx, crawl).n)

    def _store(self) -> Store:
        return Store.open(self._settings.effective_store_url, create=False, looks=True)


class Remote:
    """A control plane; its workers crawl."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def crawl(self, seeds: list[str], wish: dict[str, Any], within_s: float, told: Told) -> str:
        id = self._server.submit(seeds=seeds, **wish)["id"]
        return self._follow(id, within_s, told)

    def resume(self, id: str, within_s: float, told: Told) -> str:
        found = self._server.crawl(id)
        if found["state"] == "paused":
            self._server.resume(found["id"])
        return self._follow(found["id"], within_s, told)

    def _follow(self, id: str, within_s: float, told: Told) -> str:
        """A crawl whose time is up goes on in the fleet, as far as its max_pages."""
        end = time.monotonic() + within_s
        while (found := self._server.crawl(id))["state"] not in ENDED and time.monotonic() < end:
            if not told(found["counts"]["pages"]):
                break
            time.sleep(_LOOK_S)
        return id

    def status(self, id: str) -> dict[str, Any]:
        found = self._server.crawl(id)
        given = found["counts"]
        counts = Counts(
            given["pages"], given["done"], given["pending"], given["skipped"], given["failed"],
            pending_render=given.get("pending_render", 0), failed_stages=given.get("failed_stages", {}),
        )  # fmt: skip
        return _status(found["id"], found["state"], found["reason"], counts)

    def first_pages(self, id: str) -> list[dict[str, Any]]:
        found = self._server.list_pages(id, limit=_NAMED)["items"]
        return [{"id": page["id"], "url": page["url"], "title": page["title"]} for page in found]

    def page(self, which: str, crawl: str | None) -> Read:
        if "://" not in which:
            return self._read(self._server.page(_checked_id(which)))
        url = normalise(which)
        if url is None:
            raise UsageError(f"{veiled(which)!r} is no http or https URL.")
        ids = [crawl] if crawl else (one["id"] for one in islice(self._server.each(self._server.list_crawls), 20))
        for id in ids:
            for page in islice(self._server.each(self._server.list_pages, id, url=url, limit=100), 100):
                if page["url"] == url:
                    return self._read(page)
        raise UsageError(_no_page(which))

    def pages(self, crawl: str | None, go_on: str | None) -> Iterator[tuple[str, Read]]:
        """Of one crawl, in the order in which they were stored; without one, of the newest."""
        id, past, cursor = _place(go_on) if go_on else (self._server.crawl(crawl or "last")["id"], 0, None)
        while True:
            found = self._server.list_pages(id, limit=100, cursor=cursor)
            for at, page in enumerate(found["items"][past:], past + 1):
                yield f"{id} {at} {cursor or ''}", self._read(page)
            past, cursor = 0, found["next"]
            if cursor is None:
                return

    def stored(self, crawl: str | None) -> int:
        return int(self._server.crawl(crawl or "last")["counts"]["pages"])

    def _read(self, page: Any) -> Read:
        return Read(
            id=page["id"], crawl=page["crawl"], url=page["url"], title=page["title"], status=page["status"],
            fetched=datetime.fromisoformat(page["fetched"]), content_type=page["content_type"],
            charset=page["charset"], body=self._server.content(page["id"]) if page["has_content"] else None,
        )  # fmt: skip


def _read(page: Page, crawl: str, body: bytes | None) -> Read:
    return Read(
        id=page.id, crawl=crawl, url=page.url, title=page.title, status=page.status,
        fetched=datetime.fromtimestamp(page.fetched_ms / 1000, UTC), content_type=page.content_type,
        charset=page.charset, body=body,
    )  # fmt: skip


def _body(store: Store, segments: SegmentStore, page: Page) -> bytes | None:
    """None also where it does not read back: one such page ends no search."""
    try:
        with store.read() as tx:
            record = read_page(tx, segments, page)
    except Damaged:
        return None
    return None if record is None else record.body


def _number(go_on: str | None) -> int:
    """Below which number of a page to go on."""
    if not go_on:
        return 1 << 62
    if not go_on.isdecimal() or len(go_on) > 18:
        raise UsageError(_NO_PLACE)
    return int(go_on)


def _place(go_on: str) -> tuple[str, int, str | None]:
    """Crawl, how many of a list are past, and the list's cursor."""
    id, _, rest = go_on.partition(" ")
    past, _, cursor = rest.partition(" ")
    if not past.isdecimal() or len(past) > 4:
        raise UsageError(_NO_PLACE)
    return id, int(past), cursor or None


def _status(id: str, state: str, reason: str | None, counts: Counts) -> dict[str, Any]:
    return {
        "crawl": id, "state": state, "reason": reason, "pages": counts.pages, "done": counts.done,
        "pending": counts.pending, "pending_render": counts.pending_render, "skipped": dict(counts.skipped),
        "failed": dict(counts.failed), "failed_stages": dict(counts.failed_stages),
    }  # fmt: skip


def _checked_id(id: str) -> str:
    """What cannot be the id of a page does not reach the store."""
    if _PAGE_ID.fullmatch(id) is None:
        raise UsageError(f"{id[:100]!r} is neither a page id nor a URL.")
    return id


def _no_page(which: str) -> str:
    return f"There is no stored page {which!r}. Crawl its site first, or search for pages that are there."
