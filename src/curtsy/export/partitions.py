"""Pages as a folder with a file for each host or date: `host=a.test/pages.parquet`, `date=2026-01-31/pages.parquet`.

DuckDB, pandas, Spark and others read such a folder as one table and skip the files that a query does not need. The
store yields the pages in the order of the partitions, so only one file is open at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any
from urllib.parse import quote

from curtsy.core.errors import UsageError
from curtsy.export.page_rows import PageRows, with_listings
from curtsy.export.tables import Format, Tally, iso, table
from curtsy.export.zipped import File
from curtsy.store import pages

BY = ("host", "date")
_CHUNK = 500


def check(by: str, chosen: Format) -> None:
    if by not in BY:
        raise UsageError(f"Invalid --partition-by {by!r}. Use host or date.")
    if chosen not in (Format.JSONL, Format.CSV, Format.PARQUET):
        raise UsageError(f"--partition-by works with jsonl, csv and parquet, not with {chosen}. Use --format.")


def files(rows: PageRows, by: str, chosen: Format, written: Tally, csv_safe: bool = False) -> Iterator[File]:
    """The files of the folder; each must be read before the next."""
    # The name of the folder has the value: readers add it as a column.
    columns = {name: kind for name, kind in rows.columns.items() if name != by}
    for value, group in groupby(_ordered(rows, by), itemgetter(0)):
        shown = ({name: row[name] for name in columns} for _, row in group)
        yield f"{place(by, value)}/pages.{chosen}", table(shown, columns, chosen, written, csv_safe)


def place(by: str, value: str) -> str:
    """The folder of one value."""
    return f"{by}={quote(value, safe='')}"


def _ordered(rows: PageRows, by: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(value, row) of each page, by value."""
    after: tuple[Any, int] | None = None
    column = "host" if by == "host" else "fetched_ms"
    while True:
        with rows.store.read() as tx:
            found = pages.ordered(tx, rows.crawl.n, column, after, _CHUNK)
            shown = with_listings(tx, [page for _, page in found])
        if not found:
            return
        for page in shown:
            yield page.host if by == "host" else str(iso(page.fetched_ms))[:10], rows.row(page)
        number, last = found[-1]
        after = (getattr(last, column), number)
