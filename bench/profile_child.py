"""Runs `curtsy` under cProfile in every thread, by CPU time: `python -m bench.profile_child FILE crawl ...`."""

from __future__ import annotations

import cProfile
import pstats
import sys
import threading
import time
from types import FrameType
from typing import Any

_profiles: list[cProfile.Profile] = []


def _begin(frame: FrameType | None = None, event: str = "", argument: Any = None) -> None:
    """The first event of a thread starts its own profiler, which takes this hook's place."""
    # Waiting costs no CPU, so the thread's CPU clock is the one to read.
    profile = cProfile.Profile(time.thread_time)
    try:
        profile.enable()
    except ValueError:
        threading.setprofile(None)  # Python 3.12 and later allow one profiler per process: only the first thread then
        return
    _profiles.append(profile)


def main() -> None:
    file, sys.argv[1:] = sys.argv[1], sys.argv[2:]
    from curtsy.cli import main as curtsy

    threading.setprofile(_begin)
    _begin()
    try:
        curtsy()
    finally:
        for profile in _profiles:
            profile.disable()
            profile.create_stats()
        pstats.Stats(*_profiles).dump_stats(file)


if __name__ == "__main__":
    main()
