"""The reading order of a page and its tables, by the places of its words.

Words that follow each other with small gaps make a run. Runs at the same height make a row. A strip of the page that
few runs cross, with lines of text on both sides, separates columns: they are read one after the other. Consecutive rows
of several aligned runs make a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

#: in font sizes: a wider gap between two words separates two runs. Justified lines have gaps of up to 0.8.
_RUN_GAP = 0.95
#: between the mark of a list item and its text
_ITEM_GAP = 3.0
BULLETS = frozenset("•◦▪‣⁃–*·∙●○■□")
#: in points: width of the strips that are looked at to find columns
_BIN = 4.0
#: in font sizes: narrower strips do not separate columns
_GUTTER = 0.9
#: share of the lines that may cross a strip between columns
_MOST_CROSSING = 0.4
#: words per run that make lines of text, not cells
_TEXT_WORDS = 4
_MOST_DEPTH = 6


class Word(NamedTuple):
    """Points from the top left corner of the page."""

    x0: float
    y0: float
    x1: float
    y1: float
    size: float
    text: str
    bold: bool = False


class Sheet(NamedTuple):
    """A page as it was read."""

    width: float
    height: float
    words: list[Word]
    links: list[str]
    #: has next to no text, but a picture
    is_picture: bool = False
    #: its words were recognized in a picture
    is_recognized: bool = False


class Run(NamedTuple):
    """Words of one line without a wide gap."""

    x0: float
    y0: float
    x1: float
    y1: float
    words: list[Word]

    @property
    def size(self) -> float:
        return max(word.size for word in self.words)


class Row(NamedTuple):
    """Runs at one height, from left to right."""

    y0: float
    y1: float
    runs: list[Run]


class Grid(NamedTuple):
    """A table: rows of cells; each cell has the words of its lines."""

    rows: list[list[list[Word]]]


Block = Row | Grid


def blocks_of(sheet: Sheet) -> list[list[Block]]:
    """The columns of the page in reading order; each has its rows and tables from top to bottom."""
    runs = _runs(sheet.words)
    return [_with_tables(_rows(column)) for column in _columns(runs, 0)]


def _runs(words: Iterable[Word]) -> list[Run]:
    """Words in the order of the file, split where the next one is elsewhere or after a wide gap."""
    found: list[Run] = []
    open_: list[Word] = []
    for word in words:
        if open_:
            last = open_[-1]
            gap, size = word.x0 - last.x1, max(word.size, last.size)
            if not (_same_line(last, word) and -0.5 * size < gap < _RUN_GAP * size):
                found.append(_run(open_))
                open_ = []
        open_.append(word)
    if open_:
        found.append(_run(open_))
    return found


def _run(words: list[Word]) -> Run:
    return Run(words[0].x0, min(w.y0 for w in words), words[-1].x1, max(w.y1 for w in words), words)


def _same_line(one: Word | Run | Row, other: Word | Run | Row) -> bool:
    overlap = min(one.y1, other.y1) - max(one.y0, other.y0)
    return overlap > 0.5 * min(one.y1 - one.y0, other.y1 - other.y0)


def _rows(runs: Sequence[Run]) -> list[Row]:
    """Runs at one height, top to bottom; runs that touch are joined."""
    rows: list[Row] = []
    for run in sorted(runs, key=lambda run: (run.y0 + run.y1, run.x0)):
        if rows and _same_line(rows[-1], run):
            row = rows[-1]
            rows[-1] = Row(min(row.y0, run.y0), max(row.y1, run.y1), [*row.runs, run])
        else:
            rows.append(Row(run.y0, run.y1, [run]))
    return [Row(row.y0, row.y1, _joined(sorted(row.runs, key=lambda run: run.x0))) for row in rows]


def _joined(runs: list[Run]) -> list[Run]:
    found = runs[:1]
    for run in runs[1:]:
        last = found[-1]
        widest = _ITEM_GAP if len(last.words) == 1 and last.words[0].text in BULLETS else _RUN_GAP
        if run.x0 - last.x1 < widest * max(run.words[0].size, last.words[-1].size):
            found[-1] = Run(
                last.x0, min(last.y0, run.y0), max(last.x1, run.x1), max(last.y1, run.y1), last.words + run.words
            )
        else:
            found.append(run)
    return found


def _columns(runs: list[Run], depth: int) -> list[list[Run]]:
    """The runs in pieces that are read one after the other."""
    if len(runs) < 6 or depth >= _MOST_DEPTH:
        return [runs] if runs else []
    gutter = _gutter(runs)
    if gutter is None:
        return [runs]
    pieces: list[list[Run]] = []
    band: list[Run] = []
    whole: list[Run] = []
    for run in sorted(runs, key=lambda run: run.y0 + run.y1):
        if run.x0 < gutter < run.x1:
            if band:
                _add_band(pieces, whole, band, gutter, depth)
                band = []
            whole.append(run)
        else:
            band.append(run)
    if band:
        _add_band(pieces, whole, band, gutter, depth)
    if whole:
        pieces.append(whole)
    return pieces


def _add_band(pieces: list[list[Run]], whole: list[Run], band: list[Run], gutter: float, depth: int) -> None:
    """The part of a page between two lines over its whole width. Changes `pieces` and `whole`."""
    left, right = [run for run in band if run.x1 <= gutter], [run for run in band if run.x0 >= gutter]
    if not (_is_text(left) and _is_text(right)):
        whole.extend(band)
        return
    if whole:
        pieces.append(whole[:])
        whole.clear()
    pieces.extend(_columns(left, depth + 1))
    pieces.extend(_columns(right, depth + 1))


def _is_text(runs: list[Run]) -> bool:
    """Lines of text, not cells of a table."""
    if len(runs) < 2:
        return False
    width = max(run.x1 for run in runs) - min(run.x0 for run in runs)
    # A side may have columns of its own: its lines need not be as wide as it is.
    usual = median(run.x1 - run.x0 for run in runs)
    return median(len(run.words) for run in runs) >= _TEXT_WORDS and usual > 0.25 * width


def _gutter(runs: list[Run]) -> float | None:
    """The middle of the strip that the fewest lines cross, if there is text on both sides of it."""
    left, right = min(run.x0 for run in runs), max(run.x1 for run in runs)
    bins = int((right - left) / _BIN) + 1
    if bins < 10 or bins > 5_000:
        return None
    covered = [0] * (bins + 1)
    for run in runs:
        covered[int((run.x0 - left) / _BIN)] += 1
        covered[min(bins, int((run.x1 - left) / _BIN) + 1)] -= 1
    for n in range(1, bins + 1):
        covered[n] += covered[n - 1]
    middle = range(bins // 6, bins - bins // 6)
    fewest = min(covered[n] for n in middle)
    most = max(covered)
    if fewest > _MOST_CROSSING * most:
        return None
    at, width = _widest(covered, middle, fewest)
    size = median(run.words[0].size for run in runs)
    # A bin that a run only touches counts as covered: the strip is up to two bins wider.
    if (width + 2) * _BIN < _GUTTER * size:
        return None
    return left + (at + width / 2) * _BIN


def _widest(covered: list[int], among: range, level: int) -> tuple[int, int]:
    """Where the longest sequence of bins at that level starts, and its length."""
    best, best_at, length = 0, 0, 0
    for n in among:
        length = length + 1 if covered[n] == level else 0
        if length > best:
            best, best_at = length, n - length + 1
    return best_at, best


def _with_tables(rows: list[Row]) -> list[Block]:
    blocks: list[Block] = []
    n = 0
    while n < len(rows):
        end = _table_end(rows, n)
        grid = _grid(rows[n:end]) if end - n >= 2 else None
        if grid is None:
            blocks.append(rows[n])
            n += 1
        else:
            blocks.append(grid)
            n = end
    return blocks


def _table_end(rows: list[Row], start: int) -> int:
    """Where the rows with several runs end. One row with a single run may be among them: a cell of two lines."""
    end = n = start
    while n < len(rows):
        if n > start and rows[n].y0 - rows[n - 1].y1 > 2.5 * (rows[n - 1].y1 - rows[n - 1].y0):
            break
        if len(rows[n].runs) >= 2:
            end = n + 1
        elif n == start or n - end >= 2:
            break
        n += 1
    return end


def _grid(rows: list[Row]) -> Grid | None:
    """The rows as a table, or None if their runs are not aligned."""
    several = [row for row in rows if len(row.runs) >= 2]
    usual = max(len(row.runs) for row in several)
    if usual < 2 or len(several) < 2 or 2 * len(several) < len(rows) or _is_leader(several):
        return None
    columns = _intervals([row for row in several if len(row.runs) >= max(2, usual - 1)])
    if len(columns) < 2 or len(columns) > 3 * usual:
        return None
    if sum(len(row.runs) for row in several) < 0.4 * len(columns) * len(several):
        return None
    cells: list[list[list[Word]]] = []
    last: Row | None = None
    for row in rows:
        made = _cells(row, columns)
        is_rest = last is not None and not made[0] and cells and row.y0 - last.y1 < 0.25 * (row.y1 - row.y0)
        if is_rest and len(row.runs) < len(columns) and all(cells[-1][n] for n, cell in enumerate(made) if cell):
            for n, cell in enumerate(made):
                cells[-1][n].extend(cell)
        else:
            cells.append(made)
        last = row
    return Grid(cells) if len(cells) >= (2 if len(columns) > 2 else 3) else None


def _is_leader(rows: list[Row]) -> bool:
    """A table of contents: dots lead to a page number."""
    dotted = sum(any(_is_dots(word.text) for run in row.runs for word in run.words) for row in rows)
    return 2 * dotted > len(rows)


def _is_dots(word: str) -> bool:
    return word == "." or word.count(".") > 3


def _intervals(rows: list[Row]) -> list[tuple[float, float]]:
    """The columns: runs that are aligned, even in part, are in one."""
    found: list[tuple[float, float]] = []
    for x0, x1 in sorted((run.x0, run.x1) for row in rows for run in row.runs):
        if found and x0 < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], x1))
        else:
            found.append((x0, x1))
    return found


def _cells(row: Row, columns: list[tuple[float, float]]) -> list[list[Word]]:
    cells: list[list[Word]] = [[] for _ in columns]
    for run in row.runs:
        inside = [n for n, (x0, x1) in enumerate(columns) if run.x0 < x1 and run.x1 > x0]
        nearest = min(range(len(columns)), key=lambda n: abs(columns[n][0] - run.x0))
        cells[inside[0] if inside else nearest].extend(run.words)
    return cells
