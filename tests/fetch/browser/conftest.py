"""Tests with a real Chromium; where there is none, they and only they are skipped."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from private_places import Listener, listening
from rendered import Stage, staged, why_not


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if (reason := why_not()) is not None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged() as one:
        yield one


@pytest.fixture
def forbidden() -> Iterator[Listener]:
    """On loopback, which no crawl may reach; only the page's own host leads there, by the operator's word."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with listening(port) as listener:
        yield listener


@pytest.fixture
def datagrams() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        one.setblocking(False)
        yield one
