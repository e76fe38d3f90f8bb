"""One statement over many rows, in the form each database runs fastest.

A `Bulk` statement reads its rows from a table `v` with named columns. PostgreSQL gets one array per column (`unnest`),
SQLite a VALUES list in a few fixed lengths, so that both find the statement already prepared. Callers sort and
de-duplicate the rows, and lock existing ones with `Lock` first: `curtsy.store` documents the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import Connection, bindparam, text

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
    """Insert many rows, ignoring those whose key exists; nothing is returned, which is cheaper than a Bulk.

    `renewed_by`: a row that exists is written anew if its value of that column is less, unless the condition holds.
    """

    def __init__(
        self, table: str, key: str, renewed_by: str = "", unless: str = "", hex: dict[str, str] | None = None,
        **columns: str,
    ) -> None:  # fmt: skip
        names = ", ".join(columns)
        anew = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key.split(", "))
        older = f"excluded.{renewed_by} > {table}.{renewed_by} AND NOT ({unless})"
        action = f"DO UPDATE SET {anew} WHERE {older}" if renewed_by else "DO NOTHING"
        conflicts = {
            dialect: f"ON CONFLICT ({key}) {action.replace('{hex}', (hex or {}).get(dialect, ''))}"
            for dialect in ("postgresql", "sqlite")
        }
        arrays = ", ".join(f"%s::{kind}[]" for kind in columns.values())
        self._kinds = tuple(columns.values())
        self._postgresql = f"INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays}) {conflicts['postgresql']}"
        self._sqlite = f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))}) {conflicts['sqlite']}"

    def __call__(self, tx: Connection, rows: Sequence[Row]) -> None:
        if not rows:
            return
        if tx.dialect.name == "postgresql":
            _run(tx, self._postgresql, _arrays(self._kinds, rows))
        else:
            cursor = tx.connection.cursor()
            cursor.executemany(self._sqlite, rows)
            cursor.close()


class Lock:
    """Locks existing rows by key until the transaction ends, in the order of the key. Does nothing on SQLite.

    UPDATE ... FROM and DELETE lock rows in whatever order the plan finds them; SELECT ... ORDER BY ... FOR UPDATE does
    not. Text compares by code point, as Python sorts it, whatever the database's collation.
    """

    def __init__(self, table: str, **key: str) -> None:
        same = " AND ".join(f"t.{name} = v.{name}" for name in key)
        order = ", ".join(f't.{name} COLLATE "C"' if kind == "text" else f"t.{name}" for name, kind in key.items())
        self._lock = Bulk(f"SELECT 1 FROM {table} t JOIN v ON {same} ORDER BY {order} FOR UPDATE OF t", **key)

    def __call__(self, tx: Connection, keys: Iterable[Row]) -> None:
        if is_postgresql(tx):
            self._lock(tx, unique_sorted(keys))


class Delete(Lock):
    """Deletes rows by key, after locking them in the order of the key."""

    def __init__(self, table: str, **key: str) -> None:
        super().__init__(table, **key)
        names = ", ".join(key)
        self.keys = f"SELECT {names} FROM {table}"
        self._delete = Bulk(f"DELETE FROM {table} WHERE ({names}) IN (SELECT {names} FROM v)", **key)

    def __call__(self, tx: Connection, keys: Iterable[Row]) -> None:
        wanted = unique_sorted(keys)
        super().__call__(tx, wanted)
        self._delete(tx, wanted)

    def where(self, tx: Connection, condition: str, given: Mapping[str, Any], limit: int | None = None) -> int:
        """Delete the rows, at most `limit`, that fulfil a condition; how many."""
        some = "" if limit is None else f" LIMIT {limit:d}"
        query = text(f"{self.keys} WHERE {condition}{some}")
        names = [name for name, value in given.items() if isinstance(value, list | tuple)]
        query = query.bindparams(*(bindparam(name, expanding=True) for name in names))
        found = [tuple(row) for row in tx.execute(query, dict(given))]
        self(tx, found)
        return len(found)


def is_postgresql(tx: Connection) -> bool:
    return tx.dialect.name == "postgresql"


def unique_sorted(keys: Iterable[Any]) -> list[Any]:
    return sorted(set(keys))
