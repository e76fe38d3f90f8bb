"""Every contract test runs on SQLite and on a real PostgreSQL, one server for the session, one database per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from curtsy.store.engine import Store


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with Store.open(store_url) as opened:
        yield opened
