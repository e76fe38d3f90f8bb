"""A thread with an event loop, in a process that forks.

A forked child has no other threads, but it inherits their locks. A lock that another thread held at the fork (the
import lock, the log's) stays locked forever in the child. So this process forks only while that thread waits in its
selector and holds no lock: the thread holds `_fork_lock` while it runs, and a fork takes it.
"""

from __future__ import annotations

import asyncio
import encodings.idna  # noqa: F401 (the loop's threads look up names, and the first lookup would import it)
import os
import selectors
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from curtsy.core.loop_thread import LoopThread

_fork_lock = threading.Lock()


class _Yielding(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        _fork_lock.release()
        try:
            return super().select(timeout)
        finally:
            _fork_lock.acquire()


class _ForkSafeThread(LoopThread):
    def _live(self) -> None:
        with _fork_lock:
            super()._live()


def run_in_thread(work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
    """Run a coroutine on a loop in a daemon thread. One such thread per process."""
    os.register_at_fork(
        before=_fork_lock.acquire, after_in_parent=_fork_lock.release, after_in_child=_fork_lock.release
    )
    _ForkSafeThread(name, work, loop_factory=lambda: asyncio.SelectorEventLoop(_Yielding())).start()
