"""Notes when this machine stood still: a process of its own that wakes every 5 ms, and says so when it could not.

A server that was not let run writes down a request later than it arrived, and the next one looks early. As a program:
`python -m tests.chaos.metronome FILE`; it ends when its standard input closes.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from curtsy.tinyweb.accesslog import Line

_BEAT_S = 0.005
_STALL_S = 0.025
#: after a stall everybody wants to run at once
_AFTER_US = 10_000

Stall = tuple[int, int]


class Metronome:
    """Runs beside a round; `stalls()` are the times (from, to), in microseconds, in which it could not run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.metronome", str(path)], stdin=subprocess.PIPE, cwd=Path.cwd()
        )

    def stalls(self) -> list[Stall]:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return [(int(began), int(ended)) for began, ended in (line.split() for line in lines)]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def as_early_as_can_be(lines: Iterable[Line], stalls: list[Stall]) -> list[Line]:
    """The lines with their starts at the beginning of the stall in which they may have arrived."""
    moved = []
    for line in lines:
        began = next((began for began, ended in stalls if began < line.start_us <= ended + _AFTER_US), line.start_us)
        moved.append(replace(line, start_us=began))
    return moved


def main(path: str) -> None:
    with open(path, "a", buffering=1) as file:
        last = time.time_ns()
        while not select.select([sys.stdin], [], [], _BEAT_S)[0]:
            now = time.time_ns()
            if now - last > _STALL_S * 1_000_000_000:
                file.write(f"{last // 1000} {now // 1000}\n")
            last = now


if __name__ == "__main__":
    main(sys.argv[1])
    os._exit(0)
