"""The background work of a process: maintenance, and reading changes of its crawls from the store."""

from __future__ import annotations

import asyncio

from curtsy.core.clock import boot
from curtsy.core.errors import EpochLost, FrontierUnavailable, StoreUnavailable
from curtsy.core.model import CrawlState
from curtsy.core.observe import count, log
from curtsy.crawl.crawl_cache import CrawlCache
from curtsy.crawl.maintenance import Maintenance
from curtsy.crawl.outages import Outages
from curtsy.frontier.frontier import Frontier
from curtsy.services.epochs import confirm
from curtsy.store.engine import Store


class BackgroundTasks:
    """One per process. An unavailable server delays only the task that needs it, not the slots."""

    def __init__(
        self, frontier: Frontier, store: Store, maintenance: Maintenance, crawl_cache: CrawlCache, outages: Outages
    ) -> None:
        self._frontier, self._store = frontier, store
        self._maintenance, self._crawl_cache, self._outages = maintenance, crawl_cache, outages
        self._tell_at = 0.0

    async def maintain(self) -> None:
        """Run maintenance until the run ends."""
        while True:
            try:
                await self._maintenance.tick()
                if boot() >= self._tell_at:
                    self._tell_at = boot() + 1.0
                    await self._crawl_cache.tell()
            except EpochLost as error:
                await self._outages.recover(error)
            except (FrontierUnavailable, StoreUnavailable) as error:
                log("maintenance_failed", level="warning", error=str(error))
            except Exception as error:
                # Maintenance must continue: without it, lost work would not be found again.
                count("unexpected_errors")
                log("maintenance_broke", level="error", error=repr(error))
                await asyncio.sleep(1.0)
            await asyncio.sleep(0.1)

    async def watch_store(self) -> None:
        """Runs as a separate task: an unavailable frontier must not delay the pause of a crawl."""
        while True:
            try:
                await self._crawl_cache.refresh()
                await confirm(self._frontier, self._store)
            except StoreUnavailable as error:
                log("store_not_watched", level="warning", error=str(error))
            except Exception as error:
                count("unexpected_errors")
                log("store_watch_broke", level="error", error=repr(error))
            await asyncio.sleep(1.0)

    async def is_finished(self, n: int) -> bool:
        """The crawl has ended or is paused: this process has nothing more to do for it."""
        context = self._crawl_cache.contexts.get(n)
        if context is not None and context.crawl.state not in (CrawlState.RUNNING, CrawlState.LOADING):
            return True
        try:
            return await self._maintenance.check_finished(n)
        except EpochLost as error:
            await self._outages.recover(error)
        except (FrontierUnavailable, StoreUnavailable) as error:
            log("completion_not_checked", level="warning", error=str(error))
        return False
