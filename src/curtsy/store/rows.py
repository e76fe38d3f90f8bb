"""One statement over many rows, in the form each database runs fastest.

A `Bulk` statement reads its rows from a table `v` with named columns. PostgreSQL gets one array per column (`unnest`),
SQLite a VALUES list in a few fixed lengths, so that both find the statement already prepared. Callers sort and
de-duplicate: unsorted multi-row writes of two processes deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import Connection

#: lengths of SQLite's VALUES lists: every statement exists in at most these five forms
_LENGTHS = (256, 64, 16, 4, 1)

Row = tuple[Any, ...]


class Bulk:
    """A statement over rows `v(columns)`; columns are given as name -> PostgreSQL type, in the order of the rows."""

    def __init__(self, sql: str, **columns: str) -> None:
        names = ", ".join(columns)
        arrays = ", ".join(f"%s::{kind}[]" for kind in columns.values())
        self._width = len(columns)
        self._kinds = tuple(columns.values())
        self._postgresql = f"WITH v AS (SELECT * FROM unnest({arrays}) AS t({names})) {sql}"
        one = f"({', '.join('?' * self._width)})"
        self._sqlite = {n: f"WITH v({names}) AS (VALUES {', '.join([one] * n)}) {sql}" for n in _LENGTHS}

    def __call__(self, tx: Connection, rows: Sequence[Row]) -> list[Row]:
        """Run over all rows; the rows that the statement returns, if it returns any."""
        if not rows:
            return []
        if tx.dialect.name == "postgresql":
            return _run(tx, self._postgresql, _arrays(self._kinds, rows))
        found: list[Row] = []
        start = 0
        for length in _LENGTHS:
            while len(rows) - start >= length:
                part = rows[start : start + length]
                found += _run(tx, self._sqlite[length], tuple(chain.from_iterable(part)))
                start += length
        return found


def _arrays(kinds: Sequence[str], rows: Sequence[Row]) -> Row:
    """One PostgreSQL array literal per column. The driver's own way through lists costs five times as much."""
    return tuple(map(_array, kinds, zip(*rows, strict=True)))


def _array(kind: str, values: Row) -> str | list[Any]:
    write = _WRITERS.get(kind)
    if write is None:
        return list(values)
    if None in values:
        return "{" + ",".join("NULL" if value is None else write((value,)) for value in values) + "}"
    return "{" + write(values) + "}"


def _texts(values: Sequence[str]) -> str:
    joined = "".join(values)
    if '"' in joined or "\\" in joined:
        values = [value.replace("\\", "\\\\").replace('"', '\\"') for value in values]
    return '"' + '","'.join(values) + '"'


def _bytes(values: Sequence[bytes]) -> str:
    return '"\\\\x' + '","\\\\x'.join([value.hex() for value in values]) + '"'


_WRITERS: dict[str, Callable[[Sequence[Any]], str]] = {
    "bigint": lambda values: ",".join(map(str, values)),
    "int": lambda values: ",".join(map(str, values)),
    "text": _texts,
    "bytea": _bytes,
}


def _run(tx: Connection, sql: str, parameters: Row) -> list[Row]:
    # The driver's own cursor: SQLAlchemy's results would cost a quarter of a commit.
    cursor = tx.connection.cursor()
    cursor.execute(sql, parameters)
    rows = list(cursor.fetchall()) if cursor.description else []
    cursor.close()
    return rows


class Insert:
    """Insert many rows, ignoring those whose key exists; nothing is returned, which is cheaper than a Bulk."""

    def __init__(self, table: str, key: str, **columns: str) -> None:
        names = ", ".join(columns)
        conflict = f"ON CONFLICT ({key}) DO NOTHING"
        arrays = ", ".join(f"%s::{kind}[]" for kind in columns.values())
        self._kinds = tuple(columns.values())
        self._postgresql = f"INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays}) {conflict}"
        self._sqlite = f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))}) {conflict}"

    def __call__(self, tx: Connection, rows: Sequence[Row]) -> None:
        if not rows:
            return
        if tx.dialect.name == "postgresql":
            _run(tx, self._postgresql, _arrays(self._kinds, rows))
        else:
            cursor = tx.connection.cursor()
            cursor.executemany(self._sqlite, rows)
            cursor.close()


def is_postgresql(tx: Connection) -> bool:
    return tx.dialect.name == "postgresql"


def unique_sorted(keys: Iterable[Any]) -> list[Any]:
    return sorted(set(keys))
