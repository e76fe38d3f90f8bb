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

_turn = threading.Lock()


class _Yielding(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        _turn.release()
        try:
            return super().select(timeout)
        finally:
            _turn.acquire()


def beside(work: Callable[[], Coroutine[Any, Any, None]], name: str) -> threading.Thread:
    """Runs it on a loop of its own, in a thread that nobody waits for. One such thread per process."""
    os.register_at_fork(before=_turn.acquire, after_in_parent=_turn.release, after_in_child=_turn.release)
    thread = threading.Thread(target=_run, args=(work,), name=name, daemon=True)
    thread.start()
    return thread


def _run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with _turn, asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(_Yielding())) as runner:
        runner.run(work())
