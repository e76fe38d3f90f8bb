"""Carries out the scans that the frontier hands out: refills queues from the store, closes those without open rows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from curtsy.core.errors import EpochLost, FrontierUnavailable, StoreUnavailable
from curtsy.core.failpoints import point
from curtsy.core.model import Entry, Kind
from curtsy.core.observe import count, log
from curtsy.core.shutdown import end
from curtsy.core.threads import in_thread
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.messages import Scan
from curtsy.store import queues, sites, urls
from curtsy.store.engine import Store, read

#: scans carried out at the same time by one process
_SCANS_AT_ONCE = 4


class ScanRunner:
    """One per process. A scan may be carried out by any process, at any time, more than once."""

    def __init__(
        self, frontier: Frontier, store: Store, *, on_filled: Callable[[str], None] = lambda host: None,
        on_left: Callable[[], None] = lambda: None, on_idle: Callable[[int], None] = lambda crawl: None,
        on_done: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._frontier, self._store = frontier, store
        #: called with a host whose queue got rows, when a queue left, with a crawl that looks finished, after each scan
        self._on_filled, self._on_left, self._on_idle, self._on_done = on_filled, on_left, on_idle, on_done
        self._queue: asyncio.Queue[Scan] = asyncio.Queue()
        self._workers: list[asyncio.Task[None]] = []
        #: crawl -> scans of it that are not carried out yet
        self._pending: Counter[int] = Counter()

    @property
    def is_busy(self) -> bool:
        return bool(self._pending)

    def pending(self, crawl: int) -> int:
        return self._pending[crawl]

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._workers = [loop.create_task(self._work()) for _ in range(_SCANS_AT_ONCE)]

    async def stop(self) -> None:
        await end(self._workers)

    def add(self, scans: list[Scan]) -> None:
        for one in scans:
            self._pending[one.crawl] += 1
            self._queue.put_nowait(one)

    async def _work(self) -> None:
        while True:
            scan = await self._queue.get()
            try:
                await self._answer(scan)
            except (EpochLost, FrontierUnavailable, StoreUnavailable) as error:
                # Its lock expires and the reaper hands the scan out again.
                log("scan_failed", level="debug", host=scan.host, crawl=scan.crawl, error=str(error))
            except Exception as error:
                # The scan comes again; a worker that ended here would keep the crawl from ever finishing.
                count("unexpected_errors")
                log("scan_broke", level="error", host=scan.host, crawl=scan.crawl, error=repr(error))
            finally:
                self._pending[scan.crawl] -= 1
                if not self._pending[scan.crawl]:
                    del self._pending[scan.crawl]
                self._on_done()

    async def _answer(self, scan: Scan) -> None:
        after = scan.cursor or 0
        rows = await read(self._store, urls.open_rows, scan.crawl, scan.host, after, scan.head + 1, scan.render)
        point("scan.read")
        more = len(rows) > scan.head
        filled = [(row.seq, row.retry_ms, _entry(row)) for row in rows[: scan.head]]
        answer, scans = await self._frontier.fill(scan, filled, more=more)
        self.add(scans)
        if answer == "empty":
            await self._close(scan)
        elif filled:
            self._on_filled(scan.host)

    async def _close(self, scan: Scan) -> None:
        """The store closes the queue under its lock; then the frontier drops it, unless work arrived meanwhile."""
        if not await in_thread(self._store.run, _close, scan):
            self.add([scan])
            return
        point("scan.closed")
        left, idle, scans = await self._frontier.leave(scan)
        self.add(scans)
        if left:
            self._on_left()
        if idle:
            self._on_idle(scan.crawl)


def _close(tx: Any, scan: Scan) -> bool:
    """Whether the queue has no open row; where the other one of its crawl has, the store's stays open."""
    if sites.close(tx, scan.crawl, scan.host):
        return True
    return not queues.has_open_rows(tx, scan.crawl, scan.host, render=scan.render)


def _entry(row: urls.OpenRow) -> Entry:
    return Entry(
        url=row.url, kind=Kind(row.kind), depth=row.depth, attempts=row.attempts, crashes=row.crashes,
        solo_crashes=row.solo_crashes, chain=row.chain,
    )  # fmt: skip
