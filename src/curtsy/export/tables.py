"""One table as JSON Lines, CSV or Parquet, as a stream of byte blocks: memory does not grow with the table.

A column is a name and a kind. A kind that ends with `!` is never null:

    string, bool, int32, int64, double
    timestamp    rows hold ISO 8601 text; Parquet has a real timestamp (milliseconds, UTC)
    json         rows hold any value; everything but JSON Lines has it as JSON text
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from curtsy.core.errors import MissingPart

#: name -> kind, in the order of the columns
Columns = Mapping[str, str]

#: a row group of a Parquet file ends at this many rows, or at about this many characters of text
GROUP = 10_000
GROUP_CHARS = 32_000_000
#: size of one write
BLOCK = 256 * 1024
#: a spreadsheet may read a cell that begins like this as a formula
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: limits of the integers of Parquet
_BITS = {"int32": 31, "int64": 63}


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    WARC = "warc"
    MARKDOWN = "markdown"


class Table(NamedTuple):
    name: str
    columns: Columns
    #: each call begins with the first row
    rows: Callable[[], Iterable[dict[str, Any]]]


class Tally:
    """Counts the pages or records written."""

    def __init__(self) -> None:
        self.n = 0

    def each(self, found: Iterable[Any]) -> Iterator[Any]:
        for one in found:
            yield one
            self.n += 1


def table(
    rows: Iterable[dict[str, Any]], columns: Columns, chosen: str, written: Tally, csv_safe: bool = False
) -> Iterator[bytes]:
    """Return rows as JSONL, CSV or Parquet."""
    counted = written.each(rows)
    if chosen == Format.CSV:
        return joined(csv_blocks(counted, columns, csv_safe))
    if chosen == Format.PARQUET:
        return _parquet(counted, columns)
    return joined(json_lines(counted))


def iso(at_ms: int | None) -> str | None:
    """A time as rows hold it."""
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")


def joined(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join into larger blocks: a write per line would cost more than the line."""
    held: list[bytes] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size >= BLOCK:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def as_text(row: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """The row with JSON text in its columns of kind json."""
    kinds = ((name, kind.removesuffix("!")) for name, kind in columns.items())
    return row | {name: json_text(row[name]) for name, kind in kinds if kind == "json" and row[name] is not None}


def json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_lines(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    return (json_text(row).encode("utf-8", "replace") + b"\n" for row in rows)


class Sink:
    """A file for csv.writer, pyarrow and zipfile that buffers its content until it is taken."""

    closed = False

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._written = 0

    def write(self, data: Any) -> int:
        block = data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data)
        self._held.append(block)
        self._written += len(block)
        return len(block)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        """Nothing is buffered elsewhere."""

    def close(self) -> None:
        """The blocks are taken after this."""

    def take(self) -> bytes:
        taken, self._held = b"".join(self._held), []
        return taken


def csv_blocks(
    rows: Iterable[dict[str, Any]], columns: Columns, safe: bool = False, header: bool = True
) -> Iterator[bytes]:
    """One block for the header, then one for each row."""
    sink = Sink()
    writer = csv.DictWriter(sink, list(columns))
    if header:
        writer.writeheader()
        yield sink.take()
    for row in rows:
        shown = as_text(row, columns)
        writer.writerow({name: _inert(value) for name, value in shown.items()} if safe else shown)
        yield sink.take()


def _inert(value: Any) -> Any:
    """Prefix text that a spreadsheet would read as a formula with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _parquet(rows: Iterable[dict[str, Any]], columns: Columns) -> Iterator[bytes]:
    made: list[bytes] = []
    groups = RowGroups(columns, made.append)
    for row in rows:
        groups.add((row,))
        yield from made
        made.clear()
    groups.close()
    yield from made


class RowGroups:
    """Writes rows as row groups of a Parquet file; `close` writes the footer."""

    def __init__(self, columns: Columns, write: Callable[[bytes], object]) -> None:
        self._pyarrow, parquet = need_pyarrow()
        self._columns, self._write = columns, write
        self._schema = _schema(self._pyarrow, columns)
        self._sink = Sink()
        self._writer = parquet.ParquetWriter(self._sink, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._chars = 0

    def add(self, rows: Iterable[dict[str, Any]]) -> int:
        """Write the groups that are full; return the number of rows."""
        n = 0
        for row in rows:
            n += 1
            self._rows.append(row)
            self._chars += sum(len(value) for value in row.values() if isinstance(value, str))
            if len(self._rows) >= GROUP or self._chars >= GROUP_CHARS:
                self._write_group()
        return n

    def close(self) -> None:
        if self._rows:
            self._write_group()
        self._writer.close()
        self._write(self._sink.take())

    def _write_group(self) -> None:
        typed = [fitted(row, self._columns) for row in self._rows]
        self._writer.write_table(self._pyarrow.Table.from_pylist(typed, schema=self._schema))
        self._rows, self._chars = [], 0
        self._write(self._sink.take())


def _schema(pyarrow: Any, columns: Columns) -> Any:
    types = {
        "string": pyarrow.string(), "json": pyarrow.string(), "int32": pyarrow.int32(), "int64": pyarrow.int64(),
        "bool": pyarrow.bool_(), "double": pyarrow.float64(), "timestamp": pyarrow.timestamp("ms", "UTC"),
    }  # fmt: skip
    return pyarrow.schema(
        [pyarrow.field(name, types[kind.removesuffix("!")], not kind.endswith("!")) for name, kind in columns.items()]
    )


def fitted(row: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """The row with values of the columns' types."""
    return {name: _fit(row[name], kind.removesuffix("!")) for name, kind in columns.items()}


def _fit(value: Any, kind: str) -> Any:
    """A value of a page that its column cannot hold, such as a year of thirty digits, becomes null."""
    if value is None:
        return None
    if kind == "json":
        return json_text(value)
    if kind == "timestamp":
        return datetime.fromisoformat(value)
    if kind in _BITS:
        return value if isinstance(value, int) and -(1 << _BITS[kind]) <= value < 1 << _BITS[kind] else None
    if kind == "double":
        return _double(value)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _double(value: Any) -> float | None:
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        return None


def need_pyarrow() -> tuple[Any, Any]:
    """Import an optional extra, or say how to install it."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise MissingPart("Parquet needs pyarrow. Run: pip install 'curtsy[parquet]', or use jsonl or csv.") from None
    return pyarrow, parquet
