"""Several tables as one export: files beside each other, or one file that holds all of them.

orgs.csv             the first table; the others are orgs.evidence.csv, orgs.records_claims.csv, ...
orgs/                a folder with records.csv, evidence.csv, ...
orgs.xlsx            a workbook with a sheet per table
orgs.sqlite, orgs.duckdb    a database with these tables
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from curtsy.core.errors import UsageError
from curtsy.export import databases, tables, xlsx
from curtsy.export.tables import Table, Tally
from curtsy.export.targets import ObjectPlace, Target, check_file, folder_of, target_of, write_whole
from curtsy.export.zipped import File


class TableFormat(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    XLSX = "xlsx"
    SQLITE = "sqlite"
    DUCKDB = "duckdb"


ENDINGS = {f".{one}": one for one in TableFormat} | {".db": TableFormat.SQLITE, ".sqlite3": TableFormat.SQLITE}
#: one file holds every table
WHOLE = (TableFormat.XLSX, TableFormat.SQLITE, TableFormat.DUCKDB)


def format_of(out: Target, given: str | None) -> TableFormat:
    """Return the format that was given, or that the file name ending implies; they must not contradict each other."""
    implied = next((one for ending, one in ENDINGS.items() if out is not None and out.name.endswith(ending)), None)
    if given is None:
        if implied is None and out is not None and "." in out.name.lstrip(".") and not out.is_dir():
            raise UsageError(f"The ending of {out} implies no format. Use {', '.join(ENDINGS)}, a folder, or --format.")
        return implied or (TableFormat.JSONL if out is None else TableFormat.CSV)
    if given not in set(TableFormat):
        raise UsageError(f"Tables cannot be written as {given!r}. Use one of: {', '.join(TableFormat)}.")
    chosen = TableFormat(given)
    if implied not in (None, chosen):
        raise UsageError(
            f"--out {out} implies {implied}, but --format is {chosen}. Remove --format or rename the file."
        )
    return chosen


def need(chosen: str) -> None:
    """Raise MissingPart if a package for this format is not installed."""
    if chosen == TableFormat.PARQUET:
        tables.need_pyarrow()
    if chosen == TableFormat.DUCKDB:
        databases.need_duckdb()


def check_target(out: Target, chosen: TableFormat) -> None:
    """Raise an error before the work begins if the tables cannot be written."""
    need(chosen)
    if out is None:
        if chosen not in (TableFormat.JSONL, TableFormat.CSV):
            raise UsageError(f"{chosen} cannot be written to standard output. Use --out PATH.")
    elif _is_folder(out):
        if chosen in WHOLE:
            raise UsageError(f"{chosen} is one file, but {out} is a folder. Use --out NAME.{chosen}.")
    elif isinstance(out, Path):
        _check_file(out, chosen)


def _check_file(out: Path, chosen: TableFormat) -> None:
    try:
        check_file(out, chosen, seeks=True)
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror or error}. Use another --out.") from error


def write(found: Sequence[Table], out: Target, chosen: TableFormat, csv_safe: bool = False) -> tuple[int, list[str]]:
    """Write the tables; return the number of rows of the first one, and where they are.

    Standard output gets the first table only.
    """
    written = Tally()
    if chosen in WHOLE:
        write_whole(out, one_file(found, chosen, written))
        return written.n, [str(out)]
    places = write_files(files(found, chosen, written, csv_safe), out, chosen)
    return written.n, places


def one_file(found: Sequence[Table], chosen: str, written: Tally) -> Iterator[bytes]:
    """A workbook or a database with these tables."""
    made = {"xlsx": xlsx.workbook, "sqlite": databases.sqlite_file, "duckdb": databases.duckdb_file}[chosen]
    return made(found, written)


def files(found: Sequence[Table], chosen: str, written: Tally, csv_safe: bool = False) -> Iterator[File]:
    """A file per table, by the name of the table; `written` counts the rows of the first one."""
    for at, one in enumerate(found):
        tally = written if at == 0 else Tally()
        yield f"{one.name}.{chosen}", tables.table(one.rows(), one.columns, chosen, tally, csv_safe)


def write_files(found: Iterable[File], out: Target, chosen: str) -> list[str]:
    """Write files of tables where --out says; return where they are. Standard output gets the first one only."""
    places = []
    for at, (name, blocks) in enumerate(found):
        if out is None:
            write_whole(None, blocks)
            return []
        places.append(_write_one(out, name.removesuffix(f".{chosen}"), at == 0, chosen, blocks))
    return places


def _write_one(out: Path | ObjectPlace, name: str, first: bool, chosen: str, blocks: Iterable[bytes]) -> str:
    if _is_folder(out):
        folder_of(out).write(f"{name}.{chosen}", blocks)
        return f"{str(out).rstrip('/')}/{name}.{chosen}"
    place = str(out) if first else f"{str(out).removesuffix(f'.{chosen}')}.{name}.{chosen}"
    write_whole(target_of(place), blocks)
    return place


def _is_folder(out: Path | ObjectPlace) -> bool:
    return not out.name.endswith(tuple(ENDINGS)) or out.is_dir()
