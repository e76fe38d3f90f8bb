"""From the threads of the web server to the asyncio parts: one background loop per process, opened after the fork."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from curtsy.control import submit
from curtsy.core import metrics
from curtsy.core.errors import CurtsyError, EpochLost, Unavailable
from curtsy.core.model import Crawl, NewUrl
from curtsy.core.observe import log, request_id
from curtsy.core.settings import Settings
from curtsy.core.shutdown import end
from curtsy.fleet.coordination import Fleet
from curtsy.services import backends as services
from curtsy.services.backends import Services
from curtsy.services.scans import ScanListener
from curtsy.store.engine import Store
from curtsy.web.events import Events

T = TypeVar("T")

#: an answer that takes longer is a 503: the caller may ask again
WAIT_S = 60.0
#: how long an answer waits for its last seeds to be listed
_LAST_S = 0.1
#: parts of one upload that are stored and not listed yet
_PARTS_AHEAD = 3
#: after a failed attempt to open the services the next one is made this much later
_AGAIN_S = 3.0
#: a lost frontier may have to be rebuilt first
_OPEN_S = 150.0
_PUBLISH_S = 5.0
_LEAVE_S = 20.0
_ENDING = "The process is ending."


class BackendThread:
    """The parts of one API process. Everything opens with its first use, so that a fork before it is harmless."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # One for each part: whoever waits for the frontier keeps nobody from the store.
        self._store_lock, self._services_lock, self._loop_lock = threading.Lock(), threading.Lock(), threading.Lock()
        #: nothing is opened any more; the loop takes nothing any more
        self._ending = self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._store: Store | None = None
        self._services: Services | None = None
        self._fleet: Fleet | None = None
        #: the last attempt to open the services that failed, and when
        self._refused: tuple[float, CurtsyError] | None = None
        self._publishing: asyncio.Task[None] | None = None
        self._counting = threading.Lock()
        self.events = Events(self)

    @property
    def store(self) -> Store:
        with self._store_lock:
            if self._store is None:
                if self._ending:
                    raise Unavailable(_ENDING)
                self._store = Store.open(self.settings.effective_store_url)
            return self._store

    @property
    def services(self) -> Services:
        """Opened with the first call; an error says which part is away, and a call some seconds later tries again."""
        opened = self._services
        if opened is not None:
            return opened
        with self._services_lock:
            if self._services is None:
                self._services = self._opened()
            return self._services

    def _opened(self) -> Services:
        if self._refused is not None and time.monotonic() - self._refused[0] < _AGAIN_S:
            raise self._refused[1]
        try:
            built = services.build(self.settings, self.store)
            try:
                self.wait(self._open(built), _OPEN_S)
            except BaseException:
                self.wait(built.frontier.close())
                raise
        except CurtsyError as error:
            self._refused = (time.monotonic(), error)
            raise
        return built

    def warm(self) -> None:
        """Opens everything before somebody waits for it."""
        try:
            self.publish()
        except CurtsyError as error:
            log("services_not_opened", level="warning", error=str(error))

    @property
    def services_or_none(self) -> Services | None:
        """None while the frontier is away."""
        try:
            return self.services
        except (EpochLost, Unavailable) as error:
            log("services_not_opened", level="warning", error=str(error))
            return None

    @property
    def fleet(self) -> Fleet:
        opened = self.services
        if self._fleet is None:
            embedded = opened.embedded
            url = self.settings.frontier_url or (embedded.url if embedded is not None else "")
            self._fleet = Fleet(url, self.settings)
        return self._fleet

    def count(self, name: str, seconds: float, **labels: object) -> None:
        """One value of a histogram, from any thread."""
        with self._counting:
            metrics.observe(name, seconds, **labels)

    def publish(self) -> None:
        """What was counted here joins the sums of the fleet."""
        fleet = self.fleet
        with self._counting:
            deltas = metrics.drain()
        try:
            self.wait(fleet.publish(deltas), 5.0)
        except BaseException:
            with self._counting:
                metrics.restore(deltas)
            raise

    async def _open(self, built: Services) -> None:
        await built.open()
        # Seeds that are submitted here are listed without waiting for a worker.
        built.scans.start(ScanListener(), recover=built.recover)
        self._publishing = asyncio.get_running_loop().create_task(self._publish_often())

    async def _publish_often(self) -> None:
        while True:
            await asyncio.sleep(_PUBLISH_S)
            try:
                await asyncio.get_running_loop().run_in_executor(None, self.publish)
            except CurtsyError as error:
                log("metrics_not_published", level="warning", error=str(error))

    def listing(self) -> tuple[Callable[[Crawl, list[NewUrl], dict[tuple[int, bytes], int]], None], Callable[[], None]]:
        """(puts seeds into the frontier behind the caller's back, one part at a time; waits for the last one).

        The last part is not waited for long: the seeds are stored, and it goes on by itself.
        """
        opened = self.services_or_none
        under_way: deque[concurrent.futures.Future[None]] = deque()

        def wait(most: int, wait_s: float) -> None:
            while len(under_way) > most:
                try:
                    under_way.popleft().result(wait_s)
                except concurrent.futures.TimeoutError:
                    if wait_s >= WAIT_S:
                        raise Unavailable("The frontier takes too long.") from None

        def begin(crawl: Crawl, rows: list[NewUrl], inserted: dict[tuple[int, bytes], int]) -> None:
            wait(_PARTS_AHEAD - 1, WAIT_S)
            if opened is not None:
                before = under_way[-1] if under_way else None
                under_way.append(self._later(self._list(opened, crawl, rows, inserted, before)))

        return begin, lambda: wait(0, _LAST_S)

    async def _list(
        self,
        opened: Services,
        crawl: Crawl,
        rows: list[NewUrl],
        inserted: dict[tuple[int, bytes], int],
        before: concurrent.futures.Future[None] | None,
    ) -> None:
        if before is not None:  # rows are listed in the order in which they were stored
            await asyncio.wait([asyncio.wrap_future(before)])
        await submit.list_chunk(opened, crawl, rows, inserted)

    def wait(self, coroutine: Coroutine[Any, Any, T], timeout_s: float = WAIT_S) -> T:
        """Run it on the background loop and wait for its result. The caller's request_id goes with it."""
        future = self._later(coroutine)
        try:
            return future.result(timeout_s)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise Unavailable(f"It took longer than {timeout_s:g} s. Try again.") from None

    def _later(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        try:
            loop = self._running_loop()
        except Unavailable:
            coroutine.close()
            raise
        return asyncio.run_coroutine_threadsafe(_under(request_id.get(), coroutine), loop)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._loop_lock:
            if self._closed:
                raise Unavailable(_ENDING)
            if self._loop is None:
                self._loop = uvloop.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="backend", daemon=True)
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """Leaves the frontier and the store; harmless when nothing was opened."""
        self._ending = True
        self.events.close()
        entered = self._services_lock.acquire(timeout=_LEAVE_S)  # somebody may be opening them
        opened, self._services = self._services, None
        if entered:
            self._services_lock.release()
        if opened is not None:
            try:
                self.wait(self._leave(opened), _LEAVE_S)
            except CurtsyError as error:
                log("services_not_closed", level="warning", error=str(error))
        elif self._store is not None:
            self._store.close()
        self._store = None
        with self._loop_lock:
            self._closed = True
            if self._loop is not None and self._thread is not None:
                asyncio.run_coroutine_threadsafe(_end_all(), self._loop).result(_LEAVE_S)
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join(5.0)
                self._loop.close()
                self._loop = self._thread = None

    async def _leave(self, opened: Services) -> None:
        await end([self._publishing] if self._publishing is not None else [])
        await opened.scans.stop()
        if self._fleet is not None:
            with contextlib.suppress(CurtsyError):
                await self._fleet.publish(metrics.drain())
            await self._fleet.close()
        await opened.close()


async def _end_all() -> None:
    """Whatever still runs on the loop is broken off."""
    await end([task for task in asyncio.all_tasks() if task is not asyncio.current_task()])


async def _under(id: str | None, coroutine: Coroutine[Any, Any, T]) -> T:
    request_id.set(id)
    return await coroutine
