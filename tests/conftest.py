"""For all tests."""

from __future__ import annotations

import gc
import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

if TYPE_CHECKING:
    import psycopg
    from postgres_server import PgServer

    from curtsy.store.engine import Store

# A shell that runs the tests in the background lets them ignore signals, and so does every process that they start.
for _number, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)

# Tests count requests: only those of guessed sitemaps want theirs. Processes that tests start inherit it.
os.environ.setdefault("CURTSY_GUESS_SITEMAP", "false")

# No test of a property holds a time against a limit. (The environments of Airflow and Crawl4AI have no such tests.)
with suppress(ModuleNotFoundError):
    import hypothesis

    hypothesis.settings.register_profile(
        "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("untimed")

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PgServer]:
    """A real PostgreSQL, for all tests of this process."""
    from postgres_server import start_postgres

    with start_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


class _Databases:
    """Databases of one PostgreSQL. Those with tables are emptied and given out again, by another name, so that whoever
    still knows the old one finds nothing: a tenth of what it takes to make and drop one."""

    def __init__(self, server: PgServer) -> None:
        self._server = server
        self._spare: list[str] = []
        self._shape: Any = None

    def make(self, *, bare: bool) -> str:
        name = f"test_{next(_numbers)}"
        if bare:
            self._run(f'CREATE DATABASE "{name}" TEMPLATE template0')
        elif self._spare:
            self._run(f'ALTER DATABASE "{self._spare.pop()}" RENAME TO "{name}"')
        else:
            self._run(f'CREATE DATABASE "{name}" TEMPLATE "{self._template()}"')
        return name

    def url_of(self, name: str) -> str:
        return self._server.url_of(name)

    def _template(self) -> str:
        if self._shape is None:
            from curtsy.store.engine import Store

            Store.open(self._server.create_database("tables")).close()
            with self._connected("tables") as connection:
                self._shape = connection.execute(_SHAPE).fetchone()
        return "tables"

    def take_back(self, name: str, *, bare: bool) -> None:
        if bare or not self._empty(name):
            self._run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        else:
            self._spare.append(name)

    def _empty(self, name: str) -> bool:
        """Whether it is now as it was made: other tables than at first are not put right, and whoever comes back while
        it is emptied keeps it from being used again."""
        import psycopg

        try:
            return self._is_emptied(name)
        except psycopg.Error:
            return False

    def _is_emptied(self, name: str) -> bool:
        with self._connected("postgres") as outside:
            while outside.execute(_CUT_OFF, (name,)).rowcount:
                pass
            with self._connected(name) as inside:
                for statement in [row[0] for row in inside.execute(_EMPTYING)]:
                    inside.execute(statement.encode())
                same: bool = inside.execute(_SHAPE).fetchone() == self._shape
            while outside.execute(_CUT_OFF, (name,)).rowcount:
                pass
        return same

    def _run(self, statement: str) -> None:
        with self._connected("postgres") as connection:
            connection.execute(statement.encode())

    def _connected(self, name: str) -> psycopg.Connection[Any]:
        """A connection of its own each time: tests restart the server."""
        import psycopg

        return psycopg.connect(self._server.url_of(name), autocommit=True)


#: ends who is connected to a database; a row for each that was
_CUT_OFF = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
#: the kinds and numbers of what a database consists of, and the version of its tables
_SHAPE = """
    SELECT (SELECT array_agg(relname || relkind::text ORDER BY relname) FROM pg_class
            WHERE relnamespace = 'public'::regnamespace),
           (SELECT count(*) FROM pg_attribute), (SELECT count(*) FROM pg_constraint), (SELECT count(*) FROM pg_trigger),
           (SELECT max(version_num) FROM alembic_version)
"""
#: what removes each row and sets each counter to its beginning
_EMPTYING = """
    SELECT 'TRUNCATE ' || string_agg(format('%I', relname), ', ') || ' CASCADE' FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'alembic_version'
      AND pg_relation_size(oid) > 0 HAVING count(*) > 0
    UNION ALL
    SELECT format('ALTER SEQUENCE %I RESTART', sequencename) FROM pg_sequences WHERE last_value IS NOT NULL
"""


@pytest.fixture(scope="session")
def _databases(postgres: PgServer) -> _Databases:
    return _Databases(postgres)


@pytest.fixture
def new_database(_databases: _Databases) -> Iterator[Callable[..., str]]:
    """new_database() -> the URL of a database without a row, which goes with the test. bare: even without tables."""
    made: dict[str, bool] = {}

    def make(*, bare: bool = False) -> str:
        name = _databases.make(bare=bare)
        made[name] = bare
        return _databases.url_of(name)

    yield make
    for name, bare in made.items():
        _databases.take_back(name, bare=bare)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new database without a row, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'curtsy.sqlite'}"
    return str(request.getfixturevalue("new_database")())


@pytest.fixture
def postgres_url(new_database: Callable[..., str]) -> str:
    """For tests that need no second database: what takes long, and has little to do with the store."""
    return new_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def bare_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new database without a table, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'bare.sqlite'}"
    return str(request.getfixturevalue("new_database")(bare=True))


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An open store, of each kind."""
    from curtsy.store.engine import Store

    with Store.open(store_url) as opened:
        yield opened


#: they take minutes, most of it waiting
_LONG = ("test_chaos_short", "test_whole_tinyweb", "test_frontier_properties")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that run beside each other are of all kinds: five with browsers, or with fleets, are too much at once.

    The order is the same every time.
    """
    items.sort(key=lambda item: (item.path.stem not in _LONG, crc32(item.path.stem.encode()), item.path.stem))


def pytest_unconfigure() -> None:
    """Crawls in this process freeze what was imported; modules that look for leaks at exit would find some."""
    gc.unfreeze()
