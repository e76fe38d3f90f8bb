"""Three rounds of chaos, so that every change is tried a little; `make chaos` plays sixty."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_three_rounds_of_chaos_lose_nothing_and_stay_polite() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--rounds", "3", "--seed", "59"],
        cwd=ROOT, capture_output=True, text=True, timeout=290, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
