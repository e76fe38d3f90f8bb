"""The result of reading a file: text with its parts, headings, tables, boxes, links and facts."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, overload

PartKind = Literal["page", "sheet", "slide", "chapter", "section"]
#: "" is a file that was read completely. Text that was read before the problem is in `FileText.text`.
Problem = Literal[
    "", "no_text", "encrypted", "malformed", "too_large", "too_many_pages", "timeout", "memory", "unsupported"
]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of reading one file."""

    #: CPU time; a reader stops at 80 % of it and returns what it has
    seconds: float = 20.0
    #: address space of the process
    memory_bytes: int = 2 << 30
    pages: int = 2_000
    #: characters of `FileText.text`
    characters: int = 10_000_000
    #: bytes that all members of a ZIP file may have after decompression
    unpacked_bytes: int = 256 << 20
    members: int = 20_000
    #: open XML elements or RTF groups at a time
    depth: int = 256
    #: recognize the text of scanned pages; needs the extra `ocr`
    ocr: bool = False
    #: further CPU time for that
    ocr_seconds: float = 60.0
    #: scanned pages whose text is recognized; None: as many as the time allows
    ocr_pages: int | None = None

    @property
    def most_seconds(self) -> float:
        """CPU time of a file, with that of recognizing its text."""
        return self.seconds + (self.ocr_seconds if self.ocr else 0.0)


class Part(NamedTuple):
    """A page, sheet, slide or chapter: its text is `text[start:end]`."""

    kind: PartKind
    #: from 1
    number: int
    #: name of a sheet, title of a slide or chapter, printed number of a page; may be empty
    label: str
    start: int
    end: int


class Heading(NamedTuple):
    """`text[start:end]` is a heading of level 1 to 6."""

    level: int
    start: int
    end: int


class Box(NamedTuple):
    """The position of the word `text[start:end]` on a page of a PDF: points from the top left corner."""

    start: int
    end: int
    #: from 1
    page: int
    x0: float
    y0: float
    x1: float
    y1: float


class Label(NamedTuple):
    """A cell that names a value: the heading of its column or of its row."""

    text: str
    start: int
    end: int
    kind: Literal["row", "column", "term"]


class Merged(NamedTuple):
    """A cell that covers several rows or columns of a table. The covered cells are empty in the text."""

    row: int
    column: int
    rows: int
    columns: int


class Table(NamedTuple):
    """Rows are the lines of `text[start:end]`, and tabs separate their cells. Empty cells keep their tabs."""

    start: int
    end: int
    #: how many rows at the top and columns at the left are labels of the other cells
    header_rows: int = 0
    header_columns: int = 0
    merged: tuple[Merged, ...] = ()

    def labels_at(self, text: str, start: int) -> tuple[Label, ...]:
        """The labels of the cell at `start`, outermost first: columns, then rows. None for a cell that is a label."""
        row = text.count("\n", self.start, start)
        line = text.rfind("\n", self.start, start) + 1 or self.start
        column = text.count("\t", line, start)
        if row < self.header_rows or column < self.header_columns:
            return ()
        found = [self._label(text, above, column, "column") for above in range(self.header_rows)]
        found += [self._label(text, row, left, "row", line) for left in range(self.header_columns)]
        return tuple(label for label in found if label is not None)

    def _label(
        self, text: str, row: int, column: int, kind: Literal["row", "column"], line: int | None = None
    ) -> Label | None:
        for at in self.merged:
            if at.row <= row < at.row + at.rows and at.column <= column < at.column + at.columns:
                row, column, line = at.row, at.column, line if row == at.row else None
                break
        start, end = self._cell(text, row, column, line)
        return Label(text[start:end], start, end, kind) if start < end else None

    def _cell(self, text: str, row: int, column: int, line: int | None) -> tuple[int, int]:
        if line is None:
            line = self.start
            for _ in range(row):
                line = text.find("\n", line, self.end) + 1 or self.end
        end = text.find("\n", line, self.end)
        end = self.end if end < 0 else end
        for _ in range(column):
            line = text.find("\t", line, end) + 1 or end
        stop = text.find("\t", line, end)
        return line, end if stop < 0 else stop


