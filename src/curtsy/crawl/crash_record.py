"""What a crawling process had in flight when it died, and whether it crashed by itself.

Each process has a small file in the data folder: the fences of its requests in flight, and of the page that it reads.
The file is mapped into memory, so that it survives the process at the cost of one store per change. If the process
crashes (SIGSEGV, SIGABRT, SIGBUS, ...), `faulthandler` adds its trace to the file. A process that was killed from
outside leaves no trace there, and no URL is suspected.

Any process on the machine finds the files of dead ones by their locks, and reports the leases of those that crashed.
"""

from __future__ import annotations

import faulthandler
import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from curtsy.core.model import hot_value
from curtsy.core.observe import log
from curtsy.core.settings import Settings

#: requests in flight that a record has room for
_ROOM = 4095
_BYTES = 8 * (_ROOM + 1)
#: traces are longer than this only because of waiting threads
_TRACE = 2000
_FATAL = b"Fatal Python error"


class CrashRecord:
    """The record of this process. Without a file (no disk space, a process of the user) it notes nothing."""

    def __init__(self, file: int | None = None) -> None:
        self.file = file
        self._cells = memoryview(mmap.mmap(file, _BYTES)).cast("Q") if file is not None else None
        self._free = list(range(1, _ROOM + 1))
        self._used: dict[int, int] = {}

    def begin(self, fence: int) -> None:
        """A request is in flight."""
        if self._cells is not None and self._free and fence not in self._used:
            cell = self._used[fence] = self._free.pop()
            self._cells[cell] = fence

    def end(self, fence: int) -> None:
        """The request has ended: from here on, this URL can crash the process only while its page is read."""
        cell = self._used.pop(fence, None)
        if cell is not None and self._cells is not None:
            self._cells[cell] = 0
            self._free.append(cell)

    def begin_reading(self, fence: int) -> None:
        """A page is being read in this process, until `end_reading`."""
        if self._cells is not None:
            self._cells[0] = fence

    def end_reading(self) -> None:
        if self._cells is not None:
            self._cells[0] = 0


@hot_value(kw_only=False)
class Death:
    """A process that ended without removing its record."""

    path: Path
    #: the page that it read, else its requests in flight; empty if it was killed from outside
    suspects: tuple[int, ...]
    trace: str


_NOTHING = CrashRecord()
_current = _NOTHING
_own: Path | None = None


def folder(settings: Settings) -> Path:
    return settings.data_dir / "processes"


def current() -> CrashRecord:
    return _current


def keep(folder: Path) -> None:
    """Keeps a record of this process from now on. For processes that do nothing but crawl."""
    global _current, _own
    if _own is not None or faulthandler.is_enabled():
        return  # the program uses faulthandler itself
    path = folder / f"{os.getpid()}-{os.urandom(4).hex()}.crash"
    try:
        file = _new(path)
    except OSError as error:
        log("no_crash_record", level="info", error=str(error))
        return
    _current, _own = CrashRecord(file), path
    faulthandler.enable(file, all_threads=False)


def _new(path: Path) -> int:
    """Locked before it has its name: a process that finds it by name knows that its owner is alive."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    file = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        # A write to a hole of the file on a full disk would be a SIGBUS.
        os.posix_fallocate(file, 0, _BYTES)
        # The lock belongs to this process alone: a child that outlives it does not inherit it.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(path)
    except OSError:
        os.close(file)
        new.unlink(missing_ok=True)
        raise
    return file


def end() -> None:
    """This process ends normally."""
    global _current, _own
    if _own is not None:
        faulthandler.disable()
        with suppress(OSError):
            _own.unlink()
        _current, _own = _NOTHING, None


@contextmanager
def deaths(folder: Path) -> Iterator[list[Death]]:
    """Records of dead processes, held while the block runs and then removed."""
    held: list[tuple[int, Death]] = []
    try:
        # Closing a file releases all locks of this process on it, so our own file is never opened again.
        for path in (path for path in sorted(folder.glob("*.crash")) if path != _own):
            if (file := _lock(path)) is not None:
                held += [(file, _death(path, file))]
        yield [death for _, death in held]
        for _, death in held:
            death.path.unlink(missing_ok=True)
    finally:
        for file, _ in held:
            os.close(file)


def _lock(path: Path) -> int | None:
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


def _death(path: Path, file: int) -> Death:
    cells = memoryview(os.pread(file, _BYTES, 0).ljust(_BYTES, b"\0")).cast("Q")
    trace = os.pread(file, _TRACE, _BYTES)
    if _FATAL not in trace:
        return Death(path, (), "")
    under_way = tuple(fence for fence in cells[1:] if fence)
    return Death(
        path, (cells[0],) if cells[0] else under_way, trace.decode(errors="replace").partition("\n\nExtension")[0]
    )
