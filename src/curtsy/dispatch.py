"""What Beat does in a tick: wait for the bell, see to what expired and what waits, end crawls, send shifts.

Every step may be done by several Beats at once and be broken off anywhere. Shifts are counted and promised in one step
(`Fleet.issue`), so that two Beats send no double; the bell only says that looking again is worth it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

from curtsy.errors import EpochLost, FrontierUnavailable, SegmentsUnavailable, StoreUnavailable
from curtsy.fleet import Fleet, Worker, queue_of, shards_of, shards_text
from curtsy.frontier import watch
from curtsy.frontier.clock import boot
from curtsy.knowledge import Knowledge
from curtsy.lifeline import Lifeline
from curtsy.model import CrawlState
from curtsy.observe import count, log
from curtsy.oversight import Oversight
from curtsy.recovery import confirm, read
from curtsy.services import Services
from curtsy.stopping import StopFlag
from curtsy.store import crawls
from curtsy.upkeep import Upkeep

#: the bell is waited for at most this long
_TICK_S = 1.0
#: crawls are looked at, and the store is asked what changed, this often
_LOOK_S = 0.5
#: a part that is away is tried again after this long
_PAUSE_S = 0.5

#: sends one shift: queue, ticket, shards; raises if the broker does not take it
Send = Callable[[str, str, str | None], None]
#: messages that wait in a queue
Depth = Callable[[str], int]
#: something else that is done in every tick, at most every so many seconds
Chore = tuple[str, float, Callable[[Services], Awaitable[None]]]


class Dispatcher:
    """One per Beat; everything runs on its loop, inside `tick`."""

    def __init__(self, services: Services, fleet: Fleet, send: Send, depth: Depth, chores: list[Chore]) -> None:
        self.services, self.fleet = services, fleet
        self._send, self._depth = send, depth
        frontier, store = services.frontier, services.store
        self._upkeep = Upkeep(frontier, store, services.tidy)
        self._oversight = Oversight(frontier, store)
        self._knowledge = Knowledge(frontier, store, services.settings, self._oversight, self._upkeep)
        self._lifeline = Lifeline(frontier, store, self._upkeep, StopFlag(), services.revive, lambda: None)
        self._bell = watch.Bell(frontier)
        self._chores = chores
        #: chore -> when it is done again
        self._chore_at: dict[str, float] = {}
        self._look_at = 0.0
        self._wait_s = 0.0
        self._began = False

    async def tick(self) -> None:
        """Waits until something may be due, and does what is. Never raises what time can mend."""
        try:
            if not self._began:
                await self._begin()
            await self._bell.wait(self._wait_s)
            await self._look()
            await self._upkeep.tick()
            await self._see_to_crawls()
            await self._do_chores()
            view = await self._look()
            self._wait_s = _TICK_S if view.next_s is None else min(_TICK_S, max(0.002, view.next_s))
            return
        except EpochLost as error:
            await self._lifeline.recover(error)
        except FrontierUnavailable as error:
            log("frontier_unavailable", level="warning", error=str(error))
            await self._lifeline.look_for_server(error)
        except (StoreUnavailable, SegmentsUnavailable) as error:
            log("part_unavailable", level="warning", error=str(error))
        except Exception as error:
            # Without ticks no crawl goes on: it does, and says what happened.
            count("unexpected_errors")
            log("tick_broke", level="error", error=repr(error))
        self._wait_s = 0.0
        await asyncio.sleep(_PAUSE_S)

    async def close(self) -> None:
        with suppress(Exception):
            await self._bell.close()
        await self._upkeep.stop()

    async def _begin(self) -> None:
        self._upkeep.start()
        self._began = True
        self._upkeep.scan(self.services.scans)
        self.services.scans = []
        # What the frontier lacks of the store's running crawls, whoever was to tell it.
        await self._upkeep.sweep()

    async def _look(self) -> watch.View:
        """What is due is sent for: first of all, and again after everything that may have brought more."""
        view = await watch.look(self.services.frontier)
        self._upkeep.scan(view.scans)
        await self._send_shifts(view)
        return view

    # Crawls

    async def _see_to_crawls(self) -> None:
        """Those that look finished are checked; what others said about crawls and hosts reaches the frontier."""
        idle = set(self._upkeep.idle)
        self._upkeep.idle.clear()
        if boot() >= self._look_at:
            self._look_at = boot() + _LOOK_S
            await self._knowledge.refresh()
            await self._knowledge.tell()
            await confirm(self.services.frontier, self.services.store)
            await self.fleet.hand_over()
            states = await read(self.services.store, crawls.states)
            idle |= {n for n, (state, _) in states.items() if state is CrawlState.RUNNING}
        for n in sorted(idle):
            await self._upkeep.check_finished(n)

    async def _do_chores(self) -> None:
        for name, every_s, work in self._chores:
            if boot() < self._chore_at.get(name, 0.0):
                continue
            self._chore_at[name] = boot() + every_s
            try:
                await work(self.services)
            except StoreUnavailable:
                raise
            except Exception as error:
                # One that cannot be done keeps nobody from crawling.
                count("unexpected_errors")
                log("chore_broke", level="error", chore=name, error=repr(error))
        # A chore may have made crawls: what the frontier asked for is answered, what it did not take is put back.
        self._upkeep.scan(self.services.scans)
        self.services.scans = []
        if self.services.unlisted:
            await self._upkeep.sweep()
            self.services.unlisted = False

    # Shifts

    async def _send_shifts(self, view: watch.View) -> None:
        if not any(view.hosts(lane) for lane in watch.LANES):
            return
        workers = await self.fleet.workers()
        for queue, due, shards in self._queues(view, workers):
            issued = await self.fleet.issue(queue, due)
            for at, ticket in enumerate(issued.tickets):
                # Messages of a fleet that died would pile up: those that wait are enough for all its seats.
                if at == 0 and self._depth(queue) >= max(1, issued.seats):
                    log("shifts_withheld", level="debug", queue=queue, n=len(issued.tickets))
                    await self._withdraw(queue, issued.tickets)
                    break
                try:
                    self._send(queue, ticket, shards)
                except Exception as error:
                    log("shift_not_sent", level="warning", queue=queue, error=repr(error))
                    await self._withdraw(queue, issued.tickets[at:])
                    break
                count("shifts_sent")

    async def _withdraw(self, queue: str, tickets: tuple[str, ...]) -> None:
        for ticket in tickets:
            await self.fleet.withdraw(queue, ticket)

    def _queues(self, view: watch.View, workers: list[Worker]) -> Iterator[tuple[str, int, str | None]]:
        """(queue, due hosts, their shards). Shards that workers are bound to are theirs, the rest is anybody's."""
        total = len(self.services.frontier.shards)
        for lane in watch.LANES:
            bound = sorted({w.shards for w in workers if w.shards and f"fetch.{queue_of(lane, w.shards)}" in w.queues})
            owned: set[int] = set()
            for text in bound:
                numbers = shards_of(text, total)
                owned |= numbers
                if due := view.hosts(lane, numbers):
                    yield queue_of(lane, text), due, text
            rest = frozenset(range(total)) - owned
            if due := view.hosts(lane, rest):
                yield lane.value, due, shards_text(rest) if owned else None
