"""The labels of the cells of one data table: which header cells apply to each, with `rowspan` and `colspan`.

    explicit    `headers` names cells by their ids; `scope` says what a header applies to
    columns     header rows: in `thead`, rows of `th` only, a first row in bold, or a first row of words above numbers
    rows        the `th` of a row; without one, its first cell, if the table has header rows or two columns
    groups      a header as wide as the table applies to the rows after it

Takes time linear in the cells, and at most `_MAX_SLOTS` steps for a table whose spans cover more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from selectolax.lexbor import LexborNode

from curtsy.core.text_layout import Cell, Label, LabelKind

_MAX_SLOTS = 100_000
_MAX_SPAN = 1_000
#: a longer text is not a label
_MAX_LABEL = 120
_MAX_FIRST = 80
#: of one kind for one cell
_MAX_LABELS = 4
_BOLD = frozenset(("b", "strong"))


class TableCell:
    """A cell in the order of the page; its text and column are known after the walk."""

    __slots__ = ("column", "end", "is_header", "node", "start", "text", "width")

    def __init__(self, node: LexborNode, is_header: bool, start: int) -> None:
        self.node = node
        self.is_header = is_header
        self.start = self.end = start
        self.text = ""
        self.column = 0
        self.width = 1

    def read(self, text: str) -> None:
        if self.start < self.end and text[self.start].isspace():
            self.start += 1
        self.text = text[self.start : self.end]

    def label(self, kind: LabelKind) -> Label:
        return Label(kind, self.text, self.start, self.end)


def labelled(rows: Sequence[list[TableCell]], header_rows: set[int], text: str) -> Iterator[Cell]:
    """Yield the cells that have labels."""
    for row in rows:
        for cell in row:
            cell.read(text)
    table = _Grid(rows)
    headers = {*header_rows, *_header_rows(rows, header_rows)}
    labels = _Labels(rows, table, headers)
    for number, row in enumerate(rows):
        yield from labels.of_row(number, row)


class _Grid:
    """The column of each cell, and the cells of earlier rows that reach into a row."""

    def __init__(self, rows: Sequence[list[TableCell]]) -> None:
        #: row -> header cells of earlier rows that reach into it
        self.reaching: dict[int, list[TableCell]] = {}
        self.width = 0
        self._busy: dict[int, int] = {}
        self._left = _MAX_SLOTS
        for number, row in enumerate(rows):
            self._place(number, row, len(rows))

    def _place(self, number: int, row: list[TableCell], count: int) -> None:
        column = 0
        for cell in row:
            while self._busy.get(column, 0) > number and self._left > 0:
                column, self._left = column + 1, self._left - 1
            attributes = cell.node.attributes
            cell.column = column
            cell.width = max(1, min(_number(attributes.get("colspan"), 1), _MAX_SPAN, self._left))
            height = _number(attributes.get("rowspan"), 1)
            if height != 1:
                self._reach(number, cell, count if height == 0 else min(number + height, count))
            self._left -= cell.width
            column += cell.width
            self.width = max(self.width, column)

    def _reach(self, number: int, cell: TableCell, end: int) -> None:
        for column in range(cell.column, cell.column + cell.width):
            self._busy[column] = end
        for row in range(number + 1, end):
            if self._left <= 0:
                return
            self._left -= 1
            self.reaching.setdefault(row, []).append(cell)


def _number(value: str | None, otherwise: int) -> int:
    value = (value or "").strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 6 else otherwise


def _header_rows(rows: Sequence[list[TableCell]], known: set[int]) -> Iterator[int]:
    """Yield the rows that label their columns."""
    has_th = False
    for number, row in enumerate(rows):
        filled = [cell for cell in row if cell.text]
        has_th = has_th or any(cell.is_header for cell in row)
        if len(filled) > 1 and all(cell.is_header and not _is_for_row(cell) for cell in filled):
            yield number
    if not has_th and not known and rows and _is_plain_header(rows):
        yield 0


def _is_for_row(cell: TableCell) -> bool:
    return (cell.node.attributes.get("scope") or "").lower().startswith("row")


def _is_plain_header(rows: Sequence[list[TableCell]]) -> bool:
    """Whether the first row of a table without `th` labels its columns: it is bold, or words above numbers."""
    first = [cell for cell in rows[0] if cell.text]
    if len(first) < 2 or len(rows) < 2 or any(len(cell.text) > _MAX_FIRST for cell in first):
        return False
    if all(_is_bold(cell) for cell in first):
        return not all(_is_bold(cell) for cell in rows[1] if cell.text)
    if any(_is_figure(cell.text) for cell in first[1:]):
        return False
    return any(_is_figure(cell.text) for cell in rows[1][1:]) and len(rows) > 2 and len(rows[0]) > 2


def _is_bold(cell: TableCell) -> bool:
    return any(child.tag in _BOLD for child in islice(cell.node.iter(), 1))


def _is_figure(text: str) -> bool:
    return any(sign.isdecimal() for sign in text) and sum(map(str.isalpha, text)) <= 3


class _Labels:
    def __init__(self, rows: Sequence[list[TableCell]], grid: _Grid, headers: set[int]) -> None:
        self._grid = grid
        self._headers = headers
        self._by_id = {name: cell for row in rows for cell in row if (name := cell.node.id)}
        #: column -> its header cells, from the outer to the inner
        self._columns: dict[int, list[TableCell]] = {}
        self._group: TableCell | None = None
        self._after_header = False
        first = [row[0] for row in rows if row and row[0].text]
        pairs = grid.width == 2 and not any(cell.is_header for row in rows for cell in row)
        self._first_is_label = bool(headers) or (pairs and not headers and all(map(_names_something, first)))

    def of_row(self, number: int, row: list[TableCell]) -> Iterator[Cell]:
        if number in self._headers:
            self._head(row)
            return
        self._after_header = False
        if self._is_group(row):
            self._group = row[0]
            return
        before = self._grid.reaching.get(number, ())
        titles = [cell for cell in (*before, *row) if cell.is_header and cell.text and not _is_for_column(cell)]
        if not titles and self._first_is_label:
            titles = [cell for cell in (*before, *row) if cell.column == 0 and 0 < len(cell.text) <= _MAX_FIRST][:1]
        for cell in row:
            if cell.text and not cell.is_header and (labels := self._of_cell(cell, titles)):
                yield Cell(cell.start, cell.end, labels)
            elif cell.is_header and _is_for_column(cell):
                self._columns[cell.column] = [cell]

    def _head(self, row: list[TableCell]) -> None:
        if not self._after_header:
            self._columns, self._group = {}, None
        self._after_header = True
        for cell in row:
            for column in range(cell.column, cell.column + cell.width) if cell.text else ():
                self._columns.setdefault(column, []).append(cell)

    def _is_group(self, row: list[TableCell]) -> bool:
        return len(row) == 1 and bool(row[0].text) and row[0].width >= max(2, self._grid.width)

    def _of_cell(self, cell: TableCell, titles: Sequence[TableCell]) -> tuple[Label, ...]:
        named = [
            self._by_id[name]
            for name in (cell.node.attributes.get("headers") or "").split()[:_MAX_LABELS]
            if name in self._by_id
        ]
        if named:
            return tuple(one.label(self._kind(one)) for one in named if one is not cell and one.text)
        rows = [one for one in (self._group, *titles) if one is not None and one is not cell]
        columns = self._columns.get(cell.column, [])[-_MAX_LABELS:]
        found = [one.label(LabelKind.ROW) for one in rows[-_MAX_LABELS:]]
        found += [one.label(LabelKind.COLUMN) for one in columns]
        return tuple(dict.fromkeys(label for label in found if 0 < len(label.text) <= _MAX_LABEL))

    def _kind(self, header: TableCell) -> LabelKind:
        in_columns = any(header in cells for cells in (self._columns.get(header.column, ()),))
        return LabelKind.COLUMN if in_columns and not _is_for_row(header) else LabelKind.ROW


def _is_for_column(cell: TableCell) -> bool:
    return (cell.node.attributes.get("scope") or "").lower().startswith("col")


def _names_something(cell: TableCell) -> bool:
    """A short text that is no figure, such as `Founded` or `Head office:`."""
    return len(cell.text) <= _MAX_FIRST and not _is_figure(cell.text) and not cell.text.endswith((".", "!", "?"))
