"""Fixtures of the frontier's contract tests: every test runs on the wheel's Valkey, on a cluster of three of them, and
on Debian's Redis."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from frontier_servers import Cluster, Server, World

from curtsy.services.valkey import find_server


@pytest.fixture(scope="session", params=["valkey", "redis", "cluster"])
def frontier_server(request: pytest.FixtureRequest) -> Iterator[Server | Cluster]:
    program = shutil.which("redis-server") if request.param == "redis" else find_server()
    if program is None:
        pytest.skip(f"no {request.param} server here; install redis-server to run these tests on it too")
    server = Cluster(program) if request.param == "cluster" else Server(program)
    server.start()
    yield server
    server.remove()


@pytest.fixture
def world(frontier_server: Server | Cluster) -> Iterator[World]:
    made = World(frontier_server)
    yield made
    made.close()
