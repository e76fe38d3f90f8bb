"""The output of a running crawl: pages are written as they are committed.

JSON Lines, CSV and WARC are appended to the file itself. A note in the data folder has the number of the last page and
the length of the file up to it: data first, then the note, so a resumed crawl cuts what a killed process wrote after
that, and no page is written twice. Parquet needs its footer: its row groups go to a file next to the output, which
gets its name when the process ends, and a resumed crawl writes it again from the store. A folder of Markdown gets a
file for each page at once. An object cannot grow: it is written whole when the process ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, Page
from curtsy.export import pages as page_export
from curtsy.export.page_rows import PageRows, with_listings
from curtsy.export.tables import Format, RowGroups, Tally, csv_blocks, json_lines
from curtsy.export.targets import is_special, place, umask, write_whole
from curtsy.store import pages, warc
from curtsy.store.engine import Store

#: formats that are written while the crawl runs
LIVE = (Format.JSONL, Format.CSV, Format.PARQUET, Format.WARC)
_TAIL = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """How far an output was written."""

    path: str
    format: str
    #: number of the last page, and the beginning of its fingerprint
    after: int = 0
    tail: str = ""
    #: length of the file up to it
    length: int = 0
    #: number of the file on its disk: a file that something else put there is written again
    inode: int = 0
    pages: int = 0


def check_free(out: Path) -> None:
    """Raise UsageError if another process writes to this file."""
    for path in (out, _hidden(out)):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            _lock(fd, out)
            os.close(fd)


def notes_of(folder: Path, crawl: str) -> list[Note]:
    """The outputs of a crawl that a process has left unfinished."""
    found = []
    for path in sorted(_folder(folder).glob(f"{crawl}-*.json")):
        note = _read(path)
        if note is not None:
            found.append(note)
    return found


class LiveOutput:
    """Writes the pages of one crawl to a file or a folder; `step` writes what was committed since the last call."""

    def __init__(self, rows: PageRows, out: Path, chosen: Format, data_dir: Path) -> None:
        self._rows, self._chosen = rows, chosen
        self._note_path = _note_path(data_dir, rows.crawl, out)
        self._note = Note(path=str(out.absolute()), format=chosen.value)
        self._file = _opened(out, self._note, _read(self._note_path), rows.columns)
        kept = self._file.kept
        if kept is not None and kept.after and self._is_current(kept):
            self._note = kept
        else:
            self._restart()

    @property
    def pages(self) -> int:
        return self._note.pages

    def step(self) -> None:
        """Write what is new; durable on return."""
        upto = _settled(self._rows.store, self._rows.crawl)
        if not self._is_current(self._note):
            self._restart()
        before = self._note
        while (found := self._next(upto)) is not None:
            some, after = found
            written = self._file.append(self._blocks(some))
            last = some[-1]
            self._note = replace(
                self._note, after=after, tail=last.fp.hex()[:_TAIL], length=self._file.length,
                pages=self._note.pages + written,
            )  # fmt: skip
        if self._note != before:
            self._save()

    def close(self, *, finished: bool) -> None:
        """Complete the file. The note of a finished crawl is of no more use."""
        try:
            self._file.close()
        finally:
            if finished:
                self._note_path.unlink(missing_ok=True)

    def _next(self, upto: int) -> tuple[list[Page], int] | None:
        with self._rows.store.read() as tx:
            found, after = pages.chunk(tx, self._rows.crawl.n, self._note.after, upto=upto)
            listed = with_listings(tx, found)
        return (listed, after) if listed else None

    def _blocks(self, found: Iterable[Page]) -> Iterator[Any]:
        if self._chosen is Format.WARC:
            yield from page_export.warc_records(found, self._rows.segments)
            return
        rows = map(self._rows.row, found)
        if self._chosen is Format.PARQUET:
            yield from rows
        elif self._chosen is Format.CSV:
            yield from csv_blocks(rows, self._rows.columns, header=False)
        else:
            yield from json_lines(rows)

    def _restart(self) -> None:
        length = self._file.restart(self._head())
        self._note = replace(self._note, after=0, tail="", pages=0, length=length, inode=self._file.inode)
        self._save()

    def _head(self) -> bytes:
        if self._chosen is Format.WARC:
            return warc.warcinfo(Path(self._note.path).name)
        return b"".join(csv_blocks((), self._rows.columns)) if self._chosen is Format.CSV else b""

    def _is_current(self, note: Note) -> bool:
        """SQLite may give the number of a deleted page to another one, which would be left out."""
        if note.after == 0:
            return True
        with self._rows.store.read() as tx:
            fp = pages.numbered(tx, self._rows.crawl.n, note.after)
        return fp is not None and fp.hex()[:_TAIL] == note.tail

    def _save(self) -> None:
        if self._file.keeps_notes:
            self._file.sync()
            write_whole(self._note_path, [json.dumps(asdict(self._note)).encode()])


class _Appended:
    """A file that only grows, except for a restart. `kept`: the note that the file agrees with."""

    keeps_notes = True

    def __init__(self, path: Path, kept: Note | None) -> None:
        self._path = place(path)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        _lock(self._fd, path)
        stat = os.fstat(self._fd)
        self.inode = stat.st_ino
        agrees = kept is not None and kept.inode == stat.st_ino and stat.st_size >= kept.length
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
        view = memoryview(data)
        while view:
            written = os.pwrite(self._fd, view, self.length)
            view = view[written:]
            self.length += written

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


class _Piped(_Appended):
    """A pipe or a device: what was written cannot be taken back, so each process writes everything."""

    keeps_notes = False

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self.kept, self.length, self.inode = None, 0, 0

    def restart(self, head: bytes) -> int:
        self._write(head)
        return self.length

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        self.length += len(data)


class _RowGroupFile:
    """Parquet: row groups in a hidden file beside the output, which replaces the output when it is complete."""

    keeps_notes = True
    kept = None
    inode = 0

    def __init__(self, path: Path, columns: dict[str, str]) -> None:
        self._path = place(path)
        self._hidden = _hidden(self._path)
        self._columns = columns
        self._fd = os.open(self._hidden, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666 & ~umask())
        _lock(self._fd, path)
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
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
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


_File = _Appended | _RowGroupFile


def _opened(out: Path, note: Note, kept: Note | None, columns: dict[str, str]) -> _File:
    if note.format == Format.PARQUET:
        return _RowGroupFile(out, columns)
    if is_special(out):
        return _Piped(out)
    same = kept is not None and (kept.path, kept.format) == (note.path, note.format)
    return _Appended(out, kept if same else None)


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _lock(fd: int, path: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise UsageError(f"Another crawl is writing to {path}. Use another --out, or wait until it ends.") from None


def _settled(store: Store, crawl: Crawl) -> int:
    if store.dialect == "postgresql":
        return store.run(pages.settled_to, crawl.n)
    with store.read() as tx:
        return pages.settled_to(tx, crawl.n)


def _folder(data_dir: Path) -> Path:
    return data_dir / "outputs"


def _note_path(data_dir: Path, crawl: Crawl, out: Path) -> Path:
    digest = hashlib.sha256(str(out.absolute()).encode("utf-8", "surrogateescape")).hexdigest()
    return _folder(data_dir) / f"{crawl.id}-{digest[:12]}.json"


def _read(path: Path) -> Note | None:
    try:
        return Note(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
