"""Deletion on request, and by age as the settings say.

A deletion is recorded in the store first. Beat, the hourly maintenance of a crawl, the API or the command then carries
it out. Any of them may be killed; the next one continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from curtsy.control import schedules
from curtsy.core import clock
from curtsy.core.errors import StoreUnavailable, UsageError
from curtsy.core.model import Crawl, CrawlState, new_id
from curtsy.core.observe import log
from curtsy.core.settings import Settings
from curtsy.core.threads import in_thread
from curtsy.rules.urls import fingerprint, host_key, normalise
from curtsy.store import audit_log, crawls, deletion, llm_cache, meta, queues, rates, requests
from curtsy.store import sweep as segment_sweep
from curtsy.store.engine import Store, read
from curtsy.store.erasure import erase_all
from curtsy.store.segment_places import open_segments

if TYPE_CHECKING:
    from curtsy.services.backends import Services

_DAY_MS = 86_400_000
#: the row of a crawl that was active stays this long, so that processes that hold it see that it ended
_LINGER_MS = 60_000
#: one call deletes for at most this long; the rest waits for the next call
_WORK_S = 5.0
_SWEEP_S = 60.0
#: answers of language models are kept this long
_ANSWERS_DAYS = 90


# On request


async def delete_crawl(
    services: Services | None, store: Store, id: str, request_id: str = "", lingers: bool = True
) -> str:
    """End the crawl at once and delete its data in the background; return the id of the deletion.

    `lingers`: a process may still hold the crawl, so the row of one that was active stays for a minute.
    """
    crawl = await read(store, crawls.get, id)
    noted: str = await in_thread(store.run, _note_crawl, crawl, clock.now_ms(), new_id(), request_id, lingers)
    if services is not None:
        await services.tell_frontier(lambda: _forget(services, crawl.n))
    return noted


def _note_crawl(tx: Any, crawl: Crawl, now_ms: int, id: str, request_id: str, lingers: bool = True) -> str:
    lingers = lingers and (crawl.state not in crawls.ENDED or (crawl.ended_ms or 0) > now_ms - _LINGER_MS)
    crawls.set_state(tx, crawl.n, CrawlState.DELETING, "deleted", now_ms)
    until_ms = now_ms + _LINGER_MS if lingers else None
    return deletion.add(tx, id, now_ms, crawl=crawl.n, whole=True, before_ms=until_ms, request_id=request_id)


async def _forget(services: Services, n: int) -> None:
    frontier = services.frontier
    await frontier.set_crawl(await read(services.store, crawls.by_n, n))
    after = (0, "")
    while found := await read(services.store, queues.open_of, n, after, 1000):
        after = (found[-1].crawl, found[-1].host)
        await frontier.drop([(queue.crawl, queue.host) for queue in found])
    await frontier.forget(n)


def delete_pages(
    store: Store, unit: str, *, url: str | None, host: str | None, crawl: int | None, request_id: str = ""
) -> str:
    """Delete the pages of a URL or a host, of one crawl or of all, with bodies and records; return the deletion id."""
    found = url_named(url, host)
    named: dict[str, Any] = {"crawl": crawl, "request_id": request_id}
    named |= {"fp": fingerprint(found)} if url is not None else {"host": host_key(found, unit)}
    return store.run(lambda tx: deletion.add(tx, new_id(), clock.now_ms(), **named))


def url_named(url: str | None, host: str | None) -> str:
    """The normal URL, or one of the host, whose pages a deletion names. Raise UsageError if it names neither."""
    if (url is None) == (host is None):
        raise UsageError("Name either a URL or a host whose pages to delete.")
    given = url or host or ""
    found = normalise(given if "://" in given or url is not None else f"https://{given}/")
    if found is None or "*" in (host or ""):
        raise UsageError(f"{given!r} is not a valid {'http or https URL' if url else 'host'}.")
    return found


# Execution


def delete_some(store: Store, settings: Settings, work_s: float = _WORK_S) -> bool:
    """Continue recorded deletions, one process at a time; return whether nothing is left to do now."""
    with store.read() as tx:
        if not deletion.pending(tx, 1) and not deletion.erasing(tx):
            return True
        owner = meta.get(tx, "store_id") or ""
    place = settings.segments_url or settings.segments_dir
    try:
        with store.lock("sweep", wait_s=0.1):
            segments = open_segments(place, int(settings.segment_mb * 1_000_000), owner)
            try:
                return _carry_out(store, segments, time.monotonic() + work_s)
            finally:
                segments.close()
    except StoreUnavailable as error:
        # Another process is deleting, or the store is unavailable.
        log("deletion_waits", level="debug", error=str(error))
        return False


def _carry_out(store: Store, segments: Any, end: float) -> bool:
    def late() -> bool:
        return time.monotonic() > end

    with store.read() as tx:
        noted = deletion.pending(tx)
        names = crawls.ids(tx, [one.crawl for one in noted if one.crawl])
    left = 0
    for one in noted:
        done = deletion.carry_out(store, segments, one, clock.now_ms(), late)
        left += not done
        if done:
            log(
                "deleted",
                deletion=one.id,
                crawl=names[one.crawl] if one.crawl else None,
                whole=one.whole,
                request_id=one.request_id or None,
            )
        if late():
            break
    erase_all(store, segments)
    return not left and len(noted) < 100


# By age


def tidy(services: Services) -> None:
    """Delete expired data, merge small segments, and delete unreferenced segments."""
    sweep(services, clock.now_ms())
    segment_sweep.tidy(services.store, services.segments, services.store_name)


def sweep(services: Services, now_ms: int, work_s: float = _SWEEP_S) -> None:
    """Once an hour: record what has expired, and delete it with all other recorded deletions."""
    settings, store = services.settings, services.store
    store.run(_note_expired_crawls, now_ms)
    if settings.retain_crawls_days:
        store.run(_note_old_crawls, now_ms - _ms(settings.retain_crawls_days), now_ms)
    if settings.retain_pages_days:
        store.run(_note_old_pages, now_ms - _ms(settings.retain_pages_days), now_ms)
    if settings.retain_requests_days:
        _forget_requests(store, now_ms - _ms(settings.retain_requests_days), _until(work_s))
    store.run(rates.forget, now_ms)
    if settings.retain_audit_days:
        store.run(audit_log.forget, now_ms - _ms(settings.retain_audit_days))
    _forget_answers(store, now_ms - _ms(_ANSWERS_DAYS), _until(work_s))
    delete_some(store, settings, work_s)


def _ms(days: float) -> int:
    return int(days * _DAY_MS)


def _until(work_s: float) -> Callable[[], bool]:
    end = time.monotonic() + work_s
    return lambda: time.monotonic() > end


def _note_expired_crawls(tx: Any, now_ms: int) -> None:
    """Record the crawls of schedules beyond the number of runs to keep."""
    found = [crawls.get(tx, id) for id in schedules.expired_crawls(tx)]
    for crawl in sorted(found, key=lambda crawl: crawl.n):
        _note_crawl(tx, crawl, now_ms, new_id(), "")


def _note_old_crawls(tx: Any, before_ms: int, now_ms: int) -> None:
    for crawl in crawls.ended_before(tx, before_ms):
        _note_crawl(tx, crawl, now_ms, new_id(), "")


def _note_old_pages(tx: Any, before_ms: int, now_ms: int) -> None:
    for n in deletion.crawls_with_pages_before(tx, before_ms):
        deletion.add(tx, new_id(), now_ms, crawl=n, before_ms=before_ms)


def _forget_requests(store: Store, before_ms: int, stop: Callable[[], bool]) -> None:
    while store.run(requests.forget_before, before_ms) and not stop():
        continue


def _forget_answers(store: Store, before_ms: int, stop: Callable[[], bool]) -> None:
    """Delete answers of language models that were not used again."""
    with store.read() as tx:
        if not llm_cache.has_before(tx, before_ms):
            return  # do not block other writers only to look
    while store.run(llm_cache.forget_before, before_ms) and not stop():
        continue
