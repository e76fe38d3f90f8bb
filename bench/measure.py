"""CPU and wall time of a command with everything it started.

The measuring process is a child subreaper: a server that a crawler leaves behind becomes our child, so the sum of
`wait4` over all of them is exact, whether they were daemons or not.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class RunFailed(Exception):
    """A measured command ended badly; the message holds the end of what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured command."""

    wall_s: float
    #: user and system time of the command and all its descendants
    cpu_s: float
    #: the part of `cpu_s` of processes that are frontier servers, by sampling (0.2 s)
    server_cpu_s: float
    #: largest resident size of one process
    max_rss_mb: float
    stdout: str
    #: highest CPU seconds seen per process name, by sampling
    by_name: Mapping[str, float] = field(default_factory=dict)
    #: the same per thread of the command itself
    by_thread: Mapping[int, float] = field(default_factory=dict)


@contextmanager
def reaping() -> Iterator[None]:
    """Orphans of our children become ours; at the end those left are ended, so that none outlives its benchmark."""
    ours = set(children())
    _subreaper(True)
    try:
        yield
    finally:
        reap_orphans(ours)
        _subreaper(False)


def _subreaper(on: bool) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


def run(argv: Sequence[str], *, folder: Path, env: Mapping[str, str], timeout_s: float) -> Run:
    """Run a command to its end in a folder; its output goes to files there."""
    ours = set(children())
    with reaping(), open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        begun = time.monotonic()
        process = subprocess.Popen(argv, cwd=folder, env=dict(env), stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        sampler = Sampler(process.pid)
        usage, code = _wait(process, begun + timeout_s)
        wall_s = time.monotonic() - begun
        by_name = sampler.stop()
        usages = [usage, *reap_orphans(ours)]
    said = (folder / "stdout").read_text(errors="replace")
    if code != 0:
        tail = (folder / "stderr").read_text(errors="replace")[-2000:] or said[-2000:]
        raise RunFailed(f"{' '.join(argv[:4])} ... ended with status {code}:\n{tail}")
    return Run(
        wall_s=wall_s,
        cpu_s=sum(u.ru_utime + u.ru_stime for u in usages),
        server_cpu_s=sum(cpu for name, cpu in by_name.items() if name.startswith(("valkey", "redis"))),
        max_rss_mb=sampler.most_mb,
        stdout=said,
        by_name=by_name,
        by_thread=sampler.by_thread,
    )


def _wait(process: subprocess.Popen[bytes], deadline: float) -> tuple[resource.struct_rusage, int]:
    """Usage and exit code; minus the signal's number if one ended it."""
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage, process.returncode
        if time.monotonic() > deadline:
            process.kill()
            deadline = float("inf")
        time.sleep(0.01)


def reap_orphans(ours: set[int], patience_s: float = 10.0) -> list[resource.struct_rusage]:
    """End and count what a command left running, by force where it does not heed."""
    usages = []
    deadline = time.monotonic() + patience_s
    while left := [pid for pid in children() if pid not in ours]:
        for pid in left:
            os.kill(pid, signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL)
            reaped, _, usage = os.wait4(pid, os.WNOHANG)
            if reaped:
                usages.append(usage)
        time.sleep(0.01)
    return usages


def children() -> list[int]:
    """Our own children."""
    return children_of(os.getpid())


def children_of(pid: int) -> list[int]:
    """Direct children of a process, over all its threads."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:
            continue
    return found


def descendants_of(pid: int) -> list[int]:
    found, left = [], [pid]
    while left:
        new = children_of(left.pop())
        found += new
        left += new
    return found


def cpu_of(pid: int, under: str = "", *, ended: bool = False) -> tuple[str, float] | None:
    """Name and CPU seconds of a living process (or, under `PID/task/`, of a thread), its own only.

    ended: and of its children that have ended.
    """
    try:
        head, _, tail = Path(f"/proc/{under}{pid}/stat").read_text().rpartition(")")
    except OSError:
        return None
    return head.partition("(")[2], sum(map(int, tail.split()[11 : 15 if ended else 13])) / CLOCK_TICKS


def most_mb_of(pid: int) -> float:
    """The most memory that a living process held since it became what it is; what `wait4` tells counts its parent's."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM:")), 0.0)


class Sampler:
    """Watches which processes of a tree use the CPU, for the split by name only (the sum comes from `wait4`), and the
    memory of the largest."""

    def __init__(self, pid: int, every_s: float = 0.2) -> None:
        self._pid, self._every_s = pid, every_s
        self._seen: dict[int, tuple[str, float]] = {}
        self.by_thread: dict[int, float] = {}
        self.most_mb = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        known = {os.getpid(), *children()} - {self._pid}
        while not self._end.wait(self._every_s):
            adopted = [pid for pid in children() if pid not in known]
            for root in {self._pid, *adopted}:
                for pid in (root, *descendants_of(root)):
                    if (now := cpu_of(pid)) is not None:
                        self._seen[pid] = now
                        self.most_mb = max(self.most_mb, most_mb_of(pid))
            for task in Path(f"/proc/{self._pid}/task").glob("*"):
                if (now := cpu_of(int(task.name), f"{self._pid}/task/")) is not None:
                    self.by_thread[int(task.name)] = now[1]

    def stop(self) -> dict[str, float]:
        self._end.set()
        self._thread.join()
        sums: dict[str, float] = {}
        for name, cpu_s in self._seen.values():
            sums[name] = sums.get(name, 0.0) + cpu_s
        return sums
