"""How a process is asked to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any


class StopFlag:
    """Set by signals: `drain` lets what is under way end, `now` breaks it off."""

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


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels tasks until they have ended: a library may swallow a cancellation that comes at a bad moment."""
    left = {task for task in tasks if not task.done()}
    for _ in range(40):
        if not left:
            return
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.25)
