"""Who waits for a host in this triggerer, in one line per host: one at a time is sent to its worker.

Nothing is taken here. A host's turn lasts 27 s from the moment it was taken, by the clock of the process that took it;
between a trigger's event and the task's start lie a scheduler, a queue and a new process. So the trigger only looks
when the turn is likely to be had, and the task takes it itself, in the process that sends. What is told here is advice:
that it is late, lost or told twice costs time, never politeness.

After one was sent, the next in line waits until the first was seen to take its turn (a slot is out, or the host's time
has moved on), so that a host that becomes free does not wake everybody.
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

#: a task that was sent has this long to be seen; then the next one is sent
_ON_ITS_WAY_S = 30.0
#: about as long as a task needs to start: it is sent by so much earlier. The next one of its host is not sent sooner
#: after it, whoever uses the host meanwhile.
LEAD_S = 2.0
#: how often a host is looked at
_LOOK_S = 0.25
_LONGEST_LOOK_S = 5.0
#: a frontier that is away is asked again after
_AWAY_S = 2.0
#: hosts that were asked lately: beyond them idle lines are forgotten
_MOST_IDLE = 1000


@dataclass(slots=True)
class _Line:
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Lines:
    """All lines of one frontier in one loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._frontier: Frontier | None = None
        self._lines: OrderedDict[str, _Line] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    async def wait(self, host: str, delay_s: float) -> None:
        """Returns when it is worth sending a task of this host to its worker."""
        line = self._lines.setdefault(host, _Line())
        line.users += 1
        try:
            await line.turn.acquire()
        except BaseException:
            self._leave(host, line)
            raise
        try:
            seen = await self._until_likely(host, delay_s)
        except BaseException:
            line.turn.release()
            self._leave(host, line)
            raise
        # Not by the trigger itself: it is ended as soon as its event is stored.
        task = asyncio.get_running_loop().create_task(self._hold(host, line, delay_s, seen))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._frontier is not None:
            await self._frontier.close()
            self._frontier = None

    def _leave(self, host: str, line: _Line) -> None:
        line.users -= 1
        if line.users == 0:
            self._lines.move_to_end(host, last=False)
            while len(self._lines) > _MOST_IDLE and next(iter(self._lines.values())).users == 0:
                self._lines.popitem(last=False)

    async def _until_likely(self, host: str, delay_s: float) -> Prospect | None:
        while True:
            seen = await self._look(host, delay_s)
            if seen is None or seen.wait_s <= LEAD_S:
                return seen
            await asyncio.sleep(min(seen.wait_s - LEAD_S + 0.01, _LONGEST_LOOK_S))

    async def _hold(self, host: str, line: _Line, delay_s: float, sent: Prospect | None) -> None:
        """Keeps the line shut until the task that was sent has taken its turn, or is not to be expected any more."""
        try:
            async with asyncio.timeout(_ON_ITS_WAY_S):
                await asyncio.sleep(LEAD_S)
                while True:
                    await asyncio.sleep(_LOOK_S)
                    seen = await self._look(host, delay_s)
                    if seen is not None and (seen.slots_out or seen.at_ms > (sent.at_ms if sent else 0)):
                        return
        except TimeoutError:
            return
        finally:
            line.turn.release()
            self._leave(host, line)

    async def _look(self, host: str, delay_s: float) -> Prospect | None:
        """None: there is no frontier yet, and the task will find or start one."""
        while True:
            try:
                frontier = self._frontier or await self._open()
                if frontier is None:
                    return None
                shard = frontier.shard_of(host)
                if shard.epoch is None:
                    facts = await shard.facts()
                    if not facts.valid or facts.number is None:
                        return None  # empty: to be rebuilt by whoever takes the first turn
                    shard.adopt(facts.number, facts.run_id)
                return await prospect(frontier, host, delay_s)
            except EpochLost:
                if self._frontier is not None:
                    self._frontier.shard_of(host).disown()
                await asyncio.sleep(_LOOK_S)
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
        """A private server that was started again may have another socket."""
        frontier, self._frontier = self._frontier, None
        if frontier is not None:
            await frontier.close()


_shared: dict[tuple[asyncio.AbstractEventLoop, str], tuple[Lines, list[int]]] = {}


@asynccontextmanager
async def lines_of(settings: Settings) -> AsyncIterator[Lines]:
    """One connection for all triggers of a loop that wait on the same frontier; the last one out closes it."""
    where = settings.frontier_url or str(settings.data_dir.absolute())
    place = (asyncio.get_running_loop(), where)
    lines, users = _shared.setdefault(place, (Lines(settings), [0]))
    users[0] += 1
    try:
        yield lines
    finally:
        users[0] -= 1
        if users[0] == 0 and not lines._tasks:
            _shared.pop(place, None)
            await lines.close()
