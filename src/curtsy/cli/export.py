"""`export`: the pages, records or URLs of a crawl as files."""

from __future__ import annotations

from typing import Annotated

import typer

from curtsy.cli import show
from curtsy.cli.options import AsJson, Config, DataDir, WhichCrawl, stored
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl
from curtsy.export import (
    page_increments,
    pages,
    partitions,
    record_increments,
    record_tables,
    records,
    table_sets,
    url_tables,
)
from curtsy.export.page_rows import PageRows, check_content, segments_of
from curtsy.export.tables import Format as PageFormat
from curtsy.export.targets import Target, target_of
from curtsy.store import crawls
from curtsy.store import pages as stored_pages
from curtsy.store.engine import Store

Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="PATH",
        help=".jsonl, .csv, .parquet, .warc.gz or a folder; tables also .xlsx, .sqlite, .duckdb. Also s3://...",
        show_default="standard output",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="jsonl, csv, parquet, warc or markdown; tables also xlsx, sqlite or duckdb.",
        show_default="from --out",
    ),
]
CsvSafe = Annotated[bool, typer.Option("--csv-safe", help="Make CSV safe for spreadsheets: no formulas.")]
FullPage = Annotated[
    bool,
    typer.Option("--full-page", help="Markdown with menus, headers, footers and related links, not only the content."),
]
What = Annotated[str, typer.Option("--what", metavar="pages|records", help="What to export.")]
Incremental = Annotated[
    bool, typer.Option("--incremental", help="Add what is new since the last export to the folder --out.")
]
With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="CONTENT", help="Also columns with the pages' text, markdown or html. Repeatable."),
]
PartitionBy = Annotated[
    str | None,
    typer.Option("--partition-by", metavar="host|date", help="A folder with a file for each host or date of fetch."),
]
Records = Annotated[
    bool, typer.Option("--records", help="Records as flat tables: a column per value, and a table of the evidence.")
]
Urls = Annotated[
    bool, typer.Option("--urls", help="Every URL as a table: state, reason, redirect target, referrer, times.")
]
Lists = Annotated[
    str | None,
    typer.Option(
        "--lists",
        metavar="rows|json",
        help="Lists of --records: rows of another table, or JSON in a column.",
        show_default="rows",
    ),
]


