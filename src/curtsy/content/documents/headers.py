"""Which rows and columns of a table without marks are its labels."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: rows that are looked at
LOOKED_ROWS = 200
_NUMBER = re.compile(r"[^\w]{0,3}[0-9][0-9.,:/ %-]{0,30}[^\d\n]{0,4}")


def is_number(cell: str) -> bool:
    """Whether a cell holds an amount or a date, with a unit or not.

    >>> [is_number(cell) for cell in ("1,200.50 €", "$3", "2024-05-01", "12 kg", "Price 2024", "")]
    [True, True, True, True, False, False]
    """
    return len(cell) < 40 and _NUMBER.fullmatch(cell) is not None


def guess_header_rows(rows: Sequence[Sequence[str]], needs_numbers: bool = False) -> int:
    """1 if the first row names the columns: it has no numbers, no gaps and no repetition.

    `needs_numbers`: some column must have numbers below its name, because a table of text alone may have no names.
    """
    if len(rows) < 2:
        return 0
    first = rows[0]
    # The corner above the row labels may be empty.
    named = [cell for cell in first[1:] if cell] if first and not first[0] else list(first)
    width = max(len(row) for row in rows)
    if len(named) < max(2, width - 1) or not all(named) or any(map(_is_value, named)):
        return 0
    if len(set(named)) < len(named):
        return 0
    if any(_is_year(cell) and not _is_of_numbers(rows, column) for column, cell in enumerate(first)):
        return 0  # `Founded | 1954` above other facts is a fact, `Emissions | 2023` above numbers names a column
    return int(not needs_numbers or any(_is_of_numbers(rows, column) for column in range(width)))


def _is_of_numbers(rows: Sequence[Sequence[str]], column: int) -> bool:
    cells = [row[column] for row in rows[1:] if len(row) > column and row[column]]
    return bool(cells) and 2 * sum(map(is_number, cells)) > len(cells)


def _is_value(cell: str) -> bool:
    return (is_number(cell) and not _is_year(cell)) or len(cell) > 100


def _is_year(cell: str) -> bool:
    return len(cell) == 4 and cell.isdigit() and cell[:2] in ("18", "19", "20", "21")


def guess_header_columns(rows: Sequence[Sequence[str]], above: int) -> int:
    """1 if the first column names the rows: text, mostly filled, each name once."""
    body = rows[above : above + LOOKED_ROWS]
    names = [row[0] for row in body if row and row[0]]
    if not body or len(names) < 0.8 * len(body) or max(len(row) for row in body) < 2:
        return 0
    if sum(map(is_number, names)) > 0.2 * len(names):
        # Years and dates name rows too, where all other columns have numbers and the heading row is text.
        return int(above > 0 and len(set(names)) == len(names) and all(map(_is_year, names)))
    return int(len(set(names)) >= 0.8 * len(names) and max(map(len, names)) <= 200)
