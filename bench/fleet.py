"""A fleet: two workers with four processes each, Beat, PostgreSQL. Is it polite, is it in time, does a seat wait?"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from bench.contestants import environment
from bench.parts import Parts
from bench.plan import Plan
from bench.report import Bar, Section, number
from curtsy.control import submit
from curtsy.control.stored_audit import judged
from curtsy.core import settings_loading
from curtsy.core.model import Crawl, CrawlState
from curtsy.fleet.coordination import Fleet
from curtsy.services import backends
from curtsy.store import crawls
from curtsy.store.engine import Store
from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.politeness_check import Verdict, judge
from tests.support.postgres_server import PgServer, start_postgres

T = TypeVar("T")
WORKERS = ("one", "two")
SEATS = 4
DELAY_S = 1.0
PAGE_KB = 8.0
TOLERANCE_MS = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawled:
    """One crawl of a fleet, by the server's log and the fleet's metrics."""

    pages: int
    requests: int
    #: most requests on one host, robots.txt included, times the delay
    ideal_s: float
    #: from the submission to the first request, to the last one's end, and to the crawl's end
    first_s: float
    last_s: float
    ended_s: float
    #: seat time of shifts, and of it waiting and closing
    seat_s: float
    waiting_s: float
    closing_s: float
    shifts: int
    cpu_s: dict[str, float]
    #: bytes of the frontier's server: at the start, and at most
    memory: tuple[int, int]
    verdict: Verdict
    #: what `audit` finds in the crawl's own request log
    own_violations: int

    @property
    def violations(self) -> int:
        found = self.verdict
        return found.overlaps + found.shortfalls + found.too_soon + found.robots_violations + found.unwanted

    @property
    def ended_after_first_s(self) -> float:
        return self.ended_s - self.first_s


class RunningFleet:
    """Workers and Beat over one Valkey and one database."""

    def __init__(self, parts: Parts, web: TinyWeb, store_url: str) -> None:
        self.parts, self.web = parts, web
        self._given: dict[str, Any] = {
            "store_url": store_url,
            "frontier_url": f"{parts.url}/2",
            "resolve": web.resolve_rule,
        }
        self.settings = settings_loading.load(None, data_dir=parts.folder / "data", **self._given)

    def start(self) -> None:
        given = {f"CURTSY_{name.upper()}": value for name, value in self._given.items()}
        env = environment(self.parts.folder) | given | {"CURTSY_LOG_FORMAT": "json"}
        curtsy = [sys.executable, "-m", "curtsy.cli"]
        for name in WORKERS:
            words = ["worker", "--name", name, "--concurrency", str(SEATS), "--no-high"]
            self.parts.start(name, [*curtsy, *words], env)
        self.parts.start("beat", [*curtsy, "beat"], env)
        self.parts.until(self._is_seated, 60, "The workers did not sit down")

    def _is_seated(self) -> bool:
        seats = sum(worker.processes for worker in self._ask(lambda fleet: fleet.workers()))
        return seats == len(WORKERS) * SEATS

    def _ask(self, question: Callable[[Fleet], Awaitable[T]]) -> T:
        async def ask() -> T:
            fleet = Fleet(str(self.settings.frontier_url), self.settings)
            try:
                return await question(fleet)
            finally:
                await fleet.close()

        return asyncio.run(ask())

    def submit(self, delay_s: float) -> Crawl:
        crawl = Crawl(id=str(uuid4()), request_id="bench", created_ms=int(time.time() * 1000), delay_s=delay_s)

        async def run() -> Crawl:
            built = backends.build(self.settings)
            try:
                await built.open()
                return await submit.submit(built, crawl, self.web.seeds)
            finally:
                await built.close()

        return asyncio.run(run())

    def crawl(self, delay_s: float, timeout_s: float) -> Crawled:
        """One crawl of the whole web, to its end."""
        cpu, memory, begun_us = self.parts.cpu_s(), self.parts.memory()[0], time.time_ns() // 1000
        crawl = self.submit(delay_s)
        with Store.open(self.settings.effective_store_url) as store:

            def now() -> Crawl:
                with store.read() as tx:
                    return crawls.by_n(tx, crawl.n)

            self.parts.until(lambda: now().state is CrawlState.FINISHED, timeout_s, "The crawl did not end", 0.1)
            ended_ms = now().ended_ms
            with store.read() as tx:
                pages = crawls.counts(tx, crawl.n).pages
            audited = judged(store, self.settings.agent)
        assert ended_ms is not None
        spent = {name: after - cpu.get(name, 0.0) for name, after in self.parts.cpu_s().items()}
        lines = [line for line in self.web.requests() if line.start_us >= begun_us]
        measured = self._ask(lambda fleet: fleet.metrics())
        return Crawled(
            pages=pages,
            requests=len(lines),
            ideal_s=max(Counter(line.host for line in lines).values()) * delay_s,
            first_s=(lines[0].start_us - begun_us) / 1e6,
            last_s=(max(line.end_us for line in lines) - begun_us) / 1e6,
            ended_s=ended_ms / 1e3 - begun_us / 1e6,
            seat_s=_sum(measured, "curtsy_shift_seconds_total"),
            waiting_s=_sum(measured, "curtsy_shift_waiting_seconds_total"),
            closing_s=_sum(measured, "curtsy_shift_closing_seconds_total"),
            shifts=int(_sum(measured, "curtsy_shifts_total")),
            cpu_s=spent,
            memory=(memory, self.parts.memory()[1]),
            verdict=judge(lines, delay_s, TOLERANCE_MS),
            own_violations=audited.overlaps + audited.early + audited.robots_violations,
        )


def _sum(fields: dict[str, float], name: str) -> float:
    return sum(value for key, value in fields.items() if key.partition("{")[0] == name)


@contextmanager
def running(folder: Path, web: TinyWeb) -> Iterator[RunningFleet]:
    """A fleet that is seated, with servers of its own."""
    postgres: PgServer
    with start_postgres(folder / "postgres") as postgres, Parts(folder) as parts:
        assert postgres.pid is not None
        parts.guests["postgresql"] = postgres.pid
        fleet = RunningFleet(parts, web, postgres.create_database("bench"))
        fleet.start()
        yield fleet


def run(hosts: int, pages: int, say: Callable[[str], None] = lambda _: None) -> Crawled:
    """One crawl of a new tiny web at a delay of 1 s."""
    with tempfile.TemporaryDirectory(prefix="curtsy-bench-") as name:
        log = Path(name, "access.log")
        with (
            TinyWeb.start(hosts=hosts, pages=pages, page_kb=PAGE_KB, faults=False, log=log) as web,
            running(Path(name), web) as fleet,
        ):
            say(f"  {hosts} hosts x {pages} pages, about {(pages + 1) * DELAY_S:.0f} s ...")
            return fleet.crawl(DELAY_S, timeout_s=60 + 2 * pages * DELAY_S)


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    found = run(plan.fleet_hosts, plan.fleet_pages, say)
    text = (
        f"Two workers with {SEATS} processes each, Beat, PostgreSQL, Valkey and the tiny web share the same "
        f"{os.cpu_count()} cores. They crawl {plan.fleet_hosts} hosts x {plan.fleet_pages} pages of "
        f"{PAGE_KB:.0f} KB with a delay of {DELAY_S:g} s. The server's log shows violations, with a tolerance "
        f"of {TOLERANCE_MS:.0f} ms for its own scheduling. Worker time is the duration of shifts in the "
        "metrics. [Decision 18](../decisions/0018-shifts-as-celery-tasks.md) defines waiting."
    )
    title = f"A fleet: {number(plan.fleet_hosts)} hosts x {plan.fleet_pages} pages"
    return [Section(title=title, text=text, head=("figure", "measured"), rows=_rows(found), bars=_bars(found))]


def _rows(found: Crawled) -> tuple[tuple[str, str], ...]:
    cpu_ms = {name: spent * 1000 / found.pages for name, spent in sorted(found.cpu_s.items())}
    each = ", ".join(f"{name} {ms:.2f}" for name, ms in cpu_ms.items())
    closing = f"{found.closing_s:.2f} s ({found.closing_s / found.seat_s:.2%})"
    return (
        ("pages; requests", f"{found.pages:,}; {found.requests:,}"),
        ("politeness violations (overlaps, too early, robots.txt)", f"{found.violations:,}"),
        ("the same by the crawl's own log, without tolerance", f"{found.own_violations:,}"),
        ("largest shortfall of a delay by the server's log", f"{found.verdict.largest_shortfall_ms:.1f} ms"),
        ("ideal time: most requests on one host x delay", f"{found.ideal_s:.0f} s"),
        ("from the submission to the first request", f"{found.first_s:.2f} s"),
        ("from it to the end of the last request", f"{found.last_s - found.first_s:.1f} s"),
        ("from it to the end of the crawl", f"{found.ended_after_first_s:.1f} s"),
        ("shifts; worker time", f"{found.shifts:,}; {found.seat_s:.1f} s"),
        ("of it waiting", f"{found.waiting_s:.2f} s ({found.waiting_s / found.seat_s:.2%})"),
        ("of it closing: only commits or scans in progress", closing),
        ("CPU ms per page", f"{sum(cpu_ms.values()):.2f}: {each}"),
    )


def _bars(found: Crawled) -> tuple[Bar, ...]:
    polite = 1 - found.violations / found.requests
    in_time = found.ended_after_first_s / found.ideal_s
    at_work = 1 - found.waiting_s / found.seat_s
    return (
        Bar(what="requests without a violation / requests", value=polite, limit=1, at_least=True),
        Bar(what="time from the first request to the crawl's end / ideal", value=in_time, limit=1.1),
        Bar(what="worker time not spent waiting / worker time", value=at_work, limit=0.99, at_least=True),
    )
