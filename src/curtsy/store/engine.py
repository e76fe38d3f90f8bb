"""Opening the database: SQLite by default, PostgreSQL by URL; transactions, retries, and a lock between processes.

SQLite runs in WAL mode with synchronous=FULL: a committed group survives a power cut, not only a killed process. That
costs one fsync per commit (of some 200 pages), wall time and hardly any CPU.
"""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, InvalidRequestError
from sqlalchemy.exc import TimeoutError as SqlTimeout

from curtsy.core import metrics
from curtsy.core.errors import (
    CurtsyError,
    MissingPart,
    SchemaMismatch,
    StoreUnavailable,
    StoreUnwritable,
    UsageError,
)
from curtsy.core.file_locks import try_lock
from curtsy.core.observe import count, log
from curtsy.core.threads import in_thread
from curtsy.store import crawl_events
from curtsy.store.database_errors import Full, Passing, ReadOnly, translated
from curtsy.store.migrations import HEAD, migrate, version

P = ParamSpec("P")
T = TypeVar("T")

#: how long a statement waits for a write of another process before SQLite fails as busy
_BUSY_MS = 10_000
#: pauses before a failed transaction is run again; a database restart takes a few seconds
_PAUSES_S = (0.02, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
#: pauses where a user or a loop waits
_SHORT_PAUSES_S = (0.1, 0.5)
#: the longest pause for a full disk: the user must learn of it soon
_FULL_PAUSE_S = 0.1

#: mode of folders that we create: the database holds the secrets of sessions and webhooks
_OURS_ALONE = 0o700

_SQLITE_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA cache_size=-32768",  # KiB
    "PRAGMA temp_store=MEMORY",
    # Hot index pages are rewritten by every commit: fewer checkpoints copy them less often.
    "PRAGMA wal_autocheckpoint=4000",
    "PRAGMA journal_size_limit=67108864",
)


