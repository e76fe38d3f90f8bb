"""Fixtures of the frontier's contract tests: every test runs on the wheel's Valkey and on Debian's Redis."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from frontier_servers import Server, World

from curtsy.embedded import find_server


@pytest.fixture(scope="session", params=["valkey", "redis"])
def frontier_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    program = find_server() if request.param == "valkey" else shutil.which("redis-server")
    if program is None:
        pytest.skip(f"no {request.param} server here; install redis-server to run these tests on it too")
    server = Server(program)
    server.start()
    yield server
    server.remove()


@pytest.fixture
def world(frontier_server: Server) -> Iterator[World]:
    made = World(frontier_server)
    yield made
    made.close()
