"""An export of a crawl as one file that is sent while it is made. Several files are sent as a zip file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl
from curtsy.core.settings import Settings
from curtsy.export import bundle, pages, record_tables, records, table_sets, url_tables
from curtsy.export.page_rows import PageRows, segments_of
from curtsy.export.request import ExportRequest
from curtsy.export.tables import Format, Table, Tally
from curtsy.export.zipped import File, zipped
from curtsy.services.document_process import limits_of
from curtsy.store import pages as stored_pages
from curtsy.store import responses
from curtsy.store.engine import Store

_ENDINGS = {"warc": "warc.gz", "markdown": "zip"}


class Streamed(NamedTuple):
    name: str
    blocks: Iterator[bytes]


def export(store: Store, settings: Settings, crawl: Crawl, wanted: ExportRequest) -> Streamed:
    """The file of an export. UsageError if there is nothing to export; nothing is opened before the first block."""
    check_any(store, crawl, wanted)
    ending = "zip" if wanted.is_folder else _ENDINGS.get(wanted.format, wanted.format)
    name = f"{crawl.id[:13]}-{wanted.what}.{ending}"
    return Streamed(name, _blocks(store, settings, crawl, wanted, name))


def bundled(store: Store, settings: Settings, crawl: Crawl, audit: dict[str, object]) -> Streamed:
    """The bundle of a crawl as a zip file."""
    check_any(store, crawl, ExportRequest())

    def blocks() -> Iterator[bytes]:
        with closing(segments_of(settings)) as segments:
            yield from zipped(bundle.files(PageRows(store, segments, crawl), audit))

    return Streamed(f"{crawl.id[:13]}-bundle.zip", blocks())


def check_any(store: Store, crawl: Crawl, wanted: ExportRequest) -> None:
    """Raise UsageError if there is nothing to export: an empty file would look like a result."""
    if wanted.what == "urls":
        url_tables.tables(store, crawl)
        return
    if wanted.what != "pages":
        record_tables.check(store, crawl)
        return
    with store.read() as tx:
        found = bool(stored_pages.how_many(tx, crawl.n))
        if not found and wanted.format == Format.WARC:
            found = responses.any_of(tx, crawl.n)
    if not found:
        raise UsageError(f"Crawl {crawl.id} has no pages. See why with: curtsy export {crawl.id} --urls")


def tables_of(store: Store, crawl: Crawl, wanted: ExportRequest) -> list[Table]:
    """The tables of an export of flat records, of their evidence or of URLs."""
    if wanted.what == "urls":
        return url_tables.tables(store, crawl)
    found = record_tables.tables(store, crawl, lists_as_json=wanted.lists == "json")
    return found[-1:] if wanted.what == "evidence" else found


def _blocks(store: Store, settings: Settings, crawl: Crawl, wanted: ExportRequest, name: str) -> Iterator[bytes]:
    with closing(segments_of(settings)) as segments:
        rows = PageRows(store, segments, crawl, wanted.content, limits_of(settings))
        yield from zipped(_files(rows, wanted)) if wanted.is_folder else _one_file(rows, wanted, name)


def _one_file(rows: PageRows, wanted: ExportRequest, name: str) -> Iterator[bytes]:
    store, crawl, written = rows.store, rows.crawl, Tally()
    if wanted.what == "pages":
        return pages.whole_file(rows, Format(wanted.format), written, name, wanted.csv_safe)
    if wanted.what == "records":
        return records.blocks_of(store, crawl, Format(wanted.format), written, wanted.csv_safe)
    found_tables = tables_of(store, crawl, wanted)
    if wanted.format in table_sets.WHOLE:
        return table_sets.one_file(found_tables, wanted.format, written)
    (only,) = table_sets.files(found_tables, wanted.format, written, wanted.csv_safe)
    return iter(only[1])


def _files(rows: PageRows, wanted: ExportRequest) -> Iterator[File]:
    if wanted.what == "pages":
        chosen, by = Format(wanted.format), wanted.partition_by
        return pages.files(rows, chosen, Tally(), wanted.csv_safe, wanted.full_page, by)
    return table_sets.files(tables_of(rows.store, rows.crawl, wanted), wanted.format, Tally(), wanted.csv_safe)