def export(
    crawl: WhichCrawl = "last",
    out: Out = None,
    format_: Format = None,
    csv_safe: CsvSafe = False,
    full_page: FullPage = False,
    what: What = "pages",
    content: With = None,
    partition_by: PartitionBy = None,
    flat: Records = False,
    urls: Urls = False,
    lists: Lists = None,
    incremental: Incremental = False,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Export the pages, records or URLs of a crawl."""
    _check_what(what, to_stdout=out is None, as_json=as_json)
    if lists is not None and not flat:
        raise UsageError("--lists belongs to --records. Add --records.")
    if flat or urls:
        _refuse(
            "--records" if flat else "--urls", incremental=incremental, full_page=full_page, what=what == "records",
            partition_by=partition_by is not None, with_=content is not None, urls=flat and urls,
        )  # fmt: skip
        _tables(crawl, out, format_, csv_safe, lists, config, data_dir, as_json, urls)
        return
    target = target_of(out)
    chosen = _partitioned_format(target, format_) if partition_by else pages.format_of(target, format_)
    _check_format(chosen, what, csv_safe, full_page)
    names = _content(content, chosen, what)
    if partition_by is not None:
        _refuse("--partition-by", incremental=incremental, what=what == "records")
        partitions.check(partition_by, chosen)
    if incremental:
        page_increments.check_target(target, chosen)
    else:
        pages.check_target(target, chosen, partitioned=partition_by is not None)
    with stored(config, data_dir) as (settings, store):
        with store.read() as tx:
            found = crawls.get(tx, crawl)
        if not incremental:
            _check_any(store, found, what)
        if what == "records":
            write_records = record_increments.add if incremental else records.export_records
            written = write_records(store, found, target, chosen, csv_safe)
        else:
            rows = PageRows(store, segments_of(settings), found, names)
            if incremental:
                written = page_increments.add(rows, target, chosen, csv_safe, full_page)
            else:
                written = pages.export(rows, target, chosen, csv_safe, full_page, partition_by)
    if as_json:
        show.document({"id": found.id, "format": chosen.value, "out": out, what: written})
    elif out is not None:
        show.note(f"{written:,} {'new ' if incremental else ''}{what} written to {out}")


def _check_any(store: Store, crawl: Crawl, what: str) -> None:
    """Raise UsageError if there is nothing to export: an empty file would look like a result."""
    if what == "records":
        record_tables.check(store, crawl)
        return
    with store.read() as tx:
        n = stored_pages.how_many(tx, crawl.n)
    if not n:
        raise UsageError(f"Crawl {crawl.id} has no pages. See why with: curtsy export {crawl.id} --urls")


def _tables(
    crawl: str, out: str | None, format_: str | None, csv_safe: bool, lists: str | None, config: Config,
    data_dir: DataDir, as_json: bool, urls: bool,
) -> None:  # fmt: skip
    target = target_of(out)
    chosen = _table_format(target, format_, csv_safe)
    if lists not in (None, "rows", "json"):
        raise UsageError(f"Invalid --lists {lists!r}. Use rows or json.")
    with stored(config, data_dir) as (_, store):
        with store.read() as tx:
            found = crawls.get(tx, crawl)
        if urls:
            tables = url_tables.tables(store, found)
        else:
            tables = record_tables.tables(store, found, lists_as_json=lists == "json")
        written, places = table_sets.write(tables, target, chosen, csv_safe)
    what = "urls" if urls else "records"
    if as_json:
        show.document({"id": found.id, "format": chosen.value, "out": out, "files": places, what: written})
    elif out is not None:
        show.note(f"{written:,} {'URLs' if urls else what} written to {', '.join(places)}")


def _table_format(target: Target, format_: str | None, csv_safe: bool) -> table_sets.TableFormat:
    chosen = table_sets.format_of(target, format_)
    if csv_safe and chosen != "csv":
        raise UsageError(f"--csv-safe works with CSV only, not with {chosen}.")
    table_sets.check_target(target, chosen)
    return chosen


def _refuse(option: str, **given: bool) -> None:
    """Raise UsageError for options that do not work together with this one."""
    for name, used in given.items():
        if used:
            raise UsageError(f"--{name.strip('_').replace('_', '-')} does not work with {option}. Remove one of them.")


def _partitioned_format(target: Target, format_: str | None) -> PageFormat:
    """A folder has no ending: Parquet, unless --format says otherwise."""
    if target is not None and target.name.endswith(tuple(pages.ENDINGS)):
        raise UsageError(
            f"--partition-by writes a folder, but {target} names a file. Use --out FOLDER --format FORMAT."
        )
    return pages.format_of(target, format_ or PageFormat.PARQUET)


def _content(given: list[str] | None, chosen: PageFormat, what: str) -> tuple[str, ...]:
    """The columns of --with; several may be in one word: text,markdown."""
    names = tuple(dict.fromkeys(name for word in given or () for name in word.split(",")))
    check_content(names)
    if names and (what != "pages" or chosen not in (PageFormat.JSONL, PageFormat.PARQUET)):
        raise UsageError("--with works with pages as jsonl or parquet only. Use one of these formats.")
    return names


def _check_what(what: str, *, to_stdout: bool, as_json: bool) -> None:
    if what not in ("pages", "records"):
        raise UsageError(f"Invalid --what {what!r}. Use pages or records.")
    if as_json and to_stdout:
        raise UsageError(f"With --json, standard output is for the document: export the {what} with --out PATH.")


def _check_format(chosen: PageFormat, what: str, csv_safe: bool, full_page: bool) -> None:
    if full_page and chosen != "markdown":
        raise UsageError(f"--full-page works with Markdown only, not with {chosen}.")
    if csv_safe and chosen != "csv":
        raise UsageError(f"--csv-safe works with CSV only, not with {chosen}.")
    if what == "records":
        records.check(chosen)
