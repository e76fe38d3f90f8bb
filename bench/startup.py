"""Start-up: the time until a command or a program begins its work."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.contestants import environment
from bench.measure import Run, run
from bench.plan import Plan
from bench.report import Bar, Section

PAGE = b"<!DOCTYPE html><title>A page</title><p>A page without links."
TIMEOUT_S = 120.0


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    repeats = max(plan.repeats, 3)
    with web() as (port, asked):
        shown = [_run(["-m", "curtsy.cli", "--help"]) for _ in range(repeats)]
        imported = [_run(["-c", "import curtsy.api"]) for _ in range(repeats)]
        crawls = [_crawl(port, asked) for _ in range(repeats)]
    rows = (
        ("`curtsy --help`", *_cells(shown)),
        ("`import curtsy.api`", *_cells(imported)),
        ("`curtsy crawl URL`, one page, to its end", *_cells([done for done, _ in crawls])),
        ("`curtsy crawl URL`, to the first request", "-", f"{statistics.median(s for _, s in crawls):.2f}"),
    )
    say(f"  {rows}")
    text = (
        f"Medians of {repeats} runs, in seconds, with compiled modules. CPU is that of all processes, with Valkey. The "
        "first request is the one for robots.txt."
    )
    bars = (
        Bar(what="curtsy --help, CPU", value=_cpu(shown), limit=0.3, unit=" s"),
        Bar(what="import curtsy.api, CPU", value=_cpu(imported), limit=0.4, unit=" s"),
        Bar(
            what="curtsy crawl to the first request", value=statistics.median(s for _, s in crawls), limit=1, unit=" s"
        ),
    )
    return [Section(title="Start-up", text=text, head=("what", "CPU, s", "time, s"), rows=rows, bars=bars)]


def _cpu(runs: Sequence[Run]) -> float:
    return statistics.median(one.cpu_s for one in runs)


def _cells(runs: Sequence[Run]) -> tuple[str, str]:
    return f"{_cpu(runs):.2f}", f"{statistics.median(one.wall_s for one in runs):.2f}"


def _run(words: Sequence[str]) -> Run:
    folder = Path(tempfile.mkdtemp(prefix="curtsy-bench-"))
    try:
        return run([sys.executable, *words], folder=folder, env=environment(folder), timeout_s=TIMEOUT_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _crawl(port: int, asked: list[float]) -> tuple[Run, float]:
    """The crawl of one page, and the seconds until its first request."""
    asked.clear()
    began = time.monotonic()
    options = ["--delay", "0", "--resolve", f"one.test=127.0.0.1:{port}", "--json"]
    done = _run(["-m", "curtsy.cli", "crawl", f"http://one.test:{port}/", *options])
    return done, asked[0] - began


@contextmanager
def web() -> Iterator[tuple[int, list[float]]]:
    """A server with one page: its port, and the times of its requests."""
    asked: list[float] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(time.monotonic())
            self.send_response(404 if self.path == "/robots.txt" else 200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
