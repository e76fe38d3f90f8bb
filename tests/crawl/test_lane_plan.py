"""How many leases a process asks for, by what is in flight and by the room for documents."""

from __future__ import annotations

import pytest

from curtsy.core.model import Lane
from curtsy.core.settings import Settings
from curtsy.crawl.lane_plan import LanePlan

SETTINGS = Settings(concurrency=10, slow_concurrency=4, render_concurrency=2)


@pytest.mark.parametrize(
    ("others", "slow", "visits", "room", "wanted"),
    [
        pytest.param(0, 0, 0, None, (10, 4, 2), id="everything is free"),
        pytest.param(7, 4, 1, None, (3, 0, 1), id="lanes have limits of their own"),
        pytest.param(7, 4, 1, 14, (2, 0, 1), id="room for two documents more"),
        pytest.param(7, 4, 1, 12, (0, 0, 0), id="no room"),
        pytest.param(0, 0, 0, 0, (1, 1, 1), id="one at a time always fits"),
        pytest.param(1, 0, 0, 0, (0, 0, 0), id="one is in flight, and more do not fit"),
    ],
)
def test_a_process_asks_for_what_is_free_and_fits(
    others: int, slow: int, visits: int, room: int | None, wanted: tuple[int, ...]
) -> None:
    plan = LanePlan(SETTINGS, (Lane.BATCH, Lane.SLOW, Lane.RENDER))
    found = plan.wants(others, slow, visits, room)
    assert found == list(zip((Lane.BATCH, Lane.SLOW, Lane.RENDER), wanted, strict=True))
