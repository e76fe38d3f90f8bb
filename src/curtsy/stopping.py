"""How a process is asked to end."""

from __future__ import annotations

from collections.abc import Callable


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
