"""The layout of a text: which parts a reader must open first, the labels of table cells, pages of a document.

    Visibility   how a part of a page is shown to a reader
    Label        a row label, column label or term, with its place in the text
    Cell         a span of the text and its labels
    Part         a page, sheet, slide or chapter of a document
    PageBox      a place on a page of a PDF
    Section      a heading, with where its text begins
    TextLayout   all of this for one text: `visibility_at`, `labels_at`, `part_at`, `boxes_at`

Spans count characters of the page's visible text (`content/text.py`). Pure values, without I/O.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple


class Visibility(StrEnum):
    VISIBLE = "visible"
    COLLAPSED = "collapsed"  # a reader must open it first: accordions, tabs, `details`
    SCREEN_READER = "screen_reader"  # for assistive technology only
    HIDDEN = "hidden"  # no part of the text


class LabelKind(StrEnum):
    ROW = "row"
    COLUMN = "column"
    TERM = "term"  # a `dt`


class Label(NamedTuple):
    """`text` is the part of the visible text from `start` to `end`."""

    kind: LabelKind
    text: str
    start: int
    end: int


class Cell(NamedTuple):
    """A table cell or `dd`: its span, and its labels from the outer to the inner, rows before columns."""

    start: int
    end: int
    labels: tuple[Label, ...]


class Part(NamedTuple):
    """A part of a document: what kind it is, its number from 1, and its name, which may be empty."""

    #: `page` | `sheet` | `slide` | `chapter` | `section`
    kind: str
    number: int
    #: name of a sheet, title of a slide or chapter, printed number of a page
    label: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.number}" + (f" ({self.label})" if self.label else "")


class PageBox(NamedTuple):
    """A rectangle on a page of a PDF: points (1/72 inch) from the top left corner of the page."""

    #: from 1
    page: int
    x0: float
    y0: float
    x1: float
    y1: float
    #: of the page
    width: float = 0.0
    height: float = 0.0


class Section(NamedTuple):
    """`title` is the heading of the text from `start` to the next section."""

    start: int
    title: str


class VisibilitySpan(NamedTuple):
    start: int
    end: int
    visibility: Visibility


#: of one span
_MAX_LABELS = 8
#: cells of a span that are compared for the labels that they share
_MAX_COMPARED = 64


class TextLayout:
    """Spans are sorted by their start. Those of `unseen` do not overlap; those of `cells` may contain each other.

    Immutable. A function that finds the cells is called on first use: most texts never need labels.
    """

    #: the text was recognized in pictures of pages (OCR)
    recognized: bool = False
    #: the sections of a document, in order
    sections: Sequence[Section] = ()

    def __init__(
        self,
        unseen: tuple[VisibilitySpan, ...] = (),
        cells: tuple[Cell, ...] | Callable[[], tuple[Cell, ...]] = (),
    ) -> None:
        self.unseen = unseen
        self._cells = cells

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return self._cells() if callable(self._cells) else self._cells

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextLayout) and (self.unseen, self.cells) == (other.unseen, other.cells)

    __hash__ = None  # type: ignore[assignment]

    def visibility_at(self, start: int, end: int) -> Visibility:
        """Return the visibility of a span. If its parts differ, the first part that is not visible counts."""
        at = bisect_right(self._unseen_ends, start)
        if at < len(self.unseen) and self.unseen[at].start < max(end, start + 1):
            return self.unseen[at].visibility
        return Visibility.VISIBLE

    def labels_at(self, start: int, end: int) -> tuple[Label, ...]:
        """Return the labels of the cell that contains a span; of several cells in a span, the labels that all share."""
        at: int | None = bisect_right(self._cell_starts, start) - 1
        found: list[tuple[Label, ...]] = []
        while at is not None and at >= 0:
            if end <= self.cells[at].end:
                found.append(self.cells[at].labels)
            at = self._parents[at]
        if found:
            return tuple(dict.fromkeys(label for labels in reversed(found) for label in labels))[:_MAX_LABELS]
        return self._shared(start, end)

    def part_at(self, start: int) -> Part | None:
        """Return the part of a document at an offset; None if the text has no parts."""
        return None

    def boxes_at(self, start: int, end: int) -> tuple[PageBox, ...]:
        """Return the boxes of a span on the pages of a PDF, one per line; empty for other texts."""
        return ()

    def cells_within(self, start: int, end: int) -> Sequence[Cell]:
        """Return the cells that begin in a span."""
        return self.cells[bisect_left(self._cell_starts, start) : bisect_left(self._cell_starts, end)]

    def _shared(self, start: int, end: int) -> tuple[Label, ...]:
        within = self.cells_within(start, end)
        if not within or len(within) > _MAX_COMPARED:
            return ()
        return tuple(label for label in within[0].labels if all(label in cell.labels for cell in within))

    @cached_property
    def _unseen_ends(self) -> list[int]:
        return [span.end for span in self.unseen]

    @cached_property
    def _cell_starts(self) -> list[int]:
        return [cell.start for cell in self.cells]

    @cached_property
    def _parents(self) -> list[int | None]:
        """The cell around each cell."""
        parents: list[int | None] = []
        around: list[int] = []
        for number, cell in enumerate(self.cells):
            while around and self.cells[around[-1]].end < cell.end:
                around.pop()
            parents.append(around[-1] if around else None)
            around.append(number)
        return parents

    def as_json(self) -> dict[str, Any]:
        """Return a compact form; labels are stored once. Empty if there is nothing to say."""
        labels = list(dict.fromkeys(label for cell in self.cells for label in cell.labels))
        numbers = {label: number for number, label in enumerate(labels)}
        found: dict[str, Any] = {}
        if self.unseen:
            found["unseen"] = [[span.start, span.end, span.visibility.value] for span in self.unseen]
        if self.cells:
            found["labels"] = [[label.kind.value, label.start, label.end] for label in labels]
            found["cells"] = [[one.start, one.end, [numbers[label] for label in one.labels]] for one in self.cells]
        return found

    @classmethod
    def from_json(cls, data: dict[str, Any], text: str) -> TextLayout:
        """The inverse of `as_json`; `text` is the text that the spans count in."""
        labels = [Label(LabelKind(kind), text[start:end], start, end) for kind, start, end in data.get("labels", ())]
        return cls(
            unseen=tuple(VisibilitySpan(start, end, Visibility(kind)) for start, end, kind in data.get("unseen", ())),
            cells=tuple(
                Cell(start, end, tuple(labels[number] for number in numbers))
                for start, end, numbers in data.get("cells", ())
            ),
        )


EMPTY_LAYOUT = TextLayout()


def section_at(sections: Sequence[Section], start: int) -> Section | None:
    """Return the section that contains an offset."""
    at = bisect_right(sections, start, key=lambda section: section.start) - 1
    return sections[at] if at >= 0 else None


def joined(labels: Sequence[Label]) -> str:
    """Return labels for display.

    >>> joined([Label(LabelKind.ROW, "Emissions (t)", 0, 13), Label(LabelKind.COLUMN, "2023", 14, 18)])
    'Emissions (t) | 2023'
    """
    return " | ".join(_one_line(labels))


def _one_line(labels: Sequence[Label]) -> Iterator[str]:
    for label in labels:
        yield " ".join(label.text.split())
