"""The crawl loop of one process: lease, fetch, give slots back, commit. It never sleeps on a host.

One call to the frontier carries what came back since the last one and leases what is due; pages are read in the fetch
callbacks; groups of results are committed beside the fetching. If the frontier or the store is away, what is under way
ends within its slots, and nothing more is leased until they are back.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from curtsy import harvest
from curtsy.commit import Committer
from curtsy.contexts import CrawlContext
from curtsy.errors import EpochLost, FrontierUnavailable, StoreUnavailable
from curtsy.faults import point
from curtsy.fetch.http import HttpFetcher
from curtsy.frontier.clock import boot
from curtsy.frontier.frontier import Frontier, LeaseReply, Release, Times
from curtsy.harvest import UNSENT, Finished
from curtsy.jobs import Jobs
from curtsy.knowledge import Knowledge
from curtsy.lifeline import Lifeline
from curtsy.links import sitemap
from curtsy.model import Action, CrawlState, Decision, Fault, Kind, Lane, Lease, Outcome, Page
from curtsy.observe import count, log
from curtsy.oversight import Oversight
from curtsy.politeness import effect
from curtsy.recovery import in_thread, open_epoch, read
from curtsy.settings import Settings
from curtsy.stopping import StopFlag, end, see_through
from curtsy.store.engine import Store
from curtsy.store.segments import SegmentStore, read_page
from curtsy.upkeep import Upkeep
from curtsy.urls import fingerprint, origin

#: leases asked for at once: beyond this little is gained, and the server is kept from others
_BATCH = 64
#: a slot waits at most this long for company on its way back
_RELEASE_S = 0.015
_IDLE_S = 0.25
#: what is fetched gets this long to be committed after the drain; if all is to stop at once, this long
_LAST_S, _LAST_NOW_S = 30.0, 2.0
#: beyond that, one call to a part that does not answer
_GRACE_S = 6.0


@dataclass(slots=True)
class _Flight:
    lease: Lease
    context: CrawlContext | None
    previous: Page | None = None


class Shift:
    """One process's loop. `services` parts are shared; contexts and rules are its own memory."""

    def __init__(
        self, frontier: Frontier, store: Store, segments: SegmentStore, settings: Settings, stop: StopFlag,
        revive: Callable[[], Awaitable[None]], tidy: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self.frontier, self.store, self.segments, self.settings = frontier, store, segments, settings
        self.stop = stop
        self.upkeep = Upkeep(frontier, store, tidy)
        self.upkeep.meets = self._look_up
        self.oversight = Oversight(frontier, store)
        self._knowledge = Knowledge(frontier, store, settings, self.oversight, self.upkeep)
        self.contexts = self._knowledge.contexts
        self._lifeline = Lifeline(frontier, store, self.upkeep, stop, revive, self._tell_again)
        self.fetcher = HttpFetcher(settings, asyncio.get_running_loop())
        self._committer = Committer(
            frontier, store, segments, settings, self.contexts, self.upkeep, self._lifeline.persist
        )
        self._jobs = Jobs(settings)
        self._rng = random.Random()
        self._flights: dict[int, _Flight] = {}
        #: slots on their way back, with what they brought
        self._back: list[tuple[Release, Finished | None]] = []
        self._starts: list[tuple[int, float]] = []
        self._group: list[Finished] = []
        self._group_bytes = 0
        self._group_since = 0.0
        self._urgent = False
        self._commits: asyncio.Queue[list[Finished]] = asyncio.Queue()
        #: leases whose commit is not durable yet, by fence
        self._held: dict[int, Finished] = {}
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._beat_at = 0.0
        self._refresh_at = 0.0
        self._solo_wanted = False
        self._reading = 0
        #: leases whose crawl or rules are being read from the store
        self._waiting: dict[int, Lease] = {}
        #: what is being committed
        self._writing: list[Finished] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False
        #: time with nothing in flight and nothing due
        self.waited_s = 0.0
        stop.listen(self._wake.set)

    # The loop

    async def run(self, ended: Callable[[], Awaitable[bool]]) -> None:
        """Crawls until `ended()` or the stop flag; then everything fetched is committed, unless stopped at once."""
        self.upkeep.start()
        loop = asyncio.get_running_loop()
        writer = loop.create_task(self._write())
        work = loop.create_task(self._crawl(ended, writer))
        try:
            await see_through(work, self._time_left)
        finally:
            await end([work, writer, *self._tasks])
            await self.upkeep.stop()
            await self.fetcher.close()

    async def _crawl(self, ended: Callable[[], Awaitable[bool]], writer: asyncio.Task[None]) -> None:
        await self._lifeline.persist(self._open)
        self._spawn(self._look_after())
        while not (self.stop.drain or writer.done()) and not await ended():
            await self._turn()
        if writer.done():
            writer.result()  # it never ends by itself: without it nothing would become durable
        await self._drain()

    def _time_left(self) -> float | None:
        """How long it may still take to end, from now; None as long as it need not."""
        if self.stop.now:
            return _LAST_NOW_S + _GRACE_S
        return self.settings.drain_s + _LAST_S + _GRACE_S if self.stop.drain or self._draining else None

    async def _open(self) -> None:
        self.upkeep.scan(await open_epoch(self.frontier, self.store))
        await self.oversight.heed()

    async def _turn(self) -> None:
        """One round: give back and lease, look after everything, wait for the next event."""
        reply = await self._exchange(self._wants())
        if reply is None:
            return
        self._start_all(reply.leases)
        await self._beat()
        self._hand_over(idle=self._is_idle(reply))
        await self._wait(reply)

    def _wants(self) -> list[tuple[Lane, int]]:
        """How many more per lane; none while two groups wait for the store."""
        if self._commits.qsize() >= 2:
            count("backpressure_turns")
            return [(Lane.BATCH, 0), (Lane.SLOW, 0)]
        if self._solo_wanted:
            return [(Lane.BATCH, 0 if self._flights or self._waiting else 1)]
        slow = sum(flight.lease.lane is Lane.SLOW for flight in self._flights.values()) if self._flights else 0
        batch = len(self._flights) + len(self._waiting) - slow
        return [
            (Lane.BATCH, min(_BATCH, self.settings.concurrency - batch)),
            (Lane.SLOW, min(_BATCH, self.settings.slow_concurrency - slow)),
        ]

    async def _exchange(self, wants: list[tuple[Lane, int]]) -> LeaseReply | None:
        back, self._back = self._back, []
        starts, self._starts = self._starts, []
        solo = self._solo_wanted and not (self._flights or self._waiting) and any(n for _, n in wants)
        point("release.before")
        try:
            reply = await self.frontier.lease(wants, [release for release, _ in back], started=starts, solo=solo)
        except EpochLost as error:
            self._back, self._starts = back + self._back, []
            await self._lifeline.recover(error)
            return None
        except FrontierUnavailable as error:
            # A report that comes late or twice is harmless; without it the host would wait for the end of that request.
            self._back, self._starts = back + self._back, starts + self._starts
            count("frontier_unavailable")
            log("frontier_unavailable", level="warning", error=str(error))
            await self._nap(0.2)
            await self._lifeline.look_for_server(error)
            return None
        point("release.after")
        for release, done in back:
            if done is not None:
                self._collect(done, reply.times.get(release.lease.fence))
        self.upkeep.scan(reply.scans)
        self._solo_wanted = reply.suspects > 0 or (self._solo_wanted and not solo)
        return reply

    def _is_idle(self, reply: LeaseReply) -> bool:
        soon = reply.next_ms is not None and reply.next_ms - reply.now_ms < 50
        return not (self._flights or self._waiting or self._back or reply.leases or soon)

    async def _wait(self, reply: LeaseReply) -> None:
        if self._back and len(self._back) >= _BATCH:
            return
        wait_s = _IDLE_S
        if reply.next_ms is not None and len(self._flights) < self.settings.concurrency:
            wait_s = min(wait_s, max(0.003, (reply.next_ms - reply.now_ms) / 1000))
        if self._group and not self._flights:
            wait_s = min(wait_s, 0.01)
        if self._back or self._starts:
            # Their alarm may have gone off while the last exchange was under way.
            wait_s = min(wait_s, _RELEASE_S)
        began = boot()
        await self._nap(wait_s)
        if not self._flights and not self._back:
            self.waited_s += boot() - began

    async def _nap(self, wait_s: float) -> None:
        self._wake.clear()
        if self.upkeep.on_work.is_set():
            self.upkeep.on_work.clear()
            return
        handle = asyncio.get_running_loop().call_later(wait_s, self._wake.set)
        await self._wake.wait()
        handle.cancel()

    def _rouse_soon(self) -> None:
        """The next exchange comes at once with a full batch, else after a short wait for company."""
        if len(self._back) >= _BATCH:
            self._wake.set()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_RELEASE_S, self._rouse)

    def _rouse(self) -> None:
        self._timer = None
        self._wake.set()

    # Starting

    def _start_all(self, leases: list[Lease]) -> None:
        """Those that need the store first wait for it beside the loop: slots of others go back meanwhile."""
        waiting = [lease for lease in leases if self._knowledge.is_missing(lease)]
        if waiting:
            self._waiting.update((lease.fence, lease) for lease in waiting)
            self._spawn(self._load_and_start(waiting))
        for lease in leases:
            if lease.fence not in self._waiting:
                self._start(lease, None)

    async def _load_and_start(self, leases: list[Lease]) -> None:
        try:
            await self._lifeline.persist(lambda: self._knowledge.load(leases))
            before = await self._lifeline.persist(lambda: self._knowledge.previous(leases))
        finally:
            for lease in leases:
                self._waiting.pop(lease.fence, None)
        for lease in leases:
            if self.stop.drain:
                self._give_back(lease)
            else:
                self._start(lease, before.get(lease.fence))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _look_up(self, hosts_met: set[str]) -> None:
        """Names are looked up before their hosts' first slots are taken."""
        if hosts_met and self.settings.politeness_unit == "host":
            self._spawn(self.fetcher.prepare([_name_of(host) for host in hosts_met]))

    def _start(self, lease: Lease, previous: Page | None) -> None:
        entry = lease.entry
        if entry.kind is Kind.ROBOTS:
            if self.oversight.denies(lease.host):
                done = harvest.unasked_robots(lease, "denied", boot())
                self._bring(done, Release(lease=lease, started=None, ended=boot(), hold=entry.chain is None))
                return
            self._flights[lease.fence] = _Flight(lease, None)
            self.fetcher.start(self._jobs.for_robots(lease), self._done)
            return
        context = self.contexts[lease.crawl]
        if context.crawl.state is not CrawlState.RUNNING and context.crawl.state is not CrawlState.LOADING:
            self._give_back(lease)
            return
        rules = self._knowledge.rules.get(origin(entry.url))
        if rules is None:
            # Its rules vanished between lease and reading: nothing is sent without them.
            self._give_back(lease)
            return
        if self.oversight.denies(lease.host):
            self._skip(lease, "denied")
            return
        if rules[2] == "denied":
            # Not any more, but its rules are to be asked for first.
            self._give_back(lease, wait_ms=1000)
            return
        if rules[2] == Fault.FORBIDDEN_ADDRESS:
            self._skip(lease, rules[2])
            return
        if not rules[1].allows(entry.url, self.settings.agent):
            self._skip(lease, "robots")
            return
        job = self._jobs.for_url(lease, context, previous)
        self._flights[lease.fence] = _Flight(lease, context, previous)
        self.fetcher.start(job, self._done, self._started if lease.per_host > 1 else None)

    def _give_back(self, lease: Lease, wait_ms: int = 0) -> None:
        release = Release(lease=lease, started=None, ended=boot(), url_back=True, wait_ms=wait_ms)
        self._back.append((release, None))
        self._rouse_soon()

    def _skip(self, lease: Lease, reason: str) -> None:
        """Nothing is sent: the turn goes back, the URL is settled."""
        done = harvest.not_sent(lease, reason)
        self._held[lease.fence] = done
        self._back.append((Release(lease=lease, started=None, ended=boot()), done))
        self._rouse_soon()

    # Ending

    def _started(self, fence: int, at: float) -> None:
        self._starts.append((fence, at))
        asyncio.get_running_loop().call_soon(self._rouse_soon)

    def _done(self, fence: int, outcome: Outcome) -> None:
        """A fetch ended: its slot goes back with the next exchange, its result into the group."""
        flight = self._flights.pop(fence)
        lease = flight.lease
        if outcome.ended > lease.valid_until:
            # Only a process that was stopped sees this; the transfer itself was limited by the slot.
            outcome = replace(outcome, ended=max(lease.valid_until, outcome.started or 0.0))
        if outcome.started is None and outcome.fault in UNSENT:
            self._give_back(lease, wait_ms=250)
            return
        if lease.entry.kind is Kind.ROBOTS:
            done = harvest.of_robots(lease, outcome, self.settings, self._rng)
            self._bring(done, done.release(hold=lease.entry.chain is None))
            return
        assert flight.context is not None
        count(f"status_{outcome.status // 100}xx" if outcome.status else "no_answer")
        if outcome.status == 304 and flight.previous is not None and outcome.fault is None:
            self._unchanged(flight, outcome)
            return
        done = harvest.of_url(lease, outcome, flight.context, self.settings, self._rng, flight.previous)
        self._offer_sitemaps(done, flight.context)
        self._bring(done, done.release())
        if not done.complete:
            self._reading += 1
            self._spawn(self._read_long(done, flight.context))

    def _bring(self, done: Finished, release: Release) -> None:
        self._held[done.lease.fence] = done
        self._back.append((release, done))
        self._rouse_soon()

    def _offer_sitemaps(self, done: Finished, context: CrawlContext) -> None:
        where = origin(done.lease.entry.url)
        rules = self._knowledge.rules.get(where)
        if rules is not None and rules[1].sitemaps:
            done.offers = where
            done.links += harvest.sitemaps_of(rules[1], done.lease.entry.url, context)

    def _unchanged(self, flight: _Flight, outcome: Outcome) -> None:
        """304: the stored body is read again for its links; the slot does not wait for that."""
        lease = flight.lease
        done = Finished(
            lease=lease, fp=fingerprint(lease.entry.url), decision=Decision(action=Action.DONE, reason="not_modified"),
            outcome=outcome, previous=flight.previous,
        )  # fmt: skip
        done.effect = effect(outcome, lease.failures, lease.adaptive_ms, self.settings, rng=self._rng)
        done.complete, done.answered = False, outcome.status
        self._bring(done, done.release())
        self._reading += 1
        self._spawn(self._read_stored(flight, done))

    async def _read_stored(self, flight: _Flight, done: Finished) -> None:
        assert flight.previous is not None
        assert flight.context is not None
        assert done.outcome is not None
        try:
            record = await read(self.store, read_page, self.segments, flight.previous)
            if record is not None:
                stored = replace(done.outcome, status=200, headers=record.headers, body=record.body)
                again = harvest.of_url(done.lease, stored, flight.context, self.settings, self._rng, flight.previous)
                done.take(again)
        except Exception as error:
            log("stored_body_unreadable", level="warning", url=done.lease.entry.url, error=str(error))
        finally:
            self._reading -= 1
            self._offer_sitemaps(done, flight.context)
            done.complete = True
            if done.returned:
                self._group_up(done)

    async def _read_long(self, done: Finished, context: CrawlContext) -> None:
        """A long sitemap: others have their turn between the slices of its links."""
        assert done.outcome is not None
        try:
            content = await in_thread(sitemap, done.outcome.body, harvest.MAX_SITEMAP_URLS)
            for _ in harvest.sitemap_links(done, context, content):
                await asyncio.sleep(0)
        except Exception as error:
            # Half of its links are not its links: the lease runs out, and the URL counts as one that harms its worker.
            count("unexpected_errors")
            log("sitemap_unreadable", level="error", url=done.lease.entry.url, error=repr(error))
            self._held.pop(done.lease.fence, None)
        else:
            done.complete = True
            if done.returned:
                self._group_up(done)
                self._wake.set()
        finally:
            self._reading -= 1

    def _collect(self, done: Finished, times: Times | None) -> None:
        done.times, done.returned = times, True
        if done.complete:
            self._group_up(done)

    def _group_up(self, done: Finished) -> None:
        if not self._group:
            self._group_since = boot()
        self._group.append(done)
        self._group_bytes += done.size
        blocks = done.effect is not None and done.effect.block_ms > 0
        if blocks or done.robots is not None or done.member is not None:
            self._urgent = True

    def _hand_over(self, idle: bool) -> None:
        """Groups: 200 pages, 16 MB, 1 s, at once if a host is blocked or its rules change, or when all is quiet."""
        if not self._group:
            return
        s = self.settings
        full = len(self._group) >= s.commit_pages or self._group_bytes >= s.commit_mb * 1_000_000
        if full or idle or self._urgent or boot() - self._group_since >= s.commit_s:
            self._commits.put_nowait(self._group)
            self._group, self._group_bytes, self._urgent = [], 0, False

    async def _write(self) -> None:
        """Commits groups in order; what it was handed stays in the queue's count until it is durable."""
        while True:
            group = await self._commits.get()
            self._writing = group
            await self._committer.commit(group)
            for done in group:
                self._held.pop(done.lease.fence, None)
            self._writing = []
            self._wake.set()

    # Looking after

    async def _beat(self) -> None:
        """From the loop itself, so that a hung loop loses its leases."""
        now = boot()
        if now < self._beat_at:
            return
        self._beat_at = now + self.settings.heartbeat_s
        leases = [flight.lease for flight in self._flights.values()] + list(self._waiting.values())
        try:
            lost = await self.frontier.beat(leases + [done.lease for done in self._held.values()])
        except EpochLost as error:
            await self._lifeline.recover(error)
        except FrontierUnavailable as error:
            log("beat_failed", level="warning", error=str(error))
        else:
            # Those of the group that is being written may be settled already.
            count("leases_lost", len(lost - {done.lease.fence for done in self._writing}))

    async def _look_after(self) -> None:
        """Beside the loop: a store that does not answer holds up the upkeep, not the slots."""
        while True:
            try:
                await self.upkeep.tick()
                if boot() >= self._refresh_at:
                    self._refresh_at = boot() + 1.0
                    await self._knowledge.refresh()
            except EpochLost as error:
                await self._lifeline.recover(error)
            except (FrontierUnavailable, StoreUnavailable) as error:
                log("upkeep_failed", level="warning", error=str(error))
            except Exception as error:
                # Without upkeep nothing that was lost would be found again: it goes on, and says what happened.
                count("unexpected_errors")
                log("upkeep_broke", level="error", error=repr(error))
                await asyncio.sleep(1.0)
            await asyncio.sleep(0.1)

    async def is_finished(self, n: int) -> bool:
        """The crawl has ended, or is paused: there is nothing more to do for it here."""
        context = self.contexts.get(n)
        if context is not None and context.crawl.state not in (CrawlState.RUNNING, CrawlState.LOADING):
            return True
        try:
            return await self.upkeep.check_finished(n)
        except EpochLost as error:
            await self._lifeline.recover(error)
        except (FrontierUnavailable, StoreUnavailable) as error:
            log("completion_not_checked", level="warning", error=str(error))
        return False

    def _tell_again(self) -> None:
        """The frontier was rebuilt: effects of results that the store does not know yet are sent again."""
        known = {release.lease.fence for release, _ in self._back}
        for done in self._held.values():
            if done.effect is not None and done.outcome is not None and done.lease.fence not in known:
                self._back.append((done.release(), None))

    async def _drain(self) -> None:
        """No more leases; what is under way may end, then everything is committed."""
        self._draining = True
        deadline = boot() + (0.0 if self.stop.now else self.settings.drain_s)
        while self._is_busy() and boot() < deadline and not self.stop.now:
            await self._exchange([(Lane.BATCH, 0)])
            await self._beat()
            self._hand_over(idle=True)
            await self._nap(0.02)
        for fence in list(self._flights):
            self.fetcher.cancel(fence)
        await asyncio.sleep(0)
        ended = boot()
        while (self._back or self._group or self._writing or not self._commits.empty()) and (
            boot() - ended < (_LAST_NOW_S if self.stop.now else _LAST_S)
        ):
            await self._exchange([(Lane.BATCH, 0)])
            await self._beat()
            self._hand_over(idle=True)
            await self._nap(0.02)

    def _is_busy(self) -> bool:
        return bool(self._flights or self._waiting or self._back or self._reading)


def _name_of(host: str) -> tuple[str, int]:
    """Name and port of a unit of politeness."""
    name, colon, port = host.rpartition(":")
    return (name, int(port)) if colon and port.isdigit() and not host.endswith("]") else (host, 443)
