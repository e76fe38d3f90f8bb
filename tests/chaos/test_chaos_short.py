"""Two rounds of chaos and one with a fleet, so that every change is tried a little; `make chaos` plays many more."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.chaos", *words],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_two_rounds_of_chaos_and_a_fleet_lose_nothing_and_stay_polite() -> None:
    """Side by side: they spend most of their time waiting."""
    with (
        start("fleet", "--seed", "284", "--short", "--only", "2") as fleet,
        start("--seed", "59", "--short", "--only", "2", "3") as ground,
    ):
        try:
            told = ground.communicate(timeout=280)[0], fleet.communicate(timeout=280)[0]
        finally:
            for process in (ground, fleet):
                process.send_signal(signal.SIGINT)  # nothing, if it has ended
        assert (ground.returncode, fleet.returncode) == (0, 0), "".join(told)
