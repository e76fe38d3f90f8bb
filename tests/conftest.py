"""For all tests."""

from __future__ import annotations

import gc
import itertools
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

if TYPE_CHECKING:
    from curtsy.embedded_pg import PgServer

# A shell that runs the tests in the background lets them ignore signals, and so does every process that they start.
for _number, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)

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
    from curtsy.embedded_pg import start_postgres

    with start_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="session")
def _tables(postgres: PgServer) -> str:
    """A database with the tables of this version and nothing in them: a copy costs a fifth of making them."""
    from curtsy.store.engine import Store

    Store.open(postgres.create_database("tables")).close()
    return "tables"


@pytest.fixture
def new_database(postgres: PgServer, request: pytest.FixtureRequest) -> Iterator[Callable[..., str]]:
    """new_database() -> the URL of a database, which goes with the test: it need never reach the disk.

    bare: even without tables.
    """
    import psycopg

    made: list[str] = []

    def make(*, bare: bool = False) -> str:
        made.append(f"test_{next(_numbers)}")
        template = "template0" if bare else request.getfixturevalue("_tables")
        return postgres.create_database(made[-1], template)

    yield make
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        for name in made:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


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


#: they take minutes, most of it waiting
_LONG = ("test_chaos_short", "test_whole_tinyweb", "test_frontier_properties")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that run beside each other are of all kinds: four with browsers, or with fleets, are too much at once.

    The order is the same every time.
    """
    items.sort(key=lambda item: (item.path.stem not in _LONG, crc32(item.path.stem.encode()), item.path.stem))


def pytest_unconfigure() -> None:
    """Crawls in this process freeze what was imported; modules that look for leaks at exit would find some."""
    gc.unfreeze()
