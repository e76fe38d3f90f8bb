"""Every error of SQLite, PostgreSQL and their drivers means something: try again, wait, act, or a mistake of ours."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import obstore.exceptions
import psycopg
import psycopg.errors
import pytest
from injected import every_subclass
from postgres_server import PgServer
from sqlalchemy.exc import DBAPIError

from curtsy.core.errors import Damaged, SegmentsUnavailable, StoreUnavailable, StoreUnwritable
from curtsy.store import meta
from curtsy.store.database_errors import Passing, translated
from curtsy.store.engine import Store
from curtsy.store.objects import ObjectSegments
from curtsy.store.segments import Segments

#: classes of SQLSTATE for statements and values of ours that the server rejects: tracebacks, not outages
OURS = (
    "02", "03", "09", "0A", "0B", "0F", "0L", "0P", "0Z", "10", "20", "21", "22", "23", "24", "25", "26", "27", "2B",
    "2D", "2F", "34", "38", "39", "3B", "42", "44", "54", "HV", "P0",
)  # fmt: skip
#: of these, what is no mistake of ours
THEIRS = ("25006", "25P02", "25P03", "25P04", "26000", "42501", "42P05")
STATES = sorted(state for state in psycopg.errors._sqlcodes if len(state) == 5)
SQLITE_OURS = {
    "ERROR", "INTERNAL", "NOTFOUND", "EMPTY", "TOOBIG", "CONSTRAINT", "MISMATCH", "MISUSE", "FORMAT", "RANGE",
}  # fmt: skip
SQLITE = {
    name.removeprefix("SQLITE_"): getattr(sqlite3, name)
    for name in dir(sqlite3)
    if name.startswith("SQLITE_") and name.removeprefix("SQLITE_") in SQLITE_OURS | {
        "PERM", "ABORT", "BUSY", "LOCKED", "NOMEM", "READONLY", "INTERRUPT", "IOERR", "CORRUPT", "FULL", "CANTOPEN",
        "PROTOCOL", "SCHEMA", "NOLFS", "AUTH", "NOTADB",
    }
}  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_every_state_of_postgresql_is_known(state: str) -> None:
    error = psycopg.errors.lookup(state)("it says no")
    known = translated("postgresql://x", error)
    if state.startswith(OURS) and state not in THEIRS:
        assert known is None
    else:
        assert isinstance(known, (StoreUnavailable, Damaged))


@pytest.mark.parametrize("kind", [one for one in every_subclass(psycopg.Error) if not getattr(one, "sqlstate", None)])
def test_every_error_of_psycopg_without_a_state_is_known(kind: type[psycopg.Error]) -> None:
    known = translated("postgresql://x", kind("it says no"))
    mistakes = (psycopg.ProgrammingError, psycopg.DataError, psycopg.IntegrityError, psycopg.NotSupportedError)
    if issubclass(kind, mistakes) or not issubclass(kind, (psycopg.OperationalError, psycopg.InterfaceError)):
        # _WaitTimeout stays inside the driver; the others are bases, which are not raised themselves.
        assert known is None
    else:
        assert isinstance(known, StoreUnavailable)


@pytest.mark.parametrize("name", sorted(SQLITE))
def test_every_code_of_sqlite_is_known(name: str) -> None:
    error = sqlite3.OperationalError("it says no")
    error.sqlite_errorcode = SQLITE[name]
    known = translated("sqlite:///x", error)
    if name in SQLITE_OURS:
        assert known is None
    else:
        assert isinstance(known, (StoreUnavailable, Damaged))


def test_a_read_only_database_waits_and_is_used_again_when_it_is_writable(postgres: PgServer) -> None:
    url = postgres.create_database("turns_read_only")
    with Store.open(url) as store, psycopg.connect(url, autocommit=True) as operator:
        store.run(meta.put, "word", "kept")
        operator.execute("ALTER DATABASE turns_read_only SET default_transaction_read_only = on")
        store._engine.dispose()
        with pytest.raises(StoreUnwritable, match="read-only"):
            store.run(meta.clear, "word")
        with store.read() as tx:
            assert meta.get(tx, "word") == "kept"
        operator.execute("ALTER DATABASE turns_read_only RESET default_transaction_read_only")
        with pytest.raises(StoreUnwritable):
            store.run(meta.clear, "word")  # over the connection of the read, which was made read-only and is closed now
        store.run(meta.clear, "word")


def test_a_mistake_of_ours_is_not_an_outage(store: Store) -> None:
    with pytest.raises(DBAPIError):
        store.run(lambda tx: tx.exec_driver_sql("SELECT nonsense FROM nowhere"))


@pytest.mark.parametrize("kind", every_subclass(obstore.exceptions.BaseError))
def test_every_error_of_an_object_store_is_known(kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    segments = ObjectSegments("memory:///")

    def fails(*_: object, **__: object) -> None:
        raise kind("it says no")

    for name in ("put", "list", "delete"):
        monkeypatch.setattr(obstore, name, fails)
    with pytest.raises(SegmentsUnavailable):
        segments.put("name", b"data")
    with pytest.raises(SegmentsUnavailable):
        segments.older_than(0)
    with pytest.raises(SegmentsUnavailable):
        segments.delete(["name"])


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.EROFS, errno.ESTALE])
def test_every_error_of_the_segment_folder_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    segments = Segments(tmp_path)
    (tmp_path / "old.warc.gz").write_bytes(b"x")

    def fails(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", fails)
    for call in (
        lambda: segments.size_at_rest("old.warc.gz"),
        lambda: segments.older_than(0),
        lambda: segments.delete(["old.warc.gz"]),
        lambda: segments.recover(dict),
        lambda: segments.overwrite("old.warc.gz", []),
    ):
        with pytest.raises(SegmentsUnavailable):
            call()


def test_a_passing_error_says_whether_it_was_a_deadlock() -> None:
    known = translated("postgresql://x", psycopg.errors.DeadlockDetected("no"))
    assert isinstance(known, Passing)
    assert known.cause == "deadlock"
