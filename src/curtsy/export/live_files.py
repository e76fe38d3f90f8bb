"""Files of a running crawl's output: one that grows, a pipe, and Parquet row groups."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from curtsy.core.errors import UsageError
from curtsy.core.file_locks import try_lock
from curtsy.export.live_notes import Note
from curtsy.export.tables import Format, RowGroups, Tally
from curtsy.export.targets import place
from curtsy.store.segments import write_at


class Reservation:
    """The lock of an output that is not opened yet.

    A command takes it before it creates its crawl: a refused command then leaves no crawl.
    """

    def __init__(self, out: Path, chosen: Format) -> None:
        self._path = _written(out, chosen)
        self._fd, self._is_new = open_locked(out, chosen)
        self._is_taken = False

    def take(self) -> int:
        """A descriptor of the output, which holds the lock too."""
        self._is_taken = True
        return os.dup(self._fd)

    def close(self) -> None:
        """Remove what the reservation created and nothing was written to."""
        if self._is_new and not self._is_taken:
            with suppress(OSError):
                self._path.rmdir() if self._path.is_dir() else self._path.unlink()
        os.close(self._fd)


def open_locked(out: Path, chosen: Format) -> tuple[int, bool]:
    """Open an output and lock it; also return whether it is new. Raise UsageError if another process holds the lock."""
    path = _written(out, chosen)
    while True:
        fd, is_new = _opened(path, chosen)
        lock(fd, out)
        # The process that had the lock until now may have removed or renamed the file.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(fd), path.stat()):
                return fd, is_new
        os.close(fd)


def _opened(path: Path, chosen: Format) -> tuple[int, bool]:
    is_new = True
    try:
        if chosen is not Format.MARKDOWN:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), is_new
        path.mkdir()
    except FileExistsError:
        is_new = False
    flags = os.O_RDONLY | os.O_DIRECTORY if chosen is Format.MARKDOWN else os.O_RDWR | os.O_CREAT
    return os.open(path, flags | os.O_CLOEXEC, 0o666), is_new


def _written(out: Path, chosen: Format) -> Path:
    """The file or folder that is open while pages are written."""
    path = place(out)
    return path.with_name(f".{path.name}.part") if chosen is Format.PARQUET else path


def lock(fd: int, path: Path) -> None:
    if not try_lock(fd):
        os.close(fd)
        raise UsageError(f"Another crawl is writing to {path}. Use another --out, or wait until it ends.")


@contextmanager
def held(out: Path) -> Iterator[None]:
    """Keep a pipe open, so that its reader does not see an end. Raise UsageError if it has no reader."""
    fd = _open_pipe(out)
    try:
        yield
    finally:
        os.close(fd)


def _open_pipe(path: Path) -> int:
    """Open a pipe or a device without waiting for a reader."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise UsageError(f"{path} has no reader. Start its reader first, or use another --out.") from None
    os.set_blocking(fd, True)
    return fd


class AppendedFile:
    """A file that only grows, except for a restart. `kept`: the note that the file agrees with."""

    keeps_notes = True

    def __init__(self, fd: int, kept: Note | None) -> None:
        """`fd` holds the lock of the file."""
        self._fd = fd
        stat = os.fstat(self._fd)
        #: a file that something else put there is written again
        self.identity = str(stat.st_ino)
        agrees = kept is not None and kept.identity == self.identity and stat.st_size >= kept.length
        self.kept = kept if agrees else None
        self.length = 0
        if self.kept is not None:
            os.ftruncate(self._fd, self.kept.length)
            self.length = self.kept.length

    def restart(self, head: bytes) -> int:
        os.ftruncate(self._fd, 0)
        self.length = 0
        self._write(head)
        return self.length

    def append(self, blocks: Iterable[bytes]) -> int:
        tally = Tally()
        self._write(b"".join(tally.each(blocks)))
        return tally.n

    def _write(self, data: bytes) -> None:
        write_at(self._fd, self.length, data)
        self.length += len(data)

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


class PipedFile(AppendedFile):
    """A pipe or a device: what was written cannot be taken back, so each process writes everything."""

    keeps_notes = False

    def __init__(self, path: Path) -> None:
        self._fd = _open_pipe(path)
        self.kept, self.length, self.identity = None, 0, ""

    def restart(self, head: bytes) -> int:
        self._write(head)
        return self.length

    def _write(self, data: bytes) -> None:
        _write_all(self._fd, data)
        self.length += len(data)


class RowGroupFile:
    """Parquet: row groups in a hidden file beside the output, which replaces the output when it is complete."""

    keeps_notes = True
    kept = None
    identity = ""

    def __init__(self, path: Path, fd: int, columns: dict[str, str]) -> None:
        """`fd` holds the lock of the hidden file."""
        self._path, self._hidden = place(path), _written(path, Format.PARQUET)
        self._columns = columns
        self._fd = fd
        self._groups: RowGroups | None = None
        self.length = 0

    def restart(self, _: bytes) -> int:
        os.ftruncate(self._fd, 0)
        os.lseek(self._fd, 0, os.SEEK_SET)
        self._groups = RowGroups(self._columns, self._write)
        return 0

    def append(self, rows: Iterable[dict[str, Any]]) -> int:
        assert self._groups is not None
        return self._groups.add(rows)

    def _write(self, data: bytes) -> None:
        _write_all(self._fd, data)
        self.length += len(data)

    def sync(self) -> None:
        """Row groups count only with the footer."""

    def close(self) -> None:
        try:
            if self._groups is not None:
                self._groups.close()
                os.fsync(self._fd)
                os.replace(self._hidden, self._path)
        finally:
            os.close(self._fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
