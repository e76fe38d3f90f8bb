"""Collects what a reader finds, block by block, as text and as Markdown, within the limits of the file."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

from curtsy.content.documents.headers import LOOKED_ROWS, guess_header_columns, guess_header_rows
from curtsy.content.documents.model import Boxes, FileText, Heading, Limits, Merged, Part, PartKind, Problem, Table

#: a reader checks its time limit after this number of blocks
_BLOCKS_PER_LOOK = 64
#: a reader stops at this share of its CPU time, and returns what it has
_SOFT_SHARE = 0.8
#: recognizing the text of a page takes at most this many times as long as that of an earlier one
_SLOWER_PAGE = 1.5
_MOST_LINKS = 50_000
_MOST_LINK_CHARACTERS = 4_000
_MOST_FACT_CHARACTERS = 1_000
#: rows of a wider table are not padded
_MOST_PADDED_COLUMNS = 50

#: control characters, lone surrogates and noncharacters become blanks; tabs and line ends are layout
UNWANTED = dict.fromkeys((*range(32), *range(127, 160), *range(55296, 57344), 65534, 65535), " ") | {
    0xAD: None,  # soft hyphen
    0xFEFF: None,
    0x200B: None,
}
_SPECIAL = re.compile(r"([\\`*\[\]<])")
#: what would begin a heading, list, quotation, rule or fence; the group is what a backslash goes before
_LINE_START = re.compile(r"(?:[0-9]{1,9}(?=[.)](?:\s|$)))?((?:#{1,6}|[-+>.)])(?=\s|$)|={3,}|-{3,}|~{3})")


class Unreadable(Exception):
    """Ends the reading of a file. What was read before it is kept."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem: Problem = problem


def clean(text: str) -> str:
    """On one line, blanks collapsed, without characters that have no glyph."""
    return (
        " ".join(text.translate(UNWANTED).split())
        if not text.isascii() or not text.isprintable()
        else (" ".join(text.split()))
    )


def escaped(line: str) -> str:
    """As CommonMark: the line begins nothing but a paragraph, and its marks are characters."""
    line = _SPECIAL.sub(r"\\\1", line)
    found = _LINE_START.match(line)
    return line if found is None else f"{line[: found.start(1)]}\\{line[found.start(1) :]}"


