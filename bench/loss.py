"""How soon a crawl asks again after its frontier was lost: FLUSHALL under a running crawl with a million open rows.

The crawl is a real `curtsy crawl`; time limits are short so that the quiet period, which is politeness and not
slowness, passes soon. What counts is the time beyond it: noticing the loss, rebuilding, and the first rescan.
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from bench import contestants
from bench.measure import RunFailed, reaping
from bench.plan import Plan, serve
from bench.report import Bar, Section
from bench.site import Site, path_of
from curtsy.services.valkey import EmbeddedValkey

DELAY_S = 1.0
SLOT_S = 3.0
LIMITS = {
    "CURTSY_SLOT_S": f"{SLOT_S:g}",
    "CURTSY_SLOT_MARGIN_S": "0.5",
    "CURTSY_START_SLACK_S": "0.5",
    "CURTSY_FETCH_TIMEOUT_S": "1.5",
    "CURTSY_CONNECT_TIMEOUT_S": "1",
}
LOAD_TIMEOUT_S = 400.0
BACK_TIMEOUT_S = 90.0
EPOCH = "{s00}:epoch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """One loss."""

    open_rows: int
    #: from FLUSHALL to the first lease
    whole_s: float

    @property
    def beyond_quiet_s(self) -> float:
        return self.whole_s - SLOT_S - DELAY_S


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    hosts = max(10, plan.urls // 1000)
    with serve(hosts, 1, plan.port) as web, tempfile.TemporaryDirectory(prefix="curtsy-bench-") as folder:
        back = lose(web, plan.urls // hosts, Path(folder))
    say(f"  back after {back.whole_s:.2f} s, of it {back.beyond_quiet_s:.2f} s beyond the quiet period")
    if back.open_rows < plan.urls * 0.9:
        raise RunFailed(f"Only {back.open_rows:,} of {plan.urls:,} rows were open when the frontier was lost.")
    rows = (
        ("open rows in the store at that moment", f"{back.open_rows:,}"),
        ("from FLUSHALL to the first lease", f"{back.whole_s:.2f} s"),
        ("of it quiet period and delay", f"{SLOT_S + DELAY_S:.2f} s"),
        ("beyond them", f"{back.beyond_quiet_s:.2f} s"),
    )
    text = (
        f"The command FLUSHALL deletes the frontier during a crawl of {hosts:,} hosts. Slots last {SLOT_S:g} "
        f"s, and the delay is {DELAY_S:g} s."
    )
    bar = Bar(what="first lease after FLUSHALL, beyond the quiet period", value=back.beyond_quiet_s, limit=5, unit=" s")
    return [Section(title="Loss of the frontier", text=text, head=("figure", "measured"), rows=rows, bars=(bar,))]


def lose(web: Site, per_host: int, folder: Path) -> Back:
    with open(folder / "seeds.txt", "w") as seeds:
        for host in range(web.hosts):
            seeds.writelines(f"{web.origin(host)}{path_of(page)}\n" for page in range(per_host))
    data = folder / "data"
    with _crawling(web, folder) as process, _server(process, data) as server:
        _wait(lambda: _leases(server) > web.hosts, process, LOAD_TIMEOUT_S, "did not begin to fetch")
        open_rows = _open_rows(data / "curtsy.sqlite")
        begun = time.monotonic()
        server.flushall()
        _wait(lambda: _leases(server) > 0, process, BACK_TIMEOUT_S, "did not come back")
        return Back(open_rows=open_rows, whole_s=time.monotonic() - begun)


@contextmanager
def _crawling(web: Site, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    env = contestants.environment(folder) | LIMITS
    command = contestants.curtsy(delay_s=DELAY_S).command(web, folder)
    with reaping(), open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def _server(process: subprocess.Popen[bytes], data: Path) -> Iterator[Redis]:
    _wait(lambda: EmbeddedValkey.running(data) is not None, process, LOAD_TIMEOUT_S, "did not start its server")
    embedded = EmbeddedValkey.running(data)
    assert embedded is not None
    with Redis.from_url(embedded.url) as server:
        yield server


def _leases(server: Redis) -> int:
    """Leases of the epoch that rules now; 0 where there is none."""
    try:
        return int(server.hget(EPOCH, "ctr") or 0)
    except RedisError:
        return 0


def _open_rows(path: Path) -> int:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as rows:
        return int(rows.execute("SELECT count(*) FROM urls WHERE state = 'open'").fetchone()[0])


def _wait(ready: Callable[[], bool], process: subprocess.Popen[bytes], timeout_s: float, what: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not ready():
        if process.poll() is not None:
            raise RunFailed(f"The crawl ended with status {process.returncode} before it could be measured.")
        if time.monotonic() > deadline:
            raise RunFailed(f"The crawl {what} within {timeout_s:g} s.")
        time.sleep(0.01)
