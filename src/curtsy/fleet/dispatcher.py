"""What Beat does. A tick waits for `wake` and sends shifts. Beside the ticks, a task reaps expired leases, loads queues
and finishes crawls.

Several Beats may run every step at once, and any step may be interrupted. `Fleet.issue` counts shifts and issues
tickets in one step, so two Beats never send the same shift twice. `wake` only says that there may be new work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from curtsy.core.clock import boot
from curtsy.core.errors import EpochLost, FrontierUnavailable, SegmentsUnavailable, StoreUnavailable
from curtsy.core.model import CrawlState, Lane
from curtsy.core.observe import count, log
from curtsy.core.shutdown import StopFlag, end
from curtsy.crawl.crawl_cache import CrawlCache
from curtsy.crawl.host_policy import HostPolicy
from curtsy.crawl.maintenance import Maintenance
from curtsy.crawl.outages import Outages
from curtsy.fleet.coordination import Fleet, Issued, Worker, celery_queue, queue_of, shards_of, shards_text
from curtsy.frontier import watch
from curtsy.services.backends import Services
from curtsy.services.epochs import confirm
from curtsy.store import crawls
from curtsy.store.engine import read

#: the longest wait for `wake`
_TICK_S = 1.0
#: how often crawls are checked and changes are read from the store
_CRAWLS_S = 0.5
#: how often a shift queue with running or sent shifts is checked for more work
_SERVED_S = 0.25
#: the shortest time between two ticks
_LEAST_S = 0.005
#: how often maintenance runs: reaping, loading queues, finishing crawls
_MAINTENANCE_S = 0.1
#: a rare chore runs for the first time after this long
_FIRST_S = 60.0
#: an unavailable service is tried again after this long
_PAUSE_S = 0.5

#: sends one shift (shift queue, ticket, shards); raises if the broker refuses it
Send = Callable[[str, str, str | None], None]
#: the number of messages in a shift queue
Depth = Callable[[str], int]
#: other periodic work: its name, its interval in seconds, the function
Chore = tuple[str, float, Callable[[Services], Awaitable[None]]]


class _Work(NamedTuple):
    """The work of one shift queue."""

    shift_queue: str
    #: hosts that are due now
    due: int
    #: until the next one is due
    next_s: float | None
    #: None: all
    shards: str | None


class Dispatcher:
    """One per Beat; everything runs on its loop, inside `dispatch`."""

    def __init__(self, services: Services, fleet: Fleet, send: Send, depth: Depth, chores: list[Chore]) -> None:
        self.services, self.fleet = services, fleet
        self._send, self._depth = send, depth
        frontier, store = services.frontier, services.store
        self._maintenance = Maintenance(frontier, store, services.scans)
        self._host_policy = HostPolicy(frontier, store)
        self._crawl_cache = CrawlCache(frontier, store, services.settings, self._host_policy, services.scans)
        self._outages = Outages(frontier, store, services.scans, StopFlag(), services.restart_server, lambda: None)
        self._wake = watch.WakeWaiter(frontier)
        self._chores = chores
        #: chore -> when it runs next
        self._chore_at = {name: boot() + min(every_s, _FIRST_S) for name, every_s, _ in chores}
        self._doing: dict[str, asyncio.Task[None]] = {}
        self._crawls_at = 0.0
        self._marked_at = 0.0
        self._wait_s = 0.0
        self._began = False
        self._maintaining: asyncio.Task[None] | None = None

    async def dispatch(self) -> None:
        """Wait until something may be due, and send shifts for it. Never raises a temporary error."""
        if not self._began:
            self._begin()
        if not await self._attempt(self._step):
            self._wait_s = 0.0
            await asyncio.sleep(_PAUSE_S)

    async def close(self) -> None:
        with suppress(Exception):
            await self._wake.close()
        if self._maintaining is not None:
            await end([self._maintaining, *self._doing.values()])
        await self._maintenance.stop()

    def _begin(self) -> None:
        self._began = True
        self._maintenance.start()
        self._maintaining = asyncio.get_running_loop().create_task(self._maintain())

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Run a step, and recover what is unavailable; returns whether the step succeeded."""
        try:
            await work()
            return True
        except EpochLost as error:
            await self._outages.recover(error)
        except FrontierUnavailable as error:
            log("frontier_unavailable", level="warning", error=str(error))
            await self._outages.look_for_server(error)
        except (StoreUnavailable, SegmentsUnavailable) as error:
            log("part_unavailable", level="warning", error=str(error))
        except Exception as error:
            # Without Beat no crawl continues, so Beat continues after any error, and logs it.
            count("unexpected_errors")
            log("tick_failed", level="error", error=repr(error))
        return False

    async def _step(self) -> None:
        await self._wake.wait(self._wait_s)
        view, host_s = await self._send_due()
        if view.next_s == 0.0:
            self._maintenance.hurry()
        self._wait_s = min(host_s, _TICK_S if view.next_s is None else max(_LEAST_S, view.next_s))
        if boot() - self._marked_at >= _TICK_S:
            await self.fleet.mark_beat()
            self._marked_at = boot()

    # Maintenance runs beside the ticks, so slow work does not delay shifts

    async def _maintain(self) -> None:
        # First, queues of running crawls that the frontier lacks.
        while not await self._attempt(self.services.scans.put_back):  # noqa: ASYNC110 (no event says when a service is back)
            await asyncio.sleep(_PAUSE_S)
        while True:
            succeeded = await self._attempt(self._maintain_once)
            await asyncio.sleep(_MAINTENANCE_S if succeeded else _PAUSE_S)

    async def _maintain_once(self) -> None:
        await self._maintenance.tick()
        await self._check_crawls()
        self._do_chores()

    async def _send_due(self) -> tuple[watch.View, float]:
        """Send shifts for what is due.

        Returns the view, and how long to wait for `wake`: until the next host is due in a shift queue without a shift.
        A running shift takes new hosts by itself; whether one shift is enough is checked a few times a second.
        """
        view = await watch.look(self.services.frontier)
        self.services.scans.add(view.scans)
        wait_s = _TICK_S
        workers = await self.fleet.workers()
        for work in self._shift_queues(view, workers):
            issued = await self.fleet.issue(work.shift_queue, work.due)
            sent = await self._send_all(work, issued)
            if sent or issued.running or issued.outstanding or work.due:
                wait_s = min(wait_s, _SERVED_S)
            elif work.next_s is not None:
                wait_s = min(wait_s, max(_LEAST_S, work.next_s))
        return view, wait_s

    # Crawls

    async def _check_crawls(self) -> None:
        """Check crawls that look finished; bring changes of crawls and hosts from the store to the frontier."""
        idle = set(self._maintenance.idle)
        self._maintenance.idle.clear()
        if boot() >= self._crawls_at:
            self._crawls_at = boot() + _CRAWLS_S
            await self._crawl_cache.refresh()
            await self._crawl_cache.tell()
            await confirm(self.services.frontier, self.services.store)
            await self.fleet.hand_over()
            states = await read(self.services.store, crawls.states)
            idle |= {n for n, (state, _) in states.items() if state is CrawlState.RUNNING}
        for n in sorted(idle):
            await self._maintenance.check_finished(n)

    def _do_chores(self) -> None:
        """Each chore has its own task, so a slow one does not delay the others."""
        for name, every_s, work in self._chores:
            if name not in self._doing and boot() >= self._chore_at[name]:
                self._chore_at[name] = boot() + every_s
                task = asyncio.get_running_loop().create_task(self._do_chore(name, work))
                self._doing[name] = task
                task.add_done_callback(partial(self._chore_done, name))

    def _chore_done(self, name: str, _task: asyncio.Task[None]) -> None:
        self._doing.pop(name, None)

    async def _do_chore(self, name: str, work: Callable[[Services], Awaitable[None]]) -> None:
        try:
            await work(self.services)
        except (EpochLost, FrontierUnavailable, StoreUnavailable, SegmentsUnavailable) as error:
            log("chore_failed", level="warning", chore=name, error=str(error))
        except Exception as error:
            count("unexpected_errors")
            log("chore_crashed", level="error", chore=name, error=repr(error))

    # Shifts

    async def _send_all(self, work: _Work, issued: Issued) -> int:
        """Send shifts; returns how many were sent. Tickets of the others are withdrawn."""
        sent = 0
        try:
            # Messages must not accumulate while no worker runs: at most as many wait as there are processes.
            room = max(1, issued.processes) - self._depth(work.shift_queue) if issued.tickets else 0
            if len(issued.tickets) > room:
                log("shifts_withheld", level="debug", queue=work.shift_queue, n=len(issued.tickets) - max(0, room))
            for ticket in issued.tickets[: max(0, room)]:
                self._send(work.shift_queue, ticket, work.shards)
                sent += 1
        except Exception as error:
            log("shift_not_sent", level="warning", queue=work.shift_queue, error=repr(error))
        count("shifts_sent", sent)
        await self._withdraw(work.shift_queue, issued.tickets[sent:])
        return sent

    async def _withdraw(self, shift_queue: str, tickets: tuple[str, ...]) -> None:
        for ticket in tickets:
            await self.fleet.withdraw(shift_queue, ticket)

    def _shift_queues(self, view: watch.View, workers: list[Worker]) -> Iterator[_Work]:
        """Shift queues with work now or soon. Workers bound to shards serve those; all others serve the rest."""
        total = len(self.services.frontier.shards)
        for lane in watch.LANES:
            bound = sorted(
                {w.shards for w in workers if w.shards and celery_queue(queue_of(lane, w.shards)) in w.queues}
            )
            owned: set[int] = set()
            for text in bound:
                numbers = shards_of(text, total)
                owned |= numbers
                yield from self._work(view, lane, numbers, queue_of(lane, text), text)
            rest = frozenset(range(total)) - owned
            yield from self._work(view, lane, rest, lane.value, shards_text(rest) if owned else None)

    @staticmethod
    def _work(
        view: watch.View, lane: Lane, numbers: frozenset[int], shift_queue: str, shards: str | None
    ) -> Iterator[_Work]:
        due, next_s = view.hosts(lane, numbers), view.next_host_s(lane, numbers)
        if due or next_s is not None:
            yield _Work(shift_queue, due, next_s, shards)