class Builder:
    """`paragraph`, `table`, `begin`, `link` and `facts` while reading; `result` at the end."""

    def __init__(self, kind: str, limits: Limits) -> None:
        self.kind = kind
        self.limits = limits
        #: characters of the text so far
        self.size = 0
        self.boxes = Boxes()
        #: of PDF: width and height
        self.page_sizes: list[tuple[float, float]] = []
        self.page_count = 0
        #: the text was recognized in pictures of pages
        self.ocr = False
        self.recognized_pages = 0
        self._slowest_page = 0.0
        #: the file has more text than what was read, though nothing is wrong with it
        self.left_out = False
        self._seconds = limits.seconds
        self._started = time.process_time()
        self._lines: list[str] = []
        self._blocks: list[str] = []
        self._parts: list[Part] = []
        self._headings: list[Heading] = []
        self._tables: list[Table] = []
        self._links: dict[str, None] = {}
        self._facts: dict[str, str] = {}
        self._until_look = _BLOCKS_PER_LOOK
        self._in_list = False

    def paragraph(self, text: str, level: int = 0, item: str = "") -> tuple[int, int]:
        """One block: a heading of `level`, or an item of a list with the mark `item`. Returns its span."""
        line = clean(text)
        if not line:
            return self.size, self.size
        start = self._line(line)
        if level:
            self._headings.append(Heading(min(level, 6), start, start + len(line)))
        mark = f"{'#' * min(level, 6)} " if level else item
        if item and self._in_list and self._blocks:
            self._blocks[-1] += f"\n{mark}{escaped(line)}"
        else:
            self._blocks.append(mark + (_SPECIAL.sub(r"\\\1", line) if level else escaped(line)))
        self._in_list = bool(item)
        return start, start + len(line)

    def table(
        self,
        rows: Iterable[Sequence[str]],
        header_rows: int | None = None,
        header_columns: int | None = None,
        merged: Sequence[Merged] = (),
    ) -> None:
        """Rows of cells, one after the other. Labels are guessed where they are None. One column is paragraphs."""
        cleaned = ([clean(cell) if cell else "" for cell in row] for row in rows)
        first = list(islice(cleaned, LOOKED_ROWS))
        width = max((n + 1 for row in first for n, cell in enumerate(row) if cell), default=0)
        if width <= 1:
            for row in chain(first, cleaned):
                self.paragraph("\t".join(row))
            return
        first = [row[:width] for row in first]
        above = guess_header_rows(first) if header_rows is None else header_rows
        left = guess_header_columns(first, above) if header_columns is None else header_columns
        self._in_list = False
        start, marked = self.size, _MarkdownTable(width, above)
        try:
            for row in chain(first, cleaned):
                self._line("\t".join(row).rstrip("\t"))
                marked.add(row)
        finally:
            if self.size > start:
                self._tables.append(Table(start, self.size - 1, above, left, tuple(merged)))
                self._blocks.append("\n".join(marked.lines))

    def lines(self, text: str) -> None:
        """Text that keeps its lines and blanks."""
        room = self.limits.characters - self.size
        self._lines.append(text[:room])
        self._blocks.append(text[:room])
        self.size += min(len(text), room) + 1
        if len(text) > room:
            raise Unreadable("too_large")

    def word(self, start: int, end: int, page: int, place: tuple[float, float, float, float]) -> None:
        if start < end:
            self.boxes.append(start, end, page, place)

    def begin(self, kind: PartKind, label: str = "") -> None:
        """What follows belongs to the next page, sheet, slide or chapter."""
        self.end()
        if len(self._parts) >= self.limits.pages:
            raise Unreadable("too_many_pages")
        self._in_list = False
        label = clean(label)[:_MOST_FACT_CHARACTERS]
        self._parts.append(Part(kind, len(self._parts) + 1, label, self.size, -1))
        self.look()

    def end(self) -> None:
        """Ends the open part."""
        if self._parts and self._parts[-1].end < 0:
            part = self._parts[-1]
            self._parts[-1] = part._replace(end=max(part.start, self.size - 1))

    def name_part(self, label: str) -> None:
        """The title of the open part, if it has none."""
        if self._parts and not self._parts[-1].label:
            self._parts[-1] = self._parts[-1]._replace(label=clean(label)[:_MOST_FACT_CHARACTERS])

    def link(self, href: str) -> None:
        href = clean(href)
        if href and not href.startswith("#") and len(href) <= _MOST_LINK_CHARACTERS and len(self._links) < _MOST_LINKS:
            self._links[href] = None

    def facts(self, **facts: str | None) -> None:
        """Title, author, created, modified, language: the first value of each counts."""
        for name, value in facts.items():
            if value and (value := clean(value)[:_MOST_FACT_CHARACTERS]):
                self._facts.setdefault(name, value)

    def look(self) -> None:
        """Ends the reading if its time is over."""
        self._until_look = _BLOCKS_PER_LOOK
        if time.process_time() - self._started > _SOFT_SHARE * self._seconds:
            raise Unreadable("timeout")

    @contextmanager
    def recognizing(self) -> Iterator[None]:
        """Context of recognizing the text of a page, which has a separate time limit.

        Ends the reading if the next page may take longer than the remaining time.
        """
        self.ocr = True
        self._seconds = self.limits.most_seconds
        self.recognized_pages += 1
        before = time.process_time()
        if before - self._started + _SLOWER_PAGE * self._slowest_page > self._seconds:
            raise Unreadable("timeout")
        yield
        self._slowest_page = max(self._slowest_page, time.process_time() - before)

    def _line(self, line: str) -> int:
        """Adds a line; returns where it starts."""
        self._until_look -= 1
        if not self._until_look:
            self.look()
        start = self.size
        if start + len(line) > self.limits.characters:
            raise Unreadable("too_large")
        self._lines.append(line)
        self.size += len(line) + 1
        return start

    def result(self, problem: Problem = "") -> FileText:
        self.end()
        text = "\n".join(self._lines)
        if not problem and not text.strip():
            problem = "no_text"
        facts: dict[str, Any] = self._facts
        size = len(text)
        parts = [part._replace(start=min(part.start, size), end=min(part.end, size)) for part in self._parts]
        parts = parts or _sections(self._headings, text)
        return FileText(
            self.kind, text, "\n\n".join(self._blocks) + "\n" * bool(self._blocks),
            tuple(parts), tuple(self._headings), tuple(self._tables), self.boxes, tuple(self._links),
            problem=problem, truncated=self.left_out or problem not in ("", "no_text"),
            page_count=max(self.page_count, len(self._parts), bool(text)), ocr=self.ocr,
            page_sizes=tuple(self.page_sizes), **facts,
        )  # fmt: skip


def _sections(headings: Sequence[Heading], text: str) -> list[Part]:
    """The parts of a file without pages: they start at the headings of its highest level, if it has several."""
    if not text:
        return []
    levels = sorted({heading.level for heading in headings})
    tops = next(
        (found for level in levels if len(found := [one for one in headings if one.level == level]) > 1), headings[:1]
    )
    starts = [(one.start, text[one.start : one.end][:_MOST_FACT_CHARACTERS]) for one in tops]
    if not starts or starts[0][0] > 0:
        starts.insert(0, (0, ""))
    ends = [start - 1 for start, _ in starts[1:]] + [len(text)]
    spans = zip(starts, ends, strict=True)
    return [Part("section", n, label, start, end) for n, ((start, label), end) in enumerate(spans, 1)]


class _MarkdownTable:
    """The lines of a table. One long row must not widen thousands of short ones."""

    def __init__(self, width: int, header_rows: int) -> None:
        self.lines: list[str] = [] if header_rows else [f"|{'  |' * width}", f"|{' --- |' * width}"]
        self._width = width
        self._padding = width if width <= _MOST_PADDED_COLUMNS else 0

    def add(self, row: Sequence[str]) -> None:
        cells = [_SPECIAL.sub(r"\\\1", cell).replace("|", "\\|") for cell in row]
        cells += [""] * (self._padding - len(cells))
        self.lines.append(f"| {' | '.join(cells)} |")
        if len(self.lines) == 1:
            self.lines.append(f"|{' --- |' * self._width}")