class Store:
    """One database. Safe to share between threads: each transaction has a connection of its own."""

    def __init__(self, engine: Engine, lock_folder: Path | None) -> None:
        self._engine = engine
        self._lock_folder = lock_folder

    @classmethod
    def open(cls, url: str, create: bool = True, looks: bool = False) -> Store:
        """Open, and bring the schema up to date. With `create=False` a missing SQLite file is an error.

        With `looks` the caller only reads, and the folder may be read-only.
        """
        parsed = _parse(url)
        shut = False
        if parsed.get_backend_name() == "sqlite":
            path = _sqlite_path(parsed, create)
            shut = looks and not _may_write(path)
            store = cls(_sqlite_engine(_to_look(parsed, path), ()) if shut else _sqlite_engine(parsed), path)
        else:
            store = cls(_postgresql_engine(parsed), None)
        try:
            if shut:
                _check_readable(store, path)
            else:
                repeated(migrate, store.begin, store.read, store.lock)
        except BaseException:
            store.close()
            raise
        return store

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._engine.dialect.name

    @property
    def where(self) -> str:
        """The database URL without its password, for messages."""
        return self._engine.url.render_as_string(hide_password=True)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction that writes: committed at the end of the block, rolled back on an error. Not repeated."""
        with self._transaction({}) as tx:
            events = crawl_events.collect(tx)
            yield tx
        crawl_events.tell(events)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A short transaction that only reads: on SQLite it never waits for a writer."""
        with self._transaction({"curtsy_read": True}) as tx:
            yield tx

    @contextmanager
    def _transaction(self, options: dict[str, Any]) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                if options:
                    connection = connection.execution_options(**options)
                with connection.begin():
                    yield connection
        except DBAPIError as error:
            raise self._known(error.orig, error.connection_invalidated) or error from error
        except (InvalidRequestError, DisconnectionError, SqlTimeout) as error:
            # A connection that broke during a transaction; the next one is new.
            raise Passing(f"The database {self.where} was interrupted: {error}") from error
        except self._engine.dialect.loaded_dbapi.Error as error:
            # `rows` talks to the driver directly.
            raise self._known(error) or error from error

    def _known(self, error: BaseException | None, disconnected: bool = False) -> CurtsyError | None:
        known = translated(self.where, error, disconnected)
        if isinstance(known, ReadOnly):
            # A setting of the session, or a server that became a standby, stays with the connection.
            self._engine.dispose()
        return known

    def run(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(tx, ...)` in a transaction; repeat it after a deadlock, a restart or a busy database.

        A lost connection leaves open whether the commit happened, so `fn` must be harmless when repeated.
        """
        for pause_s in _PAUSES_S:
            try:
                with self.begin() as tx:
                    return fn(tx, *args, **kwargs)
            except (Passing, Full) as error:
                if isinstance(error, Full) and pause_s > _FULL_PAUSE_S:
                    raise
                count("store_retries")
                metrics.inc("curtsy_store_retries_total", cause=error.cause)
                if error.cause == "deadlock":
                    count("store_deadlocks")  # a transaction that does not keep the lock order: see curtsy.store
                log("store_retry", level="debug", cause=error.cause, error=str(error), pause_s=pause_s)
                time.sleep(pause_s)
        with self.begin() as tx:
            return fn(tx, *args, **kwargs)

    @contextmanager
    def lock(self, name: str, wait_s: float = 60.0) -> Iterator[None]:
        """Mutual exclusion between processes and threads. A killed holder releases the lock."""
        held = self._file_lock(name, wait_s) if self._lock_folder else self._advisory_lock(name, wait_s)
        with held:
            yield

    @contextmanager
    def _file_lock(self, name: str, wait_s: float) -> Iterator[None]:
        with _opened(Path(f"{self._lock_folder}.{name}.lock")) as file:
            _wait_for(lambda: try_lock(file.fileno()), name, wait_s)
            yield

    @contextmanager
    def _advisory_lock(self, name: str, wait_s: float) -> Iterator[None]:
        key = zlib.crc32(f"curtsy:{name}".encode())
        with self.begin() as tx:

            def attempt() -> bool:
                return bool(tx.exec_driver_sql("SELECT pg_try_advisory_xact_lock(%s)", (key,)).scalar())

            _wait_for(attempt, name, wait_s)
            yield

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def read(store: Store, fn: Callable[..., T], *args: Any) -> T:
    """Runs fn(tx, *args) in a short read transaction, in a thread."""

    def _read() -> T:
        with store.read() as tx:
            return fn(tx, *args)

    return await in_thread(repeated, _read)


def repeated(fn: Callable[..., T], *args: Any) -> T:
    """Call fn(*args), and again if the connection is lost. Repeating `fn` must change nothing."""
    for pause_s in _SHORT_PAUSES_S:
        try:
            return fn(*args)
        except Passing as error:
            log("store_retry", level="debug", cause=error.cause, error=str(error), pause_s=pause_s)
            time.sleep(pause_s)
    return fn(*args)


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise UsageError(
            f"{url!r} is not a database URL. Use sqlite:///folder/file or postgresql://user@host/name."
        ) from error
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in ("sqlite", "postgresql") or not parsed.database:
        shown = parsed.render_as_string(hide_password=True)
        raise UsageError(f"{shown!r} does not name a supported database. Use sqlite:///folder/file or postgresql://...")
    return parsed


def _sqlite_path(url: URL, create: bool) -> Path:
    path = Path(url.database or "")
    if not create and not path.exists():
        raise UsageError(f"There is no database {path}. Run `curtsy crawl` first, or name the folder with --data-dir.")
    try:
        path.parent.mkdir(mode=_OURS_ALONE, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(
            f"The folder {path.parent} cannot be made: {error}. Choose another --data-dir."
        ) from error
    if (not path.exists() or path.stat().st_size == 0) and any(path.parent.glob("segments/*.warc.gz")):
        log(
            "database_empty",
            level="warning",
            database=str(path),
            meaning="the folder has segments: if they are of crawls made here, their database was lost or emptied; "
            "restore it from a copy before you crawl",
        )
    if create:
        _begin(path)
    return path


def _begin(path: Path) -> None:
    """Create the file with mode 600, because it holds secrets and may be copied. SQLite's other files take its mode.

    An existing file is not opened: closing it would release SQLite's locks in this process.
    """
    with suppress(OSError):  # the file exists, or SQLite reports the error
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    for file in (path, *(path.with_name(path.name + ending) for ending in ("-wal", "-shm"))):
        with suppress(OSError):  # missing, or owned by another user
            if file.stat().st_mode & 0o077:
                file.chmod(0o600)


def _may_write(path: Path) -> bool:
    effective = os.access in os.supports_effective_ids
    wanted = ((path.parent, os.W_OK | os.X_OK), (path, os.W_OK))
    return all(os.access(place, mode, effective_ids=effective) for place, mode in wanted)


def _is_open(path: Path) -> bool:
    """A process has the database open, or had it and did not close it: WAL's two files exist."""
    shm, wal = (path.with_name(path.name + ending) for ending in ("-shm", "-wal"))
    return shm.exists() or (wal.exists() and wal.stat().st_size > 0)


def _to_look(url: URL, path: Path) -> URL:
    """WAL needs its files next to the database even to read. Without them no process has the database open and all data
    is in the main file, so it is opened as a file that does not change.
    """
    how = "mode=ro" if _is_open(path) else "immutable=1"
    return url.set(database=f"file:{quote(str(path.absolute()))}?{how}", query={"uri": "true"})


def _check_readable(store: Store, path: Path) -> None:
    try:
        with store.read() as tx:
            found = version(tx)
    except StoreUnavailable as error:
        if not _is_open(path):
            raise
        raise StoreUnavailable(
            f"{path} was left open by a process that ended badly, and {path.parent} cannot be written, so its last "
            "changes cannot be read. Run this command once as a user who can write there, or copy the folder to "
            "where you may and name the copy with --data-dir."
        ) from error
    if found != HEAD:
        raise SchemaMismatch(
            f"{path} has schema {found}, this program needs {HEAD}, and {path.parent} cannot be written. Run this "
            "command once as a user who can write there, or use the version that created it."
        )


def _sqlite_engine(url: URL, pragmas: tuple[str, ...] = _SQLITE_PRAGMAS) -> Engine:
    connect_args = {"check_same_thread": False, "cached_statements": 512, "timeout": _BUSY_MS / 1000}
    # The connection that was returned last is used first: the pages that it wrote are still in its cache.
    engine = create_engine(url, connect_args=connect_args, pool_size=8, max_overflow=56, pool_use_lifo=True)

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: Any) -> None:
        # We send BEGIN ourselves: the driver would never make it IMMEDIATE.
        connection.isolation_level = None
        for pragma in pragmas:
            _patiently(connection, pragma)

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        reads = connection.get_execution_options().get("curtsy_read")
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


def _patiently(connection: Any, pragma: str) -> None:
    """SQLite does not wait when it enters or leaves WAL mode; it fails as busy, so we retry."""
    deadline = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            connection.execute(pragma)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _postgresql_engine(url: URL) -> Engine:
    try:
        # Detects a server that disappeared within a minute.
        signs = {"connect_timeout": 10, "keepalives_idle": 20, "keepalives_interval": 10, "keepalives_count": 3}
        return create_engine(
            url, connect_args=signs, pool_pre_ping=True, pool_size=8, max_overflow=56, pool_recycle=1800
        )
    except ModuleNotFoundError as error:
        raise MissingPart("PostgreSQL needs psycopg: pip install 'curtsy[postgres]'.") from error


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("ab")
    except OSError as error:
        raise StoreUnwritable(
            f"The folder of the database cannot be written: {error}. Fix its permissions or disk."
        ) from error


def _wait_for(attempt: Callable[[], bool], name: str, wait_s: float) -> None:
    end = time.monotonic() + wait_s
    while not attempt():
        if time.monotonic() >= end:
            raise StoreUnavailable(f"Another process has held the lock {name!r} for over {wait_s:g} s.")
        time.sleep(0.02)
