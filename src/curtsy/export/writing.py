"""Write an export of a crawl to a file, a folder or an object store: from the store, or as a server sends it."""

from __future__ import annotations

from collections.abc import Iterable

from curtsy.core.errors import UsageError
from curtsy.export import bundle, page_increments, pages, record_increments, records, streams, table_sets
from curtsy.export.page_rows import PageRows
from curtsy.export.request import TABLES, ExportRequest
from curtsy.export.table_sets import TableFormat
from curtsy.export.tables import Format, Tally
from curtsy.export.targets import Target, replace_folder, write_whole
from curtsy.export.zipped import unzipped

#: how many rows or pages were written, if that is known, and the files if there are several by nature
Written = tuple[int | None, list[str] | None]


def check_target(wanted: ExportRequest, out: Target, *, incremental: bool = False) -> None:
    """Raise UsageError before the work begins if the target cannot be written."""
    if wanted.what in TABLES:
        table_sets.check_target(out, TableFormat(wanted.format))
    elif incremental:
        page_increments.check_target(out, Format(wanted.format))
    else:
        pages.check_target(out, Format(wanted.format), partitioned=wanted.partition_by is not None)


def write(rows: PageRows, wanted: ExportRequest, out: Target, *, incremental: bool = False) -> Written:
    """Write what the store has. `incremental`: only what is new since the last export to this folder."""
    store, crawl, chosen = rows.store, rows.crawl, wanted.format
    if incremental:
        return _add(rows, wanted, out), None
    streams.check_any(store, crawl, wanted)
    if wanted.what in TABLES:
        found = streams.tables_of(store, crawl, wanted)
        return table_sets.write(found, out, TableFormat(chosen), wanted.csv_safe)
    if wanted.what == "records":
        written = Tally()
        write_whole(out, records.blocks_of(store, crawl, Format(chosen), written, wanted.csv_safe))
        return written.n, None
    by = wanted.partition_by
    return pages.export(rows, out, Format(chosen), wanted.csv_safe, wanted.full_page, by), None


def _add(rows: PageRows, wanted: ExportRequest, out: Target) -> int:
    if wanted.what == "records":
        return record_increments.add(rows.store, rows.crawl, out, Format(wanted.format), wanted.csv_safe)
    return page_increments.add(rows, out, Format(wanted.format), wanted.csv_safe, wanted.full_page)


def write_received(blocks: Iterable[bytes], wanted: ExportRequest, out: Target) -> Written:
    """Write what a server sends for this request. How many rows it has is known for a folder of Markdown only."""
    if not wanted.is_folder:
        write_whole(out, blocks)
        return None, None if wanted.what not in TABLES or out is None else [str(out)]
    with unzipped(blocks) as files:
        if wanted.has_tables_apart:
            return None, table_sets.write_files(files, out, wanted.format)
        assert out is not None
        replace_folder(out, files)
        return len(files) if wanted.format == Format.MARKDOWN else None, None


def write_received_bundle(blocks: Iterable[bytes], out: Target) -> list[str]:
    """Write a bundle that a server sends; return the names of its files."""
    with unzipped(blocks) as files:
        if not files:
            raise UsageError("The server sent an empty bundle.")
        return bundle.write_files(iter(files), out)
