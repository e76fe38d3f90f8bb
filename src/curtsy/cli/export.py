"""`export`: the pages, records or URLs of a crawl as files."""

from __future__ import annotations

from typing import Annotated

import typer

from curtsy.cli import show
from curtsy.cli.options import AsJson, Config, DataDir, WhichCrawl, stored
from curtsy.core.errors import UsageError
from curtsy.export import page_increments, pages, record_increments, record_tables, records, table_sets
from curtsy.export.tables import Format as PageFormat
from curtsy.export.targets import Target, target_of
from curtsy.store import crawls

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
Records = Annotated[
    bool, typer.Option("--records", help="Records as flat tables: a column per value, and a table of the evidence.")
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
    flat: Records = False,
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
    if flat:
        _refuse(incremental=incremental, full_page=full_page, what=what == "records")
        _tables(crawl, out, format_, csv_safe, lists, config, data_dir, as_json)
        return
    target = target_of(out)
    chosen = pages.format_of(target, format_)
    _check_format(chosen, what, csv_safe, full_page)
    (page_increments if incremental else pages).check_target(target, chosen)
    with stored(config, data_dir) as (settings, store):
        with store.read() as tx:
            found = crawls.get(tx, crawl)
        if what == "records":
            write_records = record_increments.add if incremental else records.export_records
            written = write_records(store, found, target, chosen, csv_safe)
        else:
            write = page_increments.add if incremental else pages.export
            written = write(store, pages.segments_of(settings), found, target, chosen, csv_safe, full_page)
    if as_json:
        show.document({"id": found.id, "format": chosen.value, "out": out, what: written})
    elif out is not None:
        show.note(f"{written:,} {'new ' if incremental else ''}{what} written to {out}")


def _tables(
    crawl: str, out: str | None, format_: str | None, csv_safe: bool, lists: str | None, config: Config,
    data_dir: DataDir, as_json: bool,
) -> None:  # fmt: skip
    target = target_of(out)
    chosen = _table_format(target, format_, csv_safe)
    if lists not in (None, "rows", "json"):
        raise UsageError(f"Invalid --lists {lists!r}. Use rows or json.")
    with stored(config, data_dir) as (_, store):
        with store.read() as tx:
            found = crawls.get(tx, crawl)
        tables = record_tables.tables(store, found, lists_as_json=lists == "json")
        written, places = table_sets.write(tables, target, chosen, csv_safe)
    if as_json:
        show.document({"id": found.id, "format": chosen.value, "out": out, "files": places, "records": written})
    elif out is not None:
        show.note(f"{written:,} records written to {', '.join(places)}")


def _table_format(target: Target, format_: str | None, csv_safe: bool) -> table_sets.TableFormat:
    chosen = table_sets.format_of(target, format_)
    if csv_safe and chosen != "csv":
        raise UsageError(f"--csv-safe works with CSV only, not with {chosen}.")
    table_sets.check_target(target, chosen)
    return chosen


def _refuse(**given: bool) -> None:
    """Options that do not go together with flat tables."""
    for name, used in given.items():
        if used:
            raise UsageError(f"--{name.replace('_', '-')} does not work with --records. Remove one of them.")


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
