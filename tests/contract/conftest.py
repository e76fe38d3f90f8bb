"""Every contract test runs on SQLite and on a real PostgreSQL, one server for the session, one database per test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from curtsy.store.engine import Store


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new, empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'curtsy.sqlite'}"
    new_database: Callable[[], str] = request.getfixturevalue("new_database")
    return new_database()


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with Store.open(store_url) as opened:
        yield opened
