"""CPU that escapes the measurement would flatter whoever hides it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench.measure import RunFailed, children, run

BURN = "import time\nwhile time.process_time() < 0.3: pass\n"
#: a server as crawlers leave it behind: its parent is gone, it works and then waits
DAEMON = f"""
import os, time
burnt, burning = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        exec({BURN!r})
        os.close(burning)
        os.close(1)
        time.sleep(60)
    os._exit(0)
os.wait()
os.close(burning)
os.read(burnt, 1)
"""


def test_the_cpu_of_a_command_is_counted(tmp_path: Path) -> None:
    measured = run([sys.executable, "-c", BURN], folder=tmp_path, env=os.environ, timeout_s=30)
    assert 0.28 < measured.cpu_s < 1.5


def test_a_daemon_that_a_command_leaves_behind_is_counted_and_ended(tmp_path: Path) -> None:
    before = set(children())
    measured = run([sys.executable, "-S", "-c", DAEMON], folder=tmp_path, env=os.environ, timeout_s=30)
    assert measured.cpu_s > 0.28
    assert measured.wall_s < 20
    assert set(children()) == before


def test_the_memory_of_a_command_is_its_own(tmp_path: Path) -> None:
    ours = b"x" * 200_000_000
    hold = "import time; held = b'x' * 40_000_000; time.sleep(2)"
    measured = run([sys.executable, "-S", "-c", hold], folder=tmp_path, env=os.environ, timeout_s=60)
    assert 40 < measured.max_rss_mb < 150
    assert ours


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="no such luck"):
        run([sys.executable, "-c", "raise SystemExit('no such luck')"], folder=tmp_path, env=os.environ, timeout_s=30)


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="status -9"):
        run([sys.executable, "-c", "import time; time.sleep(60)"], folder=tmp_path, env=os.environ, timeout_s=0.5)
