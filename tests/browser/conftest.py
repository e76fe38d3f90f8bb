"""Tests with a real Chromium; where there is none, they and only they are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
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
