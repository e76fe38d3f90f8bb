"""The frontier as the dispatcher sees it: what is due in which shard, and a list to wait on for new work."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from curtsy.core.errors import EpochLost
from curtsy.core.model import Lane
from curtsy.frontier import messages
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.messages import Scan
from curtsy.frontier.shard import Shard

LANES = (Lane.HIGH, Lane.BATCH, Lane.SLOW, Lane.RENDER)
#: how long one BLPOP waits before it is sent again
_LISTEN_S = 1.0


@dataclass(slots=True)
class View:
    """The state of all shards at one time."""

    now_ms: int = 0
    #: shard -> lane -> hosts that are due now; hosts of suspects count in lane batch or render
    due: dict[int, dict[Lane, int]] = field(default_factory=dict)
    #: shard -> lane -> when the next host is due there
    soon: dict[int, dict[Lane, int | None]] = field(default_factory=dict)
    #: when the next retry, slot, lease or scan is due
    next_ms: int | None = None
    scans: list[Scan] = field(default_factory=list)
    #: only with details: loaded queues (those of render are in another lane too), and requests in flight
    in_play: dict[Lane, int] = field(default_factory=dict)
    in_flight: dict[Lane, int] = field(default_factory=dict)

    def hosts(self, lane: Lane, shards: Iterable[int] | None = None) -> int:
        return sum(self.due[shard][lane] for shard in (self.due if shards is None else shards) if shard in self.due)

    def next_host_s(self, lane: Lane, shards: Iterable[int]) -> float | None:
        found = [at for shard in shards if (at := self.soon[shard][lane]) is not None]
        return max(0.0, (min(found) - self.now_ms) / 1000) if found else None

    @property
    def next_s(self) -> float | None:
        return None if self.next_ms is None else max(0.0, (self.next_ms - self.now_ms) / 1000)


async def look(frontier: Frontier, *, detail: bool = False) -> View:
    """What is due. Lists retries that are due, unless it collects details for the gauges."""
    view = View()
    for shard in frontier.shards:
        raw = await shard.call("watch", int(detail))
        view.now_ms = max(view.now_ms, int(raw[0]))
        high, batch, slow, solo = map(int, raw[1:5])
        due = {Lane.HIGH: high, Lane.BATCH: batch + solo, Lane.SLOW: slow, Lane.RENDER: int(raw[17]) + int(raw[18])}
        view.due[shard.number] = due
        soon = [int(at) if at else None for at in (*raw[5:9], *raw[19:21])]
        view.soon[shard.number] = {
            Lane.HIGH: soon[0], Lane.BATCH: _first(soon[1], soon[3]), Lane.SLOW: soon[2],
            Lane.RENDER: _first(soon[4], soon[5]),
        }  # fmt: skip
        if raw[9] and (view.next_ms is None or int(raw[9]) < view.next_ms):
            view.next_ms = int(raw[9])
        view.scans += messages.scans_of(raw[10], shard.number)
        for lane, queues, requests in zip(LANES, (*raw[11:14], raw[22]), (*raw[14:17], raw[21]), strict=True):
            view.in_play[lane] = view.in_play.get(lane, 0) + int(queues)
            view.in_flight[lane] = view.in_flight.get(lane, 0) + int(requests)
    return view


def _first(*moments: int | None) -> int | None:
    return min((at for at in moments if at is not None), default=None)


async def wake_dispatcher(frontier: Frontier) -> None:
    """Makes the dispatcher check for work at once."""
    await frontier.shards[0].command("LPUSH", "%wake", "1")


async def retire(frontier: Frontier) -> None:
    """This process leases nothing for now: others may take the hosts that it used last."""
    for shard in frontier.shards:
        await shard.command("DEL", f"%owner:{frontier.owner}")


class WakeWaiter:
    """BLPOP on the `wake` list of every shard. A pending BLPOP continues between two waits: no signal is lost."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._listening: dict[int, asyncio.Task[bool]] = {}

    async def wait(self, timeout_s: float) -> None:
        """Waits until a signal arrives or the time is up. Raises the error that made waiting impossible."""
        for shard in self._frontier.shards:
            if shard.number not in self._listening:
                task = asyncio.get_running_loop().create_task(self._listen(shard))
                self._listening[shard.number] = task
        done, _ = await asyncio.wait(self._listening.values(), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for number in [number for number, task in self._listening.items() if task in done]:
            self._listening.pop(number).result()

    async def close(self) -> None:
        for task in self._listening.values():
            task.cancel()
        await asyncio.gather(*self._listening.values(), return_exceptions=True)
        self._listening.clear()

    async def _listen(self, shard: Shard) -> bool:
        if shard.epoch is None:
            raise EpochLost("No epoch is in use yet.")
        rang = await shard.command("BLPOP", "%wake", _LISTEN_S) is not None
        if rang:
            # One signal covers all that arrived.
            await shard.command("DEL", "%wake")
        return rang
