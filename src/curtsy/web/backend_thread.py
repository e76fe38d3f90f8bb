"""Connects the web server's threads with asyncio services: one background loop per process, started after the fork."""

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
from curtsy.core.loop_thread import LoopThread
from curtsy.core.model import Crawl, NewUrl
from curtsy.core.observe import log, request_id
from curtsy.core.settings import Settings
from curtsy.core.shutdown import end
from curtsy.core.threads import in_thread
from curtsy.fleet.coordination import Fleet
from curtsy.services import backends as services
from curtsy.services.backends import Services
from curtsy.services.scans import ScanListener
from curtsy.store.engine import Store
from curtsy.web import metrics_endpoint
from curtsy.web.events import Events

T = TypeVar("T")

#: a call that takes longer is answered with 503
WAIT_S = 60.0
#: how long a submission waits until its last seeds are in the frontier
_LAST_S = 0.1
#: parts of one upload that may be stored but not yet in the frontier
_PARTS_AHEAD = 3
#: pause between attempts to open the services
_AGAIN_S = 3.0
#: a lost frontier may have to be rebuilt first
_OPEN_S = 150.0
_PUBLISH_S = 5.0
#: how often metrics are sent by OTLP
_OTLP_S = 15.0
_LEAVE_S = 20.0
_ENDING = "The process is shutting down."


class BackendThread:
    """The services of one API process. Each opens at its first use, so that an earlier fork is harmless."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # Separate locks: waiting for the frontier must not block the store.
        self._store_lock, self._services_lock = threading.Lock(), threading.Lock()
        #: nothing more is opened
        self._ending = False
        self._thread = LoopThread("backend", loop_factory=uvloop.new_event_loop)
        self._store: Store | None = None
        self._services: Services | None = None
        self._fleet: Fleet | None = None
        #: time and error of the last failed attempt to open the services
        self._open_error: tuple[float, CurtsyError] | None = None
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
        """Opened at the first call. After an error, a call some seconds later retries."""
        opened = self._services
        if opened is not None:
            return opened
        with self._services_lock:
            if self._services is None:
                self._services = self._opened()
            return self._services

    def _opened(self) -> Services:
        if self._open_error is not None and time.monotonic() - self._open_error[0] < _AGAIN_S:
            raise self._open_error[1]
        try:
            built = services.build(self.settings, self.store)
            try:
                self.wait(self._open(built), _OPEN_S)
            except BaseException:
                self.wait(built.frontier.close())
                raise
        except CurtsyError as error:
            self._open_error = (time.monotonic(), error)
            raise
        return built

    def warm(self) -> None:
        """Open everything before the first request."""
        try:
            self.publish()
        except CurtsyError as error:
            log("services_unavailable", level="warning", error=str(error))

    @property
    def services_or_none(self) -> Services | None:
        """None while the frontier is unavailable."""
        try:
            return self.services
        except (EpochLost, Unavailable) as error:
            log("services_unavailable", level="warning", error=str(error))
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
        """Add a value to a histogram; thread-safe."""
        with self._counting:
            metrics.observe(name, seconds, **labels)

    def publish(self) -> None:
        """Add the counts of this process to the fleet's metrics."""
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
                if self.settings.otel_endpoint is not None and await self.fleet.claim("otlp", _OTLP_S):
                    await self._export(self.settings.otel_endpoint)
            except CurtsyError as error:
                log("metrics_not_published", level="warning", error=str(error))

    async def _export(self, endpoint: str) -> None:
        """Send the metrics of the fleet by OTLP; one process of all does, at each interval."""
        from curtsy.core import otel_metrics  # an extra

        opened, fields = self.services, await self.fleet.metrics()
        await metrics_endpoint.of_fleet(self.fleet, fields)
        await metrics_endpoint.of_frontier(opened.frontier, fields)
        await in_thread(metrics_endpoint.of_store, self.store, fields)
        try:
            await in_thread(otel_metrics.send, endpoint, fields)
        except OSError as error:
            log("metrics_not_sent", level="warning", error=str(error))

    def listing(self) -> tuple[Callable[[Crawl, list[NewUrl], dict[tuple[int, bytes], int]], None], Callable[[], None]]:
        """(adds a part of the seeds to the frontier in the background; waits briefly for the last part).

        A short wait is enough: the seeds are stored, and the background work continues.
        """
        opened = self.services_or_none
        pending: deque[concurrent.futures.Future[None]] = deque()

        def wait(most: int, wait_s: float) -> None:
            while len(pending) > most:
                try:
                    pending.popleft().result(wait_s)
                except concurrent.futures.TimeoutError:
                    if wait_s >= WAIT_S:
                        raise Unavailable("The frontier does not answer in time.") from None

        def begin(crawl: Crawl, rows: list[NewUrl], inserted: dict[tuple[int, bytes], int]) -> None:
            wait(_PARTS_AHEAD - 1, WAIT_S)
            if opened is not None:
                before = pending[-1] if pending else None
                pending.append(self._later(self._list(opened, crawl, rows, inserted, before)))

        return begin, lambda: wait(0, _LAST_S)

    async def _list(
        self,
        opened: Services,
        crawl: Crawl,
        rows: list[NewUrl],
        inserted: dict[tuple[int, bytes], int],
        before: concurrent.futures.Future[None] | None,
    ) -> None:
        if before is not None:  # keep the order in which the rows were stored
            await asyncio.wait([asyncio.wrap_future(before)])
        await submit.list_chunk(opened, crawl, rows, inserted)

    def wait(self, coroutine: Coroutine[Any, Any, T], timeout_s: float = WAIT_S) -> T:
        """Run it on the background loop, with the caller's request_id, and wait for its result."""
        future = self._later(coroutine)
        try:
            return future.result(timeout_s)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise Unavailable(f"No result within {timeout_s:g} s. Try again.") from None

    def _later(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        try:
            return self._thread.submit(_with_request_id(request_id.get(), coroutine))
        except Unavailable:
            coroutine.close()
            raise

    def close(self) -> None:
        """Close the frontier and the store, if they are open."""
        self._ending = True
        self.events.close()
        entered = self._services_lock.acquire(timeout=_LEAVE_S)  # another thread may be opening them
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
        self._thread.stop(_LEAVE_S)

    async def _leave(self, opened: Services) -> None:
        await end([self._publishing] if self._publishing is not None else [])
        await opened.scans.stop()
        if self._fleet is not None:
            with contextlib.suppress(CurtsyError):
                await self._fleet.publish(metrics.drain())
            await self._fleet.close()
        await opened.close()


async def _with_request_id(id: str | None, coroutine: Coroutine[Any, Any, T]) -> T:
    request_id.set(id)
    return await coroutine
