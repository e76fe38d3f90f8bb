"""Three rounds of chaos and three of fleets, so that every change is tried a little; `make chaos` plays many more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def chaos(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", *words],
        cwd=ROOT, capture_output=True, text=True, timeout=290, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_three_rounds_of_chaos_lose_nothing_and_stay_polite() -> None:
    chaos("--rounds", "3", "--seed", "59")


@pytest.mark.slow
def test_three_fleets_lose_nothing_and_stay_polite() -> None:
    chaos("fleet", "--rounds", "3", "--seed", "284", "--short")
