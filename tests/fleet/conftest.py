"""Fleets on SQLite and on a real PostgreSQL; everything a test started is ended with it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fleet_folder import FleetFolder

from curtsy.embedded_pg import PgServer, start_postgres
from curtsy.tinyweb import TinyWeb

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PgServer]:
    with start_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def new_fleet(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., FleetFolder]]:
    """new_fleet(web, on="postgresql", **settings) -> FleetFolder"""
    made: list[FleetFolder] = []

    def make(web: TinyWeb | None = None, on: str = "sqlite", **changes: Any) -> FleetFolder:
        if on == "postgresql":
            server: PgServer = request.getfixturevalue("postgres")
            changes["store_url"] = server.create_database(f"fleet_{next(_numbers)}")
        made.append(FleetFolder(tmp_path, web, **changes))
        return made[-1]

    yield make
    for folder in made:
        folder.close()