class Boxes(Sequence[Box]):
    """The boxes of a file in the order of the text. 28 bytes each: a thousand pages have half a million."""

    __slots__ = ("_places", "_spans")

    def __init__(self, spans: array[int] | None = None, places: array[float] | None = None) -> None:
        #: start, end, page of each box
        self._spans = array("I") if spans is None else spans
        #: x0, y0, x1, y1 of each box
        self._places = array("f") if places is None else places
        if len(self._spans) // 3 != len(self._places) // 4 or len(self._spans) % 3 or len(self._places) % 4:
            raise ValueError(f"boxes need 3 numbers and 4 places each, got {len(self._spans)} and {len(self._places)}")

    def __len__(self) -> int:
        return len(self._spans) // 3

    @overload
    def __getitem__(self, index: int) -> Box: ...

    @overload
    def __getitem__(self, index: slice) -> list[Box]: ...

    def __getitem__(self, index: int | slice) -> Box | list[Box]:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        n = range(len(self))[index]
        start, end, page = self._spans[3 * n : 3 * n + 3]
        return Box(start, end, page, *(round(place, 2) for place in self._places[4 * n : 4 * n + 4]))

    def __iter__(self) -> Iterator[Box]:
        return (self[n] for n in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Boxes) and (self._spans, self._places) == (other._spans, other._places)

    __hash__ = None  # type: ignore[assignment]

    def at(self, start: int, end: int) -> list[Box]:
        """The words that `text[start:end]` touches."""
        positions = range(len(self))
        first = bisect_right(positions, start, key=lambda n: self._spans[3 * n + 1])
        last = bisect_left(positions, end, key=lambda n: self._spans[3 * n])
        return self[first:last]

    def append(self, start: int, end: int, page: int, place: tuple[float, float, float, float]) -> None:
        """For readers: adds the next word of the text."""
        self._spans.extend((start, end, page))
        self._places.extend(place)

    def to_bytes(self) -> bytes:
        return self._spans.tobytes() + self._places.tobytes()

    @staticmethod
    def from_bytes(packed: bytes) -> Boxes:
        count = len(packed) // 28
        spans, places = array("I"), array("f")
        spans.frombytes(packed[: 12 * count])
        places.frombytes(packed[12 * count :])
        return Boxes(spans, places)


@dataclass(frozen=True, slots=True)
class FileText:
    """What a file says. Every offset points into `text`."""

    #: "pdf", "docx", "xlsx", "pptx", "odt", "ods", "odp", "rtf", "epub", "csv", "text"
    kind: str
    #: one line per paragraph, list item or table row; tabs separate cells
    text: str = ""
    #: the same as CommonMark with tables
    markdown: str = ""
    parts: tuple[Part, ...] = ()
    headings: tuple[Heading, ...] = ()
    tables: tuple[Table, ...] = ()
    #: of PDF only
    boxes: Boxes = field(default_factory=Boxes)
    #: targets as they are written in the file, each once, in order: not checked, not normalized
    links: tuple[str, ...] = ()
    title: str = ""
    author: str = ""
    #: ISO 8601, as precise as the file says; "" if unknown
    created: str = ""
    modified: str = ""
    #: BCP 47, as written in the file
    language: str = ""
    problem: Problem = ""
    #: the file has more text than `text`
    truncated: bool = False
    #: pages, sheets, slides or chapters of the file; `parts` has those that were read
    page_count: int = 0
    #: the text was recognized in images of pages
    ocr: bool = False
    #: width and height of each page of a PDF, in points
    page_sizes: tuple[tuple[float, float], ...] = ()

    def part_at(self, start: int) -> Part | None:
        """The page, sheet, slide or chapter at an offset."""
        n = bisect_right(self.parts, start, key=lambda part: part.start) - 1
        return self.parts[n] if n >= 0 and start < self.parts[n].end else None

    def table_at(self, start: int) -> Table | None:
        n = bisect_right(self.tables, start, key=lambda table: table.start) - 1
        return self.tables[n] if n >= 0 and start < self.tables[n].end else None

    def labels_at(self, start: int, end: int) -> tuple[Label, ...]:
        """The column and row labels of the table cell that contains `text[start:end]`; empty outside of tables."""
        table = self.table_at(start)
        return () if table is None or end > table.end else table.labels_at(self.text, start)
