"""The same Scrapy spider on our frontier and on scrapy-redis: what kill -9 loses, whether hosts are spared, how fast.

Each run is judged by the tiny web's own log. Two processes share the work; one of them is killed in the middle. Pages
per second are those of one process without any delay.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.measure import RunFailed
from bench.plan import Plan
from bench.report import Section, number
from curtsy.services.valkey import EmbeddedValkey
from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.accesslog import Line
from curtsy.tinyweb.politeness_check import judge

SPIDER = Path(__file__).parent / "peers" / "org_spider.py"
DELAY_S = 0.25
#: a process that is alone with the work has this long
LIMIT_S = 180.0
#: what the server's own scheduling may add
TOLERANCE_MS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two."""

    name: str
    python: str
    settings: tuple[str, ...]

    def command(self, port: int, hosts: int, delay_s: float, run: str, folder: Path) -> list[str]:
        """Each run has a memory of its own, which its processes share."""
        told: tuple[str, ...] = (
            f"CURTSY_DATA_DIR={folder / run}",
            f"CURTSY_DELAY_S={delay_s}",
            f"SCHEDULER_DUPEFILTER_KEY={run}:seen",
            f"SCHEDULER_QUEUE_KEY={run}:queue",
        )
        told += (*self.settings, "TELNETCONSOLE_ENABLED=0", "LOG_LEVEL=ERROR", "ROBOTSTXT_OBEY=1")
        own = (f"DOWNLOAD_DELAY={delay_s}", "RANDOMIZE_DOWNLOAD_DELAY=0", "CONCURRENT_REQUESTS_PER_DOMAIN=1")
        command = [self.python, "-m", "scrapy", "runspider", str(SPIDER), "-a", f"port={port}", "-a", f"hosts={hosts}"]
        return command + [part for setting in (*told, *own) for part in ("-s", setting)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one side did."""

    lost: int
    asked_twice: int
    overlaps: int
    early: int
    pages_per_s: float


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    if plan.peers is None:
        return []
    rows = []
    for make in (_ours, _theirs):
        with tempfile.TemporaryDirectory(prefix="curtsy-bench-") as folder, make(Path(folder), plan.peers) as side:
            found = _measure(side, plan, Path(folder))
        say(f"  {side.name}: {found}")
        counts = (found.lost, found.asked_twice, found.overlaps, found.early)
        rows.append((side.name, *map(str, counts), number(found.pages_per_s)))
    text = (
        f"Two processes run the same spider on {plan.spider_hosts} hosts x {plan.spider_pages} pages of the tiny web. "
        f"The spider obeys robots.txt, and DOWNLOAD_DELAY is {DELAY_S:g} s. One process is killed (kill -9) "
        "halfway, and the other continues to the end. A lost page was never fetched. Start pages and "
        "robots.txt do not count as fetched twice. The server's log shows overlaps and early starts, with a "
        f"tolerance of {TOLERANCE_MS} ms. Pages/s are those of one process without a delay, including its start."
    )
    head = ("scheduler", "lost", "fetched twice", "overlaps", "early", "pages/s, no delay")
    return [Section(title="Scrapy on the frontier, compared with scrapy-redis", text=text, head=head, rows=tuple(rows))]


@contextmanager
def _ours(_folder: Path, _peers: str) -> Iterator[Side]:
    short: tuple[str, ...] = (
        "CURTSY_SLOT_S=6",
        "CURTSY_FETCH_TIMEOUT_S=2",
        "CURTSY_CONNECT_TIMEOUT_S=1",
        "CURTSY_START_SLACK_S=1",
    )
    short += ("CURTSY_SLOT_MARGIN_S=1", "CURTSY_LATENCY_FACTOR=0")
    yield Side(name="Curtsy", python=sys.executable, settings=('ADDONS={"curtsy.scrapy.Addon": 100}', *short))


@contextmanager
def _theirs(folder: Path, peers: str) -> Iterator[Side]:
    with EmbeddedValkey.enter(folder / "redis") as server:
        yield Side(
            name="scrapy-redis",
            python=peers,
            settings=(
                "SCHEDULER=scrapy_redis.scheduler.Scheduler",
                "DUPEFILTER_CLASS=scrapy_redis.dupefilter.RFPDupeFilter",
                "SCHEDULER_PERSIST=1",
                f"REDIS_URL={server.url}",
            ),
        )


def _measure(side: Side, plan: Plan, folder: Path) -> Found:
    hosts, pages = plan.spider_hosts, plan.spider_pages
    with TinyWeb.start(hosts=hosts, pages=pages, faults=False, log=folder / "fast.log") as web:
        began = time.monotonic()
        _wait([_start(side, web, hosts, 0, folder, "fast")])
        took_s = time.monotonic() - began
        wanted = set(_places(web.requests()))
    with TinyWeb.start(hosts=hosts, pages=pages, faults=False, log=folder / "polite.log") as web:
        _run_with_a_kill(side, web, hosts, len(wanted), folder)
        log = web.requests()
    asked = Counter(_places(log))
    verdict = judge(log, DELAY_S, TOLERANCE_MS)
    return Found(
        lost=len(wanted - asked.keys()),
        asked_twice=sum(many > 1 for place, many in asked.items() if not place.endswith(("/", "/robots.txt"))),
        overlaps=verdict.overlaps,
        early=verdict.shortfalls,
        pages_per_s=len(wanted) / took_s,
    )


def _run_with_a_kill(side: Side, web: TinyWeb, hosts: int, pages: int, folder: Path) -> None:
    """Two processes; when a third of the pages is asked for, one is killed."""
    killed, other = (_start(side, web, hosts, DELAY_S, folder, "polite") for _ in range(2))
    try:
        deadline = time.monotonic() + LIMIT_S
        while len(web.requests()) < pages / 3:
            if time.monotonic() > deadline or killed.poll() is not None:
                raise RunFailed(f"{side.name}: the first process ended or stood still before it could be killed.")
            time.sleep(0.05)
    finally:
        killed.kill()
        killed.wait()
    _wait([other])


def _start(side: Side, web: TinyWeb, hosts: int, delay_s: float, folder: Path, run: str) -> subprocess.Popen[bytes]:
    command = side.command(web.port, hosts, delay_s, run, folder)
    with (folder / f"{run}-{time.monotonic_ns()}.err").open("wb") as errors:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)


def _wait(processes: list[subprocess.Popen[bytes]]) -> None:
    try:
        for process in processes:
            if process.wait(LIMIT_S):
                raise RunFailed(f"A spider ended with {process.returncode}: {' '.join(map(str, process.args))}")  # type: ignore[arg-type]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def _places(log: list[Line]) -> list[str]:
    return [f"{line.name}{line.path}" for line in log]
