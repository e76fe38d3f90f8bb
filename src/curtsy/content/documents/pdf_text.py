"""Writes the blocks of a PDF page as paragraphs, headings and tables, with the box of every word."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from curtsy.content.documents.builder import Builder, clean
from curtsy.content.documents.headers import guess_header_rows
from curtsy.content.documents.pdf_layout import BULLETS, Block, Grid, Row, Word

#: times the usual font size -> level of a heading
_LEVELS = ((1.75, 1), (1.35, 2), (1.12, 3))
_LONGEST_HEADING = 160
_HYPHENS = ("-", "\u2010", "\u00ad")
_MOST_HYPHENATED = 50_000
_SENTENCE_ENDS = tuple('.!?:。！？»”“")')
#: fewer lines do not show the usual distance of two lines
_FEW_LINES = 12
#: in font sizes: a wider distance after the end of a sentence separates two paragraphs, if there are few lines
_WIDE = 1.6


class Writer:
    """Paragraphs across lines; a heading ends one, and so do an indent, a short line or a gap."""

    def __init__(self, builder: Builder, body_size: float) -> None:
        self._builder = builder
        self._body_size = body_size
        #: words with a hyphen inside of a line: `well-` + `known` keeps its hyphen if `well-known` was seen
        self._hyphenated: set[str] = set()
        self._titled = False

    def page(self, number: int, columns: list[list[Block]]) -> None:
        for column in columns:
            self._column(number, column)

    def _column(self, number: int, blocks: list[Block]) -> None:
        rows = [block for block in blocks if isinstance(block, Row)]
        right = max((row.runs[-1].x1 for row in rows), default=0.0)
        left = min((row.runs[0].x0 for row in rows), default=0.0)
        pitch = _pitch(rows)
        few = len(rows) < _FEW_LINES
        open_: list[Row] = []
        for block in blocks:
            if open_ and (isinstance(block, Grid) or not self._continues(open_, block, left, right, pitch, few)):
                self._paragraph(number, open_)
                open_ = []
            if isinstance(block, Grid):
                self._table(number, block)
            else:
                open_.append(block)
        if open_:
            self._paragraph(number, open_)

    def _continues(self, open_: Sequence[Row], row: Row, left: float, right: float, pitch: float, few: bool) -> bool:
        last = open_[-1]
        size, before = row.runs[0].words[0].size, last.runs[-1].words[-1].size
        if abs(size - before) > 0.12 * max(size, before) or row.y0 < last.y0:
            return False
        if row.y0 - last.y0 > 1.35 * max(pitch, 0.9 * (last.y1 - last.y0)):
            return False
        if few and row.y0 - last.y0 > _WIDE * size and last.runs[-1].words[-1].text.endswith(_SENTENCE_ENDS):
            return False
        if self._level(open_) != self._level([row]):
            return False
        if self._level(open_):
            return True
        first = row.runs[0].words[0]
        if first.text in BULLETS or len(row.runs) > 1 or len(last.runs) > 1:
            return False
        # The first word of this line would have fitted on the last: a line that was ended on purpose.
        room = right - last.runs[-1].x1 - 0.3 * size
        if room > first.x1 - first.x0 and room > 0.12 * (right - left):
            return False
        # An indent starts a paragraph, unless all lines after the first have it: an item of a list.
        indent = row.runs[0].x0 - (open_[1] if len(open_) > 1 else last).runs[0].x0
        return not (indent > 0.8 * size and len(open_) > 1)

    def _level(self, rows: Sequence[Row]) -> int:
        first = rows[0].runs[0].words[0]
        if first.size <= 1.1 * self._body_size and not first.bold:
            return 0
        words: list[Word] = []
        length = 0
        for row in rows:
            for run in row.runs:
                words += run.words
                length += sum(len(word.text) + 1 for word in run.words)
            if length > _LONGEST_HEADING:
                return 0  # the rest of a long paragraph is not looked at, or its cost would be quadratic
        if not any(word.text[0].isalpha() for word in words):
            return 0
        if any("...." in word.text for word in words) or sum(word.text == "." for word in words) > 2:
            return 0  # an entry of the contents
        size = max(word.size for word in words)
        for times, level in _LEVELS:
            if size > times * self._body_size and first.size > 1.1 * self._body_size:
                return level
        return 4 if length < 80 and words[-1].text[-1] not in ".,;:" and all(word.bold for word in words) else 0

    def _paragraph(self, number: int, rows: Sequence[Row]) -> None:
        lines = [[word for run in row.runs for word in run.words] for row in rows]
        level = self._level(rows)
        item = ""
        if not level and lines[0][0].text in BULLETS and len(lines[0]) > 1:
            item, lines[0] = "- ", lines[0][1:]
        pieces = self._pieces(lines)
        text = "".join(piece for piece, _ in pieces)
        start, end = self._builder.paragraph(text, level, item)
        if level in (1, 2) and not self._titled and number == 1:
            self._titled = True
            self._builder.facts(title=text)
        self._boxes(number, start, end, pieces)

    def _pieces(self, lines: Sequence[Sequence[Word]]) -> list[tuple[str, Word | None]]:
        """The words of the lines with blanks between them, as they are written; hyphens at line ends are removed."""
        pieces: list[tuple[str, Word | None]] = []
        joined = False
        for n, line in enumerate(lines):
            for m, word in enumerate(line):
                if pieces and not joined:
                    pieces.append((" ", None))
                joined = False
                text = clean(word.text)
                if m == len(line) - 1 and n + 1 < len(lines):
                    text, joined = self._line_end(word.text, lines[n + 1][0].text)
                elif "-" in text[1:-1]:
                    self._remember(text)
                pieces.append((text, word))
        return pieces

    def _line_end(self, last: str, first: str) -> tuple[str, bool]:
        """The last word of a line, and whether the first of the next is its second half."""
        if last.endswith(_HYPHENS) and len(last) > 2 and last[-2].isalpha() and first[:1].islower():
            whole = (last[:-1] + "-" + first).strip(".,;:!?()\"'").lower()
            return (clean(last[:-1]) + "-" if whole in self._hyphenated else clean(last[:-1])), True
        return clean(last), last.endswith("-") and len(last) > 2 and last[-2].isalnum() and first[:1].isalnum()

    def _remember(self, word: str) -> None:
        if len(self._hyphenated) < _MOST_HYPHENATED:
            self._hyphenated.add(word.strip(".,;:!?()\"'").lower())

    def _boxes(self, number: int, start: int, end: int, pieces: Sequence[tuple[str, Word | None]]) -> None:
        at = start
        for text, word in pieces:
            if word is not None and text:
                self._builder.word(at, min(at + len(text), end), number, (word.x0, word.y0, word.x1, word.y1))
            at += len(text)

    def _table(self, number: int, grid: Grid) -> None:
        texts = [[" ".join(filter(None, (clean(word.text) for word in cell))) for cell in row] for row in grid.rows]
        at = self._builder.size
        is_bold = all(word.bold for cell in grid.rows[0] for word in cell)
        is_marked = is_bold and not all(word.bold for row in grid.rows for cell in row for word in cell)
        self._builder.table(texts, 1 if is_marked else guess_header_rows(texts, needs_numbers=True))
        for row, cells in zip(grid.rows, texts, strict=True):
            for cell, text in zip(row, cells, strict=True):
                place = at
                for word in cell:
                    if length := len(clean(word.text)):
                        self._builder.word(place, place + length, number, (word.x0, word.y0, word.x1, word.y1))
                        place += length + 1
                at += len(text) + 1
            filled = max((n + 1 for n, text in enumerate(cells) if text), default=0)
            at -= len(cells) - max(1, filled)


def _pitch(rows: Sequence[Row]) -> float:
    """The usual distance of two lines."""
    steps = [two.y0 - one.y0 for one, two in pairwise(rows) if two.y0 > one.y0]
    return median(steps) if steps else 0.0
