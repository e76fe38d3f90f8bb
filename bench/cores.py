"""What a second process gains, with the web server measured apart.

One process runs on one core, two processes on two cores, each with their Valkey. The web server has the other cores.
Where there is none, as on a machine with two cores, it shares those of the two processes. They then count as if each
core had spent its part of the web server's CPU time on the crawl: that part is taken off their time. The time goes
from the start of the first request to the end of the last one, by the request log of the crawl, so start and end of
the crawl do not count.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from bench.measure import cpu_of, descendants_of


def web_servers() -> list[int]:
    """The nginx that this benchmark started."""
    found = ((pid, cpu_of(pid)) for pid in descendants_of(os.getpid()))
    return [pid for pid, one in found if one is not None and one[0] == "nginx"]


@contextmanager
def on_cores(n: int | None) -> Iterator[None]:
    """What is started in the block runs on the first `n` cores, the web server on the others; None: all on all."""
    every = os.sched_getaffinity(0)
    if n is None:
        yield
        return
    first, rest = split(every, n)
    servers = web_servers()
    _pin([0], first)
    _pin(servers, rest)
    try:
        yield
    finally:
        _pin([0, *servers], every)


def split(every: set[int], n: int) -> tuple[set[int], set[int]]:
    """The crawler's cores and those of the web server: the rest, or all if none is left."""
    ordered = sorted(every)
    return set(ordered[:n]), set(ordered[n:]) or every


def _pin(pids: list[int], cores: set[int]) -> None:
    for pid in pids:
        os.sched_setaffinity(pid, cores)


def fetching_s(folder: Path) -> float:
    """From the start of the first request to the end of the last one, of the crawl in this data folder."""
    with closing(sqlite3.connect(folder / "curtsy.sqlite")) as store:
        first_ms, last_ms = store.execute("SELECT min(start_ms), max(end_ms) FROM requests").fetchone()
    return (last_ms - first_ms) / 1000


def seconds_apart(fetching_s: float, web_cpu_s: float, cores: int, every: int) -> float:
    """The time without the web server's part, where it shares the cores of the crawl."""
    return fetching_s - (web_cpu_s / every if cores >= every else 0.0)
