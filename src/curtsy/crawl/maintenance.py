"""Keeps the frontier and the store consistent concurrently with fetching: the reaper, dead hosts, completion."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from curtsy.core import metrics
from curtsy.core.clock import boot
from curtsy.core.failpoints import point
from curtsy.core.model import CrawlState, Failure, Kind, Lane, Lease, Request, UrlState
from curtsy.core.observe import count, log, log_crawl
from curtsy.core.threads import in_thread
from curtsy.crawl import crash_record
from curtsy.crawl.queue_loading import load
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.messages import ReapedLease, ReapedSlot, Settled
from curtsy.rules.politeness import least_patience_ms, patience_ms
from curtsy.rules.urls import fingerprint
from curtsy.services.scans import ScanListener, Scans
from curtsy.store import crawl_events, crawls, failures, hosts, outbox, queues, requests, sites, urls
from curtsy.store.engine import Store, read

_SWEEP_S = 60.0
#: how often the retention settings are applied
_TIDY_S = 3600.0
#: a crawl whose seeds stopped arriving is cancelled after this long
_LOADING_MS = 3_600_000
_PATIENCE_CHECK_S = 1.0
#: how often crash records of dead processes are searched
_DEATHS_S = 2.0
#: hosts that do not answer: entries kept by one process
_MOST_FAILING = 100_000


class Maintenance(ScanListener):
    """One per process. Any process may do everything here, at any time, more than once."""

    def __init__(
        self, frontier: Frontier, store: Store, scans: Scans, tidy: Callable[[], None] | None = None, *,
        on_hosts: Callable[[set[str]], None] = lambda hosts: None, on_scanned: Callable[[], None] = lambda: None,
        sweeps: bool = True, unreadable: Callable[[], set[int]] = set,
    ) -> None:  # fmt: skip
        self.frontier = frontier
        self.store = store
        #: merges and deletes segments; slow, so it runs in a thread
        self._tidy = tidy
        self._tidied = boot()
        #: called with hosts that are about to be fetched from for the first time
        self._on_hosts = on_hosts
        self._scans = scans
        #: called when a scan was carried out
        self._on_scanned = on_scanned
        self._swept = boot()
        #: whether it sweeps every running crawl once a minute; in a fleet, Beat does
        self._sweeps = sweeps
        #: leases of this process whose URLs could not be read because of an internal error
        self._unreadable = unreadable
        self._deaths_at = 0.0
        self._patience_checked = 0.0
        self._reap_at = 0.0
        #: queues wait in the store for room
        self._crowded = False
        #: crawls that may be finished
        self.idle: set[int] = set()
        #: hosts that do not answer -> when that was last noticed here
        self.failing: dict[str, int] = {}
        #: set when there is new work
        self.on_work = asyncio.Event()

    def start(self) -> None:
        self._scans.start(self, sweeps=self._sweeps)

    async def stop(self) -> None:
        await self._scans.stop()

    # Scans

    def resolve(self, hosts: set[str]) -> None:
        """These hosts are about to be fetched from for the first time."""
        self._on_hosts(hosts)

    def queue_filled(self, host: str) -> None:
        self._on_hosts({host})
        self.on_work.set()

    def queue_left(self) -> None:
        if self._crowded:
            self._reap_at = 0.0

    def crawl_idle(self, crawl: int) -> None:
        self.idle.add(crawl)
        self.on_work.set()

    def scan_done(self) -> None:
        self._on_scanned()

    # The tick

    async def tick(self) -> None:
        """Run due work. Cheap when nothing is due; called about ten times a second."""
        now = boot()
        if now >= self._reap_at:
            self._reap_at = now + 0.5
            await self._report_crashes()
            await self._reap()
            await self._load()
        if now - self._patience_checked >= _PATIENCE_CHECK_S:
            self._patience_checked = now
            await self.mark_dead_hosts()
        if self._sweeps and now - self._swept >= _SWEEP_S:
            self._swept = now
            await self._cancel_incomplete()
            await self._scans.put_back()
        if self._tidy is not None and now - self._tidied >= _TIDY_S:
            self._tidied = now
            await in_thread(self._tidy)

    def hurry(self) -> None:
        """A slot or lease has expired: the next tick reaps it."""
        self._reap_at = 0.0

    async def _cancel_incomplete(self) -> None:
        """Cancels crawls whose seeds stopped arriving: fetched pages stay, the rest is skipped."""
        before_ms = await self._server_ms() - _LOADING_MS
        for crawl in await read(self.store, crawls.running):
            if crawl.state is CrawlState.LOADING and crawl.created_ms < before_ms:
                await in_thread(self.store.run, _give_up, crawl.n, before_ms + _LOADING_MS)
                await self.frontier.set_crawl(await read(self.store, crawls.by_n, crawl.n))
                await self._drop_all(crawl.n)
                log_crawl(crawl, "upload_incomplete", level="warning")

    async def _report_crashes(self) -> None:
        """Reports the URLs that crashed a process of this machine, or could not be read by this one."""
        if unreadable := self._unreadable():
            done = set(unreadable)
            await self.frontier.report_crashes(done)
            unreadable -= done
        if boot() < self._deaths_at:
            return
        self._deaths_at = boot() + _DEATHS_S
        with crash_record.deaths(crash_record.folder(self.frontier.settings)) as found:
            for death in found:
                stood = await self.frontier.report_crashes(death.suspects)
                if death.trace:
                    log("process_crashed", level="error", record=death.path.name, leases=stood, trace=death.trace)

    async def _reap(self) -> None:
        scans, _next = await self.frontier.reap()
        self._scans.add(scans)
        items = await self.frontier.reaped()
        if not items:
            return
        leases = sum(isinstance(item, ReapedLease) for item in items)
        count("leases_reaped", leases)
        metrics.inc("curtsy_lease_expiries_total", leases, kind="lease")
        metrics.inc("curtsy_lease_expiries_total", len(items) - leases, kind="slot")
        now_ms = max(item.expiry_ms if isinstance(item, ReapedSlot) else 0 for item in items)
        await in_thread(self.store.run, _write_reaped, items, now_ms)
        point("reap.written")
        condemned = [item for item in items if isinstance(item, ReapedLease) and item.condemned]
        if condemned:
            await self.frontier.settle([Settled(lease=_lease_again(item)) for item in condemned])
        deadly = {(i.crawl, i.host) for i in items if isinstance(i, ReapedLease) and _kills_by_robots(i)}
        if deadly:
            await self.frontier.drop(sorted(deadly))
            self.idle.update(crawl for crawl, _ in deadly)
        await self.frontier.forget_reaped(items)
        self.on_work.set()

    async def _load(self) -> None:
        """Loads queues that wait in the store."""
        scans, self._crowded = await load(self.frontier, self.store)
        self._scans.add(scans)

    # Dead hosts

    def note_answers(self, answered: frozenset[str], failing: frozenset[str], now_ms: int) -> None:
        """A commit stored which hosts answered and which did not."""
        for host in answered - failing:
            self.failing.pop(host, None)
        for host in failing:
            self.failing[host] = now_ms
        if len(self.failing) > _MOST_FAILING:
            # A host that is dropped here is noticed at its next failure.
            oldest = sorted(self.failing.items(), key=lambda item: item[1])[: len(self.failing) - _MOST_FAILING // 2]
            for host, _ in oldest:
                del self.failing[host]

    async def mark_dead_hosts(self) -> None:
        """A host whose requests failed during all of its patience is dead for the crawls that wait for it.

        Only a failure after that time counts: a crawl that was stopped, or a host that asked for a long pause, gets
        another attempt.
        """
        if not self.failing:
            return
        settings = self.frontier.settings
        before_ms = max(self.failing.values()) - least_patience_ms(settings)
        failing = await read(self.store, queues.failing_since, before_ms)
        found = [
            q for q, has_answered in failing
            if self.failing.get(q.host, 0) - (q.failing_since_ms or 0) >= patience_ms(q.reason, has_answered, settings)
        ]  # fmt: skip
        if found:
            await self._mark_dead_and_drop(found)

    async def give_up(self, n: int) -> None:
        """If every host that the crawl still has work on fails, all of them are dead for it."""
        if found := await read(self.store, queues.all_failing, n):
            await self._mark_dead_and_drop(found)

    async def _mark_dead_and_drop(self, found: list[queues.Queue]) -> None:
        dead = await in_thread(self.store.run, _mark_dead, found)
        await self.frontier.drop([(q.crawl, q.host) for q, _ in dead])
        for q in found:
            self.failing.pop(q.host, None)
        self.idle.update(q.crawl for q, _ in dead)
        self.on_work.set()

    async def _server_ms(self) -> int:
        seconds, micros = await self.frontier.shards[0].command("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    # Completion

    async def check_finished(self, n: int) -> bool:
        """Whether the crawl has ended: nothing is in flight, its budget is spent or no live host has an open row."""
        if self._scans.pending(n) or not await self.frontier.idle(n):
            return False
        now_ms = await self._server_ms()
        state = await in_thread(self.store.run, _finish_if_done, n, now_ms)
        if state is None:
            # One shard may have budget left that another one lacks.
            await self.frontier.set_crawl(await read(self.store, crawls.by_n, n))
            await self._scans.put_back(n)
            return False
        if state in (CrawlState.FINISHED, CrawlState.EXTRACTING):
            crawl = await read(self.store, crawls.by_n, n)
            await self.frontier.set_crawl(crawl)
            await self._drop_all(n)
            await self.frontier.forget(n)
        return True

    async def _drop_all(self, n: int) -> None:
        after = (0, "")
        while found := await read(self.store, queues.open_of, n, after, 1000):
            after = (found[-1].crawl, found[-1].host)
            await self.frontier.drop([(q.crawl, q.host) for q in found])


def _lease_again(item: ReapedLease) -> Lease:
    return Lease(
        fence=item.fence, shard=item.shard, host=item.host, crawl=item.crawl, crawl_version=0, lane=Lane.BATCH,
        entry=item.entry, delay_ms=item.delay_ms, per_host=item.per_host, robots_ms=0, valid_until=0.0,
    )  # fmt: skip


def _write_reaped(tx: Any, items: list[ReapedSlot | ReapedLease], now_ms: int) -> None:
    """Stores dead queues, crashes, URLs that became dead letters, and known or presumed requests. Harmless when
    repeated.
    """
    leases = [i for i in items if isinstance(i, ReapedLease)]
    queues.mark(tx, dead={(i.crawl, i.host): "kills_worker" for i in leases if _kills_by_robots(i)})
    lost = [i for i in leases if not i.own_robots and i.entry.kind is not Kind.ROBOTS]
    ended = [(i.crawl, fingerprint(i.entry.url), i.fence, i.crashed, i.solo) for i in lost if not i.condemned]
    urls.lock(tx, [(i.crawl, fingerprint(i.entry.url)) for i in lost])
    urls.end_leases(tx, ended)
    sent = [_sent(i) for i in leases if i.times is not None]
    requests.insert_reaped(tx, sent, [_presumed(i) for i in items if isinstance(i, ReapedSlot)])
    _condemn(tx, [i for i in lost if i.condemned], now_ms)


def _kills_by_robots(item: ReapedLease) -> bool:
    """Its robots.txt killed the worker twice with nothing else in flight: the host is dead for the crawl."""
    return item.crashed and item.own_robots and item.entry.solo_crashes >= 2


def _give_up(tx: Any, n: int, now_ms: int) -> None:
    crawls.set_state(tx, n, CrawlState.CANCELLED, "upload_incomplete", now_ms, only_from=(CrawlState.LOADING,))


def _condemn(tx: Any, items: list[ReapedLease], now_ms: int) -> None:
    if not items:
        return
    keys = {(i.crawl, fingerprint(i.entry.url)): i for i in items}
    settled = [
        urls.Settle(n, fp, i.fence, UrlState.FAILED, "kills_worker", i.entry.attempts) for (n, fp), i in keys.items()
    ]
    changed = urls.settle(tx, settled, now_ms)
    failures.insert(
        tx,
        [
            Failure(
                id=f"{keys[key].fence:x}", crawl=key[0], fp=key[1], url=keys[key].entry.url, host=keys[key].host,
                cause="kills_worker", detail="the worker crashed twice with nothing else in flight",
                attempts=keys[key].entry.attempts, fence=keys[key].fence, at_ms=now_ms,
            )
            for key in changed
        ],
    )  # fmt: skip
    counts: dict[tuple[int, str, str], int] = {}
    named = crawl_events.identities(tx, [n for n, _ in changed])
    for n, fp in changed:
        url = keys[n, fp].entry.url
        crawl_events.note(tx, named[n], "url_condemned", level="error", url=url, cause="kills_worker")
        counts[n, "failed", "kills_worker"] = counts.get((n, "failed", "kills_worker"), 0) + 1
    crawls.add_counts(tx, counts)


def _sent(item: ReapedLease) -> Request:
    assert item.times is not None
    return Request(
        fence=item.fence, crawl=item.crawl, host=item.host, url=item.entry.url, start_ms=item.times[0],
        end_ms=item.times[1], kind=item.entry.kind.value, status=0, fault="lost", delay_ms=item.delay_ms,
        per_host=item.per_host,
    )  # fmt: skip


def _presumed(item: ReapedSlot) -> Request:
    return Request(
        fence=item.fence, ordinal=1, crawl=item.crawl, host=item.host, url="", start_ms=item.leased_ms,
        end_ms=item.expiry_ms, kind="", status=0, delay_ms=item.delay_ms, per_host=item.per_host, nature="presumed",
    )  # fmt: skip


def _mark_dead(tx: Any, found: list[queues.Queue]) -> list[tuple[queues.Queue, str]]:
    names = {q.host for q in found}
    known, states = hosts.robots_of_hosts(tx, names), hosts.get_many(tx, names)
    # Another process may have received an answer.
    alive = {q.host for q in found if q.host in states and (states[q.host].last_ok_ms or 0) > (q.failing_since_ms or 0)}
    dead = [
        (q, "host_unreachable" if known.get(q.host) else "robots_unreachable") for q in found if q.host not in alive
    ]
    queues.mark(tx, answered=alive, dead={(q.crawl, q.host): reason for q, reason in dead})
    named = crawl_events.identities(tx, [q.crawl for q, _ in dead])
    for q, reason in dead:
        crawl_events.note(tx, named[q.crawl], "host_dead", host=q.host, reason=reason)
    return dead


def _finish_if_done(tx: Any, n: int, now_ms: int) -> CrawlState | None:
    """The crawl's state if it has ended, ends now or is paused; None if work is left."""
    crawl = crawls.by_n(tx, n)
    if crawl.state is not CrawlState.RUNNING:
        return crawl.state
    spent = crawl.max_pages is not None and crawl.pages >= crawl.max_pages
    if not spent and urls.has_open(tx, n):
        return None
    sites.put_all(tx, n)
    state = CrawlState.EXTRACTING if crawl.schema and outbox.has_open(tx, n) else CrawlState.FINISHED
    crawls.set_state(tx, n, state, "budget" if spent else None, now_ms, only_from=(CrawlState.RUNNING,))
    return state
