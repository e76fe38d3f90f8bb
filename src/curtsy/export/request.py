"""What one export contains and how it is written: the same for a command and for a request over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from curtsy.core.errors import UsageError
from curtsy.export import partitions, table_sets
from curtsy.export.page_rows import check_content
from curtsy.export.tables import Format

#: what -> its formats; the first is the default
FORMATS: dict[str, tuple[str, ...]] = {
    "pages": ("jsonl", "csv", "parquet", "warc", "markdown"),
    "records": ("jsonl", "csv", "parquet"),
    "tables": ("csv", "jsonl", "parquet", "xlsx", "sqlite", "duckdb"),
    "evidence": ("csv", "jsonl", "parquet", "xlsx", "sqlite", "duckdb"),
    "urls": ("csv", "jsonl", "parquet", "xlsx", "sqlite", "duckdb"),
}
#: what is written as tables of a set (table_sets.py)
TABLES = ("tables", "evidence", "urls")


def as_option(name: str) -> str:
    """How a person writes a field on the command line."""
    return f"--{name.replace('_', '-')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """One export of a crawl."""

    #: `pages` | `records` as they are stored | `tables`: flat records, their lists and evidence | `evidence` | `urls`
    what: str = "pages"
    format: str = "jsonl"
    #: no cell of a CSV file is a formula
    csv_safe: bool = False
    #: Markdown of more than the main content
    full_page: bool = False
    #: columns with the content of pages: `text`, `markdown`, `html`
    content: tuple[str, ...] = ()
    #: `host` | `date`: a file for each
    partition_by: str | None = None
    #: lists of flat records are `rows` of another table, or `json` in a column
    lists: str = "rows"

    @property
    def is_folder(self) -> bool:
        """Whether it has several files by nature: over HTTP they come as a zip file."""
        return self.partition_by is not None or self.format == Format.MARKDOWN or self.has_tables_apart

    @property
    def has_tables_apart(self) -> bool:
        return self.what == "tables" and self.format not in table_sets.WHOLE

    def check(self, spelled: Callable[[str], str] = as_option) -> None:
        """Raise UsageError if its fields contradict each other; `spelled` writes a field as the reader knows it."""
        if self.what not in FORMATS:
            raise UsageError(f"Invalid {spelled('what')} {self.what!r}. Use one of: {', '.join(FORMATS)}.")
        if self.format not in FORMATS[self.what]:
            raise UsageError(f"{self.what} cannot be written as {self.format}. Use {', '.join(FORMATS[self.what])}.")
        if self.csv_safe and self.format != "csv":
            raise UsageError(f"{spelled('csv_safe')} works with CSV only, not with {self.format}.")
        if self.full_page and self.format != "markdown":
            raise UsageError(f"{spelled('full_page')} works with Markdown only, not with {self.format}.")
        if self.lists not in ("rows", "json"):
            raise UsageError(f"Invalid {spelled('lists')} {self.lists!r}. Use rows or json.")
        check_content(self.content)
        if self.content and (self.what != "pages" or self.format not in ("jsonl", "parquet")):
            raise UsageError(f"{spelled('with')} works with pages as jsonl or parquet only. Use one of these formats.")
        if self.partition_by is not None:
            if self.what != "pages":
                raise UsageError(f"{spelled('partition_by')} works with pages only.")
            partitions.check(self.partition_by, Format(self.format))
        table_sets.need(self.format)
