"""A fleet beside the usual crawler on Celery, one task per URL: same site, same processes, same kind of broker."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench import fleet
from bench.contestants import PEERS
from bench.measure import RunFailed
from bench.parts import Parts
from bench.plan import Plan
from bench.report import Bar, Section, number
from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.politeness_check import judge

DELAYS_S = (0.0, 1.0)
#: the other one is given up after so many times the ideal
PATIENCE = 40
OURS, THEIRS = "Curtsy", "one task per URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one of them did in one crawl."""

    name: str
    delay_s: float
    pages: int
    #: from the first request to the end of the last one
    seconds: float
    cpu_s: dict[str, float]
    #: the server's memory at most, less that at the start
    memory: int
    violations: int
    requests: int
    #: shortest time between two starts on one host
    shortest_ms: float
    retries: int = 0

    @property
    def row(self) -> tuple[str, ...]:
        polite = self.delay_s > 0
        parts = ", ".join(f"{name} {spent * 1000 / self.pages:.2f}" for name, spent in sorted(self.cpu_s.items()))
        return (
            f"{self.name}, delay {self.delay_s:g} s",
            number(self.pages / self.seconds),
            f"**{self.cpu_ms:.2f}** ({parts})",
            number(self.memory / self.pages),
            f"{self.violations:,} of {self.requests:,}" if polite else "-",
            f"{self.shortest_ms:.0f} ms" if polite else "-",
            f"{self.retries / self.pages:.1f}" if polite else "-",
        )

    @property
    def cpu_ms(self) -> float:
        return sum(self.cpu_s.values()) * 1000 / self.pages


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    if plan.peers is None:
        return []
    found: list[Figures] = []
    for delay_s in DELAYS_S:
        for crawl in (ours, theirs):
            with tempfile.TemporaryDirectory(prefix="curtsy-bench-") as name:
                found.append(crawl(plan, Path(name), delay_s))
            say("  " + " | ".join(found[-1].row))
    head = (
        "crawler", "pages/s", "CPU ms per page", "Valkey, bytes per URL", "politeness violations",
        "shortest time between two starts", "retries per page",
    )  # fmt: skip
    seats = len(fleet.WORKERS) * fleet.SEATS
    text = (
        f"Both crawlers fetch {plan.task_hosts} hosts x {plan.task_pages} pages of {fleet.PAGE_KB:.0f} KB "
        f"from the tiny web, one after the other on the same cores. Each has {seats} worker processes in two "
        "workers, and one Valkey as broker. Pages per second count from the first request to the end of the "
        f"last one. With a delay of 1 s, the maximum without violations is {plan.task_hosts}. CPU is that of "
        "all processes except the web server, from the first seed on. Memory is the peak of `used_memory` "
        "minus its value before the first seed, divided by pages. It includes fixed parts such as buffers of "
        "clients. The server's log shows violations, with a tolerance of 50 ms. Curtsy fetches robots.txt. "
        "It stores bodies, rows and its request log durably in segments and PostgreSQL. The other crawler "
        "stores nothing. Each of its tasks uses httpx, SADD, a counter per host and second, and a retry with "
        "a countdown (`bench/peers/celery_tasks.py`)."
    )
    mine, other = (next(f for f in found if f.name == name and f.delay_s == 1.0) for name in (OURS, THEIRS))
    bars = (
        Bar(what="one task per URL / Curtsy, CPU per page", value=other.cpu_ms / mine.cpu_ms, limit=1, at_least=True),
        Bar(
            what="Curtsy's requests without a violation / requests",
            value=1 - mine.violations / mine.requests,
            limit=1,
            at_least=True,
        ),
    )
    rows = tuple(figure.row for figure in found)
    return [Section(title="A fleet compared with one task per URL", text=text, head=head, rows=rows, bars=bars)]


def _web(plan: Plan, folder: Path) -> TinyWeb:
    return TinyWeb.start(
        hosts=plan.task_hosts, pages=plan.task_pages, page_kb=fleet.PAGE_KB, faults=False, log=folder / "access.log"
    )


def ours(plan: Plan, folder: Path, delay_s: float) -> Figures:
    with _web(plan, folder) as web, fleet.running(folder, web) as running:
        crawled = running.crawl(delay_s, timeout_s=60 + 4 * plan.task_pages * delay_s)
        return _figures(
            OURS, web, delay_s, crawled.pages, crawled.cpu_s, crawled.memory[1] - crawled.memory[0], from_us=0
        )


def theirs(plan: Plan, folder: Path, delay_s: float) -> Figures:
    assert plan.peers is not None
    total = plan.task_hosts * plan.task_pages
    with _web(plan, folder) as web, Parts(folder) as parts, closing(parts.client(1)) as client:

        def count(key: str) -> int:
            return int(client.get(key) or 0)

        env = {"PATH": os.environ["PATH"], "BROKER": parts.url, "WEB_PORT": str(web.port), "DELAY": f"{delay_s:g}"}
        env["PYTHONPATH"] = str(PEERS)
        for name in fleet.WORKERS:
            words = ["-m", "celery", "-A", "celery_tasks", "worker", "-c", str(fleet.SEATS), "-n", f"{name}@bench"]
            parts.start(name, [plan.peers, *words], env)
        parts.until(lambda: count("workers") == len(fleet.WORKERS), 60, "One task per URL was not ready")
        (folder / "seeds.txt").write_text("\n".join(web.seeds))
        cpu, memory, begun_us = parts.cpu_s(), parts.memory()[0], time.time_ns() // 1000
        subprocess.run([plan.peers, str(PEERS / "celery_tasks.py"), str(folder / "seeds.txt")], env=env, check=True)
        patience_s = 60 + PATIENCE * plan.task_pages * delay_s
        parts.until(lambda: count("pages") >= total, patience_s, "One task per URL did not fetch all pages", 0.1)
        spent = {name: after - cpu[name] for name, after in parts.cpu_s().items()}
        used = parts.memory()[1] - memory
        return _figures(THEIRS, web, delay_s, count("pages"), spent, used, from_us=begun_us, retries=count("retries"))


def _figures(
    name: str, web: TinyWeb, delay_s: float, pages: int, cpu_s: dict[str, float], memory: int, from_us: int,
    retries: int = 0,
) -> Figures:  # fmt: skip
    lines = [line for line in web.requests() if line.start_us >= from_us]
    if not lines:
        raise RunFailed(f"{name} sent nothing.")
    verdict = judge(lines, delay_s, fleet.TOLERANCE_MS)
    starts: dict[str, int] = {}
    shortest_us = int(1e12)
    for line in lines:
        shortest_us = min(shortest_us, line.start_us - starts.get(line.host, 0))
        starts[line.host] = line.start_us
    return Figures(
        name=name,
        delay_s=delay_s,
        pages=pages,
        seconds=(max(line.end_us for line in lines) - lines[0].start_us) / 1e6,
        cpu_s=cpu_s,
        memory=memory,
        violations=verdict.overlaps + verdict.shortfalls + verdict.too_soon,
        requests=len(lines),
        shortest_ms=shortest_us / 1000,
        retries=retries,
    )
