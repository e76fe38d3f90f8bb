"""The cells of a sheet as paragraphs and tables. Empty rows separate tables; single cells above one are its title."""

from __future__ import annotations

from collections.abc import Iterator

from curtsy.content.documents.builder import Builder, Unreadable
from curtsy.content.documents.headers import LOOKED_ROWS, guess_header_columns, guess_header_rows
from curtsy.content.documents.model import Merged

_MOST_MERGED = 10_000
_CELLS_PER_LOOK = 5_000


class Rows:
    """Cells in the order of the file. Holds no more of them than the text may have characters."""

    def __init__(self, builder: Builder) -> None:
        self.by_number: dict[int, dict[int, str]] = {}
        self.merged: list[Merged] = []
        self.is_full = False
        self._builder = builder
        self._room = builder.limits.characters - builder.size
        self._cells = 0

    def put(self, row: int, column: int, text: str) -> None:
        if not text or self.is_full:
            return
        self._room -= len(text) + 1
        self._cells += 1
        self.is_full = self._room < 0
        if self._cells % _CELLS_PER_LOOK == 0:
            self._builder.look()
        cells = self.by_number.get(row)
        if cells is None:
            cells = self.by_number[row] = {}
        cells[column] = text

    def merge(self, area: Merged) -> None:
        if len(self.merged) < _MOST_MERGED:
            self.merged.append(area)

    def blocks(self) -> Iterator[list[int]]:
        """Numbers of rows that follow each other."""
        block: list[int] = []
        for number in sorted(self.by_number):
            if block and number != block[-1] + 1:
                yield block
                block = []
            block.append(number)
        if block:
            yield block


def write_sheet(builder: Builder, rows: Rows) -> None:
    for block in rows.blocks():
        start = 0
        left = min(min(rows.by_number[number]) for number in block)
        groups = {area.row for area in rows.merged if area.columns > 1 and area.column > left}
        while start < len(block) - 1 and len(rows.by_number[block[start]]) == 1 and block[start] not in groups:
            builder.paragraph(next(iter(rows.by_number[block[start]].values())))
            start += 1
        if start < len(block):
            _write_table(builder, rows, block[start:])
    if rows.is_full:
        raise Unreadable("too_large")


def _write_table(builder: Builder, rows: Rows, numbers: list[int]) -> None:
    left = min(min(rows.by_number[number]) for number in numbers)
    merged = [
        Merged(area.row - numbers[0], area.column - left, area.rows, area.columns)
        for area in rows.merged
        if numbers[0] <= area.row <= numbers[-1] and area.column >= left
    ]
    first = [_filled(rows.by_number[number], left) for number in numbers[:LOOKED_ROWS]]
    above = _header_rows(first, merged)
    lines = (_filled(rows.by_number[number], left) for number in numbers)
    builder.table(lines, above, guess_header_columns(first, above), merged)


def _header_rows(first: list[list[str]], merged: list[Merged]) -> int:
    """A row of merged cells above the names of columns names groups of them."""
    groups = {area.row for area in merged if area.columns > 1}
    if 0 in groups and len(first) > 2 and guess_header_rows(first[1:]):
        return 2
    return guess_header_rows(first)


def _filled(cells: dict[int, str], left: int) -> list[str]:
    row = [""] * (max(cells) - left + 1)
    for column, text in cells.items():
        row[column - left] = text
    return row
