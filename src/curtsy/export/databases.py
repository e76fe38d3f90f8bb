"""Tables as a SQLite or DuckDB file. It is made in a temporary folder, then copied to where it belongs."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from curtsy.core.errors import MissingPart
from curtsy.export.tables import BLOCK, Columns, Table, Tally, fitted

_BATCH = 1000
_SQLITE = {"int32": "INTEGER", "int64": "INTEGER", "bool": "INTEGER", "double": "REAL"}
_DUCKDB = {
    "int32": "INTEGER", "int64": "BIGINT", "bool": "BOOLEAN", "double": "DOUBLE", "timestamp": "TIMESTAMPTZ",
    "json": "JSON",
}  # fmt: skip

#: runs a statement for many rows
Many = Callable[[str, list[tuple[Any, ...]]], Any]


def sqlite_file(tables: Sequence[Table], written: Tally) -> Iterator[bytes]:
    """SQLite has no times: they are ISO 8601 text."""
    with tempfile.TemporaryDirectory(prefix="curtsy-") as folder:
        path = Path(folder) / "export.sqlite"
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = OFF")
            db.execute("PRAGMA synchronous = OFF")
            db.execute("BEGIN")
            for name, columns, rows in _counted(tables, written):
                db.execute(_create(name, columns, _SQLITE))
                kinds = {column: _plain_time(kind) for column, kind in columns.items()}
                _fill(db.executemany, name, kinds, rows)
            db.execute("COMMIT")
        yield from _blocks(path)


def duckdb_file(tables: Sequence[Table], written: Tally) -> Iterator[bytes]:
    duckdb = need_duckdb()
    with tempfile.TemporaryDirectory(prefix="curtsy-") as folder:
        path = Path(folder) / "export.duckdb"
        with duckdb.connect(path) as db:
            db.execute("BEGIN")
            for name, columns, rows in _counted(tables, written):
                db.execute(_create(name, columns, _DUCKDB))
                _fill(db.executemany, name, columns, rows)
            db.execute("COMMIT")
        yield from _blocks(path)


def need_duckdb() -> Any:
    """Import an optional extra, or say how to install it."""
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingPart("A DuckDB file needs duckdb. Run: pip install 'curtsy[duckdb]', or use sqlite.") from None
    return duckdb


def _counted(tables: Sequence[Table], written: Tally) -> Iterator[tuple[str, Columns, Iterable[dict[str, Any]]]]:
    for at, (name, columns, rows) in enumerate(tables):
        yield name, columns, written.each(rows()) if at == 0 else rows()


def _plain_time(kind: str) -> str:
    return kind.replace("timestamp", "string")


def _create(name: str, columns: Columns, types: dict[str, str]) -> str:
    listed = ", ".join(
        f"{_quoted(column)} {types.get(kind.removesuffix('!'), 'TEXT')}{' NOT NULL' if kind.endswith('!') else ''}"
        for column, kind in columns.items()
    )
    return f"CREATE TABLE {_quoted(name)} ({listed})"


def _fill(many: Many, name: str, columns: Columns, rows: Iterable[dict[str, Any]]) -> None:
    insert = f"INSERT INTO {_quoted(name)} VALUES ({', '.join('?' * len(columns))})"
    found = iter(rows)
    while some := [tuple(fitted(row, columns).values()) for row in islice(found, _BATCH)]:
        many(insert, some)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block
