"""Keeps a process running while the frontier, the store or the segments are unavailable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from curtsy.core.clock import boot
from curtsy.core.errors import (
    EpochLost,
    FrontierUnavailable,
    MissingPart,
    SegmentsUnavailable,
    StoreUnavailable,
    Unwritable,
)
from curtsy.core.observe import count, log
from curtsy.core.shutdown import StopFlag
from curtsy.frontier.frontier import Frontier
from curtsy.services.epochs import open_epoch
from curtsy.services.scans import Scans
from curtsy.store.engine import Store

#: how long a refused write counts: longer than the pause before the next attempt
_REFUSED_S = 4.0


class Outages:
    """One per process."""

    def __init__(
        self, frontier: Frontier, store: Store, scans: Scans, stop: StopFlag,
        restart_server: Callable[[], Awaitable[None]], send_effects_again: Callable[[], None],
    ) -> None:  # fmt: skip
        self._frontier, self._store, self._scans, self._stop = frontier, store, scans, stop
        #: restarts a private frontier server that died
        self._restart_server = restart_server
        #: a new epoch does not know the effects of results that are not committed yet
        self._send_effects_again = send_effects_again
        self._recovering = asyncio.Lock()
        self._refused_at = -_REFUSED_S

    @property
    def is_refused(self) -> bool:
        """The disk refuses writes: nothing can become durable now."""
        return boot() - self._refused_at < _REFUSED_S

    async def persist(self, step: Callable[[], Awaitable[Any]]) -> Any:
        """Repeats a step until the frontier, the store and the segments answer; a lost frontier is rebuilt."""
        pause_s = 0.1
        while True:
            try:
                return await step()
            except EpochLost as error:
                await self.recover(error)
            except (FrontierUnavailable, StoreUnavailable, SegmentsUnavailable) as error:
                count("waits_for_parts")
                log("part_unavailable", level="warning", error=str(error), pause_s=pause_s)
                if isinstance(error, Unwritable):
                    self._refused_at = boot()
                if isinstance(error, FrontierUnavailable):
                    await self.look_for_server(error)
                await asyncio.sleep(pause_s)
                pause_s = min(2.0, pause_s * 2)

    async def look_for_server(self, error: Exception) -> None:
        """The frontier did not answer: it may be back with our epoch, back without it, or stopped."""
        if not await self._same_epoch():
            await self.recover(error)

    async def _same_epoch(self) -> bool:
        """The servers answer and still hold our epochs; True also while they do not answer at all."""
        try:
            await self._restart_server()
            for shard in self._frontier.shards:
                facts = await shard.facts()
                if not facts.valid or facts.number is None or facts.number != shard.epoch:
                    return False  # also if another run of the server answers: then the shard has no epoch
                shard.use_epoch(facts.number, facts.run_id)
        except (FrontierUnavailable, MissingPart):
            return True
        except EpochLost:
            return False
        return True

    async def recover(self, error: Exception) -> None:
        """The frontier was lost: uses its current epoch or rebuilds it, then sends effects that the store lacks."""
        async with self._recovering:
            log("frontier_lost", level="warning", error=str(error))
            interrupted = False
            while True:
                try:
                    await self._restart_server()
                    scans = await open_epoch(self._frontier, self._store)
                    if interrupted:
                        # An interrupted rebuild looks complete to the next attempt: put the queues back once more.
                        await self._scans.put_back()
                    break
                except (EpochLost, FrontierUnavailable, StoreUnavailable) as again:
                    interrupted = True
                    log("recovery_waits", level="warning", error=str(again))
                    if self._stop.now:
                        raise
                    await asyncio.sleep(0.5)
            self._scans.add(scans)
            self._send_effects_again()
