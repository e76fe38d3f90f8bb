"""Fleets on SQLite and on a real PostgreSQL; everything a test started is ended with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fleet_folder import FleetFolder

from curtsy.tinyweb import TinyWeb


@pytest.fixture
def new_fleet(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., FleetFolder]]:
    """new_fleet(web, on="postgresql", **settings) -> FleetFolder"""
    made: list[FleetFolder] = []

    def make(web: TinyWeb | None = None, on: str = "sqlite", **changes: Any) -> FleetFolder:
        if on == "postgresql":
            changes["store_url"] = request.getfixturevalue("new_database")()
        made.append(FleetFolder(tmp_path, web, **changes))
        return made[-1]

    yield make
    for folder in made:
        folder.close()
