"""Celery Beat as the fleet's dispatcher: each tick waits for the frontier's list `wake` and sends shifts.

The frontier's scripts push to this list when a host becomes due. Entries that a user adds to
`beat_schedule` run too, to the second.
"""

from __future__ import annotations

import asyncio
from typing import Any

from celery import beat

from curtsy.control import retention, schedules
from curtsy.core.errors import CurtsyError
from curtsy.core.observe import log
from curtsy.core.shutdown import end
from curtsy.core.threads import in_thread
from curtsy.fleet import tasks
from curtsy.fleet.celery_app import exit_with_parent, leave_folder, the_settings
from curtsy.fleet.coordination import Fleet
from curtsy.fleet.dispatcher import Chore, Dispatcher
from curtsy.records import batch_lane, stages
from curtsy.services import backends
from curtsy.services.backends import Services

# How often each chore runs.
_OUTBOX_S = 0.5
_DELETIONS_S = 2.0
_BATCHES_S = 5.0
_TIDY_S = 3600.0
#: a schedule fires at a full minute; looking each second keeps it close to the minute
_SCHEDULES_S = 1.0


class Scheduler(beat.Scheduler):  # type: ignore[misc]
    """Has its own event loop; the first tick creates the services."""

    max_interval = 1.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._parent_watch: asyncio.Task[None] | None = None
        self._services: Services | None = None
        self._dispatcher: Dispatcher | None = None

    def tick(self, *_: Any, **__: Any) -> float:
        super().tick()
        if self._loop is None:
            # A signal interrupts this loop with an exception, as Celery's service expects.
            self._loop = asyncio.new_event_loop()
            self._parent_watch = self._loop.create_task(_watch_parent())
        self._ticking = self._loop.create_task(self._tick())
        self._loop.run_until_complete(self._ticking)
        return 0.0

    @property
    def info(self) -> str:
        return "    . shifts -> as the frontier has work due"

    async def _tick(self) -> None:
        if self._dispatcher is None and not await self._open():
            await asyncio.sleep(1.0)
            return
        assert self._dispatcher is not None
        await self._dispatcher.dispatch()

    async def _open(self) -> bool:
        """Create the services; False if one is unavailable. The next tick tries again."""
        built: Services | None = None
        try:
            built = await in_thread(backends.build, the_settings())
            await built.open()
        except CurtsyError as error:
            log("beat_not_started", level="warning", error=str(error))
            if built is not None:
                await built.close()
            return False
        self._services = built
        fleet = Fleet(built.url, built.settings)
        self._dispatcher = Dispatcher(built, fleet, tasks.send_shift, tasks.depth, CHORES)
        return True

    def close(self) -> None:
        """Celery calls this twice: from the signal handler while the loop runs, and after the service has stopped."""
        super().close()
        if self._loop is None or self._loop.is_running():
            return
        loop, self._loop = self._loop, None
        try:
            loop.run_until_complete(self._close())
            leave_folder()
        except Exception as error:
            log("beat_not_closed", level="warning", error=repr(error))

    async def _close(self) -> None:
        await end([task for task in (self._ticking, self._parent_watch) if task is not None])
        if self._dispatcher is not None:
            await self._dispatcher.close()
            await self._dispatcher.fleet.close()
        if self._services is not None:
            await self._services.close()


async def _watch_parent() -> None:
    """Runs beside the ticks, because a tick may wait long for an unavailable service."""
    while True:
        exit_with_parent()
        await asyncio.sleep(1.0)


# Chores


async def _send_stages(services: Services) -> None:
    """Send outbox rows that are due: new ones, and those that were sent and not finished."""
    if left := tasks.send_stages(await in_thread(stages.sweep, services.store, services.settings)):
        await in_thread(stages.take_back, services.store, left)


async def _fire_schedules(services: Services) -> None:
    """Start the crawls of schedules that are due."""
    await schedules.fire(services)


async def _delete(services: Services) -> None:
    """Continue pending deletions for a few seconds."""
    await in_thread(retention.delete_some, services.store, services.settings)


async def _tidy(services: Services) -> None:
    """Apply retention, merge small segments and delete unreferenced ones."""
    await in_thread(retention.tidy, services)


async def _ask_in_batches(services: Services) -> None:
    """Send questions to the model's batch API, and merge the answers that have arrived."""
    await in_thread(batch_lane.step, services.store, services.settings)


CHORES: list[Chore] = [
    ("batches", _BATCHES_S, _ask_in_batches),
    ("segments", _TIDY_S, _tidy),
    ("stages", _OUTBOX_S, _send_stages),
    ("schedules", _SCHEDULES_S, _fire_schedules),
    ("deletions", _DELETIONS_S, _delete),
]
