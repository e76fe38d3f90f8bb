"""The watch that a worker keeps on the server's clock."""

from __future__ import annotations

import pytest

from curtsy.core.clock import ServerClock, boot
from curtsy.core.errors import EpochLost


def observed(*calls: tuple[float, float, int]) -> None:
    clock = ServerClock()
    for before, after, server_ms in calls:
        clock.observe(before, after, server_ms)


def test_the_boot_clock_never_goes_back() -> None:
    assert boot() <= boot()


@pytest.mark.parametrize(
    "calls",
    [
        [(10, 10.1, 5_000_000)],
        [(10, 10.1, 5_000_000), (20, 20.1, 5_010_000)],
        [(10, 10.1, 5_000_000), (20, 20.1, 5_010_990)],
        [(10, 10.1, 5_000_000), (20, 20.1, 5_009_010)],
        # The answer took 30 s on its way: the server's time may lie anywhere between.
        [(10, 10.1, 5_000_000), (20, 50, 5_010_000)],
        [(10, 10.1, 5_000_000), (20, 50, 5_040_500)],
        # Two calls at once, answered in the other order.
        [(11, 11.1, 5_001_050), (10, 15, 5_000_010)],
    ],
)
def test_a_clock_that_keeps_pace_is_trusted(calls: list[tuple[float, float, int]]) -> None:
    observed(*calls)


@pytest.mark.parametrize("passed_ms", [11_200, 3_600_000, 8_800, 0, -5000])
def test_a_step_of_more_than_a_second_is_a_loss(passed_ms: int) -> None:
    with pytest.raises(EpochLost, match="stepped"):
        observed((10, 10.1, 5_000_000), (20, 20.1, 5_000_000 + passed_ms))


def test_after_a_loss_the_clock_is_watched_anew() -> None:
    clock = ServerClock()
    clock.observe(10, 10.1, 5_000_000)
    with pytest.raises(EpochLost):
        clock.observe(20, 20.1, 9_000_000)
    clock.observe(30, 30.1, 9_010_000)
    clock.observe(40, 40.1, 9_020_000)
