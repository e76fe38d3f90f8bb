"""Many hosts at a delay of 1 s: does every host get its page every second, and how late is one at worst?

Everything is computed from the request log of the crawl, the same rows that `audit` judges.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bench import contestants
from bench.measure import RunFailed
from bench.plan import Plan, serve
from bench.report import Bar, Section, number
from bench.site import Site

DELAY_S = 1.0
#: pages per host beyond the steady state: robots, the first pages, and hosts that are ahead
SPARE_PAGES = 15
#: windows begin at every phase of this time: the delay, in which hosts go in step
PHASES_MS = int(DELAY_S * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request as the log has it."""

    host: str
    start_ms: int
    delay_ms: int
    is_page: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """What happened in the steady state."""

    pages_per_s: float
    late_p50_ms: float
    late_p99_ms: float
    late_max_ms: float


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    pages = plan.polite_steady_s + SPARE_PAGES
    with serve(plan.polite_hosts, pages, plan.port) as web:
        unbound = _crawl(web, 0, say)
        polite = _crawl(web, DELAY_S, say)
    free_rate = steady_of(unbound, plan.polite_steady_s).pages_per_s
    steady = steady_of(polite, plan.polite_steady_s)
    goal = min(plan.polite_hosts / DELAY_S, free_rate)
    text = (
        f"The crawl has {plan.polite_hosts:,} hosts with {pages} pages each. The request log of the crawl supplies the "
        f"numbers, for {plan.polite_steady_s} s that begin after the first page of every host. Lateness is the "
        "time between two starts on a host minus the delay. It includes a safety margin of 10 ms."
    )
    rows = (
        ("pages/s with --delay 0", number(free_rate)),
        (f"pages/s with --delay {DELAY_S:g}", number(steady.pages_per_s)),
        ("lateness of a host, median", f"{steady.late_p50_ms:.0f} ms"),
        ("lateness of a host, p99", f"{steady.late_p99_ms:.0f} ms"),
        ("lateness of a host, largest", f"{steady.late_max_ms:.0f} ms"),
    )
    bar = Bar(
        what=f"pages/s / min({plan.polite_hosts:,}, rate at delay 0)",
        value=steady.pages_per_s / goal,
        limit=0.9,
        at_least=True,
    )
    return [Section(title="Polite and fast", text=text, head=("figure", "measured"), rows=rows, bars=(bar,))]


def _crawl(web: Site, delay_s: float, say: Callable[[str], None]) -> list[Sent]:
    folder = Path(tempfile.mkdtemp(prefix="curtsy-bench-"))
    try:
        result = contestants.crawl_once(contestants.curtsy(delay_s=delay_s), web, folder)
        say(f"  --delay {delay_s:g}: {result.pages_per_s:.0f} pages/s, {result.cpu_ms_per_page:.3f} ms of CPU per page")
        return read_log(folder / "data" / "curtsy.sqlite")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_log(path: Path) -> list[Sent]:
    """Every request that was sent, by host and time."""
    query = "SELECT host, start_ms, delay_ms, kind = 'p' FROM requests WHERE nature = 'sent' ORDER BY host, start_ms"
    with sqlite3.connect(path) as rows:
        return [
            Sent(host=host, start_ms=start, delay_ms=delay, is_page=bool(page))
            for host, start, delay, page in rows.execute(query)
        ]


def steady_of(log: Sequence[Sent], seconds: int) -> Steady:
    """Figures of the window that begins when every host has had its second page."""
    begin, last = max(_second_pages(log).values()), max(sent.start_ms for sent in log)
    length = min(seconds * 1000, last - begin - PHASES_MS)
    # A crawl without a delay can be over before that: then the whole of it is what there is.
    if length < 1000:
        begin = min(sent.start_ms for sent in log)
        length = max(last - begin - PHASES_MS, 1)
    late = sorted(_lateness(log, begin, begin + length)) or [0]
    return Steady(
        pages_per_s=_rate(sorted(sent.start_ms for sent in log if sent.is_page), begin, length),
        late_p50_ms=late[len(late) // 2],
        late_p99_ms=late[len(late) * 99 // 100],
        late_max_ms=late[-1],
    )


def _rate(starts: Sequence[int], begin: int, length: int) -> float:
    """Pages per second, averaged over windows that begin at every phase of one second.

    Hosts with the same delay go in step, one wave after another. A single window that begins just behind a wave misses
    up to a whole wave, one part in ten of 10 s.
    """
    froms = range(begin, begin + PHASES_MS, PHASES_MS // 50)
    counts = [bisect_left(starts, at + length) - bisect_left(starts, at) for at in froms]
    return sum(counts) * 1000 / len(counts) / length


def _second_pages(log: Sequence[Sent]) -> dict[str, int]:
    counts: dict[str, int] = {}
    starts: dict[str, int] = {}
    for sent in log:
        if sent.is_page:
            counts[sent.host] = counts.get(sent.host, 0) + 1
            if counts[sent.host] == 2:
                starts[sent.host] = sent.start_ms
    if not starts:
        raise RunFailed("The request log has no host with two pages: nothing can be said about a steady state.")
    return starts


def _lateness(log: Sequence[Sent], begin: int, end: int) -> list[int]:
    """Per request in the window: how long after its due time it began."""
    return [
        sent.start_ms - before.start_ms - sent.delay_ms
        for before, sent in pairwise(log)
        if before.host == sent.host and begin <= sent.start_ms < end
    ]
