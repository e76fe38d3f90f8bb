"""A tiny web, a control plane and an Airflow for all tests here. Airflow has an environment of its own (Makefile)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from airflow_plane import Plane
from airflow_stack import Airflow

from curtsy.tinyweb import TinyWeb

if find_spec("airflow") is None:
    collect_ignore = ["test_airflow_parts.py"]


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("airflow3")


@pytest.fixture(scope="session")
def web(place: Path) -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=12, pages=16, faults=("error-500",), log=place / "web.log") as started:
        yield started


@pytest.fixture(scope="session")
def plane(place: Path, web: TinyWeb) -> Iterator[Plane]:
    started = Plane(place / "plane", web)
    try:
        yield started
    finally:
        started.close()


@pytest.fixture
def connection(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what runs in this process."""
    monkeypatch.setenv("AIRFLOW_CONN_CURTSY_DEFAULT", json.dumps({"conn_type": "curtsy", **plane.connection}))


@pytest.fixture(scope="session")
def airflow(place: Path, plane: Plane, web: TinyWeb) -> Iterator[Airflow]:
    notes = str(place / "notes.txt")
    started = Airflow(place / "airflow", plane.connection, TINYWEB_PORT=str(web.port), CURTSY_NOTES=notes)
    try:
        started.start()
        yield started
    finally:
        started.close()
