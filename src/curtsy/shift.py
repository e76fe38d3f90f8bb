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

from curtsy import harvest, metrics
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
from curtsy.model import Action, CrawlState, Decision, Fault, Kind, Lane, Lease, Outcome, Page
from curtsy.observe import count, log
from curtsy.oversight import Oversight
from curtsy.pauses import GAP_S, Doing, Pauses
from curtsy.politeness import effect
from curtsy.recovery import confirm, open_epoch, read
from curtsy.settings import Settings
from curtsy.stopping import StopFlag, end
from curtsy.store.engine import Store
from curtsy.store.segments import SegmentStore, read_page
from curtsy.upkeep import Upkeep
from curtsy.urls import fingerprint, origin

#: leases asked for at once: beyond this little is gained, and the server is kept from others
_BATCH = 64
#: a slot waits at most this long for company on its way back
_RELEASE_S = 0.015
_IDLE_S = 0.25
#: connections that nobody used for this long are closed when a shift begins
_IDLE_CONNECTION_S = 15.0


@dataclass(slots=True)
class _Flight:
    lease: Lease
    context: CrawlContext | None
    previous: Page | None = None


class Shift:
    """One process's loop. `services` parts are shared; contexts, rules and connections are its own, kept over runs."""

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
        self._knowledge.stops = self._break_off
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
        self._tell_at = 0.0
        self._solo_wanted = False
        self._reading = 0
        #: leases whose crawl or rules are being read from the store
        self._waiting: dict[int, Lease] = {}
        #: what is being committed
        self._writing: list[Finished] = []
        self._tasks: set[asyncio.Task[None]] = set()
        #: time with nothing in flight and nothing due
        self.waited_s = 0.0
        self.pauses = Pauses()
        #: whose hosts are asked; suspects are asked beside batch and slow
        self.lanes: tuple[Lane, ...] = (Lane.HIGH, Lane.BATCH, Lane.SLOW)
        #: a run ends as soon as `quiet` holds, instead of waiting for more
        self.leaves = False
        #: nothing is under way here, everything is committed, and nothing is due within 50 ms
        self.quiet = False
        self._opened = False
        stop.listen(self._wake.set)
        self.upkeep.scanned = self._wake.set

    # The loop

    async def run(self, ended: Callable[[], Awaitable[bool]], drain_s: float | None = None) -> None:
        """Crawls until `ended()` or the stop flag; then everything fetched is committed, unless stopped at once.

        May be called again after it has returned. What is under way at the end gets `drain_s`, or the setting's time.
        """
        self._begin_run()
        self.upkeep.start()
        writer = asyncio.get_running_loop().create_task(self._write())
        caretaker: asyncio.Task[None] | None = None
        try:
            await self._lifeline.persist(self._look_again if self._opened else self._open)
            self._spawn(self._watch_store())
            caretaker = asyncio.get_running_loop().create_task(self._look_after())
            while not (self.stop.drain or writer.done()) and not await ended():
                await self._turn()
            if writer.done():
                writer.result()  # it never ends by itself: without it nothing would become durable
            await self._drain(drain_s)
        finally:
            tasks = [writer, *self._tasks, *([caretaker] if caretaker is not None else [])]
            await end(tasks)
            await self.upkeep.stop()
            for fence in list(self._flights):
                self.fetcher.cancel(fence)

    async def close(self) -> None:
        await self.fetcher.close()

    def _begin_run(self) -> None:
        """Nothing of an earlier run is under way. What it could not commit or give back is found by expiry."""
        for left in (self._flights, self._held, self._waiting, self._back, self._starts, self._group, self._writing):
            left.clear()
        self._group_bytes, self._urgent, self._reading = 0, False, 0
        self._commits = asyncio.Queue()
        self._beat_at, self._solo_wanted, self.quiet = 0.0, False, False
        self.fetcher.drop_idle(_IDLE_CONNECTION_S)
        if self._opened:
            self._knowledge.forget_ended()

    async def _look_again(self) -> None:
        """What changed since the last run; which epoch rules is told by the first exchange."""
        await self._knowledge.refresh()
        await confirm(self.frontier, self.store)
        await self.oversight.heed()

    async def _open(self) -> None:
        self.upkeep.scan(await open_epoch(self.frontier, self.store))
        await self.oversight.heed()
        self._opened = True

    async def _turn(self) -> None:
        """One round: give back and lease, look after everything, wait for the next event."""
        closing = self._is_closing()
        reply = await self._exchange(self._wants())
        if reply is None:
            self.pauses.note(Doing.WORK if self._is_busy() else Doing.NOTHING, boot())
            return
        self._start_all(reply.leases)
        if reply.trouble is not None:
            await self._mend(reply.trouble)
        await self._beat()
        idle = self._is_idle(reply)
        self._hand_over(idle=idle)
        # What was committed or listed during the exchange may be due by now: then another look decides, at once.
        nothing = idle and not self._is_closing() and not self._is_busy()
        self.quiet = nothing and not closing
        self._note(reply)
        if not (self.leaves and nothing):
            await self._wait(reply)

    def _wants(self) -> list[tuple[Lane, int]]:
        """How many more per lane; none while two groups wait for the store."""
        if self._commits.qsize() >= 2:
            count("backpressure_turns")
            return [(lane, 0) for lane in self.lanes]
        if self._solo_wanted:
            lane = Lane.BATCH if Lane.BATCH in self.lanes else self.lanes[0]
            return [(lane, 0 if self._flights or self._waiting else 1)]
        slow = sum(flight.lease.lane is Lane.SLOW for flight in self._flights.values()) if self._flights else 0
        others = len(self._flights) + len(self._waiting) - slow
        free, free_slow = self.settings.concurrency - others, self.settings.slow_concurrency - slow
        return [(lane, max(0, min(_BATCH, free_slow if lane is Lane.SLOW else free))) for lane in self.lanes]

    async def _exchange(self, wants: list[tuple[Lane, int]]) -> LeaseReply | None:
        back, self._back = self._back, []
        starts, self._starts = self._starts, []
        solo = self._solo_wanted and not (self._flights or self._waiting) and any(n for _, n in wants)
        point("release.before")
        try:
            reply = await self.frontier.lease(wants, [release for release, _ in back], started=starts, solo=solo)
        except (EpochLost, FrontierUnavailable) as error:
            # A report that comes late or twice is harmless; without it the host would wait for the end of that request.
            self._back, self._starts = back + self._back, starts + self._starts
            if isinstance(error, FrontierUnavailable):
                await self._nap(0.2)
            await self._mend(error)
            return None
        point("release.after")
        if reply.trouble is not None:
            self._back += [one for one in back if one[0].lease.shard not in reply.asked]
            self._starts += starts
            back = [one for one in back if one[0].lease.shard in reply.asked]
        for release, done in back:
            if done is not None:
                self._collect(done, reply.times.get(release.lease.fence))
        if reply.halted:
            self._knowledge.halt(reply.halted)
        self.upkeep.scan(reply.scans)
        # Lane high serves no suspects: they would hold up whoever must be served at once.
        suspects = reply.suspects if self.lanes != (Lane.HIGH,) else 0
        self._solo_wanted = suspects > 0 or (self._solo_wanted and not solo)
        return reply

    async def _mend(self, error: Exception) -> None:
        """The frontier, or a part of it, was lost or is away."""
        if isinstance(error, EpochLost):
            await self._lifeline.recover(error)
            return
        count("frontier_unavailable")
        log("frontier_unavailable", level="warning", error=str(error))
        await self._lifeline.look_for_server(error)

    def _is_idle(self, reply: LeaseReply) -> bool:
        soon = reply.next_ms is not None and reply.next_ms - reply.now_ms < GAP_S * 1000
        return not (self._flights or self._waiting or self._back or reply.leases or soon)

    def _is_closing(self) -> bool:
        """Something is on its way to the store, or is being read there, that may bring more work."""
        return bool(self._group or self._writing or not self._commits.empty() or self.upkeep.scanning)

    def _note(self, reply: LeaseReply) -> None:
        due = reply.next_ms is not None and reply.next_ms <= reply.now_ms
        if self._is_busy() or due or self._solo_wanted:
            doing = Doing.WORK
        else:
            doing = Doing.CLOSING if self._is_closing() else Doing.NOTHING
        self.pauses.note(doing, boot())

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
        if not self._knowledge.may_run(lease.crawl):
            self._give_back(lease)
            return
        if entry.kind is Kind.ROBOTS:
            if self.oversight.denies(lease.host):
                done = harvest.unasked_robots(lease, "denied", boot())
                self._bring(done, Release(lease=lease, started=None, ended=boot(), hold=entry.chain is None))
                return
            self._flights[lease.fence] = _Flight(lease, None)
            self.fetcher.start(self._jobs.for_robots(lease), self._done)
            return
        context = self.contexts[lease.crawl]
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

    def _break_off(self, crawls: set[int]) -> None:
        """They were paused or have ended: of what is under way only that goes on whose bytes have left."""
        for fence in [fence for fence, flight in self._flights.items() if flight.lease.crawl in crawls]:
            self.fetcher.cancel(fence, unsent_only=True)

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
        _measure(outcome)
        if outcome.status == 304 and flight.previous is not None and outcome.fault is None:
            self._unchanged(flight, outcome)
            return
        done = harvest.of_url(lease, outcome, flight.context, self.settings, self._rng, flight.previous)
        self._offer_sitemaps(done, flight.context)
        self._bring(done, done.release())

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
                if boot() >= self._tell_at:
                    self._tell_at = boot() + 1.0
                    await self._knowledge.tell()
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

    async def _watch_store(self) -> None:
        """Beside everything else: a frontier that is away keeps nobody from seeing that a crawl was paused."""
        while True:
            try:
                await self._knowledge.refresh()
                await confirm(self.frontier, self.store)
            except StoreUnavailable as error:
                log("store_not_watched", level="warning", error=str(error))
            except Exception as error:
                count("unexpected_errors")
                log("store_watch_broke", level="error", error=repr(error))
            await asyncio.sleep(1.0)

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

    async def _drain(self, drain_s: float | None) -> None:
        """No more leases; what is under way may end, then everything is committed."""
        began, stopped = boot(), False
        limit_s = self.settings.drain_s if drain_s is None else drain_s
        while self._is_busy() and not self.stop.now and boot() - began < limit_s:
            if self.stop.drain and not stopped:
                # Asked to end: whoever has sent nothing yet does not begin now, the others have the setting's time.
                stopped, began, limit_s = True, boot(), self.settings.drain_s
                for fence in list(self._flights):
                    self.fetcher.cancel(fence, unsent_only=True)
            await self._settle_down()
        for fence in list(self._flights):
            self.fetcher.cancel(fence)
        await asyncio.sleep(0)
        last = boot() + (2.0 if self.stop.now else self.settings.commit_timeout_s)
        while (self._back or self._group or self._writing or not self._commits.empty()) and boot() < last:
            await self._settle_down()

    async def _settle_down(self) -> None:
        await self._exchange([(lane, 0) for lane in self.lanes])
        await self._beat()
        self._hand_over(idle=True)
        self.pauses.note(Doing.WORK if self._is_busy() else Doing.CLOSING, boot())
        await self._nap(0.02)

    def _is_busy(self) -> bool:
        return bool(self._flights or self._waiting or self._back or self._reading)


def _measure(outcome: Outcome) -> None:
    metrics.inc("curtsy_pages_total", status=f"{outcome.status // 100}xx" if outcome.status else "none")
    if outcome.started is not None:
        metrics.observe("curtsy_fetch_seconds", outcome.ended - outcome.started)


def _name_of(host: str) -> tuple[str, int]:
    """Name and port of a unit of politeness."""
    name, colon, port = host.rpartition(":")
    return (name, int(port)) if colon and port.isdigit() and not host.endswith("]") else (host, 443)
