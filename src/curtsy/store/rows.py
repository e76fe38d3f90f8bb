"""One statement over many rows, in the form each database runs fastest.

A `Bulk` statement reads its rows from a table `v` with named columns. PostgreSQL gets one array per column (`unnest`),
SQLite a VALUES list in a few fixed lengths, so that both find the statement already prepared. Callers sort and
de-duplicate the rows, and lock existing ones with `Lock` first: `curtsy.store` documents the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, bindparam, text

#: lengths of SQLite's VALUES lists: every statement exists in at most these five forms
_LENGTHS = (256, 64, 16, 4, 1)

Row = tuple[Any, ...]


class Bulk:
    """A statement over rows `v(columns)`; `columns` as in CREATE TABLE (`crawl bigint, fp bytea`), in their order."""

    def __init__(self, sql: str, columns: str) -> None:
        self._kinds, arrays, names = _described(columns)
        self._postgresql = f"WITH v AS (SELECT * FROM unnest({arrays}) AS t({names})) {sql}"
        one = f"({', '.join('?' * len(self._kinds))})"
        self._sqlite = {n: f"WITH v({names}) AS (VALUES {', '.join([one] * n)}) {sql}" for n in _LENGTHS}

    def __call__(self, tx: Connection, rows: Sequence[Row]) -> list[Row]:
        """Run over all rows; the rows that the statement returns, if it returns any."""
        if not rows:
            return []
        if tx.dialect.name == "postgresql":
            return _run(tx, self._postgresql, _arrays(self._kinds, rows))
        return _run_parts(tx, self._sqlite, rows)


def _described(columns: str) -> tuple[tuple[str, ...], str, str]:
    """`a text, b int` -> (the types, placeholders of PostgreSQL arrays, the names)."""
    pairs = [column.split() for column in columns.split(", ")]
    arrays = ", ".join(f"%s::{kind}[]" for _, kind in pairs)
    return tuple(kind for _, kind in pairs), arrays, ", ".join(name for name, _ in pairs)


def _arrays(kinds: Sequence[str], rows: Sequence[Row]) -> Row:
    """One PostgreSQL array literal per column. The driver's conversion of lists costs five times as much."""
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


def _run_parts(tx: Connection, statements: Mapping[int, str], rows: Sequence[Row]) -> list[Row]:
    """Run over all rows in as few statements as the fixed lengths allow."""
    found: list[Row] = []
    start = 0
    for length in _LENGTHS:
        while len(rows) - start >= length:
            part = rows[start : start + length]
            found += _run(tx, statements[length], tuple(chain.from_iterable(part)))
            start += length
    return found


class Insert:
    """Insert many rows, ignoring those whose key exists; nothing is returned.

    `newer`: a column by which a newer row replaces an existing one, except where the condition `unless` holds, in which
    `{hex}` is replaced by the expression of the dialect.
    """

    def __init__(
        self, table: str, key: str, columns: str, newer: str = "", unless: str = "", hex: tuple[str, str] = ("", "")
    ) -> None:
        self._kinds, arrays, names = _described(columns)
        changed = ", ".join(f"{name} = excluded.{name}" for name in names.split(", ") if name not in key.split(", "))
        replaces = f"DO UPDATE SET {changed} WHERE excluded.{newer} > {table}.{newer} AND NOT ({unless})"
        conflicts = [f"ON CONFLICT ({key}) {replaces if newer else 'DO NOTHING'}".replace("{hex}", h) for h in hex]
        self._postgresql = f"INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays}) {conflicts[0]}"
        one = f"({', '.join('?' * len(self._kinds))})"
        # Not `executemany`: it hands the interpreter to the event loop and back for every row.
        self._sqlite = {
            n: f"INSERT INTO {table} ({names}) VALUES {', '.join([one] * n)} {conflicts[1]}" for n in _LENGTHS
        }
        #: the row of an object whose attributes have the names of the columns
        self.row: Callable[[Any], Row] = attrgetter(*names.split(", "))

    def __call__(self, tx: Connection, rows: Sequence[Row]) -> None:
        if not rows:
            return
        if tx.dialect.name == "postgresql":
            _run(tx, self._postgresql, _arrays(self._kinds, rows))
        else:
            _run_parts(tx, self._sqlite, rows)


class Lock:
    """Locks existing rows by key until the transaction ends, in the order of the key. Does nothing on SQLite.

    UPDATE ... FROM and DELETE lock rows in whatever order the plan finds them; SELECT ... ORDER BY ... FOR UPDATE does
    not. Text compares by code point, as Python sorts it, whatever the database's collation.
    """

    def __init__(self, table: str, key: str) -> None:
        kinds, _, names = _described(key)
        columns = [f"t.{name}" for name in names.split(", ")]
        same = " AND ".join(f"{column} = v.{column[2:]}" for column in columns)
        order = ", ".join(
            c + (' COLLATE "C"' if kind == "text" else "") for c, kind in zip(columns, kinds, strict=True)
        )
        self._lock = Bulk(f"SELECT 1 FROM {table} t JOIN v ON {same} ORDER BY {order} FOR UPDATE OF t", key)

    def __call__(self, tx: Connection, keys: Iterable[Row]) -> None:
        if is_postgresql(tx):
            self._lock(tx, unique_sorted(keys))


class Delete(Lock):
    """Deletes rows by key, after locking them in the order of the key."""

    def __init__(self, table: str, key: str) -> None:
        super().__init__(table, key)
        _, _, names = _described(key)
        self._keys = f"SELECT {names} FROM {table}"
        self._delete = Bulk(f"DELETE FROM {table} WHERE ({names}) IN (SELECT {names} FROM v)", key)

    def __call__(self, tx: Connection, keys: Iterable[Row]) -> None:
        wanted = unique_sorted(keys)
        super().__call__(tx, wanted)
        self._delete(tx, wanted)

    def where(self, tx: Connection, condition: str, given: Mapping[str, Any], limit: int | None = None) -> int:
        """Delete the rows, at most `limit`, that meet a condition; returns how many."""
        some = "" if limit is None else f" LIMIT {limit:d}"
        query = text(f"{self._keys} WHERE {condition}{some}")
        names = [name for name, value in given.items() if isinstance(value, list | tuple)]
        query = query.bindparams(*(bindparam(name, expanding=True) for name in names))
        found = [tuple(row) for row in tx.execute(query, dict(given))]
        self(tx, found)
        return len(found)


def settled_to(tx: Connection, table: str, crawl: int) -> int:
    """The number of the newest row of a crawl, or 0: no row with a lower number will appear any more.

    PostgreSQL assigns numbers before commits, and commits finish in any order, so this waits for current writers. On
    SQLite there is one writer at a time.
    """
    if is_postgresql(tx):
        tx.exec_driver_sql(f"LOCK TABLE {table} IN SHARE MODE")
    return int(tx.execute(text(f"SELECT max(n) FROM {table} WHERE crawl = :crawl"), {"crawl": crawl}).scalar() or 0)


def is_postgresql(tx: Connection) -> bool:
    return tx.dialect.name == "postgresql"


def unique_sorted(keys: Iterable[Any]) -> list[Any]:
    return sorted(set(keys))
