"""Submit a crawl: its seeds go to the store first, then to the frontier. Resume a crawl."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from curtsy.control.seeds import each as check_seeds
from curtsy.core import clock
from curtsy.core.errors import EpochLost, FrontierUnavailable, UnknownCrawl, UsageError
from curtsy.core.model import Crawl, CrawlState, Entry, Kind, NewUrl
from curtsy.core.observe import log_crawl
from curtsy.core.settings_loading import keep
from curtsy.core.threads import in_thread
from curtsy.rules.urls import Scope, fingerprint, host_key, short
from curtsy.services.backends import Services
from curtsy.services.epochs import handle_push_reply
from curtsy.store import crawls, queues, urls
from curtsy.store.engine import read

_CHUNK = 5_000
_SITEMAP_NAME = re.compile(r"sitemap[^/]*\.xml\Z")


async def submit(services: Services, crawl: Crawl, seeds: Iterable[str]) -> Crawl:
    """Write the crawl and its seeds to the store, then to the frontier. An invalid seed is an error.

    The first seeds are written together with the crawl: no crawl is without seeds, however early a process is killed.
    """
    Scope.of(crawl)  # raises for an invalid pattern before anything is written
    source = check_seeds(seeds, services.settings)
    chunk = list(islice(source, _CHUNK))
    if not chunk:
        raise UsageError("There are no seeds: give at least one URL, or a file with one URL per line.")
    try:
        while chunk:
            following = list(islice(source, _CHUNK))
            unit = services.settings.politeness_unit
            crawl, rows, inserted = await in_thread(
                services.store.run, load_chunk, crawl, chunk, unit, not following, keep(services.settings)
            )
            await list_chunk(services, crawl, rows, inserted)
            chunk = following
    except UsageError:
        if crawl.n:
            await in_thread(services.store.run, give_up, crawl.n)
        raise
    return crawl


def load_chunk(
    tx: Any, crawl: Crawl, seeds: list[str], unit: str, last: bool, kept: Mapping[str, Any]
) -> tuple[Crawl, list[NewUrl], dict[tuple[int, bytes], int]]:
    """Return the crawl with these seeds, their rows, and which of them are new. Idempotent."""
    n = crawl.n or _number(tx, crawl, kept)
    crawls.lock_limited(tx, [n])
    rows = [
        NewUrl(crawl=n, fp=fingerprint(url), url=url, host=host_key(url, unit), kind=_kind_of(url, crawl))
        for url in seeds
    ]
    # Usually all are new: they are counted as such, and what was not new is subtracted afterwards.
    queues.open_queues(tx, [(n, row.host, crawl.lane.value, 1) for row in rows])
    inserted = urls.insert(tx, rows, clock.now_ms())
    if len(inserted) < len(rows):
        queues.count_added(tx, _surplus(rows, inserted))
    if crawl.scope != "any":
        crawls.extend_members(tx, n, {Scope.member(row.url, crawl.scope) for row in rows})
    crawls.add_counts(tx, {(n, "open", ""): len(inserted)})
    if last:
        crawls.set_state(tx, n, CrawlState.RUNNING, None, clock.now_ms(), only_from=(CrawlState.LOADING,))
    return crawls.by_n(tx, n, members=False), rows, inserted


def _kind_of(seed: str, crawl: Crawl) -> Kind:
    """The kind of a seed. A compressed sitemap is known by its name, because pages do not have its type and a browser
    cannot read it; other sitemaps are known by their content.
    """
    name = seed.partition("?")[0].rpartition("/")[2].lower()
    is_sitemap = name.endswith(".xml.gz") or (crawl.render == "always" and _SITEMAP_NAME.match(name) is not None)
    return Kind.SITEMAP if is_sitemap else crawl.page_kind


def _surplus(rows: list[NewUrl], inserted: dict[tuple[int, bytes], int]) -> dict[tuple[int, str], int]:
    """By queue: minus one for each row that existed already or was submitted twice."""
    surplus: dict[tuple[int, str], int] = {}
    fresh = set(inserted)
    for row in rows:
        if (row.crawl, row.fp) in fresh:
            fresh.discard((row.crawl, row.fp))
        else:
            surplus[row.crawl, row.host] = surplus.get((row.crawl, row.host), 0) - 1
    return surplus


def _number(tx: Any, crawl: Crawl, kept: Mapping[str, Any]) -> int:
    """Return the number of the crawl, written by this call or by an earlier one whose answer was lost."""
    try:
        return crawls.get(tx, crawl.id, members=False).n
    except UnknownCrawl:
        return crawls.create(tx, replace(crawl, state=CrawlState.LOADING), kept).n


def give_up(tx: Any, n: int) -> None:
    """Cancel a crawl whose remaining seeds will not arrive."""
    crawls.set_state(tx, n, CrawlState.CANCELLED, "upload_incomplete", clock.now_ms(), only_from=(CrawlState.LOADING,))


async def list_chunk(
    services: Services, crawl: Crawl, rows: list[NewUrl], inserted: dict[tuple[int, bytes], int]
) -> None:
    """List the seeds in the frontier. An unavailable frontier reads them from the store later."""
    # By seq: a seed that was submitted several times is one row.
    listed = {inserted[row.crawl, row.fp]: row for row in rows if (row.crawl, row.fp) in inserted}
    frontier = services.frontier
    try:
        # Earlier seeds may be in flight: what was granted to them stays counted.
        await frontier.set_crawl(crawl, keep_budget=True)
        reply = await frontier.push(
            [(crawl.n, row.host, seq, Entry(url=row.url, kind=row.kind)) for seq, row in sorted(listed.items())]
        )
        services.scans.add(reply.scans)
        await handle_push_reply(frontier, services.store, reply)
        await frontier.see(crawl.n, [short(row.fp) for row in rows])
    except (EpochLost, FrontierUnavailable) as error:
        services.scans.put_back_later(crawl.n)
        log_crawl(crawl, "seeds_not_listed", level="warning", error=str(error))


async def resume_crawl(services: Services, id: str, changes: Mapping[str, Any] | None = None) -> Crawl:
    """Make an interrupted, paused or replayed crawl runnable again, with changed options."""
    crawl = await read(services.store, crawls.get, id)
    if crawl.state in (CrawlState.CANCELLED,):
        raise UsageError(f"The crawl {crawl.id} was canceled. Start a new one.")
    if crawl.state is CrawlState.LOADING:
        raise UsageError(
            f"The crawl {crawl.id} was stopped before all its seeds arrived. Start a new one with all seeds."
        )
    if changes and crawl.state in (CrawlState.FINISHED, CrawlState.EXTRACTING):
        names = " and ".join(changes)
        raise UsageError(
            f"The crawl {crawl.id} has finished fetching; its options can no longer change. Remove {names}, or start a "
            "new crawl."
        )
    if crawl.schema is not None and crawl.state is not CrawlState.FINISHED:
        from curtsy.records import plan  # start-up: most crawls make no records

        await in_thread(plan.check_functions, services.store, crawl)
    if crawl.state is CrawlState.EXTRACTING:
        await in_thread(services.store.run, crawls.note_reason, crawl.n, None)
        return crawl  # nothing is left to fetch
    await in_thread(services.store.run, _run_again, crawl, changes or {}, keep(services.settings))
    crawl = await read(services.store, crawls.by_n, crawl.n)
    try:
        await _put_back(services, crawl, keep_budget="max_pages" not in (changes or {}))
    except (EpochLost, FrontierUnavailable) as error:
        services.scans.put_back_later(crawl.n)
        log_crawl(crawl, "queues_not_put_back", level="warning", error=str(error))
    return crawl


async def _put_back(services: Services, crawl: Crawl, *, keep_budget: bool) -> None:
    await services.frontier.set_crawl(crawl, keep_budget=keep_budget)
    await services.scans.put_back(crawl.n)


def _run_again(tx: Any, crawl: Crawl, changes: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
    crawls.lock_limited(tx, [crawl.n])
    queues.reset_patience(tx, crawl.n)
    crawls.keep_settings(tx, crawl.n, kept)
    if changes:
        crawls.change_options(tx, crawl.n, changes)
    crawls.set_state(tx, crawl.n, CrawlState.RUNNING, None, clock.now_ms(), only_from=(CrawlState.PAUSED,))
    crawls.note_reason(tx, crawl.n, None)
