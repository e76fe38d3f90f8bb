"""How many calls to a model's server may run at the same time: of this process, and of all processes of a data folder.

A process has a semaphore. All processes of a folder share one file per slot of a provider, and hold a slot by a lock on
its file: the kernel releases the lock when a process dies, so no slot is ever lost.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

#: pause between two checks for a free slot
_PAUSE_S = 0.02
#: (process, limit) -> semaphore: a forked process has its own
_semaphores: dict[tuple[int, int], threading.BoundedSemaphore] = {}
_lock = threading.Lock()


class NoSlot(Exception):
    """No slot became free in time."""


class CallSlots:
    """`with slots.one(url, deadline)`: a slot for a call. `folder` None: only the limit of this process counts."""

    def __init__(self, per_process: int, per_provider: int, folder: Path | None) -> None:
        self.per_process, self._per_provider, self._folder = per_process, per_provider, folder

    @contextmanager
    def one(self, url: str, deadline: float) -> Iterator[None]:
        """Wait for a slot until `deadline` (of the monotonic clock), then raise NoSlot."""
        mine = _semaphore(self.per_process)
        if not mine.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise NoSlot
        try:
            with self._shared(url, deadline):
                yield
        finally:
            mine.release()

    @contextmanager
    def _shared(self, url: str, deadline: float) -> Iterator[None]:
        files = self._files(url)
        held = None if not files else _taken(files)
        while files and held is None:
            if time.monotonic() + _PAUSE_S > deadline:
                raise NoSlot
            time.sleep(_PAUSE_S)
            held = _taken(files)
        try:
            yield
        finally:
            if held is not None:
                os.close(held)

    def _files(self, url: str) -> list[Path]:
        """The files of a provider: of one server, whatever the model."""
        if self._folder is None:
            return []
        name = hashlib.sha256(urlsplit(url).netloc.encode()).hexdigest()[:16]
        folder = self._folder / "llm-slots"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return []  # a folder that cannot be written has one process
        return [folder / f"{name}-{number}" for number in range(self._per_provider)]


def _semaphore(limit: int) -> threading.BoundedSemaphore:
    key = os.getpid(), limit
    with _lock:
        return _semaphores.setdefault(key, threading.BoundedSemaphore(limit))


def _taken(files: list[Path]) -> int | None:
    """Return the open file of a free slot, locked; None if all are taken."""
    for path in files:
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(opened)
            continue
        return opened
    return None
