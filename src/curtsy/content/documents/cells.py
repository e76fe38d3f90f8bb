"""A table that is read cell by cell, with cells that cover several rows or columns, and tables inside of cells."""

from __future__ import annotations

from curtsy.content.documents.builder import Builder
from curtsy.content.documents.model import Merged

_MOST_SPAN = 1_000


class OpenTable:
    """Rows and cells of a table while its elements are read."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.merged: list[Merged] = []
        self.header_rows: int | None = None
        self._cell: list[str] | None = None
        self._columns = 1
        #: column -> merged area that the next rows may extend
        self._falling: dict[int, int] = {}

    def start_row(self) -> None:
        self.rows.append([])

    def mark_header(self) -> None:
        """The last row names the columns, if all before it do."""
        if (self.header_rows or 0) == len(self.rows) - 1:
            self.header_rows = len(self.rows)

    def start_cell(self) -> None:
        if not self.rows:
            self.rows.append([])
        self._cell = []
        self._columns = 1

    def widen(self, columns: int) -> None:
        """The open cell covers several columns, and the file has no cells for the others."""
        self._columns = max(1, min(columns, _MOST_SPAN))

    def merge(self, rows: int, columns: int) -> None:
        """The open cell covers others, which follow in the file."""
        if rows > 1 or columns > 1:
            self.merged.append(Merged(len(self.rows) - 1, len(self.rows[-1]), rows, columns))

    def add(self, paragraph: str) -> bool:
        """Adds a paragraph to the open cell; False if none is open."""
        if self._cell is None:
            return False
        if paragraph := paragraph.strip():
            self._cell.append(paragraph)
        return True

    def end_cell(self, falls: str = "") -> None:
        """`falls`: "start" of a cell that continues in the next rows, or "rest" of one."""
        row, text = self.rows[-1], " ".join(self._cell or ())
        column, columns = len(row), self._columns
        self._cell = None
        if falls == "rest":
            at = self._falling.get(column)
            if at is not None:
                self.merged[at] = self.merged[at]._replace(rows=len(self.rows) - self.merged[at].row)
            text = ""
        else:
            self._falling.pop(column, None)
            if falls == "start":
                self._falling[column] = len(self.merged)
            if falls == "start" or columns > 1:
                self.merged.append(Merged(len(self.rows) - 1, column, 1, columns))
        row.append(text)
        row.extend([""] * (columns - 1))

    def write(self, builder: Builder, header_columns: int | None = None) -> None:
        merged = [area for area in self.merged if area.rows > 1 or area.columns > 1]
        builder.table(self.rows, self.header_rows, header_columns, merged)

    def text(self) -> str:
        """The table as part of a cell of another one."""
        return " ".join(cell for row in self.rows for cell in row if cell)
