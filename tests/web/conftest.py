"""The API in this process, over a new database on SQLite and on PostgreSQL, with the folder's own frontier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load
from curtsy.web.backend_thread import BackendThread
from curtsy.web.factory import create_app


@pytest.fixture
def settings(tmp_path: Path, store_url: str) -> Settings:
    return load(data_dir=tmp_path / "data", store_url=store_url, api_rate=10_000, api_burst=100_000)


@pytest.fixture
def apps(settings: Settings) -> Iterator[Callable[..., Flask]]:
    """Makes applications, with other settings or another address if wished, and closes them."""
    made: list[BackendThread] = []

    def make(host: str = "127.0.0.1", **changed: object) -> Flask:
        app = create_app(settings.model_copy(update=changed), host=host)
        made.append(app.extensions["curtsy"])
        return app

    yield make
    for bridge in made:
        bridge.close()


@pytest.fixture
def app(apps: Callable[..., Flask]) -> Flask:
    return apps()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()
