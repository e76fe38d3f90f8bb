"""The layout of a document's text, as grounding and extraction use it: parts, boxes, sections, cells with labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import islice

from curtsy.content.documents.model import Box, FileText, Merged, Table
from curtsy.core.text_layout import Cell, Label, LabelKind, PageBox, Part, Section, TextLayout

#: cells that are searched by their labels; a sheet may have millions
_MOST_CELLS = 100_000
#: boxes of one span: a quote has few lines
_MOST_BOXES = 40
#: two words are on one line if this share of the lower one's height overlaps
_SAME_LINE = 0.5


class FileLayout(TextLayout):
    """The layout of `file.text`, of its first `characters`."""

    def __init__(self, file: FileText, characters: int) -> None:
        super().__init__(cells=partial(_cells, file, characters))
        self._file = file
        self._characters = characters
        self.recognized = file.ocr

    @cached_property
    def sections(self) -> Sequence[Section]:  # type: ignore[override]
        file = self._file
        return tuple(
            Section(one.start, file.text[one.start : one.end]) for one in file.headings if one.end <= self._characters
        )

    def part_at(self, start: int) -> Part | None:
        found = self._file.part_at(start)
        return None if found is None else Part(found.kind, found.number, found.label)

    def boxes_at(self, start: int, end: int) -> tuple[PageBox, ...]:
        lines = islice(_lines(self._file.boxes.at(start, end)), _MOST_BOXES)
        return tuple(line._replace(width=width, height=height) for line in lines for width, height in self._size(line))

    def _size(self, line: PageBox) -> tuple[tuple[float, float], ...]:
        return self._file.page_sizes[line.page - 1 : line.page] or ((0.0, 0.0),)

    def labels_at(self, start: int, end: int) -> tuple[Label, ...]:
        # One cell: finding those of a whole sheet would take longer.
        found = self._file.labels_at(start, end)
        labels = [Label(LabelKind(one.kind), one.text, one.start, one.end) for one in found]
        return tuple(sorted(labels, key=lambda label: label.kind is LabelKind.COLUMN))


def _lines(boxes: Sequence[Box]) -> Iterator[PageBox]:
    """Join the boxes of words that follow each other on a line."""
    line: PageBox | None = None
    for box in boxes:
        word = PageBox(box.page, box.x0, box.y0, box.x1, box.y1)
        if line is not None and _continues(line, word):
            x0, y0, x1, y1 = min(line.x0, word.x0), min(line.y0, word.y0), max(line.x1, word.x1), max(line.y1, word.y1)
            line = PageBox(line.page, x0, y0, x1, y1)
        else:
            if line is not None:
                yield line
            line = word
    if line is not None:
        yield line


def _continues(line: PageBox, word: PageBox) -> bool:
    overlap = min(line.y1, word.y1) - max(line.y0, word.y0)
    height = min(line.y1 - line.y0, word.y1 - word.y0)
    return line.page == word.page and word.x0 >= line.x0 and overlap > _SAME_LINE * height


def _cells(file: FileText, characters: int) -> tuple[Cell, ...]:
    tables = (table for table in file.tables if table.end <= characters)
    return tuple(islice((cell for table in tables for cell in _of_table(file.text, table)), _MOST_CELLS))


def _of_table(text: str, table: Table) -> Iterator[Cell]:
    """Yield the filled cells that are not labels, with their labels, in order."""
    if not (table.header_rows or table.header_columns):
        return
    covered = _covered(table.merged)
    above: list[list[Label | None]] = []
    line = table.start
    for number, row in enumerate(text[table.start : table.end].split("\n")):
        labels: list[Label | None] = []
        at = line
        for column, cell in enumerate(row.split("\t")):
            end = at + len(cell)
            kind = LabelKind.COLUMN if number < table.header_rows else LabelKind.ROW
            own = Label(kind, cell, at, end) if cell else None
            if number < table.header_rows:
                labels.append(own or _over(labels, covered.get((number, column))))
            elif column < table.header_columns:
                labels.append(own)
            elif cell:
                named = [*labels, *(row_above[column] for row_above in above if column < len(row_above))]
                yield Cell(at, end, tuple(dict.fromkeys(label for label in named if label is not None)))
            at = end + 1
        if number < table.header_rows:
            above.append(labels)
        line += len(row) + 1


def _covered(merged: Sequence[Merged]) -> dict[tuple[int, int], int]:
    """(row, column) -> the column of the merged cell that covers it, in its first row."""
    wide = [one for one in merged if one.columns > 1][:_MOST_CELLS]
    return {(one.row, column): one.column for one in wide for column in range(one.column + 1, one.column + one.columns)}


def _over(labels: Sequence[Label | None], column: int | None) -> Label | None:
    return labels[column] if column is not None and column < len(labels) else None
