"""build(settings) -> Services: the only place that chooses the implementations."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

from curtsy.core.errors import EpochLost, FrontierUnavailable
from curtsy.core.model import hot_value
from curtsy.core.observe import log
from curtsy.core.settings import Settings
from curtsy.core.threads import in_thread
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.servers import default_shards
from curtsy.services.epochs import open_epoch, prepare_store, write_clean
from curtsy.services.scans import Scans
from curtsy.services.valkey import EmbeddedValkey
from curtsy.store import pages
from curtsy.store.engine import Store
from curtsy.store.segment_places import open_segments
from curtsy.store.segments import SegmentStore

#: pauses before an unavailable frontier is an error: a restart takes about a second
_PAUSES_S = (0.2, 0.5, 1.0)


@hot_value(kw_only=False)
class Services:
    """The parts of one process. Open inside a running loop, close when the work is done."""

    settings: Settings
    store: Store
    segments: SegmentStore
    frontier: Frontier
    #: everything that the frontier still needs from the store
    scans: Scans
    #: the private server of the data folder; None if frontier_url names one
    embedded: EmbeddedValkey | None = None
    #: part of the names of this store's segments
    store_name: str = ""

    @property
    def url(self) -> str:
        """The URL of the frontier's server."""
        return self.settings.frontier_url or (self.embedded.url if self.embedded is not None else "")

    async def open(self) -> None:
        """Uses the frontier's epoch or rebuilds a lost one, and repairs segments of killed processes."""
        for pause_s in _PAUSES_S:
            try:
                self.scans.add(await open_epoch(self.frontier, self.store))
                break
            except (EpochLost, FrontierUnavailable) as error:
                # An interrupted rebuild looks complete to the next attempt: the queues are put back once more.
                self.scans.put_back_later()
                log("frontier_not_opened", level="warning", error=str(error))
                await asyncio.sleep(pause_s)
        else:
            self.scans.add(await open_epoch(self.frontier, self.store))
        await in_thread(self._recover_segments)

    def _recover_segments(self) -> None:
        def committed() -> dict[str, int]:
            return self.store.run(pages.committed)

        self.segments.recover(committed)

    async def restart_server(self) -> None:
        """Restarts the private server if it died; its memory is then empty."""
        if self.embedded is not None:
            await in_thread(self.embedded.ensure)

    async def tell_frontier(self, step: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Runs a step on the frontier that the store has recorded already. False: the frontier is unavailable.

        A lost frontier is rebuilt first, unless another process did that. An unavailable one gets the change from the
        store later.
        """
        for _ in range(2):
            try:
                await step()
                return True
            except EpochLost:
                try:
                    await self.recover()
                except (EpochLost, FrontierUnavailable) as error:
                    log("frontier_not_told", level="warning", error=str(error))
                    return False
            except FrontierUnavailable as error:
                log("frontier_not_told", level="warning", error=str(error))
                return False
        return False

    async def recover(self) -> None:
        """Uses the current epoch or begins one, and puts every open queue of the store back."""
        await self.restart_server()
        self.scans.add(await open_epoch(self.frontier, self.store))
        await self.scans.put_back()

    async def close(self) -> None:
        """The last process that leaves the data folder writes the clean mark, then stops the server."""
        embedded = self.embedded
        if embedded is not None and await in_thread(embedded.leave_last):
            try:
                await write_clean(self.frontier, self.store)
            finally:
                await self.frontier.close()
                await in_thread(embedded.stop)
        else:
            await self.frontier.close()
        self.segments.close()
        self.store.close()


def build(settings: Settings, opened: Store | None = None) -> Services:
    """Opens the store and finds the frontier's server; starts a private one if the settings name none.

    Uses the `opened` store if given, and leaves it open if something is missing.
    """
    store = opened or Store.open(settings.effective_store_url)
    try:
        slot_ms = int(settings.slot_s * 1000)
        shards = settings.shards or default_shards(settings.frontier_url)
        name = store.run(prepare_store, settings.politeness_unit, shards, slot_ms)
        place = settings.segments_url or settings.segments_dir
        segments = open_segments(place, int(settings.segment_mb * 1_000_000), name)
        embedded = None if settings.frontier_url else EmbeddedValkey.enter(settings.data_dir)
    except BaseException:
        if opened is None:
            store.close()
        raise
    url = settings.frontier_url or (embedded.url if embedded is not None else "")
    frontier = Frontier(url, settings, owner=os.urandom(6).hex())
    return Services(
        settings=settings, store=store, segments=segments, frontier=frontier, scans=Scans(frontier, store),
        embedded=embedded, store_name=name,
    )  # fmt: skip
