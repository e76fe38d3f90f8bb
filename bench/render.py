"""A render worker over thousands of pages: is its memory flat, and does it leave no browser behind?

Memory is what the worker and everything it started hold together (PSS: shared pages are counted once), sampled over
the whole run. In the middle the browser is killed; a second worker is killed itself.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.measure import RunFailed, cpu_of, descendants_of
from bench.plan import Plan
from bench.report import Bar, Section, number
from curtsy.core.settings import Settings
from curtsy.tinyweb import TinyWeb

#: every fifth host of the tiny web shows nothing without scripts
EVERY = 5
SAMPLE_S = 0.5
GONE_S = 20.0
_MARK = b"curtsy-chromium-"


class Watch:
    """The memory and CPU of a process and everything it started, by how many pages it had made."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stop = threading.Event()
        self.pages = 0
        self.samples: list[tuple[int, float]] = []
        self.cpu_s = 0.0
        self._before_s = 0.0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            family = [self._pid, *descendants_of(self._pid)]
            self.samples.append((self.pages, sum(map(_pss_mb, family))))
            # Most pages have a process of their own, which ends with them: its parent knows what it took. What ends
            # with its parent takes nothing away from what was counted.
            now_s = sum(found[1] for pid in family if (found := cpu_of(pid, ended=True)) is not None)
            self.cpu_s += max(0.0, now_s - self._before_s)
            self._before_s = now_s

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def windows(self, length: int, total: int) -> list[tuple[int, float, float]]:
        """Of each so many pages: the first page, mean and largest memory."""
        found = []
        for first in range(0, total, length):
            held = [mb for pages, mb in self.samples if first <= pages < first + length]
            if held:
                found.append((first, statistics.fmean(held), max(held)))
        return found


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    total = plan.render_hosts * plan.render_pages
    hosts = plan.render_hosts * EVERY
    with TinyWeb.start(hosts=hosts, pages=plan.render_pages, faults=False) as web:
        began = time.monotonic()
        watch, again = _run(web, hosts, plan.render_pages, total, say)
        wall_s = time.monotonic() - began
        _kill_worker(web, hosts, plan.render_pages, say)
    window = min(200, total // 3)
    windows = watch.windows(window, total)
    settled = [mean for first, mean, _ in windows if first >= window]
    peaks = [most for first, _, most in windows if first >= window]
    part = max(1, len(settled) // 3)
    growth = statistics.fmean(settled[-part:]) / statistics.fmean(settled[:part])
    text = (
        f"One worker visits {total:,} pages of {plan.render_hosts} hosts whose pages need JavaScript, "
        f"{Settings().render_concurrency} at a time. It replaces the browser every {Settings().render_recycle_pages} "
        f"pages. The benchmark kills the browser once halfway, and {again} visits were repeated. The worker rendered "
        f"{total / wall_s:.1f} pages/s, with {1000 * watch.cpu_s / total:.0f} ms of CPU per page including "
        "the browser. No Chromium process was left at the end, after kill -9 of the browser, or after kill "
        "-9 of the worker."
    )
    rows = tuple((f"from {first + 1:,}", f"{mean:.0f}", f"{most:.0f}") for first, mean, most in windows)
    bars = (
        Bar(what="memory, last third / first third, without the first window", value=growth, limit=1.1),
        Bar(what="peak memory, largest window / smallest, after the first", value=max(peaks) / min(peaks), limit=1.1),
        Bar(
            what="mean memory, largest window / smallest, after the first", value=max(settled) / min(settled), limit=1.1
        ),
    )
    return [Section(title="Rendering", text=text, head=("pages", "mean MB", "peak MB"), rows=rows, bars=bars)]


def _start(web: TinyWeb, hosts: int, pages: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.render_child", web.resolve_rule, str(hosts), str(pages)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _run(web: TinyWeb, hosts: int, pages: int, total: int, say: Callable[[str], None]) -> tuple[Watch, int]:
    worker = _start(web, hosts, pages)
    watch = Watch(worker.pid)
    killed: list[int] = []
    said = {"good": 0, "again": 0}
    try:
        assert worker.stdout is not None
        for line in worker.stdout:
            said = json.loads(line)
            watch.pages = said["good"]
            # Not just where one browser follows another: visits are to be under way in it.
            if watch.pages >= total * 11 // 20 and not killed:
                killed = _browser(worker.pid)
                os.kill(killed[-1], signal.SIGKILL)
            if watch.pages % 100 == 0:
                say(f"  {watch.pages} pages, {watch.samples[-1][1]:.0f} MB" if watch.samples else "  begun")
        worker.wait(60)
    finally:
        watch.stop()
        worker.kill()
    if worker.returncode or said["good"] != total:
        raise RunFailed(f"The worker showed {said['good']} of {total} pages and ended with {worker.returncode}.")
    _wait_until_gone(killed)
    return watch, said["again"]


def _kill_worker(web: TinyWeb, hosts: int, pages: int, say: Callable[[str], None]) -> None:
    worker = _start(web, hosts, pages)
    try:
        assert worker.stdout is not None
        for _ in range(10):
            worker.stdout.readline()
        family = _browser(worker.pid)
    finally:
        worker.kill()
        worker.wait()
    took_s = _wait_until_gone(family)
    say(f"  kill -9 of the worker: its {number(len(family))} processes of Chromium were gone after {took_s:.2f} s")


def _browser(worker: int) -> list[int]:
    """Every process of the worker's browser; the main one last."""
    found = [pid for pid in descendants_of(worker) if _MARK in _command(pid)]
    no_main = (b"--type=", b"chromium_watch", b"crashpad")
    main = [pid for pid in found if not any(part in _command(pid) for part in no_main)]
    if not main:
        raise RunFailed("The worker has no browser.")
    return [*(pid for pid in found if pid != main[-1]), main[-1]]


def _wait_until_gone(family: list[int]) -> float:
    """No process of Chromium is left, of this family or of any other worker of this benchmark."""
    began = time.monotonic()
    while any(_MARK in _command(pid) for pid in family):
        if time.monotonic() - began > GONE_S:
            raise RunFailed(f"Processes of Chromium are left: {[pid for pid in family if _command(pid)]}")
        time.sleep(0.01)
    return time.monotonic() - began


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _pss_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("Pss:")), 0.0)
