"""The API on PostgreSQL with two processes: seeds taken in, memory, and how it answers meanwhile."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from bench.plan import Plan
from bench.report import Bar, Section
from tests.support.postgres_server import start_postgres

SEEDS = 10_000
#: status requests per second during the upload
ASKED = 50
_HEADERS = {"Content-Type": "application/json"}


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, int]]:
    """(port, process) of `curtsy serve` with two processes over a new PostgreSQL, its frontier in the same folder."""
    with start_postgres(folder / "postgres") as postgres:
        environment = os.environ | {"CURTSY_STORE_URL": postgres.create_database("bench"), "CURTSY_API_RATE": "1000000"}
        log = folder / "serve.log"
        words = ["serve", "--port", "0", "--processes", "2", "--data-dir", str(folder / "data")]
        with log.open("wb") as err:
            process = subprocess.Popen([sys.executable, "-m", "curtsy", *words], stderr=err, env=environment)
        try:
            while not (found := re.search(r"Serving on http://[^:]+:(\d+)/", log.read_text("utf-8"))):
                if process.poll() is not None:
                    raise RuntimeError(log.read_text("utf-8"))
                time.sleep(0.05)
            yield int(found[1]), process.pid
        finally:
            process.terminate()
            process.wait(60)


def ask(
    port: int, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None
) -> tuple[float, bytes]:
    """(seconds, body) of one request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3600)
    try:
        begun = time.perf_counter()
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        said = answer.read()
        if answer.status >= 400:
            raise RuntimeError(said.decode())
        return time.perf_counter() - begun, said
    finally:
        connection.close()


def submit(port: int, seeds: list[str]) -> float:
    return ask(port, "POST", "/v1/crawls", json.dumps({"seeds": seeds}), _HEADERS)[0]


def memory_mb(pid: int) -> float:
    """Of the processes that answer: what belongs to each alone, added up."""
    return sum(child.memory_full_info().uss for child in psutil.Process(pid).children()) / 1e6


class Watch:
    """Asks for the status at a steady pace, and for memory, while something else happens."""

    def __init__(self, port: int, pid: int, path: str) -> None:
        self.times: list[float] = []
        self.most_mb = 0.0
        self._port, self._pid, self._path = port, pid, path
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(i,)) for i in range(ASKED // 5)]
        self._threads.append(threading.Thread(target=self._weigh))

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number: int) -> None:
        """Five times a second, each due at its own time: a slow answer does not lessen the load."""
        due = time.perf_counter() + number / ASKED
        while not self._ended.is_set():
            time.sleep(max(0.0, due - time.perf_counter()))
            ask(self._port, "GET", self._path)
            self.times.append(time.perf_counter() - due)
            due += 0.2

    def _weigh(self) -> None:
        while not self._ended.wait(0.5):
            self.most_mb = max(self.most_mb, memory_mb(self._pid))


def lines(n: int) -> Iterator[bytes]:
    yield b'{"scope": "any"}\n'
    for start in range(0, n, 1000):
        yield b"".join(b'"https://h%d.example/page/%d"\n' % (i % 1000, i) for i in range(start, min(n, start + 1000)))


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    with tempfile.TemporaryDirectory(prefix="bench-api-") as name, served(Path(name)) as (port, pid):
        for i in range(8):  # both processes have opened what they need
            submit(port, [f"https://warm{i}.example/"])
        say("10,000 seeds ...")
        one = [submit(port, [f"https://one{k}.example/{i}" for i in range(SEEDS)]) for k in range(plan.repeats)]
        many = [submit(port, [f"https://h{i}.r{k}.example/" for i in range(SEEDS)]) for k in range(plan.repeats)]
        before_mb = memory_mb(pid)
        say(f"{plan.urls:,} seeds as NDJSON ...")
        id = json.loads(ask(port, "GET", "/v1/crawls")[1])["items"][0]["id"]
        with Watch(port, pid, f"/v1/crawls/{id}") as watch:
            seconds = _upload(port, plan.urls)
    p50, p99 = _at(watch.times, 0.5), _at(watch.times, 0.99)
    rows = (
        ("10,000 seeds on one host, s", f"{_median(one):.2f} ({min(one):.2f} to {max(one):.2f})"),
        ("10,000 seeds on 10,000 hosts, s", f"{_median(many):.2f} ({min(many):.2f} to {max(many):.2f})"),
        (f"{plan.urls:,} seeds on 1,000 hosts as NDJSON, s", f"{seconds:,.0f}"),
        ("memory of the API processes before and at most, MB", f"{before_mb:.0f}, {watch.most_mb:.0f}"),
        ("status requests during the upload", f"{len(watch.times):,}, {len(watch.times) / seconds:.0f} per second"),
        ("their duration, p50 and p99, ms", f"{p50 * 1000:.0f}, {p99 * 1000:.0f}"),
    )
    bars = (
        Bar(what="10,000 seeds accepted, s", value=max(_median(one), _median(many)), limit=1.0),
        Bar(what="growth of the API processes' memory, MB", value=watch.most_mb - before_mb, limit=50),
        Bar(what="p99 of status requests during the upload, ms", value=p99 * 1000, limit=250),
    )
    method = (
        "`curtsy serve` has two processes. PostgreSQL, Valkey and the load run on the same cores. No crawl is running."
    )
    return [Section(title="The API", text=method, head=("figure", "measured"), rows=rows, bars=bars)]


def _upload(port: int, n: int) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3600)
    begun = time.perf_counter()
    headers = {"Content-Type": "application/x-ndjson", "Transfer-Encoding": "chunked"}
    connection.request("POST", "/v1/crawls", lines(n), headers, encode_chunked=True)
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    if answer.status != 202:
        raise RuntimeError(said.decode())
    return time.perf_counter() - begun


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _at(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
