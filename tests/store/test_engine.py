"""Opening, migrating, locking and repeating: the same on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_server import PgServer, start_postgres
from sqlalchemy import Connection, MetaData, TableClause, inspect, text
from sqlalchemy.exc import DBAPIError
from threads import in_threads

from curtsy.core.errors import Damaged, SchemaMismatch, StoreUnavailable, StoreUnwritable, UsageError
from curtsy.core.observe import counters
from curtsy.store import engine, meta, migrations, tables
from curtsy.store.database_errors import Passing
from curtsy.store.engine import Store
from curtsy.store.migrations import HEAD, REVISIONS, WHOLE, statements, version

DOCUMENTED = (Path(__file__).parents[2] / "docs" / "reference" / "database.md").read_text("utf-8")


def _tables_of(tx: Connection) -> list[str]:
    names = inspect(tx).get_table_names()
    return sorted(name for name in names if name != "alembic_version" and not name.startswith("requests_"))


def test_the_documentation_lists_every_table_and_column(store: Store) -> None:
    listed = {}
    for part in DOCUMENTED.split("\n## ")[1:]:
        columns = re.search(r"^Columns: (.*?)\.$", part, re.MULTILINE | re.DOTALL)
        assert columns is not None, part
        listed[part.partition("\n")[0]] = sorted(re.findall(r"`(\w+)`", columns[1]))
    with store.read() as tx:
        seen = inspect(tx)
        assert {name: sorted(c["name"] for c in seen.get_columns(name)) for name in _tables_of(tx)} == listed


def test_sqlite_and_postgresql_have_the_same_tables(tmp_path: Path, new_database: Callable[[], str]) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'x.sqlite'}") as one, one.read() as tx:
        on_sqlite = _shape(tx)
    with Store.open(new_database()) as other, other.read() as tx:
        on_postgresql = _shape(tx)
    # On PostgreSQL it is the primary key, on SQLite the rowid is.
    assert on_sqlite["urls"].pop("key") == ["seq"]
    assert on_sqlite["urls"]["unique"].pop("urls_key") == on_postgresql["urls"].pop("key") == ["crawl", "fp"]
    assert on_sqlite == on_postgresql


def _shape(tx: Connection) -> dict[str, dict[str, Any]]:
    seen = inspect(tx)
    return {
        name: {
            "columns": {c["name"]: (_affinity(c["type"]), c["nullable"], _default(c)) for c in seen.get_columns(name)},
            "key": seen.get_pk_constraint(name)["constrained_columns"],
            "unique": {str(c["name"]): c["column_names"] for c in seen.get_unique_constraints(name)},
            "indexes": {
                i["name"]: (i["column_names"], bool(i["unique"]), f"{tx.dialect.name}_where" in i["dialect_options"])
                for i in seen.get_indexes(name)
                if "duplicates_constraint" not in i
            },
        }
        for name in _tables_of(tx)
    }


def _affinity(kind: Any) -> str:
    return str(kind._type_affinity.__name__)


def _default(column: Any) -> str | None:
    """Without what only PostgreSQL has: casts, and the sequence of a number."""
    found = str(column["default"] or "").partition("::")[0]
    return None if found.startswith("nextval") else found or None


def test_queries_name_columns_with_their_types(store: Store) -> None:
    with store.read() as tx:
        seen = inspect(tx)
        for named in vars(tables).values():
            if isinstance(named, TableClause):
                real = {c["name"]: _affinity(c["type"]) for c in seen.get_columns(named.name)}
                assert {c.name: _affinity(c.type) for c in named.columns}.items() <= real.items()


def test_opening_twice_keeps_the_data(bare_url: str) -> None:
    with Store.open(bare_url) as store:
        store.run(meta.put, "word", "kept")
    with Store.open(bare_url) as store, store.read() as tx:
        assert meta.get(tx, "word") == "kept"
        assert version(tx) == HEAD


def test_two_processes_may_open_a_new_database_at_once(bare_url: str) -> None:
    code = f"from curtsy.store.engine import Store; Store.open({bare_url!r}).close()"
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [process.wait(60) for process in started] == [0, 0, 0]


def test_sqlite_does_not_load_what_only_postgresql_needs(tmp_path: Path) -> None:
    code = (
        "import sys; from curtsy.store.engine import Store; from curtsy.store import crawls, hosts, pages, urls; "
        f"Store.open('sqlite:///{tmp_path}/x.sqlite').close(); "
        "sys.exit('sqlalchemy.dialects.postgresql' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_a_new_sqlite_database_is_what_all_revisions_make() -> None:
    with sqlite3.connect(":memory:") as new, sqlite3.connect(":memory:") as upgraded:
        new.executescript(WHOLE.read_text("utf-8"))
        for revision in REVISIONS:
            upgraded.executescript(";\n".join(statements(revision, "sqlite")))
        assert list(new.iterdump()) == list(upgraded.iterdump()), "run python tools/sqlite_schema.py"


@pytest.mark.parametrize("revision", ["0001", "0005", "0017", "0024"])
def test_an_older_database_is_upgraded_and_keeps_its_rows(store_url: str, revision: str) -> None:
    with Store.open(store_url) as store, store.begin() as tx:
        new = _shape(tx)
        everything = MetaData()
        everything.reflect(tx)
        everything.drop_all(tx)
        if tx.dialect.name == "postgresql":
            tx.execute(text("DROP SEQUENCE IF EXISTS urls_seq"))
        for older in REVISIONS[: REVISIONS.index(revision) + 1]:
            for statement in statements(older, tx.dialect.name):
                tx.exec_driver_sql(statement)
        tx.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        tx.execute(text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": revision})
        meta.put(tx, "word", "kept")
        assert _shape(tx) != new
    with Store.open(store_url) as store, store.read() as tx:
        assert meta.get(tx, "word") == "kept"
        assert version(tx) == HEAD
        assert _shape(tx) == new


def test_a_newer_schema_is_refused_with_advice(store_url: str) -> None:
    with Store.open(store_url) as store, store.begin() as tx:
        tx.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaMismatch, match=r"9999.*[Uu]pgrade this program"):
        Store.open(store_url)


def test_a_failed_transaction_leaves_nothing(store: Store) -> None:
    def fail(tx: Connection) -> None:
        meta.put(tx, "word", "lost")
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        store.run(fail)
    with store.read() as tx:
        assert meta.get(tx, "word") is None


def test_readers_do_not_wait_for_a_writer(store: Store) -> None:
    store.run(meta.put, "word", "old")
    with store.begin() as writer:
        meta.put(writer, "word", "new")
        with store.read() as reader:
            assert meta.get(reader, "word") == "old"


def test_epochs_are_never_given_twice(store: Store) -> None:
    given: list[int] = []

    def take() -> None:
        given.extend(store.run(meta.next_epoch) for _ in range(10))

    in_threads(take, take, take)
    assert sorted(given) == list(range(1, 31))
    with store.read() as tx:
        assert meta.current_epoch(tx) == 30


def test_a_lock_excludes_others_until_it_is_given_back(store: Store, store_url: str) -> None:
    with Store.open(store_url) as other:
        with store.lock("rebuild"):
            with pytest.raises(StoreUnavailable, match="rebuild"), other.lock("rebuild", wait_s=0.05):
                pass
            with other.lock("another", wait_s=0.05):
                pass
        with other.lock("rebuild", wait_s=5):
            pass


def test_a_lock_ends_with_its_killed_holder(store: Store, store_url: str) -> None:
    code = (
        f"import sys, time; from curtsy.store.engine import Store\nwith Store.open({store_url!r}).lock('rebuild'):\n"
        "    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        holder.kill()
    with store.lock("rebuild", wait_s=10):
        pass


def test_writers_of_many_threads_alternate(store: Store) -> None:
    def add() -> None:
        for _ in range(20):
            store.run(meta.add, "n", 1)

    in_threads(add, add, add, add)
    with store.read() as tx:
        assert meta.get(tx, "n") == "80"


def test_a_wrong_url_says_what_a_right_one_looks_like(tmp_path: Path) -> None:
    for url in ("nonsense", "mysql://x/y", "sqlite://"):
        with pytest.raises(UsageError, match="sqlite:///"):
            Store.open(url)
    with pytest.raises(UsageError, match="There is no database"):
        Store.open(f"sqlite:///{tmp_path}/none.sqlite", create=False)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
def test_a_folder_that_we_make_is_its_owners_alone_with_all_that_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / ".curtsy"
    with Store.open(f"sqlite:///{folder}/x.sqlite") as store:
        store.run(meta.put, "session_secret", "hush")
        assert mode(folder) == 0o700
        files = {path.name: mode(path) for path in folder.glob("x.sqlite*") if path.suffix != ".lock"}
    assert files == {"x.sqlite": 0o600, "x.sqlite-wal": 0o600, "x.sqlite-shm": 0o600}
    assert mode(tmp_path / "deep") == 0o755


@pytest.mark.usefixtures("usual_umask")
def test_the_database_is_its_owners_alone_in_a_folder_that_others_can_enter(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    Store.open(f"sqlite:///{folder}/x.sqlite").close()
    assert (mode(folder), mode(folder / "x.sqlite")) == (0o755, 0o600)


@pytest.mark.usefixtures("usual_umask")
def test_a_database_with_a_loose_mode_is_closed_to_others_when_it_is_opened(tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    with Store.open(f"sqlite:///{database}") as store:
        store.run(meta.put, "session_secret", "hush")
        for file in tmp_path.glob("x.sqlite*"):
            file.chmod(0o644)
        with Store.open(f"sqlite:///{database}"):
            files = {path.name: mode(path) for path in tmp_path.glob("x.sqlite*") if path.suffix != ".lock"}
    assert files == {"x.sqlite": 0o600, "x.sqlite-wal": 0o600, "x.sqlite-shm": 0o600}


def test_a_file_that_is_no_database_is_damage(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"no database " * 1000)
    with pytest.raises(Damaged, match="not a database"):
        Store.open(f"sqlite:///{tmp_path}/x.sqlite")


def test_a_mistake_of_ours_is_not_repeated(store: Store) -> None:
    calls: list[int] = []

    def wrong(tx: Connection) -> None:
        calls.append(1)
        tx.exec_driver_sql("SELECT * FROM nowhere")

    with pytest.raises(DBAPIError):
        store.run(wrong)
    assert calls == [1]


def test_a_full_disk_is_waited_for(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/x.sqlite") as store:
        calls: list[int] = []

        def fill(tx: Connection) -> None:
            tx.exec_driver_sql(f"PRAGMA max_page_count = {1_000_000 if calls else 1}")
            calls.append(1)
            for n in range(200):
                meta.put(tx, f"key {n}", "x" * 1000)

        store.run(fill)
        assert len(calls) == 2


def test_an_unreachable_server_is_unavailable_and_shows_no_password(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="does not answer") as caught:
        Store.open(f"postgresql://me:secret@/db?host={tmp_path}")
    assert "secret" not in str(caught.value)


def test_a_transaction_survives_a_restart_of_postgresql(tmp_path: Path) -> None:
    with start_postgres(tmp_path) as server, Store.open(server.create_database("restarts")) as store:
        for stop in (server.restart, server.kill9):
            _run_over(store, server, stop)
        with store.read() as tx:
            assert meta.get(tx, "n") == "2"


def _run_over(store: Store, server: PgServer, stop: object) -> None:
    stopped: list[bool] = []

    def add(tx: Connection) -> int:
        if not stopped:
            stopped.append(True)
            assert callable(stop)
            stop()
            if server.pid is None:
                server.start()
        return meta.add(tx, "n", 1)

    store.run(add)


class _Busy:
    """A connection that says busy at once, as SQLite does now and then while another enters or leaves WAL mode."""

    def __init__(self, times: int) -> None:
        self.left = times

    def execute(self, statement: str) -> None:
        if self.left:
            self.left -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error


def test_entering_wal_mode_waits_for_others() -> None:
    busy = _Busy(3)
    engine._patiently(busy, "PRAGMA journal_mode=WAL")
    assert busy.left == 0


def test_entering_wal_mode_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_BUSY_MS", 30)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        engine._patiently(_Busy(10_000), "PRAGMA journal_mode=WAL")


def test_a_disk_that_stays_full_is_reported_soon(tmp_path: Path) -> None:
    def write(tx: Connection) -> None:
        pages = tx.exec_driver_sql("PRAGMA page_count").scalar()
        tx.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        tx.exec_driver_sql("INSERT INTO meta (\"key\", value) VALUES ('big', zeroblob(1000000))")

    before = counters["store_retries"]
    with Store.open(f"sqlite:///{tmp_path}/x.sqlite") as store, pytest.raises(StoreUnwritable, match="is full"):
        store.run(write)
    assert counters["store_retries"] - before == 2


def test_a_connection_that_is_lost_while_a_database_is_opened_is_made_again(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def migrate(*given: Any) -> None:
        tried.append(1)
        if len(tried) < 3:
            raise Passing("server closed the connection unexpectedly")
        migrations.migrate(*given)

    monkeypatch.setattr(engine, "migrate", migrate)
    with Store.open(store_url) as store, store.read() as tx:
        assert migrations.version(tx) == migrations.HEAD
    assert len(tried) == 3


def test_a_read_whose_connection_the_server_ends_is_repeated(postgres_url: str) -> None:
    tried: list[int] = []

    def look(tx: Connection) -> int:
        tried.append(1)
        if len(tried) == 1:
            tx.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
        return int(tx.execute(text("SELECT 7")).scalar_one())

    with Store.open(postgres_url) as store:
        assert asyncio.run(engine.read(store, look)) == 7
    assert len(tried) == 2
