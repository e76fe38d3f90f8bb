"""Scans: the frontier asks for the rows of a queue, and this process reads them from the store.

A queue keeps only its next entries in the frontier. When they run low, or may be incomplete, some reply of the frontier
hands out a scan: the process that receives it reads open rows from the store and fills the queue, or closes the queue
if no row is open. The frontier locks the queue meanwhile, so that one process scans it at a time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from curtsy.core.errors import EpochLost, FrontierUnavailable, StoreUnavailable
from curtsy.core.failpoints import point
from curtsy.core.model import Entry, Kind
from curtsy.core.observe import count, log, log_crawl
from curtsy.core.shutdown import end
from curtsy.core.threads import in_thread
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.messages import Scan
from curtsy.services.epochs import put_open_back
from curtsy.store import crawl_events, queues, sites, urls
from curtsy.store.engine import Store, read

#: scans carried out at the same time by one process
_SCANS_AT_ONCE = 4
#: queues that one transaction closes at most
_CLOSED_TOGETHER = 100
#: pause after a failed attempt to put queues back: it doubles up to the second value
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


class ScanListener:
    """Notifications about the scans of a process. Called on the loop."""

    def queue_filled(self, host: str) -> None:
        """A queue of this host received rows."""

    def queue_left(self) -> None:
        """A queue without open rows left the frontier: there is room for another one."""

    def crawl_idle(self, crawl: int) -> None:
        """The last queue of the crawl left: it may be finished."""

    def scan_done(self) -> None:
        """A scan was carried out or failed."""


class Scans:
    """The sink of one process for everything that the frontier still needs from the store.

    Every scan that a reply hands out is added here, at any time, before or after `start`. Nothing is lost:

    - A scan is carried out by this process, or its lock in the frontier expires and the reaper hands it out again.
      That covers a scan that fails, a process that dies, and a command that ends without calling `start`.
    - Queues that could not be sent to the frontier (`put_back_later`) are put back as soon as it answers. If the
      process ends first, the sweep once a minute finds them: their rows are open in the store.

    A scan may be carried out by any process, at any time, more than once. All methods belong to the loop's thread.
    """

    def __init__(self, frontier: Frontier, store: Store) -> None:
        self._frontier, self._store = frontier, store
        self._queue: asyncio.Queue[Scan] = asyncio.Queue()
        #: scans that found no row: their queues are closed together, because each transaction waits for the disk
        self._empty: asyncio.Queue[Scan] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        #: crawl -> scans of it, or requests to put its queues back, that are not carried out yet
        self._pending: Counter[int | None] = Counter()
        #: crawls whose queues the frontier may lack; None: of every running crawl
        self._lacking: set[int | None] = set()
        self._lacks = asyncio.Event()

    @property
    def is_busy(self) -> bool:
        return bool(self._pending)

    def pending(self, crawl: int) -> int:
        return self._pending[crawl]

    def start(
        self, listener: ScanListener, *, recover: Callable[[], Awaitable[None]] | None = None, sweeps: bool = True
    ) -> None:
        """Starts to carry out scans, also those added earlier. May be called again after `stop`.

        `recover`: called when the epoch is lost while queues are put back; None where another task of the process
        recovers. `sweeps=False`: another process puts back what the frontier lacks.
        """
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._work(listener)) for _ in range(_SCANS_AT_ONCE)]
        self._tasks.append(loop.create_task(self._close_all(listener)))
        self._tasks.append(loop.create_task(self._put_back_all(recover) if sweeps else self._leave_to_others()))

    async def stop(self) -> None:
        await end(self._tasks)

    def add(self, scans: Iterable[Scan]) -> None:
        for scan in scans:
            self._pending[scan.crawl] += 1
            self._queue.put_nowait(scan)

    async def put_back(self, crawl: int | None = None) -> None:
        """Puts open queues that are not in the frontier back into it: of one crawl, or of every running one."""
        self.add(await put_open_back(self._frontier, self._store, crawl))

    def put_back_later(self, crawl: int | None = None) -> None:
        """The frontier may lack queues of this crawl, or of any: they are put back when it answers."""
        if crawl not in self._lacking:
            self._lacking.add(crawl)
            self._pending[crawl] += 1
            self._lacks.set()

    async def _put_back_all(self, recover: Callable[[], Awaitable[None]] | None) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            await self._lacks.wait()
            crawl = next(iter(self._lacking))
            try:
                # Removed first: a request that arrives during the sweep is carried out by the next one.
                self._lacking.discard(crawl)
                await self.put_back(crawl)
            except BaseException as error:
                self._lacking.add(crawl)
                if not isinstance(error, Exception):
                    raise
                log("queues_not_put_back", level="warning", crawl_n=crawl, error=str(error), pause_s=pause_s)
                if recover is not None and isinstance(error, EpochLost):
                    await _tried(recover)
                await asyncio.sleep(pause_s)
                pause_s = min(_LONGEST_PAUSE_S, pause_s * 2)
            else:
                pause_s = _FIRST_PAUSE_S
                self._finish(crawl)
                if not self._lacking:
                    self._lacks.clear()

    async def _leave_to_others(self) -> None:
        while True:
            await self._lacks.wait()
            for crawl in self._lacking:
                self._finish(crawl)
            self._lacking.clear()
            self._lacks.clear()

    def _finish(self, crawl: int | None) -> None:
        self._pending[crawl] -= 1
        if not self._pending[crawl]:
            del self._pending[crawl]

    async def _work(self, listener: ScanListener) -> None:
        while True:
            scan = await self._queue.get()
            is_empty = False
            try:
                is_empty = await self._carry_out(scan, listener)
            except Exception as error:
                await self._note_failure(scan, error)
            finally:
                if is_empty:
                    self._empty.put_nowait(scan)
                else:
                    self._end(scan, listener)

    async def _close_all(self, listener: ScanListener) -> None:
        while True:
            scans = [await self._empty.get()]
            while len(scans) < _CLOSED_TOGETHER and not self._empty.empty():
                scans.append(self._empty.get_nowait())
            try:
                await self._close(scans, listener)
            except Exception as error:
                await self._note_failure(scans[0], error)
            finally:
                for scan in scans:
                    self._end(scan, listener)

    def _end(self, scan: Scan, listener: ScanListener) -> None:
        self._finish(scan.crawl)
        listener.scan_done()

    async def _note_failure(self, scan: Scan, error: Exception) -> None:
        """The lock of a scan that failed expires, and the reaper hands it out again."""
        if isinstance(error, (EpochLost, FrontierUnavailable, StoreUnavailable)):
            log("scan_failed", level="debug", host=scan.host, crawl_n=scan.crawl, error=str(error))
            return
        # A worker that ended here would keep the crawl from finishing.
        count("unexpected_errors")
        log_crawl(
            await self._named(scan.crawl), "scan_broke", level="error", host=scan.host, crawl_n=scan.crawl,
            error=repr(error),
        )  # fmt: skip

    async def _named(self, crawl: int) -> crawl_events.CrawlIdentity:
        try:
            return await read(self._store, crawl_events.identity, crawl)
        except StoreUnavailable:
            return crawl_events.CrawlIdentity("", "")

    async def _carry_out(self, scan: Scan, listener: ScanListener) -> bool:
        """Fills the queue. True: it has no open row, and must be closed."""
        after = scan.cursor or 0
        rows = await read(self._store, urls.open_rows, scan.crawl, scan.host, after, scan.head + 1, scan.render)
        point("scan.read")
        more = len(rows) > scan.head
        filled = [(row.seq, row.retry_ms, _entry(row)) for row in rows[: scan.head]]
        answer, scans = await self._frontier.fill(scan, filled, more=more)
        self.add(scans)
        if filled and answer != "empty":
            listener.queue_filled(scan.host)
        return answer == "empty"

    async def _close(self, scans: Sequence[Scan], listener: ScanListener) -> None:
        """The store closes the queues under their locks; then the frontier drops them, unless work arrived."""
        closed = await in_thread(self._store.run, _close_queues, scans)
        self.add(scan for scan in scans if scan not in closed)
        point("scan.closed")
        for scan in closed:
            left, idle, more = await self._frontier.leave(scan)
            self.add(more)
            if left:
                listener.queue_left()
            if idle:
                listener.crawl_idle(scan.crawl)


async def _tried(recover: Callable[[], Awaitable[None]]) -> None:
    try:
        await recover()
    except (EpochLost, FrontierUnavailable, StoreUnavailable) as error:
        log("frontier_not_recovered", level="warning", error=str(error))


def _close_queues(tx: Any, scans: Iterable[Scan]) -> list[Scan]:
    """Closes the queues without an open row; returns their scans. In the order of all locks on queues."""
    return [scan for scan in sorted(scans, key=lambda scan: (scan.crawl, scan.host)) if _close(tx, scan)]


def _close(tx: Any, scan: Scan) -> bool:
    """Whether the queue has no open row. The other queue of the crawl for this host may keep the store's queue open."""
    if sites.close(tx, scan.crawl, scan.host):
        return True
    return not queues.has_open_rows(tx, scan.crawl, scan.host, render=scan.render)


def _entry(row: urls.OpenRow) -> Entry:
    return Entry(
        url=row.url, kind=Kind(row.kind), depth=row.depth, attempts=row.attempts, crashes=row.crashes,
        solo_crashes=row.solo_crashes, chain=row.chain,
    )  # fmt: skip
