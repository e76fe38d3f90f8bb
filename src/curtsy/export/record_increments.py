"""Incremental exports of records: a folder that gets a part for the records published since the last export.

A reviewer may publish a record long after it was made. So the cursor is a number, up to which all records were
examined, and the numbers of those below it that were not published then. A record that was exported without its
contradicted fields is in one more part after a person has decided about all of them:

    <crawl>-records-<number>.parquet     a part
    .curtsy-records.json                 the format of the parts; for each crawl its cursor and its number of parts
    .curtsy-records.next                 the same as it will be when the part that it names exists

The last file is written when a part is complete, before the part gets its name. The next export checks whether that
part exists: if so, the file counts, otherwise the previous state. So no record is lost or repeated after any crash.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl
from curtsy.core.record import Record
from curtsy.export import page_increments, pages
from curtsy.export import records as record_export
from curtsy.export.page_rows import settled
from curtsy.export.tables import Format, Tally, table
from curtsy.export.targets import Folder, Target, folder_of
from curtsy.store import records
from curtsy.store.engine import Store

STATE = page_increments.RECORDS
NEXT = ".curtsy-records.next"
_ENDINGS = {chosen: ending for ending, chosen in pages.ENDINGS.items()}
#: a reviewer may still publish them
_WAITING = ("held", "rejected")


@dataclass(slots=True)
class _Cursor:
    """How far a crawl was exported."""

    last: int = 0
    #: subject of the record with that number
    tail: str = ""
    parts: int = 0
    waiting: list[int] = field(default_factory=list)
    #: exported records with fields that need a decision
    contradicted: list[int] = field(default_factory=list)


def add(store: Store, crawl: Crawl, out: Target, chosen: Format, csv_safe: bool = False) -> int:
    """Write the records published since the last export to this folder; return their number."""
    assert out is not None
    folder = folder_of(out)
    with folder.hold():
        if folder.read(page_increments.STATE) is not None:
            raise UsageError(f"{out} contains pages. Export records to another folder.")
        state = _read(folder, chosen, out)
        before = _Cursor(**state["crawls"].get(crawl.id, {}))
        _check(store, crawl, before, out)
        step = _Step(store, crawl, before, chosen is Format.JSONL)
        first = next(step.rows, None)
        if first is None:
            if step.after != before:
                _write(folder, STATE, _with(state, crawl, step.after))
            return 0
        step.after.parts = before.parts + 1
        name = f"{crawl.id}-records-{step.after.parts:06}{_ENDINGS[chosen]}"
        folder.write(name, _blocks(folder, state, step, first, name, chosen, csv_safe))
        _write(folder, STATE, _with(state, crawl, step.after))
    return step.written.n


class _Step:
    """One pass over records that may be new: published ones become rows, others that may be published are noted."""

    def __init__(self, store: Store, crawl: Crawl, before: _Cursor, nested: bool) -> None:
        self.crawl, self._store, self._before, self._nested = crawl, store, before, nested
        self._exported = frozenset(before.contradicted)
        self.after = _Cursor(last=before.last, tail=before.tail, parts=before.parts)
        self.written = Tally()
        self.rows = self._rows()

    def _rows(self) -> Iterator[dict[str, Any]]:
        for record in self._examined():
            if record.schema_hash != self.crawl.schema_hash:
                continue
            is_exported, is_published = record.n in self._exported, record.status == "published"
            may_be = is_published or record.status in _WAITING
            if record.contradicted and may_be and (is_published or is_exported):
                self.after.contradicted.append(record.n)
            if is_published and not (is_exported and record.contradicted):
                yield record_export.row_of(record, nested=self._nested)
            elif not is_published and may_be:
                self.after.waiting.append(record.n)

    def _examined(self) -> Iterator[Record]:
        for n in sorted({*self._before.waiting, *self._before.contradicted}):
            with self._store.read() as tx:
                found = records.get(tx, n)
            if found is not None and found.crawl == self.crawl.n:
                yield found
        upto = settled(self._store, self.crawl.n, "records")
        while self.after.last < upto:
            with self._store.read() as tx:
                some, _ = records.chunk(tx, self.crawl.n, self.after.last, statuses=())
            for record in some:
                if record.n > upto:
                    return
                yield record
                self.after.last, self.after.tail = record.n, record.subject
            if not some:
                return


def _blocks(
    folder: Folder, state: dict[str, Any], step: _Step, first: dict[str, Any], name: str, chosen: Format, csv_safe: bool
) -> Iterator[bytes]:
    def rows() -> Iterator[dict[str, Any]]:
        yield first
        yield from step.rows

    yield from table(rows(), record_export.COLUMNS, chosen, step.written, csv_safe)
    _write(folder, NEXT, {"part": name, "state": _with(state, step.crawl, step.after)})


def _check(store: Store, crawl: Crawl, before: _Cursor, out: Target) -> None:
    """SQLite may reuse the number of a deleted record, and the record with that number would be omitted."""
    if store.dialect != "sqlite" or before.last == 0:
        return
    with store.read() as tx:
        found = records.get(tx, before.last)
    if found is None or (found.crawl, found.subject) != (crawl.n, before.tail):
        raise UsageError(
            f"The last record of crawl {crawl.id} that was examined for {out} has been deleted, so new records cannot "
            "be determined. Export to another folder."
        )


# The state of the folder


def _read(folder: Folder, chosen: Format, out: Target) -> dict[str, Any]:
    state = _loaded(folder, STATE, out) or {"what": "records", "format": chosen.value, "crawls": {}}
    following = _loaded(folder, NEXT, out)
    if following is not None and following["part"] in set(folder.names()):
        state = following["state"]
        _write(folder, STATE, state)  # the next part overwrites NEXT
    if state.get("format") != chosen.value:
        raise UsageError(f"{out} contains records as {state.get('format')}. Use that format or another folder.")
    return dict(state)


def _loaded(folder: Folder, name: str, out: Target) -> dict[str, Any] | None:
    data = folder.read(name)
    try:
        return None if data is None else dict(json.loads(data))
    except ValueError:
        raise UsageError(f"{name} in {out} cannot be read. Export to another folder.") from None


def _with(state: dict[str, Any], crawl: Crawl, cursor: _Cursor) -> dict[str, Any]:
    shown = {
        "last": cursor.last, "tail": cursor.tail, "parts": cursor.parts, "waiting": cursor.waiting,
        "contradicted": cursor.contradicted,
    }  # fmt: skip
    return {**state, "crawls": {**state["crawls"], crawl.id: shown}}


def _write(folder: Folder, name: str, content: dict[str, Any]) -> None:
    folder.write(name, [json.dumps(content).encode()])
