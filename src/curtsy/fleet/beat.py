"""Celery Beat as the fleet's dispatcher: its tick waits for the frontier's bell and sends shifts; it holds no schedule.

Entries of `beat_schedule` that somebody adds for tasks of their own are served too, to the second.
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
from curtsy.fleet.celery_app import heed_keeper, leave_folder, the_settings
from curtsy.fleet.coordination import Fleet
from curtsy.fleet.dispatcher import Chore, Dispatcher
from curtsy.records import stages
from curtsy.services import backends
from curtsy.services.backends import Services

#: the outbox is looked through this often
_OUTBOX_S = 0.5
#: and the list of what is to be deleted
_DELETIONS_S = 2.0
#: segments are looked through this often
_TIDY_S = 3600.0
#: schedules are to the minute
_SCHEDULES_S = 1.0


class Scheduler(beat.Scheduler):  # type: ignore[misc]
    """Keeps a loop of its own; the parts are made with the first tick."""

    max_interval = 1.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._heeding: asyncio.Task[None] | None = None
        self._services: Services | None = None
        self._dispatcher: Dispatcher | None = None

    def tick(self, *_: Any, **__: Any) -> float:
        super().tick()
        if self._loop is None:
            # Signals end a wait of this loop by an exception, as the service around it expects.
            self._loop = asyncio.new_event_loop()
            self._heeding = self._loop.create_task(_heed_keeper())
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
        await self._dispatcher.tick()

    async def _open(self) -> bool:
        """Whether all parts are there; if one is away, the next tick tries again."""
        built: Services | None = None
        try:
            built = await in_thread(backends.build, the_settings())
            await built.open()
        except CurtsyError as error:
            log("beat_not_begun", level="warning", error=str(error))
            if built is not None:
                await built.close()
            return False
        self._services = built
        fleet = Fleet(built.url, built.settings)
        self._dispatcher = Dispatcher(built, fleet, tasks.send_shift, tasks.depth, CHORES)
        return True

    def close(self) -> None:
        """Called twice: by the signal's handler, while the loop runs, and by the service when it has stopped."""
        super().close()
        if self._loop is None or self._loop.is_running():
            return
        loop, self._loop = self._loop, None
        try:
            loop.run_until_complete(self._close())
            leave_folder()
        except Exception as error:
            log("beat_not_left", level="warning", error=repr(error))

    async def _close(self) -> None:
        await end([task for task in (self._ticking, self._heeding) if task is not None])
        if self._dispatcher is not None:
            await self._dispatcher.close()
            await self._dispatcher.fleet.close()
        if self._services is not None:
            await self._services.close()


async def _heed_keeper() -> None:
    """Beside the ticks: one of them may wait for a part that is away, for as long as that takes."""
    while True:
        heed_keeper()
        await asyncio.sleep(1.0)


# What else is done in a tick


async def _send_stages(parts: Services) -> None:
    """Rows of the outbox that are due: new ones, and those that were sent and are not done."""
    if left := tasks.send_stages(await in_thread(stages.sweep, parts.store, parts.settings)):
        await in_thread(stages.take_back, parts.store, left)


async def _fire_schedules(parts: Services) -> None:
    """Runs that are due become crawls."""
    await schedules.fire(parts)


async def _delete(parts: Services) -> None:
    """What is to be deleted goes, some seconds' worth at a time."""
    await in_thread(retention.delete_some, parts.store, parts.settings)


async def _tidy(parts: Services) -> None:
    """Small segments are merged, those that nothing refers to are deleted."""
    await in_thread(retention.tidy, parts)


CHORES: list[Chore] = [
    ("segments", _TIDY_S, _tidy),
    ("stages", _OUTBOX_S, _send_stages),
    ("schedules", _SCHEDULES_S, _fire_schedules),
    ("deletions", _DELETIONS_S, _delete),
]
