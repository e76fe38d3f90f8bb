"""The cells of data tables and definition lists, with their labels. Layout tables have none.

A table is a data table if its markup says so (`th`, `thead`, `caption`, `role`), or if its rows have the same number of
cells, which contain no blocks. `table_labels.py` finds the labels after the walk, when the texts of cells are known.
"""

from __future__ import annotations

from collections.abc import Iterator

from selectolax.lexbor import LexborNode

from curtsy.content.table_labels import TableCell, labelled
from curtsy.core.text_layout import Cell, Label, LabelKind

#: of all tables of a page together: cells and terms that are kept
_MAX_CELLS = 50_000
#: rows of a table without `th` that are examined
_MAX_EXAMINED = 30
_MAX_COLUMNS = 20
_MAX_TERM = 200
_MAX_TERMS = 4
_SECTIONS = frozenset(("thead", "tbody", "tfoot"))
_HEADED = frozenset(("thead", "caption", "colgroup"))
_BLOCKS = frozenset(
    ("table", "div", "p", "ul", "ol", "dl", "form", "section", "article", "nav", "h1", "h2", "h3", "h4", "h5", "h6",
     "pre", "hr", "img", "iframe", "center", "blockquote")
)  # fmt: skip


class _Table:
    __slots__ = ("header_rows", "is_data", "rows")

    def __init__(self, is_data: bool) -> None:
        self.is_data = is_data
        self.rows: list[list[TableCell]] = []
        self.header_rows: set[int] = set()


class _List:
    __slots__ = ("ended", "terms")

    def __init__(self) -> None:
        #: terms of the next `dd`
        self.terms: list[tuple[int, int]] = []
        #: a `dd` followed them: the next `dt` begins a new group
        self.ended = False


class Tables:
    """Gathers cells during the walk. Positions are those of the text so far."""

    def __init__(self) -> None:
        self._open: list[_Table] = []
        self._tables: list[_Table] = []
        self._lists: list[_List] = []
        self._starts: list[int] = []
        #: span of a `dd`, and spans of its terms
        self._defined: list[tuple[int, int, list[tuple[int, int]]]] = []
        self._left = _MAX_CELLS

    @property
    def in_data_table(self) -> bool:
        return bool(self._open) and self._open[-1].is_data

    def table(self, node: LexborNode, entering: bool) -> None:
        if entering:
            self._open.append(_Table(self._left > 0 and is_data_table(node)))
        elif self._open and (table := self._open.pop()).is_data:
            self._tables.append(table)

    def row(self, node: LexborNode, entering: bool) -> None:
        if entering and self.in_data_table:
            table = self._open[-1]
            parent = node.parent
            if parent is not None and parent.tag == "thead":
                table.header_rows.add(len(table.rows))
            table.rows.append([])

    def cell(self, node: LexborNode, tag: str, entering: bool, position: int) -> None:
        if not self.in_data_table or not self._open[-1].rows:
            return
        row = self._open[-1].rows[-1]
        if entering and self._left > 0:
            self._left -= 1
            row.append(TableCell(node, tag == "th", position))
        elif not entering and row:
            row[-1].end = position

    def term(self, tag: str, entering: bool, position: int) -> None:
        if tag == "dl":
            if entering:
                self._lists.append(_List())
            elif self._lists:
                self._lists.pop()
        elif entering:
            self._starts.append(position)
        elif self._lists and self._starts:
            self._end_of_term(tag, self._starts.pop(), position)

    def _end_of_term(self, tag: str, start: int, end: int) -> None:
        current = self._lists[-1]
        if tag == "dt":
            if current.ended:
                current.terms, current.ended = [], False
            if len(current.terms) < _MAX_TERMS:
                current.terms.append((start, end))
        elif self._left > 0:
            self._left -= 1
            current.ended = True
            self._defined.append((start, end, current.terms))

    def cells(self, text: str) -> tuple[Cell, ...]:
        """Return all cells with labels, sorted for `TextLayout`."""
        if not self._tables and not self._defined:
            return ()
        found = [cell for table in self._tables for cell in labelled(table.rows, table.header_rows, text)]
        found += self._definitions(text)
        return tuple(sorted(found, key=lambda cell: (cell.start, -cell.end)))

    def _definitions(self, text: str) -> Iterator[Cell]:
        for start, end, terms in self._defined:
            spans = [_trimmed(text, *term) for term in terms]
            labels = tuple(
                Label(LabelKind.TERM, text[first:last], first, last)
                for first, last in spans
                if 0 < last - first <= _MAX_TERM
            )
            start, end = _trimmed(text, start, end)
            if labels and start < end:
                yield Cell(start, end, labels)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A cell does not begin with the separator before it."""
    return (start + 1, end) if start < end and text[start].isspace() else (start, end)


def is_data_table(table: LexborNode) -> bool:
    """Return whether a table has data, by its markup and the first of its rows. Cells are not searched."""
    role = table.attributes.get("role")
    if role in ("presentation", "none"):
        return False
    if role in ("table", "grid", "treegrid"):
        return True
    widths: set[int] = set()
    plain = True
    count = 0
    for count, row in enumerate(_rows(table), 1):
        if row.tag != "tr":
            return True  # it has a caption or a head
        cells = [cell for cell in row.iter() if cell.tag in ("td", "th")][:_MAX_COLUMNS]
        if any(cell.tag == "th" for cell in cells):
            return True
        widths.add(len(cells))
        plain = plain and not any(child.tag in _BLOCKS for cell in cells for child in _first(cell))
        if count == _MAX_EXAMINED:
            break
    return plain and count >= 2 and len(widths) == 1 and 2 <= widths.pop() < _MAX_COLUMNS


def _rows(table: LexborNode) -> Iterator[LexborNode]:
    """Yield the rows of a table, and what gives it a head."""
    for child in table.iter():
        if child.tag in _HEADED or child.tag == "tr":
            yield child
        elif child.tag in _SECTIONS:
            yield from (row for row in child.iter() if row.tag == "tr")


def _first(cell: LexborNode) -> Iterator[LexborNode]:
    """Yield the first children of a cell: enough to tell a paragraph from a box of a layout."""
    for number, child in enumerate(cell.iter()):
        if number == 3:
            return
        yield child
