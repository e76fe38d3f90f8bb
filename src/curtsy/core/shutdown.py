"""Requests for shutdown, and limits that guarantee it."""

from __future__ import annotations

import asyncio
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from curtsy.core.observe import log

#: between two cancellations of the same task
_AGAIN_S = 0.25
_LOOK_S = 0.25


class StopFlag:
    """Set by signals: `drain` lets running work end, `now` aborts it."""

    def __init__(self) -> None:
        self.drain = False
        self.now = False
        self._listeners: list[Callable[[], None]] = []

    def listen(self, fn: Callable[[], None]) -> None:
        self._listeners.append(fn)

    def request(self) -> None:
        """Once drains, twice stops at once."""
        self.now, self.drain = self.drain, True
        for fn in self._listeners:
            fn()


async def wait_limited(work: asyncio.Task[None], time_left: Callable[[], float | None]) -> None:
    """Waits until the work has ended, or until its time is up. `time_left` returns None while the time is unlimited.

    Work that waits for an unavailable backend would never end.
    """
    latest = math.inf
    while not work.done():
        await asyncio.wait({work}, timeout=_LOOK_S)
        if (left_s := time_left()) is not None:
            latest = min(latest, time.monotonic() + left_s)
        if time.monotonic() >= latest:
            log("cut_short", level="warning", waited_for=place_of(work))
            return
    work.result()


async def end(tasks: Iterable[asyncio.Task[Any]], limit_s: float = 10.0) -> None:
    """Cancels tasks until they have ended: a library may swallow a cancellation. Logs those that did not end."""
    left = {task for task in tasks if not task.done()}
    deadline = time.monotonic() + limit_s
    while left and time.monotonic() < deadline:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_AGAIN_S)
    if left:
        log("tasks_left_behind", level="error", after_s=limit_s, waited_for=[place_of(task) for task in left])


def end_by(limit_s: float, code: int, loop: asyncio.AbstractEventLoop) -> None:
    """Ends this process with that code if the loop is not closed by then, and logs what it was waiting for."""

    def watch() -> None:
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if loop.is_closed():
                return
            time.sleep(_LOOK_S)
        end_now(limit_s, code, loop)

    threading.Thread(target=watch, name="end_by", daemon=True).start()


def end_now(after_s: float, code: int, loop: asyncio.AbstractEventLoop | None) -> None:
    """Ends this process, and logs what it was waiting for."""
    try:
        log("ended_by_force", level="error", after_s=after_s, waited_for=list(places(loop)))
    finally:
        os._exit(code)


def places(loop: asyncio.AbstractEventLoop | None) -> Iterator[str]:
    """The stacks of a loop's tasks and of this process's threads."""
    if loop is not None and not loop.is_closed():
        yield from (place_of(task) for task in asyncio.all_tasks(loop))
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for number, frame in sys._current_frames().items():
        if number != threading.get_ident():
            yield f"thread {names.get(number, number)}: {_line(_own(frame))} > {_line(frame)}"


def place_of(task: asyncio.Task[Any]) -> str:
    """The name of a task, and its stack of waiting functions, outermost first."""
    steps: list[str] = []
    waits: Any = task.get_coro()
    while waits is not None:
        if (frame := getattr(waits, "cr_frame", None)) is not None:
            steps.append(f"{waits.__qualname__} {_line(frame)}")
        waits = getattr(waits, "cr_await", None)
    return f"task {task.get_name()}: {' > '.join(steps)}"


def _line(frame: FrameType) -> str:
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _own(frame: FrameType) -> FrameType:
    """The innermost frame of this package, else the outermost."""
    while frame.f_back is not None and Path(__file__).parents[1].name not in Path(frame.f_code.co_filename).parts:
        frame = frame.f_back
    return frame
