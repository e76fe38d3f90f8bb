"""Segments in a local folder: WARC files of committed responses.

One open file per process, locked while its writer lives; one write and one fsync per commit. Pages refer only to bytes
that were durable before their transaction began; bytes after the committed ones in a file whose writer is gone are a
torn tail, which is cut off.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import Connection

from curtsy.core.errors import Damaged, SegmentsUnavailable, SegmentsUnwritable
from curtsy.core.model import BodyRef, Page
from curtsy.core.observe import log
from curtsy.store import pages, warc
from curtsy.store.warc import Packed, WarcItem, WarcRecord

if TYPE_CHECKING:
    from curtsy.store.engine import Store

_SUFFIX = ".warc.gz"
#: a file not yet locked by its writer; no other process reads it
_NEW = ".new"


class SegmentStore(Protocol):
    """Where bodies go: a folder, or an object store."""

    def append(self, items: Sequence[WarcItem | Packed]) -> list[BodyRef]:
        """Durable on return; where each response (or revisit) record is."""

    def read(self, ref: BodyRef) -> WarcRecord: ...

    def read_bytes(self, ref: BodyRef) -> bytes:
        """The compressed record as stored, for export."""

    def older_than(self, age_s: float) -> list[tuple[str, int]]:
        """(name, bytes) of segments that were last written longer ago than this."""

    def size_at_rest(self, name: str) -> int | None:
        """Bytes of a segment whose writer is gone; None while the writer lives, or if the segment does not exist."""

    def overwrite(self, name: str, parts: Sequence[tuple[int, bytes]]) -> None:
        """Replace bytes by as many others, durable on return; Damaged if the segment does not exist."""

    def delete(self, names: Iterable[str]) -> int: ...

    def recover(self, committed: Callable[[], Mapping[str, int]]) -> int:
        """Cut off torn tails of dead writers; returns how many. Calls `committed` when the writers are known to be
        dead.
        """

    def close(self) -> None: ...


def new_name(writer_id: str, number: int) -> str:
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{writer_id}-{number:05}{_SUFFIX}"


def pack(name: str, start: int, items: Sequence[WarcItem | Packed]) -> tuple[list[bytes], list[BodyRef]]:
    """The bytes of these items from offset `start` of a segment (it begins with a warcinfo), and their locations."""
    parts: list[bytes] = []
    refs: list[BodyRef] = []
    if start == 0:
        parts.append(warc.warcinfo(name))
        start = len(parts[0])
    for item in items:
        before, response = warc.records(item) if isinstance(item, WarcItem) else item
        offset = start + len(before)
        refs.append(BodyRef(segment=name, offset=offset, length=len(response)))
        parts += (before, response)
        start = offset + len(response)
    return parts, refs


def read_page(tx: Connection, segments: SegmentStore, page: Page) -> WarcRecord | None:
    """The stored response of a page; a revisit has its own headers and the body that it refers to."""
    record = None if page.body is None else segments.read(page.body)
    return record if record is None or not _is_revisit(record, page) else _original(tx, segments, page, record)


def read_without_transaction(store: Store, segments: SegmentStore, page: Page) -> WarcRecord | None:
    """Return what `read_page` returns; only a revisit costs a transaction."""
    record = None if page.body is None else segments.read(page.body)
    if record is None or not _is_revisit(record, page):
        return record
    with store.read() as tx:
        return _original(tx, segments, page, record)


def _is_revisit(record: WarcRecord, page: Page) -> bool:
    return record.type == "revisit" and page.same_as is not None


def _original(tx: Connection, segments: SegmentStore, page: Page, record: WarcRecord) -> WarcRecord:
    """Return a revisit with the body that it refers to."""
    assert page.same_as is not None
    original = pages.by_id(tx, page.same_as)
    if original is None or original.body is None:
        raise Damaged(f"The body of {page.url} is that of page {page.same_as}, which is gone.")
    body = segments.read(original.body).body
    return WarcRecord(
        type="response", url=record.url, fields=record.fields, status=record.status, headers=record.headers, body=body
    )


class Segments:
    """The folder of segments and this process's open one. Use it from one thread at a time."""

    def __init__(self, folder: Path, max_bytes: int = 256_000_000, writer_id: str | None = None) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._writer_id = writer_id or os.urandom(4).hex()
        self._count = 0
        self._name = ""
        self._file: int | None = None
        self._length = 0

    def append(self, items: Sequence[WarcItem | Packed]) -> list[BodyRef]:
        if not items:
            return []
        try:
            file = self._open()
            parts, refs = pack(self._name, self._length, items)
            self._write(file, b"".join(parts))
        except OSError as error:
            raise SegmentsUnwritable(
                f"The segment folder {self._folder} cannot be written: {error}. Free or repair its disk; "
                "nothing is lost, the pages are fetched again."
            ) from error
        if self._length >= self._max_bytes:
            self.close()
        return refs

    def _open(self) -> int:
        if self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._count += 1
            name = new_name(self._writer_id, self._count)
            new = self._folder / (name + _NEW)
            file = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o644)
            # Locked before it gets its name: a process that finds it by name knows that its writer is alive.
            fcntl.flock(file, fcntl.LOCK_EX)
            new.rename(self._folder / name)
            sync_folder(self._folder)
            self._file, self._name, self._length = file, name, 0
        return self._file

    def _write(self, file: int, data: bytes) -> None:
        try:
            write_at(file, self._length, data)
            os.fdatasync(file)
        except OSError:
            self._cut_back(file)
            raise
        self._length += len(data)

    def _cut_back(self, file: int) -> None:
        """Remove an incomplete write. A file whose fsync failed cannot be trusted, so the next append begins another
        one.
        """
        try:
            os.ftruncate(file, self._length)
        except OSError as error:
            log("segment_not_cut", level="error", segment=self._name, error=str(error))
        empty = self._folder / self._name if self._length == 0 else None
        self.close()
        if empty is not None:
            empty.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the open segment; the next append starts another."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def read(self, ref: BodyRef) -> WarcRecord:
        return warc.read(self.read_bytes(ref), ref)

    def read_bytes(self, ref: BodyRef) -> bytes:
        try:
            file = os.open(self._folder / ref.segment, os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = os.pread(file, ref.length, ref.offset)
            finally:
                os.close(file)
        except FileNotFoundError as error:
            raise Damaged(f"The segment {ref.segment} is not in {self._folder}.") from error
        except OSError as error:
            raise SegmentsUnavailable(f"The segment {ref.segment} cannot be read: {error}.") from error
        if len(data) < ref.length:
            raise Damaged(f"The segment {ref.segment} in {self._folder} is shorter than the database says.")
        return data

    def size_at_rest(self, name: str) -> int | None:
        file = _lock_abandoned(self._folder / name)
        if file is None:
            return None
        try:
            return os.fstat(file).st_size
        finally:
            os.close(file)

    def overwrite(self, name: str, parts: Sequence[tuple[int, bytes]]) -> None:
        """Overwrite, also in a file that is being written: its writer only appends."""
        try:
            file = os.open(self._folder / name, os.O_WRONLY | os.O_CLOEXEC)
            try:
                for offset, data in parts:
                    write_at(file, offset, data)
                os.fdatasync(file)
            finally:
                os.close(file)
        except FileNotFoundError as error:
            raise Damaged(f"The segment {name} is not in {self._folder}.") from error
        except OSError as error:
            raise SegmentsUnavailable(f"The segment {name} cannot be written: {error}.") from error

    def older_than(self, age_s: float) -> list[tuple[str, int]]:
        before = time.time() - age_s
        found: list[tuple[str, int]] = []
        for path in sorted(self._folder.glob("*" + _SUFFIX)):
            file = _lock_abandoned(path)
            if file is not None:
                stat = os.fstat(file)
                os.close(file)
                if stat.st_mtime < before:
                    found.append((path.name, stat.st_size))
        return found

    def delete(self, names: Iterable[str]) -> int:
        deleted = 0
        for name in names:
            file = _lock_abandoned(self._folder / name)
            if file is not None:
                try:
                    (self._folder / name).unlink(missing_ok=True)
                except OSError as error:
                    raise SegmentsUnavailable(f"The segment {name} cannot be deleted: {error}.") from error
                finally:
                    os.close(file)
                deleted += 1
        return deleted

    def recover(self, committed: Callable[[], Mapping[str, int]]) -> int:
        """Files that the store does not know stay: the sweeper deletes them when they are old."""
        abandoned: dict[Path, int] = {}
        for path in sorted(self._folder.glob("*" + _SUFFIX)):
            if (file := _lock_abandoned(path)) is not None:
                abandoned[path] = file
        try:
            lengths = committed() if abandoned else {}
            return sum(_cut(path, file, lengths.get(path.name)) for path, file in abandoned.items())
        finally:
            for file in abandoned.values():
                os.close(file)


def write_at(file: int, offset: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, offset)
        view, offset = view[written:], offset + written


def _lock_abandoned(path: Path) -> int | None:
    """The open file, locked, if it exists and its writer is gone."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SegmentsUnavailable(f"The segment {path} cannot be opened: {error}. Fix its permissions.") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(file)
        if isinstance(error, BlockingIOError):
            return None
        raise SegmentsUnavailable(f"The segment {path} cannot be locked: {error}.") from error
    return file


def _cut(path: Path, file: int, committed: int | None) -> bool:
    size = os.fstat(file).st_size
    if committed is None or size == committed:
        return False
    if size < committed:
        log("segment_too_short", level="error", segment=path.name, bytes=size, committed=committed)
        return False
    try:
        os.ftruncate(file, committed)
        os.fdatasync(file)
    except OSError as error:
        raise SegmentsUnwritable(f"The segment {path} cannot be cut: {error}. Free or repair its disk.") from error
    log("torn_tail_cut", segment=path.name, bytes=size - committed)
    return True


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
