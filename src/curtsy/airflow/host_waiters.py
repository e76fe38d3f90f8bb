"""Queues of the tasks in this triggerer that wait for a host: one task per host at a time is sent to a worker.

The triggerer takes no slot. A slot lasts 27 s by the clock of the process that took it, and between an event of a
trigger and the start of its task there are a scheduler, a queue and a new process. So the trigger only waits until a
slot is likely to be free, and the task takes it itself, in the process that sends. Events are advisory: a late, lost or
repeated event costs time, never politeness.

After one task was sent, the next one waits until the first has taken its slot (a slot is in use, or the host's next
time has changed), so that a free host does not wake all tasks.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from curtsy.core.errors import EpochLost, FrontierUnavailable
from curtsy.core.settings import Settings
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.inspect import Prospect, prospect
from curtsy.services.valkey import EmbeddedValkey

#: how long a sent task has to take its slot before the next one is sent
_ON_ITS_WAY_S = 30.0
#: about the start-up time of a task, which is sent that much earlier. It is also the minimum time between two tasks of
#: a host.
LEAD_S = 2.0
#: interval of the queries for a host
_QUERY_S = 0.25
_LONGEST_QUERY_S = 5.0
#: pause after a failed query
_AWAY_S = 2.0
#: idle queues beyond this number are dropped
_MOST_IDLE = 1000


@dataclass(slots=True)
class _Queue:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class HostWaiters:
    """The queues of one frontier in one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._frontier: Frontier | None = None
        self._queues: OrderedDict[str, _Queue] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    async def wait(self, host: str, delay_s: float) -> None:
        """Returns when a task of this host should be sent to a worker."""
        queue = self._queues.setdefault(host, _Queue())
        queue.users += 1
        try:
            await queue.lock.acquire()
        except BaseException:
            self._leave(host, queue)
            raise
        try:
            seen = await self._until_likely(host, delay_s)
        except BaseException:
            queue.lock.release()
            self._leave(host, queue)
            raise
        # In a separate task: the trigger ends as soon as its event is stored.
        task = asyncio.get_running_loop().create_task(self._hold(host, queue, delay_s, seen))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._frontier is not None:
            await self._frontier.close()
            self._frontier = None

    def _leave(self, host: str, queue: _Queue) -> None:
        queue.users -= 1
        if queue.users == 0:
            self._queues.move_to_end(host, last=False)
            while len(self._queues) > _MOST_IDLE and next(iter(self._queues.values())).users == 0:
                self._queues.popitem(last=False)

    async def _until_likely(self, host: str, delay_s: float) -> Prospect | None:
        while True:
            seen = await self._query(host, delay_s)
            if seen is None or seen.wait_s <= LEAD_S:
                return seen
            await asyncio.sleep(min(seen.wait_s - LEAD_S + 0.01, _LONGEST_QUERY_S))

    async def _hold(self, host: str, queue: _Queue, delay_s: float, sent: Prospect | None) -> None:
        """Keeps the queue locked until the sent task has taken its slot, or for at most _ON_ITS_WAY_S."""
        try:
            async with asyncio.timeout(_ON_ITS_WAY_S):
                await asyncio.sleep(LEAD_S)
                while True:
                    await asyncio.sleep(_QUERY_S)
                    seen = await self._query(host, delay_s)
                    if seen is not None and (seen.slots_out or seen.at_ms > (sent.at_ms if sent else 0)):
                        return
        except TimeoutError:
            return
        finally:
            queue.lock.release()
            self._leave(host, queue)

    async def _query(self, host: str, delay_s: float) -> Prospect | None:
        """None: there is no frontier yet; the task opens or starts one."""
        while True:
            try:
                frontier = self._frontier or await self._open()
                if frontier is None:
                    return None
                shard = frontier.shard_of(host)
                if shard.epoch is None:
                    facts = await shard.facts()
                    if not facts.valid or facts.number is None:
                        return None  # empty: the first process that takes a slot rebuilds it
                    shard.use_epoch(facts.number, facts.run_id)
                return await prospect(frontier, host, delay_s)
            except EpochLost:
                if self._frontier is not None:
                    self._frontier.shard_of(host).drop_epoch()
                await asyncio.sleep(_QUERY_S)
            except FrontierUnavailable:
                await self._forget()
                await asyncio.sleep(_AWAY_S)

    async def _open(self) -> Frontier | None:
        server = self._settings.frontier_url
        if server is None:
            running = await asyncio.to_thread(EmbeddedValkey.running, self._settings.data_dir)
            if running is None:
                return None
            server = running.url
        if self._frontier is None:
            self._frontier = Frontier(server, self._settings, "airflow")
        return self._frontier

    async def _forget(self) -> None:
        """A restarted embedded server may have another socket."""
        frontier, self._frontier = self._frontier, None
        if frontier is not None:
            await frontier.close()


_shared: dict[tuple[asyncio.AbstractEventLoop, str], tuple[HostWaiters, list[int]]] = {}


@asynccontextmanager
async def waiters_of(settings: Settings) -> AsyncIterator[HostWaiters]:
    """One connection for all triggers of a loop with the same frontier; the last one closes it."""
    where = settings.frontier_url or str(settings.data_dir.absolute())
    place = (asyncio.get_running_loop(), where)
    waiters, users = _shared.setdefault(place, (HostWaiters(settings), [0]))
    users[0] += 1
    try:
        yield waiters
    finally:
        users[0] -= 1
        if users[0] == 0 and not waiters._tasks:
            _shared.pop(place, None)
            await waiters.close()
