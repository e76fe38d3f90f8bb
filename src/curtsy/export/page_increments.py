"""Incremental exports of pages: a folder that gets a part for the pages since the last export.

    <crawl>-<after>-<last>-<tail>.parquet    pages with numbers over `after` up to `last`; `tail` begins the fingerprint
                                             of the last one
    <crawl>-responses-<after>-<last>-...     of a WARC export: redirects and errors, counted in the same way
    .curtsy-increments.json                  the kind and format of the parts, and a cursor for each crawl

The cursor is in the name of the newest part, so it becomes durable together with the part: after any crash, nothing is
exported twice and nothing is omitted. The small file keeps the cursor when parts are moved or deleted. It is written
after the part, and the later of the two counts. A folder of Markdown has a file per page: writing one again changes
nothing, so the small file is sufficient there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl
from curtsy.export import markdown
from curtsy.export import pages as export
from curtsy.export.page_rows import PageRows, settled
from curtsy.export.tables import Format, Tally, need_pyarrow
from curtsy.export.targets import MARK, Folder, ObjectPlace, Target, folder_of
from curtsy.store import pages, responses, warc
from curtsy.store.engine import Store

STATE = ".curtsy-increments.json"
#: the state file of a folder of records (record_increments.py)
RECORDS = ".curtsy-records.json"
#: pages in one part: an interrupted export keeps its complete parts
PART = 1_000_000
#: redirects and errors in one part
RESPONSES = 20_000
_ENDINGS = {chosen: ending for ending, chosen in export.ENDINGS.items()}
_TAIL = 8


class Cursor(NamedTuple):
    """How far a crawl was exported: the number of the last page, and the beginning of its fingerprint."""

    last: int = 0
    tail: str = ""


@dataclass(slots=True)
class _State:
    format: str
    what: str = "pages"
    crawls: dict[str, Cursor] = field(default_factory=dict)


def check_target(out: Target, chosen: Format) -> None:
    """Raise UsageError before the work begins if the target cannot be written."""
    if out is None:
        raise UsageError("--incremental adds parts to a folder. Name it with --out.")
    if out.name.endswith(tuple(export.ENDINGS)):
        raise UsageError(
            f"--incremental adds parts to a folder, but {out} names a file. Use --out FOLDER --format {chosen}."
        )
    if not isinstance(out, ObjectPlace):
        if out.exists() and not out.is_dir():
            raise UsageError(f"{out} is not a folder. Use another --out.")
        if (out / MARK).exists():
            raise UsageError(f"{out} contains a complete export, which the next one replaces. Use another folder.")
    if chosen is Format.PARQUET:
        need_pyarrow()


def add(
    rows: PageRows, out: Target, chosen: Format, csv_safe: bool = False, full_page: bool = False, part: int = PART
) -> int:
    """Write the pages committed since the last export to this folder; return their number."""
    assert out is not None
    store, crawl = rows.store, rows.crawl
    folder = folder_of(out)
    with folder.hold():
        if folder.read(RECORDS) is not None:
            raise UsageError(f"{out} contains records. Export pages to another folder.")
        state = _read(folder, chosen, out)
        cursor = _cursor(folder, state, crawl.id)
        _check(store, crawl, cursor, out, pages.numbered)
        upto = settled(store, crawl.n)
        written = Tally()
        while (following := _next(store, crawl.n, cursor, upto, part)) is not None:
            _write(rows, folder, chosen, (cursor, following), written, csv_safe, full_page)
            cursor = state.crawls[crawl.id] = following
            folder.write(STATE, [_shown(state)])
        if chosen is Format.WARC:
            _add_responses(rows, folder, state, out)
    return written.n


def _add_responses(rows: PageRows, folder: Folder, state: _State, out: Target) -> None:
    """Write the redirects and errors since the last export, with a cursor of their own."""
    store, crawl, key = rows.store, rows.crawl, f"{rows.crawl.id}-responses"
    cursor = _cursor(folder, state, key)
    _check(store, crawl, cursor, out, responses.numbered)
    upto = settled(store, crawl.n, "responses")
    while True:
        with store.read() as tx:
            found, last = responses.chunk(tx, crawl.n, cursor.last, RESPONSES, upto)
        if not found:
            return
        following = Cursor(last, found[-1].fp.hex()[:_TAIL])
        name = f"{key}-{cursor.last:012}-{last:012}-{following.tail}{_ENDINGS[Format.WARC]}"
        folder.write(name, chain([warc.warcinfo(name)], export.response_records(found, rows.segments)))
        cursor = state.crawls[key] = following
        folder.write(STATE, [_shown(state)])


def _next(store: Store, n: int, cursor: Cursor, upto: int, most: int) -> Cursor | None:
    with store.read() as tx:
        found = pages.last_of(tx, n, cursor.last, upto, most)
    return None if found is None else Cursor(found[0], found[1].hex()[:_TAIL])


def _write(
    rows: PageRows, folder: Folder, chosen: Format, between: tuple[Cursor, Cursor], written: Tally, csv_safe: bool,
    full_page: bool,
) -> None:  # fmt: skip
    after, last = between
    found = rows.pages(after.last, last.last)
    if chosen is Format.MARKDOWN:
        for name, blocks in written.each(markdown.files(rows, found, full_page)):
            folder.write(name, blocks)
        return
    name = f"{rows.crawl.id}-{after.last:012}-{last.last:012}-{last.tail}{_ENDINGS[chosen]}"
    folder.write(name, export.blocks_of(rows, found, chosen, written, name, csv_safe))


def _check(
    store: Store, crawl: Crawl, cursor: Cursor, out: Target, numbered: Callable[[Any, int, int], bytes | None]
) -> None:
    """SQLite may reuse the number of a deleted page, and the page with that number would be omitted."""
    if store.dialect != "sqlite" or cursor.last == 0:
        return
    with store.read() as tx:
        fp = numbered(tx, crawl.n, cursor.last)
    if fp is None or fp.hex()[:_TAIL] != cursor.tail:
        raise UsageError(
            f"The last page of crawl {crawl.id} that was exported to {out} has been deleted, so new pages cannot be "
            "determined. Export to another folder."
        )


# The state of the folder


def _cursor(folder: Folder, state: _State, id: str) -> Cursor:
    name = re.compile(rf"{re.escape(id)}-\d{{12,}}-(\d{{12,}})-([0-9a-f]{{{_TAIL}}})\.")
    parts = [Cursor(int(found[1]), found[2]) for file in folder.names() if (found := name.match(file))]
    return max([state.crawls.get(id, Cursor()), *parts])


def _read(folder: Folder, chosen: Format, out: Target) -> _State:
    data = folder.read(STATE)
    if data is None:
        return _State(format=chosen.value)
    try:
        found = json.loads(data)
        state = _State(
            format=str(found["format"]),
            what=str(found["what"]),
            crawls={str(id): Cursor(int(last), str(tail)) for id, (last, tail) in found["crawls"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"{STATE} in {out} cannot be read. Export to another folder.") from None
    if (state.format, state.what) != (chosen.value, "pages"):
        raise UsageError(f"{out} contains {state.what} as {state.format}. Use that format or another folder.")
    return state


def _shown(state: _State) -> bytes:
    fields: dict[str, Any] = {"what": state.what, "format": state.format}
    fields["crawls"] = {id: list(cursor) for id, cursor in state.crawls.items()}
    return json.dumps(fields, indent=1).encode()
