"""One worker process: its event loop, services and connections, created on first use and kept between shifts.

A shift starts with its ticket and leases hosts of one lane. It ends when nothing is in flight and nothing is due within
50 ms, or when its time is up and its requests have ended. It never waits for a host.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from curtsy.core import metrics
from curtsy.core.clock import boot
from curtsy.core.errors import CurtsyError, EpochLost, FrontierUnavailable, StoreUnavailable
from curtsy.core.model import Lane
from curtsy.core.observe import log
from curtsy.core.settings import Settings
from curtsy.core.shutdown import StopFlag, end
from curtsy.crawl.run import tune
from curtsy.crawl.shift import Shift
from curtsy.fleet.coordination import RENEW_S, Fleet, lane_of, shards_of
from curtsy.frontier import watch
from curtsy.services import backends
from curtsy.services.backends import Services

T = TypeVar("T")
#: how often a shift checks whether its worker was asked to stop
_STOP_CHECK_S = 0.05
#: extra time for a shift that was asked to stop, after draining and committing
_LEAVE_S = 5.0


class WorkerProcess:
    """One per process, created after the fork. `ending` says whether the worker was asked to stop; `url` is the
    frontier's server.
    """

    def __init__(self, settings: Settings, ending: Callable[[], bool], url: str) -> None:
        self.settings = settings
        self._url = url
        self._ending = ending
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._stop = StopFlag()
        self._services: Services | None = None
        self._fleet: Fleet | None = None
        self._shift: Shift | None = None
        # From 0: an increase is visible only if the value before it is.
        for kind in ("lease", "slot"):
            metrics.inc("curtsy_lease_expiries_total", 0, kind=kind)
        for cause in ("deadlock", "disk_full", "unavailable"):
            metrics.inc("curtsy_store_retries_total", 0, cause=cause)

    # What the tasks call

    def run(self, work: Callable[[Services], Coroutine[Any, Any, T]]) -> T:
        """Run `work` with the services of this process, on its loop."""

        async def with_parts() -> T:
            return await work(await self._parts())

        return self._on_loop(with_parts())

    def work_shift(self, queue: str, ticket: str, shards: str | None = None) -> str:
        """Run one shift; returns how it ended: done, time, stopped, late or broken."""
        ended = self._on_loop(self._work(queue, ticket, shards))
        log("shift_ended", level="info", queue=queue, end=ended)
        return ended

    def close(self) -> None:
        """Close the services; the process is about to exit."""
        try:
            self._on_loop(self._close())
        except Exception as error:
            log("worker_process_not_closed", level="warning", error=repr(error))
        self._runner.close()

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        # The runner would use the context of its first run, and with it that one's request_id.
        return self._runner.run(work, context=contextvars.copy_context())

    # Parts

    async def _parts(self) -> Services:
        if self._services is None:
            built = backends.build(self.settings)
            try:
                await built.open()
            except BaseException:
                await built.close()
                raise
            tune(built)
            self._services = built
        return self._services

    async def _open_shift(self) -> tuple[Services, Shift]:
        parts = await self._parts()
        if self._shift is None:
            # Beat maintains segments and sweeps.
            self._shift = Shift(parts, self._stop, ends_without_work=True, sweeps=False)
        return parts, self._shift

    async def _close(self) -> None:
        if self._shift is not None:
            await self._shift.close()
        if self._fleet is not None:
            await self._fleet.close()
        if self._services is not None:
            await self._services.close()

    # The shift

    async def _work(self, queue: str, ticket: str, shards: str | None) -> str:
        """Errors go to the log: a shift has no result, and Beat sends the next one when work is due."""
        began = boot()
        ended = "broken"
        try:
            fleet = self._fleet = self._fleet or Fleet(self._url, self.settings)
            if not await self._begin(fleet, queue, ticket):
                ended = "late"
            else:
                parts, shift = await self._open_shift()
                count = len(parts.frontier.shards)
                parts.frontier.bind(shards_of(shards, count) if shards else ())
                ended = await self._crawl(shift, fleet, queue, ticket)
        except CurtsyError as error:
            # It counts as running until its renewal expires, which delays the next shift.
            log("shift_broke", level="warning", queue=queue, error=str(error))
        except Exception as error:
            log("shift_broke", level="error", queue=queue, error=repr(error))
        await self._account(queue, ticket, ended, boot() - began)
        return ended

    @staticmethod
    async def _begin(fleet: Fleet, queue: str, ticket: str) -> bool:
        """Must run first: Beat sends no other shift for an unused ticket until it expires."""
        try:
            return await fleet.begin(queue, ticket)
        except FrontierUnavailable:
            # The connection is from an earlier shift and may have died with its server: retry over a new one.
            return await fleet.begin(queue, ticket)

    async def _crawl(self, shift: Shift, fleet: Fleet, queue: str, ticket: str) -> str:
        lane = lane_of(queue)
        drain_s, most_s = self.settings.fetch_timeout_s, self.settings.longest_shift_s
        if lane is Lane.RENDER:
            drain_s, most_s = self.settings.render_timeout_s, most_s + self.settings.longer_render_s
        until = boot() + self.settings.shift_s
        done = "stopped"

        async def ended() -> bool:
            nonlocal done
            done = "done" if shift.out_of_work else "time" if boot() >= until else "stopped"
            return done != "stopped"

        crawl = asyncio.current_task()
        assert crawl is not None
        beside = [asyncio.create_task(self._renew(fleet, queue, ticket)), asyncio.create_task(self._watch_stop(crawl))]
        try:
            async with asyncio.timeout(most_s):
                await shift.run(ended, drain_s=drain_s, lanes=(lane,))
                await self._tidy_up(shift)
        except TimeoutError:
            done = "broken"
            log("shift_too_long", level="warning", queue=queue)
        except asyncio.CancelledError:
            # By `_watch_stop`. The reaper finds what could not be committed in time.
            crawl.uncancel()
            log("shift_broken_off", level="warning", queue=queue)
            done = "stopped"
        finally:
            await end(beside)
        return done

    async def _tidy_up(self, shift: Shift) -> None:
        """Act on what only this process knows: silent hosts, and crawls that look finished."""
        try:
            if shift.maintenance.failing:
                await shift.maintenance.mark_dead_hosts()
            while shift.maintenance.idle:
                await shift.background.is_finished(shift.maintenance.idle.pop())
        except (EpochLost, FrontierUnavailable, StoreUnavailable) as error:
            log("shift_not_tidied", level="warning", error=str(error))

    async def _renew(self, fleet: Fleet, queue: str, ticket: str) -> None:
        """Runs beside the crawl: renews its ticket and publishes its metrics."""
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                await fleet.renew(queue, ticket)
                await fleet.hand_over()
            except FrontierUnavailable as error:
                log("shift_not_renewed", level="warning", error=str(error))

    async def _watch_stop(self, crawl: asyncio.Task[Any]) -> None:
        """Runs beside the crawl: stops it when the worker is asked to stop, and cancels it if it takes too long."""
        while not self._ending():  # noqa: ASYNC110 (the flag is another process's to set)
            await asyncio.sleep(_STOP_CHECK_S)
        if not self._stop.drain:
            self._stop.request()
        await asyncio.sleep(self.settings.drain_s + self.settings.commit_timeout_s + _LEAVE_S)
        crawl.cancel()

    async def _account(self, queue: str, ticket: str, ended: str, took_s: float) -> None:
        lane = lane_of(queue).value
        metrics.inc("curtsy_shifts_total", lane=lane, end=ended)
        if ended != "late":
            metrics.inc("curtsy_shift_seconds_total", took_s, lane=lane)
        if self._shift is not None:
            waiting_s, closing_s = self._shift.pauses.take(boot())
            metrics.inc("curtsy_shift_waiting_seconds_total", waiting_s, lane=lane)
            metrics.inc("curtsy_shift_closing_seconds_total", closing_s, lane=lane)
        if self._fleet is None:
            return
        try:
            await self._fleet.hand_over()
            if self._services is not None and ended in ("done", "time", "stopped"):
                await watch.retire(self._services.frontier)
                await self._fleet.end(queue, ticket)
                # Hosts that this shift used last may be due sooner than Beat expects.
                await watch.wake_dispatcher(self._services.frontier)
        except (EpochLost, FrontierUnavailable) as error:
            log("shift_not_accounted", level="warning", error=str(error))
