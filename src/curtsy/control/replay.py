"""Replaying dead letters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from curtsy.core.model import Crawl, CrawlState, Failure
from curtsy.services import epochs
from curtsy.store import crawls, dashboard_queries, failures, outbox, queues, sites, urls
from curtsy.store.engine import Store, read

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from curtsy.services.backends import Services

#: dead letters opened in one transaction
BATCH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Selects dead letters; None matches all."""

    crawl: int | None = None
    host: str | None = None
    stage: str | None = None
    cause: str | None = None
    since_ms: int = 0
    limit: int | None = None
    #: only these; empty: all that match
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a replay reopened, or would reopen."""

    dead_letters: int = 0
    #: crawls that must run (again)
    crawls: tuple[str, ...] = ()
    #: skipped because their crawl was canceled
    of_cancelled_crawls: int = 0
    #: queues (crawl, host) that have work again
    queues: tuple[tuple[int, str], ...] = ()


def find(store: Store, which: Filter) -> list[Failure]:
    """Return dead letters: failed URLs first, then the open URLs of hosts that are dead for their crawl."""
    limit = which.limit if which.limit is not None else 1_000_000_000
    if which.ids:
        return _by_id(store, which)[:limit]
    with store.read() as tx:
        found = failures.find(
            tx,
            crawl=which.crawl,
            host=which.host,
            stage=which.stage,
            cause=which.cause,
            since_ms=which.since_ms,
            limit=limit,
        )
        if which.stage in (None, "fetch") and len(found) < limit:
            waiting = failures.of_dead_hosts(
                tx, crawl=which.crawl, host=which.host, cause=which.cause, limit=limit - len(found)
            )
            found += [failure for failure in waiting if failure.at_ms >= which.since_ms]
    return found


def _by_id(store: Store, which: Filter) -> list[Failure]:
    with store.read() as tx:
        named = [dashboard_queries.letter(tx, id) for id in dict.fromkeys(which.ids)]
    return [
        failure
        for failure in named
        if failure is not None
        and failure.replayed_ms is None
        and failure.at_ms >= which.since_ms
        and all(getattr(which, name) in (None, getattr(failure, name)) for name in ("crawl", "host", "stage", "cause"))
    ]


def replay(store: Store, which: Filter, now_ms: int, *, dry_run: bool = False) -> Replay:
    """Reopen dead letters and reset their attempts. A dead host is opened again, with all its URLs."""
    found = find(store, which)
    owners = _owners(store, {failure.crawl for failure in found})
    over = (CrawlState.CANCELLED, CrawlState.DELETING)
    wanted = [failure for failure in found if owners[failure.crawl].state not in over]
    opened = len(wanted)
    if not dry_run:
        opened = sum(
            store.run(_open_again, wanted[start : start + BATCH], owners, now_ms)
            for start in range(0, len(wanted), BATCH)
        )
    ids = tuple(owners[n].id for n in sorted({failure.crawl for failure in wanted}))
    pairs = {(failure.crawl, failure.host) for failure in wanted if failure.stage == "fetch"}
    return Replay(
        dead_letters=opened,
        crawls=ids,
        of_cancelled_crawls=len(found) - len(wanted),
        queues=() if dry_run else tuple(sorted(pairs)),
    )


async def put_back_replayed(services: Services, done: Replay) -> None:
    """Put the queues of a replay into the frontier at once, so that running crawlers take them.

    A frontier that is unavailable reads them from the store later.
    """
    if not done.queues:
        return

    async def tell() -> None:
        for n in sorted({crawl for crawl, _ in done.queues}):
            await services.frontier.set_crawl(await read(services.store, crawls.by_n, n), keep_budget=True)
        for start in range(0, len(done.queues), BATCH):
            some = list(done.queues[start : start + BATCH])
            services.scans.add(await epochs.put_back(services.frontier, services.store, some))

    await services.tell_frontier(tell)


def _owners(store: Store, numbers: set[int]) -> dict[int, Crawl]:
    with store.read() as tx:
        return {n: crawls.by_n(tx, n) for n in numbers}


def _open_again(tx: Connection, found: list[Failure], owners: dict[int, Crawl], now_ms: int) -> int:
    """Restart each at the stage that failed: a page is not fetched again because its extraction failed."""
    stages = [failure for failure in found if failure.stage != "fetch"]
    wanted = [failure for failure in found if failure.stage == "fetch"]
    put = _put_again(tx, stages, now_ms) if stages else 0
    return put + (_fetch_again(tx, wanted, owners, now_ms) if wanted else 0)


def _put_again(tx: Connection, wanted: list[Failure], now_ms: int) -> int:
    numbers = sorted({failure.crawl for failure in wanted if failure.stage != "webhook"})
    crawls.lock_budgets(tx, numbers)  # the check for the end of a crawl takes the same lock
    opened = outbox.again(tx, [(failure.stage, failure.crawl, _subject(failure)) for failure in wanted], now_ms)
    failures.mark_replayed(tx, [failure.id for failure in wanted], now_ms)
    for n in numbers:
        crawls.set_state(tx, n, CrawlState.EXTRACTING, None, now_ms, only_from=(CrawlState.FINISHED,))
    return len(opened)


def _subject(failure: Failure) -> str:
    return failure.fp.decode() if failure.stage == "webhook" else sites.subject_from(failure.fp)


def _fetch_again(tx: Connection, wanted: list[Failure], owners: dict[int, Crawl], now_ms: int) -> int:
    pairs = sorted({(failure.crawl, failure.host) for failure in wanted})
    numbers = sorted({crawl for crawl, _ in pairs})
    crawls.lock_limited(tx, numbers)
    queues.lock(tx, pairs, [(crawl, host, owners[crawl].lane) for crawl, host in pairs])
    reopened_hosts = {pair for pair in pairs if queues.reopen(tx, *pair)}
    for pair in pairs:
        queues.reset_patience(tx, *pair)
    queues.open_queues(tx, [(crawl, host, owners[crawl].lane, 0) for crawl, host in pairs])
    reopened = urls.reopen(tx, [(failure.crawl, failure.fp) for failure in wanted])
    failures.mark_replayed(tx, [failure.id for failure in wanted], now_ms)
    for n in numbers:
        ended = (CrawlState.FINISHED, CrawlState.EXTRACTING)
        crawls.set_state(tx, n, CrawlState.RUNNING, None, now_ms, only_from=ended)
    undone = Counter((row.crawl, row.state, row.reason) for row in reopened)
    crawls.add_counts(tx, {key: -n for key, n in undone.items()})
    opened = {(row.crawl, row.fp) for row in reopened}
    opened |= {(failure.crawl, failure.fp) for failure in wanted if (failure.crawl, failure.host) in reopened_hosts}
    return len(opened)
