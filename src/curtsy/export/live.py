"""The output of a running crawl: pages are written as they are committed.

JSON Lines, CSV and WARC are appended to the file itself. A note in the data folder has the number of the last page and
the length of the file up to it: data first, then the note, so a resumed crawl cuts what a killed process wrote after
that, and no page is written twice. A folder of Markdown gets a file for each page at once.

A Parquet file needs its footer, and an object cannot grow: they are replaced from time to time by new ones with all
pages, so they are valid after a kill. The row groups of Parquet also go to a file next to the output, which gets its
name when the process ends: the last write then needs only the footer. A resumed crawl writes both again from the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from curtsy.core.model import Page
from curtsy.export import pages as page_export
from curtsy.export.live_files import AppendedFile, PipedFile, Reservation, RowGroupFile, open_locked
from curtsy.export.live_folders import MarkdownFolder
from curtsy.export.live_notes import Note, note_path, place_of, read_note, write_note
from curtsy.export.live_whole import WholeOutput
from curtsy.export.page_rows import PageRows, settled, with_listings
from curtsy.export.tables import Format, csv_blocks, json_lines
from curtsy.export.targets import ObjectPlace, is_special
from curtsy.store import pages, responses, warc

_TAIL = 8


class LiveOutput:
    """Writes the pages of one crawl to a file or a folder; `step` writes what was committed since the last call."""

    def __init__(
        self,
        rows: PageRows,
        out: Path | ObjectPlace,
        chosen: Format,
        data_dir: Path,
        reserved: Reservation | None = None,
    ) -> None:
        self._rows, self._chosen = rows, chosen
        self._note_path = note_path(data_dir, rows.crawl, out)
        self._note = Note(path=place_of(out), format=chosen.value)
        self._file = _opened(out, self._note, read_note(self._note_path), rows, reserved)
        self._whole = WholeOutput(rows, out, chosen) if isinstance(self._file, RowGroupFile) else None
        kept = self._file.kept
        if kept is not None and (kept.after or kept.last_response) and self._is_current(kept):
            self._note = kept
        else:
            self._restart()

    @property
    def pages(self) -> int:
        return self._note.pages

    def step(self) -> None:
        """Write what is new; durable on return."""
        upto = settled(self._rows.store, self._rows.crawl.n)
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
        if self._chosen is Format.WARC:
            self._append_responses()
        if self._note != before:
            self._save()
        if self._whole is not None:
            self._whole.refresh(self._note.after)

    def _append_responses(self) -> None:
        """Write the redirects and errors that are new."""
        assert isinstance(self._file, AppendedFile)
        upto = settled(self._rows.store, self._rows.crawl.n, "responses")
        while True:
            with self._rows.store.read() as tx:
                found, last = responses.chunk(tx, self._rows.crawl.n, self._note.last_response, upto=upto)
            if not found:
                return
            self._file.append(page_export.response_records(found, self._rows.segments))
            self._note = replace(self._note, last_response=last, length=self._file.length)

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
        if self._chosen is Format.MARKDOWN:
            yield from found
            return
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
        self._note = replace(
            self._note, after=0, tail="", pages=0, last_response=0, length=length, identity=self._file.identity
        )
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
            write_note(self._note_path, self._note)


class LiveObject:
    """One object, which cannot grow: it is replaced from time to time, and when the process ends."""

    pages = 0

    def __init__(self, rows: PageRows, out: ObjectPlace, chosen: Format, data_dir: Path) -> None:
        self._rows, self._whole = rows, WholeOutput(rows, out, chosen)
        self._note_path = note_path(data_dir, rows.crawl, out)
        # A resumed crawl finds the output, even after a kill.
        write_note(self._note_path, Note(path=place_of(out), format=chosen.value))

    def step(self) -> None:
        """Write it if it is time."""
        self._whole.refresh(settled(self._rows.store, self._rows.crawl.n))

    def close(self, *, finished: bool) -> None:
        """Write the object; it replaces the one before."""
        self.pages = self._whole.write()
        if finished:
            self._note_path.unlink(missing_ok=True)


def live_output(
    rows: PageRows, out: Path | ObjectPlace, chosen: Format, data_dir: Path, reserved: Reservation | None = None
) -> LiveOutput | LiveObject:
    """Open the output of a crawl, or continue it."""
    if isinstance(out, ObjectPlace) and chosen is not Format.MARKDOWN:
        return LiveObject(rows, out, chosen, data_dir)
    return LiveOutput(rows, out, chosen, data_dir, reserved)


_File = AppendedFile | RowGroupFile | MarkdownFolder


def _opened(
    out: Path | ObjectPlace, note: Note, kept: Note | None, rows: PageRows, reserved: Reservation | None
) -> _File:
    same = kept is not None and (kept.path, kept.format) == (note.path, note.format)
    if isinstance(out, ObjectPlace):
        return MarkdownFolder(out, None, rows, kept if same else None)
    if is_special(out):
        return PipedFile(out)
    fd = open_locked(out, Format(note.format))[0] if reserved is None else reserved.take()
    if note.format == Format.MARKDOWN:
        return MarkdownFolder(out, fd, rows, kept if same else None)
    if note.format == Format.PARQUET:
        return RowGroupFile(out, fd, rows.columns)
    return AppendedFile(fd, kept if same else None)
