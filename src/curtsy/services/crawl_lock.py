"""Whether a process crawls in a data folder.

Every process that crawls with the folder's own frontier holds `crawling.lock` as long as it lives; the kernel releases
it, however the process ends. Commands that only look, and the API, do not hold it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from curtsy.core.file_locks import open_lock, try_lock

_NAME = "crawling.lock"


def hold(data_dir: Path) -> int:
    """Takes a share of the lock; the descriptor that holds it."""
    held = open_lock(data_dir / _NAME)
    fcntl.flock(held, fcntl.LOCK_SH)
    return held


@contextmanager
def holding(data_dir: Path) -> Iterator[None]:
    held = hold(data_dir)
    try:
        yield
    finally:
        os.close(held)


def is_held(data_dir: Path) -> bool:
    """Whether a process crawls here. The folder may be read-only, so the file is not opened for writing."""
    try:
        tried = os.open(data_dir / _NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not try_lock(tried)
    finally:
        os.close(tried)
