"""The crawl loop of one process: lease, fetch, return slots, commit. It never waits for a single host.

One call to the frontier returns the slots of finished requests and leases what is due. Pages are parsed in the fetch
callbacks, groups of results are committed concurrently with fetching. While the frontier or the store is unavailable,
requests in flight end within their slots, and nothing more is leased.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from curtsy.core.clock import boot
from curtsy.core.errors import EpochLost, FrontierUnavailable
from curtsy.core.failpoints import point
from curtsy.core.model import Counts, Lane, Lease, Page
from curtsy.core.observe import count, log
from curtsy.core.shutdown import StopFlag, end, wait_limited
from curtsy.core.threads import in_thread
from curtsy.crawl.background import BackgroundTasks
from curtsy.crawl.commit import Committer
from curtsy.crawl.commit_queue import CommitQueue
from curtsy.crawl.crawl_cache import CrawlCache
from curtsy.crawl.host_policy import HostPolicy
from curtsy.crawl.idle_time import GAP_S, Doing, IdleTime, Patience, describe_wait, waiting_hosts
from curtsy.crawl.in_flight import InFlight
from curtsy.crawl.lane_plan import BATCH, LANES, LanePlan
from curtsy.crawl.lease_start import LeaseStarter
from curtsy.crawl.maintenance import Maintenance
from curtsy.crawl.outages import Outages
from curtsy.fetch.document_limits import DocumentLimits
from curtsy.fetch.http import HttpFetcher
from curtsy.fetch.renderer import BrowserFetcher
from curtsy.frontier.messages import LeaseReply, Release
from curtsy.rules import network_profile
from curtsy.services.backends import Services
from curtsy.services.epochs import confirm, note_slot, open_epoch
from curtsy.store.engine import read
from curtsy.store.segments import read_page
from curtsy.store.warc import WarcRecord

#: a slot that is being returned waits at most this long for others
_RELEASE_S = 0.015
#: slots of hosts without a delay are returned at once if more of them are idle than a quarter of the requests in flight
_IDLE_SHARE = 4
#: connections that were idle for this long are closed when a run begins
_IDLE_CONNECTION_S = 15.0
#: on an immediate stop, or if the disk is full, fetched pages get this long to be committed
_LAST_NOW_S = 2.0
#: pages and sitemaps that wait to be read outside the event loop: with more of them, nothing is leased
_READING = 64
#: a process that has nothing in flight for this long reports why
_REPORT_AFTER_S = 5.0
#: added to the limits in `_time_left`, for one call to a server that does not answer
_GRACE_S = 6.0


class Shift:
    """One process's loop. Services are shared; contexts, robots rules and connections are its own, kept over runs."""

    def __init__(
        self, services: Services, stop: StopFlag, tidy: Callable[[], None] | None = None, *,
        lanes: tuple[Lane, ...] = LANES, network: network_profile.NetworkProfile | None = None,
        ends_without_work: bool = False, sweeps: bool = True,
    ) -> None:  # fmt: skip
        """`network`: leave crawls with other proxy or DNS settings to other processes. `ends_without_work`: a run ends
        when nothing is due, instead of waiting for more. `sweeps`: look for missing queues once a minute.
        """
        frontier, store, settings = services.frontier, services.store, services.settings
        self.frontier, self.store, self.segments, self.settings = frontier, store, services.segments, settings
        self._scans = services.scans
        self.stop = stop
        self._wake = asyncio.Event()
        self.maintenance = Maintenance(
            frontier, store, services.scans, tidy, on_hosts=self._look_up, on_scanned=self._wake.set, sweeps=sweeps,
            unreadable=lambda: self._in_flight.unreadable,
        )  # fmt: skip
        self.host_policy = HostPolicy(frontier, store)
        self._crawl_cache = CrawlCache(
            frontier, store, settings, self.host_policy, services.scans, network=network, on_halt=self._cancel_unsent
        )
        self.contexts = self._crawl_cache.contexts
        self._outages = Outages(
            frontier, store, services.scans, stop, services.restart_server, self._send_effects_again
        )
        self.background = BackgroundTasks(frontier, store, self.maintenance, self._crawl_cache, self._outages)
        self.fetcher = HttpFetcher(settings, asyncio.get_running_loop())
        self._browser: BrowserFetcher | None = None
        committer = Committer(
            frontier, store, services.segments, settings, self.contexts, self.maintenance, services.scans,
            self._outages.persist,
        )  # fmt: skip
        self._documents = DocumentLimits.of(settings)
        self._groups = CommitQueue(settings, committer.commit, self._wake.set, self._documents.budget)
        self._in_flight = InFlight(
            settings=settings,
            fetcher=self.fetcher,
            crawl_cache=self._crawl_cache,
            host_policy=self.host_policy,
            groups=self._groups,
            stored=self._stored,
            on_back=self._wake_soon,
            browser=self._open_browser,
            documents=self._documents,
            may_continue=self._may_continue,
        )
        self._starter = LeaseStarter(self._in_flight, self._crawl_cache, self._outages, stop)
        self._plan = LanePlan(settings, lanes)
        self._timer: asyncio.TimerHandle | None = None
        self._renew_at = 0.0
        #: how long requests in flight may take when a run ends
        self._drain_s = settings.drain_s
        self._draining = False
        self._patience = Patience()
        #: when the next host is due, by the boot clock
        self._next_due = 0.0
        #: the last leases were full runs of URLs, so their hosts probably have more URLs in their lists
        self._more_listed = False
        #: time with nothing in flight and nothing due
        self.waited_s = 0.0
        self.pauses = IdleTime()
        self._ends_without_work = ends_without_work
        #: nothing is in flight here, everything is committed, and nothing is due within 50 ms
        self.out_of_work = False
        self._opened = False
        #: a crawl was paused or has ended, probably by another process
        self.heard_of_end = False
        stop.listen(self._wake.set)

    def _cancel_unsent(self, crawls: set[int]) -> None:
        self._in_flight.cancel_unsent(lambda lease: lease.crawl in crawls)

    # The loop

    async def run(
        self, ended: Callable[[], Awaitable[bool]], drain_s: float | None = None, lanes: tuple[Lane, ...] | None = None
    ) -> None:
        """Crawls until `ended()` or the stop flag. Commits everything that was fetched, unless stopped immediately.

        May be called again after it has returned. Requests in flight at the end get `drain_s`, or the setting's time.
        `lanes` replaces the lanes of the constructor from this run on.
        """
        self._begin_run(drain_s, lanes)
        self.maintenance.start()
        loop = asyncio.get_running_loop()
        writer = loop.create_task(self._groups.write())
        work = loop.create_task(self._crawl(ended, writer))
        try:
            await wait_limited(work, self._time_left)
        finally:
            await end([work, writer, *self._in_flight.tasks])
            await self.maintenance.stop()
            self._in_flight.cancel_all()

    async def close(self) -> None:
        if self._browser is not None:
            await self._browser.close()
        await self.fetcher.close()

    def _open_browser(self) -> BrowserFetcher:
        """Open the browser for the first page that needs it, and keep it."""
        if self._browser is None:
            self._browser = BrowserFetcher(self.settings, asyncio.get_running_loop(), self._crawl_cache.allows)
        return self._browser

    def _begin_run(self, drain_s: float | None, lanes: tuple[Lane, ...] | None) -> None:
        """Drops the state of an earlier run. Leases that it did not commit or give back expire."""
        self._in_flight.begin()
        self._groups.begin()
        self._starter.clear()
        self._plan.begin(lanes)
        self._renew_at, self.out_of_work, self._draining = 0.0, False, False
        self._drain_s = self.settings.drain_s if drain_s is None else drain_s
        self.fetcher.drop_idle(_IDLE_CONNECTION_S)
        if self._browser is not None:
            self._browser.drop_idle(_IDLE_CONNECTION_S)
        if self._opened:
            self._crawl_cache.forget_ended()

    async def _crawl(self, ended: Callable[[], Awaitable[bool]], writer: asyncio.Task[None]) -> None:
        await self._outages.persist(self._refresh if self._opened else self._open)
        if Lane.RENDER in self._plan.lanes:
            # Before the first visit: after a loss of the frontier, the quiet period lasts as long as a visit may.
            slot_ms = int(self.settings.render_slot_s * 1000)
            await self._outages.persist(lambda: in_thread(self.store.run, note_slot, slot_ms))
        self._in_flight.spawn(self.background.watch_store())
        self._in_flight.spawn(self.background.maintain())
        while not (self.stop.drain or writer.done()) and not await ended():
            await self._round()
        if writer.done():
            writer.result()  # it never ends without an error: nothing would become durable any more
        await self._drain()

    def _time_left(self) -> float | None:
        """How long the end may still take, from now; None while the run continues."""
        if self.stop.now:
            return _LAST_NOW_S + _GRACE_S
        if not (self.stop.drain or self._draining):
            return None
        drain_s = self.settings.drain_s if self.stop.drain else self._drain_s
        return drain_s + self.settings.commit_timeout_s + _GRACE_S

    async def _refresh(self) -> None:
        """Reads what changed since the last run. The first exchange shows which epoch is current."""
        await self._crawl_cache.refresh()
        await confirm(self.frontier, self.store)
        await self.host_policy.refresh()

    async def _open(self) -> None:
        self._scans.add(await open_epoch(self.frontier, self.store))
        await self.host_policy.refresh()
        self._opened = True

    async def _round(self) -> None:
        """Returns slots, leases what is due, passes results to the commit, and waits for the next event."""
        awaited = self._may_get_work()
        reply = await self._exchange(self._wants())
        if reply is None:
            self.pauses.note(Doing.WORK if self._is_busy() else Doing.NOTHING, boot())
            return
        self._starter.start(reply.leases)
        if reply.trouble is not None:
            await self._recover(reply.trouble)
        await self._renew_leases()
        idle = self._is_idle(reply)
        # A host whose slots are all in use is not due, but a full run of URLs shows that it has more URLs.
        starved = reply.next_ms is None and not reply.leases and not self._more_listed
        self._groups.hand_over(idle=idle, starved=starved)
        # A commit or scan that ended during the exchange may have made work due: then the next round decides.
        nothing = idle and not self._may_get_work() and not self._is_busy()
        self.out_of_work = nothing and not awaited
        self._note(reply)
        if not (self._ends_without_work and nothing):
            await self._wait(reply)

    def _wants(self) -> list[tuple[Lane, int]]:
        """Leases wanted per lane; none while two groups wait for the store, many pages wait to be read, or another
        document might have no room.
        """
        full = not self._documents.budget.has_room(self._documents.max_bytes)
        if full or self._groups.is_full or self._in_flight.reading > _READING:
            count("backpressure_turns")
            return self._plan.nothing
        slow = self._in_flight.of_lane(Lane.SLOW)
        visits = self._visits() if Lane.RENDER in self._plan.lanes else 0
        others = len(self._in_flight.under_way) + len(self._starter) - slow - visits
        return self._plan.wants(others, slow, visits, room=self._documents.budget.requests())

    def _may_continue(self) -> bool:
        """Whether runs of URLs continue: nothing waits that the next lease would wait for too."""
        ending = self.stop.drain or self._draining or self._plan.solo_wanted
        busy = self._groups.is_full or self._in_flight.reading > _READING
        return not (ending or busy) and self._documents.budget.requests() is None

    def _max_urls_per_slot(self) -> int:
        if not self._may_continue():
            return 1
        return self._in_flight.runs.longest()

    def _visits(self) -> int:
        return self._in_flight.of_lane(Lane.RENDER) + self._starter.of_lane(Lane.RENDER)

    async def _exchange(self, wants: list[tuple[Lane, int]]) -> LeaseReply | None:
        in_flight = self._in_flight
        back, starts = in_flight.take()
        urls_per_slot = self._max_urls_per_slot()
        solo = self._plan.solo_wanted and not self._has_requests() and any(n for _, n in wants)
        point("release.before")
        try:
            reply = await self.frontier.lease(
                wants,
                [release for release, _ in back],
                started=starts,
                solo=solo,
                urls_per_slot=urls_per_slot,
                most_urls=self._in_flight.runs.room(len(self._in_flight.under_way)),
            )
        except (EpochLost, FrontierUnavailable) as error:
            # A report that arrives late or twice is harmless; without it the host would wait for the slot's expiry.
            in_flight.untake(back, starts)
            if isinstance(error, FrontierUnavailable):
                await self._sleep(0.2)
            await self._recover(error)
            return None
        point("release.after")
        if reply.trouble is not None:
            in_flight.untake([one for one in back if one[0].lease.shard not in reply.asked], starts)
            back = [one for one in back if one[0].lease.shard in reply.asked]
        for release, has_result in back:
            if has_result:
                self._groups.collect(release.lease.fence, reply.times.get(release.lease.fence))
        if in_flight.runs:
            self._stop_early_runs(reply, back)
        self.heard_of_end = self.heard_of_end or reply.has_halts
        if reply.halted:
            self._crawl_cache.halt(reply.halted)
        self._scans.add(reply.scans)
        self._plan.note(reply, solo=solo)
        if reply.leases:
            slots = sum(not lease.follows for lease in reply.leases)
            self._more_listed = reply.urls_per_slot > 1 and len(reply.leases) == slots * reply.urls_per_slot
        return reply

    def _stop_early_runs(self, reply: LeaseReply, back: Sequence[tuple[Release, bool]]) -> None:
        """Stops runs of URLs: another process may have received a block, or a delay applies now."""
        late = {
            release.lease.host
            for release, _ in back
            if (times := reply.times.get(release.lease.fence)) is not None and times.next_ms > reply.now_ms
        }
        if late:
            self._in_flight.stop_runs(lambda lease: lease.host in late)

    async def _recover(self, error: Exception) -> None:
        """The frontier, or a shard of it, was lost or does not answer."""
        if isinstance(error, EpochLost):
            await self._outages.recover(error)
            return
        count("frontier_unavailable")
        log("frontier_unavailable", level="warning", error=str(error))
        await self._outages.look_for_server(error)

    def _is_idle(self, reply: LeaseReply) -> bool:
        soon = reply.next_ms is not None and reply.next_ms - reply.now_ms < GAP_S * 1000
        # A suspect is due: the next exchange leases it alone.
        return not (self._has_requests() or self._in_flight.back or reply.leases or soon or self._plan.solo_wanted)

    def _may_get_work(self) -> bool:
        """A commit or a scan is running that may bring more work."""
        return not self._groups.is_empty or self._scans.is_busy

    def _note(self, reply: LeaseReply) -> None:
        due = reply.next_ms is not None and reply.next_ms <= reply.now_ms
        if self._is_busy() or due or self._plan.solo_wanted:
            doing = Doing.WORK
        else:
            doing = Doing.CLOSING if self._may_get_work() else Doing.NOTHING
        self.pauses.note(doing, boot())

    async def _wait(self, reply: LeaseReply) -> None:
        in_flight = self._in_flight
        if self._must_exchange():
            return
        listed = bool(reply.leases) or reply.next_ms is not None
        wait_s = self._patience.wait_s(has_work=listed or self._has_requests() or self._may_get_work())
        self._next_due = boot() + ((reply.next_ms or reply.now_ms) - reply.now_ms) / 1000
        if reply.next_ms is not None and len(in_flight.under_way) < self.settings.concurrency:
            wait_s = min(wait_s, max(0.003, (reply.next_ms - reply.now_ms) / 1000))
        if self._groups.is_begun and not in_flight.under_way:
            wait_s = min(wait_s, 0.01)
        if in_flight.back or in_flight.starts or (self._plan.solo_wanted and not self._has_requests()):
            # Their timer may have fired during the last exchange.
            wait_s = min(wait_s, _RELEASE_S)
        began = boot()
        await self._sleep(wait_s)
        if not in_flight.under_way and not in_flight.back:
            self.waited_s += boot() - began

    async def _sleep(self, wait_s: float) -> None:
        """Sleeps until something happens, at most this long."""
        self._wake.clear()
        if self.maintenance.on_work.is_set():
            self.maintenance.on_work.clear()
            return
        handle = asyncio.get_running_loop().call_later(wait_s, self._wake.set)
        await self._wake.wait()
        handle.cancel()

    def _wake_soon(self) -> None:
        """The next exchange starts at once if it must, else after a short wait for other slots."""
        if self._must_exchange():
            self._wake.set()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_RELEASE_S, self._wake_now)

    def _must_exchange(self) -> bool:
        """Whether a full batch waits, or many slots are idle that could be used at once."""
        in_flight = self._in_flight
        return len(in_flight.back) >= BATCH or in_flight.idle_slots * _IDLE_SHARE > len(in_flight.under_way)

    def _wake_now(self) -> None:
        self._timer = None
        self._wake.set()

    def _look_up(self, hosts: set[str]) -> None:
        """Resolves names before their hosts' first slots are taken."""
        if hosts and self.settings.politeness_unit == "host":
            self._in_flight.spawn(self.fetcher.prepare([_name_of(host) for host in hosts]))

    # Lease renewal and end

    async def _renew_leases(self) -> None:
        """Renews the leases. Called from the loop itself, so that a hung loop loses them."""
        now = boot()
        if now < self._renew_at:
            return
        self._renew_at = now + self.settings.heartbeat_s
        try:
            lost = await self.frontier.renew_leases(self._leases())
        except EpochLost as error:
            await self._outages.recover(error)
        except FrontierUnavailable as error:
            log("lease_renewal_failed", level="warning", error=str(error))
        else:
            # Leases of a group that was committed meanwhile, or that is being written, may be settled already.
            settled = {returned.result.lease.fence for returned in self._groups.writing}
            count("leases_lost", len(lost & {lease.fence for lease in self._leases()} - settled) if lost else 0)

    def _leases(self) -> list[Lease]:
        """The leases of this process that its commits have not settled."""
        held = [result.lease for result in self._groups.held.values()]
        return self._in_flight.leases + self._starter.waiting + held

    def _send_effects_again(self) -> None:
        """The frontier was rebuilt: it does not know the effects of results that are not in the store yet."""
        known = {release.lease.fence for release, _ in self._in_flight.back}
        for result in self._groups.held.values():
            if result.effect is not None and result.outcome is not None and result.lease.fence not in known:
                self._in_flight.send_effect_again(result)

    async def _drain(self) -> None:
        """Leases nothing more, lets requests in flight end, then commits everything."""
        self._draining = True
        self._in_flight.stop_runs()
        began, limit_s, stopped = boot(), self._drain_s, False
        while self._is_busy() and boot() - began < limit_s and not (self.stop.now or self._outages.is_refused):
            if self.stop.drain and not stopped:
                # Asked to stop: requests that have sent nothing are canceled, the others get the setting's time.
                stopped, began, limit_s = True, boot(), self.settings.drain_s
                self._in_flight.cancel_all(unsent_only=True)
            await self._drain_round()
        self._in_flight.cancel_all()
        self._in_flight.give_up_documents()
        ended = boot()
        # A canceled visit ends when its browser context is closed: its slot must be returned for a clean end.
        while (self._is_busy() or not self._groups.is_empty) and (
            boot() - ended
            < (_LAST_NOW_S if self.stop.now or self._outages.is_refused else self.settings.commit_timeout_s)
        ):
            await self._drain_round()

    async def _drain_round(self) -> None:
        await self._exchange(self._plan.nothing)
        await self._renew_leases()
        self._groups.hand_over(idle=True)
        self.pauses.note(Doing.WORK if self._is_busy() else Doing.CLOSING, boot())
        await self._sleep(0.02)

    def no_browser(self, after_s: float = _REPORT_AFTER_S) -> str:
        """Why no browser starts, if pages wait for one and no other request ended for this long; else empty."""
        if self._browser is None or boot() - self._in_flight.last_end < after_s:
            return ""
        return self._browser.trouble

    def waits_for(self) -> str:
        """What the process waits for, if nothing was in flight for a while; else empty."""
        if trouble := self.no_browser():
            return f"waiting for a browser: {trouble}"
        now = boot()
        if self._has_requests() or now - self._in_flight.last_end < _REPORT_AFTER_S:
            return ""
        return describe_wait(self._in_flight.troubled, self._next_due - now, now)

    def with_activity(self, counts: Counts) -> Counts:
        """The counts with what this process does now and what it waits for."""
        return replace(
            counts,
            waiting=self.waits_for(),
            active_hosts=self._in_flight.active_hosts(boot()),
            waiting_hosts=waiting_hosts(self._in_flight.troubled, boot()),
        )

    def _has_requests(self) -> bool:
        """Requests are in flight, or wait for data from the store."""
        return bool(self._in_flight.under_way or self._starter)

    def _is_busy(self) -> bool:
        """There are requests, slots to return, or pages to read."""
        return self._has_requests() or bool(self._in_flight.back or self._in_flight.reading)

    async def _stored(self, page: Page) -> WarcRecord | None:
        return await read(self.store, read_page, self.segments, page)


def _name_of(host: str) -> tuple[str, int]:
    """Name and port of a unit of politeness."""
    name, colon, port = host.rpartition(":")
    return (name, int(port)) if colon and port.isdigit() and not host.endswith("]") else (host, 443)
