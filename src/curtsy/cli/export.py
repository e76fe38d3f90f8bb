"""`export`: the pages, records or URLs of a crawl as files."""

from __future__ import annotations

from typing import Annotated

import typer

from curtsy.cli import next_commands, show
from curtsy.cli.backends import SharedOptions
from curtsy.cli.commands import collect_garbage
from curtsy.cli.export_progress import ExportProgress
from curtsy.cli.options import WhichCrawl
from curtsy.client.backend import Document
from curtsy.core.errors import UsageError
from curtsy.export import pages, table_sets, writing
from curtsy.export.request import TABLES, ExportRequest
from curtsy.export.tables import Format as PageFormat
from curtsy.export.targets import Target, target_of

#: new objects before garbage is collected
_OBJECTS = 200_000

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
    typer.Option(
        "--with", metavar="CONTENT", help="Add the text, markdown or html of each page as a column; may be repeated."
    ),
]
PartitionBy = Annotated[
    str | None,
    typer.Option("--partition-by", metavar="host|date", help="Write a folder with one file per host, or per date."),
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
    shared: SharedOptions,
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
) -> None:
    """Export the pages, records or URLs of a crawl."""
    # A page makes thousands of objects, and none of them refer to each other in a circle.
    collect_garbage(after=_OBJECTS)
    _check_what(what, to_stdout=out is None, as_json=shared.as_json)
    if lists is not None and not flat:
        raise UsageError("--lists belongs to --records. Add --records.")
    if flat or urls:
        _refuse(
            "--records" if flat else "--urls", incremental=incremental, full_page=full_page, what=what == "records",
            partition_by=partition_by is not None, with_=content is not None, urls=flat and urls,
        )  # fmt: skip
        what = "tables" if flat else "urls"
    if partition_by is not None:
        _refuse("--partition-by", incremental=incremental, what=what == "records")
    target = target_of(out)
    wanted = ExportRequest(
        what=what,
        format=_format(target, format_, what, partition_by is not None),
        csv_safe=csv_safe,
        full_page=full_page,
        content=tuple(dict.fromkeys(name for word in content or () for name in word.split(","))),
        partition_by=partition_by,
        lists=lists or "rows",
    )
    wanted.check()
    writing.check_target(wanted, target, incremental=incremental)
    # Lines on a terminal would mix with those of an export to standard output.
    progress = None if target is None else ExportProgress()
    done = shared.backend().export(crawl, wanted, target, incremental=incremental, progress=progress)
    _say(done, wanted, out, incremental, shared)


def _say(done: Document, wanted: ExportRequest, out: str | None, incremental: bool, shared: SharedOptions) -> None:
    shown = {"tables": "records"}.get(wanted.what, wanted.what)
    files = {} if done["files"] is None else {"files": done["files"]}
    if shared.as_json:
        show.document({"id": done["id"], "format": wanted.format, "out": out} | files | {shown: done["rows"]})
    elif out is not None:
        kind = {"urls": "URL"}.get(shown, shown.removesuffix("s"))
        amount = f"All {kind}s" if done["rows"] is None else show.number(done["rows"], kind)
        if n := done.get("others"):
            amount = f"0 pages and {show.number(n, 'other response')}"
        new = amount.replace(" ", " new ", 1) if incremental else amount
        show.note(f"{new} written to {', '.join(done['files'] or [out])}")
        say_held(done)


def say_held(done: Document) -> None:
    """Say how many records are not in an export."""
    if n := done.get("held"):
        needs = "record needs a review and is" if n == 1 else "records need a review and are"
        show.note(f"{n:,} {needs} not included: {next_commands.command('review', 'list')}")


def _format(target: Target, given: str | None, what: str, partitioned: bool) -> str:
    if what in TABLES:
        return table_sets.format_of(target, given)
    if not partitioned:
        return pages.format_of(target, given)
    if target is not None and target.name.endswith(tuple(pages.ENDINGS)):
        raise UsageError(
            f"--partition-by writes a folder, but {target} names a file. Use --out FOLDER --format FORMAT."
        )
    # A folder has no ending.
    return pages.format_of(target, given or PageFormat.PARQUET)


def _refuse(option: str, **given: bool) -> None:
    """Raise UsageError for options that do not work together with this one."""
    for name, used in given.items():
        if used:
            raise UsageError(f"--{name.strip('_').replace('_', '-')} does not work with {option}. Remove one of them.")


def _check_what(what: str, *, to_stdout: bool, as_json: bool) -> None:
    if what not in ("pages", "records"):
        raise UsageError(f"Invalid --what {what!r}. Use pages or records.")
    if as_json and to_stdout:
        raise UsageError(f"With --json, standard output is for the document: export the {what} with --out PATH.")
