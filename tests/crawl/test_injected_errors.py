"""A running crawl survives every error of its parts, wherever it calls them: each site fails once, nothing is lost."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg.errors
import pytest
from crawl_folder import CrawlFolder
from injected import Injector
from postgres_server import start_postgres

from curtsy.cli import UNAVAILABLE
from curtsy.crawl.shift import Shift
from curtsy.frontier.client import ServerError
from curtsy.services.backends import Services
from curtsy.store.engine import Store
from curtsy.tinyweb import TinyWeb

#: one for each error that a caller sees; test_server_errors.py has the classes that become one of these
FRONTIER: dict[str, Callable[[], Exception]] = {
    "refused": lambda: ServerError("OOM command not allowed when used memory > 'maxmemory'."),
    "unavailable": lambda: ConnectionError("the server closed the connection"),
    "lost": lambda: ServerError("READONLY You can't write against a read only replica."),
}


def _sqlite(code: int) -> Callable[[], BaseException]:
    def made() -> BaseException:
        error = sqlite3.OperationalError("it says no")
        error.sqlite_errorcode = code
        return error

    return made


#: likewise; test_database_errors.py has the others
STORE: dict[str, Callable[[], BaseException]] = {
    "busy": _sqlite(sqlite3.SQLITE_BUSY),
    "full": _sqlite(sqlite3.SQLITE_FULL),
    "read-only server": lambda: psycopg.errors.ReadOnlySqlTransaction(
        "cannot execute DELETE in a read-only transaction"
    ),
    "backend killed": lambda: psycopg.errors.AdminShutdown("terminating connection due to administrator command"),
    "no rights": lambda: psycopg.errors.InsufficientPrivilege("permission denied for table urls"),
}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=2, pages=4, faults=("duplicates",), log=tmp_path / "access.log") as running:
        yield running


@pytest.fixture
def injector(monkeypatch: pytest.MonkeyPatch) -> Injector:
    """Armed while a crawl runs: a crawl that starts while a part is away says so and exits."""
    injector = Injector(monkeypatch)
    run, close = Shift.run, Services.close

    async def armed(shift: Shift, *args: Any, **options: Any) -> None:
        injector.armed = True
        try:
            await run(shift, *args, **options)
        finally:
            injector.armed = False

    async def closing(services: Services) -> None:
        injector.armed = True
        try:
            await close(services)
        finally:
            injector.armed = False

    monkeypatch.setattr(Shift, "run", armed)
    monkeypatch.setattr(Services, "close", closing)
    return injector


def check(folder: CrawlFolder, web: TinyWeb) -> None:
    counts = folder.crawl(*web.seeds)
    assert counts.pending == 0
    assert {end for end in folder.ends().values() if end.startswith("failed")} <= {"failed http_402"}
    assert len(folder.pages()) == counts.pages > 8


@pytest.mark.parametrize("name", FRONTIER)
def test_each_call_of_the_frontier_fails_once(tmp_path: Path, web: TinyWeb, injector: Injector, name: str) -> None:
    injector.frontier(FRONTIER[name])
    check(CrawlFolder(tmp_path, web), web)
    scripts = {site.removeprefix("script ") for site in injector.hit if site.startswith("script ")}
    assert scripts >= {"lease", "settle", "beat", "push", "see", "idle", "reap", "room", "fill", "leave"}


@pytest.mark.parametrize("name", STORE)
def test_each_transaction_fails_once(tmp_path: Path, web: TinyWeb, injector: Injector, name: str) -> None:
    injector.store(STORE[name])
    check(CrawlFolder(tmp_path, web), web)
    assert {"transaction Transaction", "transaction _finish_if_done", "transaction _ruling"} <= injector.hit


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
def test_a_segment_that_cannot_be_written_is_written_later(
    tmp_path: Path, web: TinyWeb, injector: Injector, code: int
) -> None:
    injector.segments(lambda: OSError(code, "it says no"))
    check(CrawlFolder(tmp_path, web), web)
    assert injector.hit == {"segment"}


def test_an_error_that_is_ours_is_not_waited_for(tmp_path: Path, web: TinyWeb, injector: Injector) -> None:
    """The test above would hang on it, not hide it."""
    injector.frontier(lambda: ServerError("ERR user_script:1: attempt to index a nil value"))
    with pytest.raises(ServerError):
        check(CrawlFolder(tmp_path, web), web)


def test_a_crawl_on_a_read_only_database_says_what_to_do(tmp_path: Path, web: TinyWeb) -> None:
    with start_postgres(tmp_path / "pg") as server:
        folder = CrawlFolder(tmp_path, web, store_url=server.create_database("crawl"))
        with Store.open(folder.settings().effective_store_url) as store, store.begin() as tx:
            tx.exec_driver_sql("ALTER DATABASE crawl SET default_transaction_read_only = on")
        process = folder.start("crawl", *web.seeds, "--json")
        _, said = process.communicate(timeout=60)
        folder.close()
    assert process.returncode == UNAVAILABLE
    assert "is read-only" in said
    assert "Traceback" not in said
