"""Exports of records that go on: a folder that gets a part for those that were published since the last one.

A record may be published long after it was made, by a person. So the cursor is a number, up to which all were looked
at, and the numbers of those below it that were not published then:

    <crawl>-records-<number>.parquet     a part
    .curtsy-records.json                 what the parts are of; for each crawl its cursor and how many parts it has
    .curtsy-records.next                 the same as it will be once the part that it names is there

The last one is written when a part is complete and before it has its name. Whoever comes next finds it and looks
whether the part is there: then it holds, otherwise what was before. So each record is in exactly one part, whatever is
killed when.
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
from curtsy.export.pages import Format, Tally
from curtsy.export.targets import Folder, Target, folder_of
from curtsy.store import records
from curtsy.store.engine import Store

STATE = page_increments.RECORDS
NEXT = ".curtsy-records.next"
_ENDINGS = {chosen: ending for ending, chosen in pages.ENDINGS.items()}
#: a person may still publish them
_WAITING = ("held", "rejected")


@dataclass(slots=True)
class _Cursor:
    """How far a crawl was exported."""

    last: int = 0
    #: subject of the record with that number
    tail: str = ""
    parts: int = 0
    waiting: list[int] = field(default_factory=list)


def add(store: Store, crawl: Crawl, out: Target, chosen: Format, csv_safe: bool = False) -> int:
    """Write what was published since the last export to this folder; how many records that was."""
    assert out is not None
    folder = folder_of(out)
    with folder.hold():
        if folder.read(page_increments.STATE) is not None:
            raise UsageError(f"{out} holds pages. Export records to another folder.")
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
    """One pass over what may be new: published records are rows, others that may become so are noted."""

    def __init__(self, store: Store, crawl: Crawl, before: _Cursor, nested: bool) -> None:
        self.crawl, self._store, self._before, self._nested = crawl, store, before, nested
        self.after = _Cursor(last=before.last, tail=before.tail, parts=before.parts)
        self.written = Tally()
        self.rows = self._rows()

    def _rows(self) -> Iterator[dict[str, Any]]:
        for record in self._looked_at():
            if record.schema_hash != self.crawl.schema_hash:
                continue
            if record.status == "published":
                yield record_export.row_of(record, nested=self._nested)
            elif record.status in _WAITING:
                self.after.waiting.append(record.n)

    def _looked_at(self) -> Iterator[Record]:
        for n in self._before.waiting:
            with self._store.read() as tx:
                found = records.get(tx, n)
            if found is not None and found.crawl == self.crawl.n:
                yield found
        upto = self._store.run(records.settled_to, self.crawl.n)
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

    yield from pages.table(rows(), record_export.COLUMNS, chosen, step.written, csv_safe)
    _write(folder, NEXT, {"part": name, "state": _with(state, step.crawl, step.after)})


def _check(store: Store, crawl: Crawl, before: _Cursor, out: Target) -> None:
    """On SQLite the number of a deleted record may be given again: what took it would be left out."""
    if store.dialect != "sqlite" or before.last == 0:
        return
    with store.read() as tx:
        found = records.get(tx, before.last)
    if found is None or (found.crawl, found.subject) != (crawl.n, before.tail):
        raise UsageError(
            f"The record of crawl {crawl.id} that was looked at last for {out} was deleted since: nobody can tell what "
            "is new. Export to another folder."
        )


# What the folder says


def _read(folder: Folder, chosen: Format, out: Target) -> dict[str, Any]:
    state = _loaded(folder, STATE, out) or {"what": "records", "format": chosen.value, "crawls": {}}
    following = _loaded(folder, NEXT, out)
    if following is not None and following["part"] in set(folder.names()):
        state = following["state"]
        _write(folder, STATE, state)  # the next part takes the place of what says so
    if state.get("format") != chosen.value:
        raise UsageError(f"{out} holds records as {state.get('format')}. Use that format, or another folder.")
    return dict(state)


def _loaded(folder: Folder, name: str, out: Target) -> dict[str, Any] | None:
    data = folder.read(name)
    try:
        return None if data is None else dict(json.loads(data))
    except ValueError:
        raise UsageError(f"{name} in {out} cannot be read. Export to another folder.") from None


def _with(state: dict[str, Any], crawl: Crawl, cursor: _Cursor) -> dict[str, Any]:
    shown = {"last": cursor.last, "tail": cursor.tail, "parts": cursor.parts, "waiting": cursor.waiting}
    return {**state, "crawls": {**state["crawls"], crawl.id: shown}}


def _write(folder: Folder, name: str, content: dict[str, Any]) -> None:
    folder.write(name, [json.dumps(content).encode()])
