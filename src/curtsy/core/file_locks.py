"""Locks of files. They last as long as their descriptor is open: the kernel releases those of a dead process."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def open_lock(path: Path) -> int:
    """The descriptor of a lock file, which is created if it is missing."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(fd: int) -> bool:
    """Takes the lock exclusively, if nothing else holds it.

    flock, not lockf: the lock belongs to the open file, so two threads of a process exclude each other too.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
