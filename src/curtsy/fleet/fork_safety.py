"""A thread with a loop, in a process that forks.

A forked child has no other threads, but all their locks as they were: one that was held (an import's, the log's) stays
held for ever, and the child with it. So this process forks only while the loop of that thread waits, and then it holds
none: it runs with `_turn` held, gives it away while it waits, and whoever forks takes it.
"""

from __future__ import annotations

import asyncio
import encodings.idna  # noqa: F401 (names are looked up in threads of the loop's, and the first look-up would import it)
import os
import selectors
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from curtsy.core.loop_thread import LoopThread

_turn = threading.Lock()


class _Yielding(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        _turn.release()
        try:
            return super().select(timeout)
        finally:
            _turn.acquire()


class _ForkSafeThread(LoopThread):
    def _live(self) -> None:
        with _turn:
            super()._live()


def beside(work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
    """Runs it on a loop in a daemon thread. One such thread per process."""
    os.register_at_fork(before=_turn.acquire, after_in_parent=_turn.release, after_in_child=_turn.release)
    _ForkSafeThread(name, work, loop_factory=lambda: asyncio.SelectorEventLoop(_Yielding())).start()
