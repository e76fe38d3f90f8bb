"""Parts of a fleet under measurement: a Valkey of its own and any processes, their CPU and memory, ended with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
import redis

from bench.measure import RunFailed
from curtsy.services.valkey import find_server

STOP_S = 60.0


class Parts:
    """`with Parts(folder) as parts`: the broker's server runs, others are started by name, all are ended at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        #: processes that somebody else started and ends
        self.guests: dict[str, int] = {}
        self.port = free_port()

    @property
    def url(self) -> str:
        """Of the server, without a database."""
        return f"redis://127.0.0.1:{self.port}"

    def __enter__(self) -> Parts:
        program = find_server()
        if program is None:
            raise RunFailed("There is no valkey-server and no redis-server.")
        words = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--dir", str(self.folder)]
        try:
            self.start("valkey", [program, *words], os.environ)
            self.until(self._answers, 20, "Valkey did not answer")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        with (self.folder / f"{name}.log").open("wb") as said:
            self._started[name] = subprocess.Popen(
                argv, cwd=self.folder, env=dict(env), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                start_new_session=True,
            )  # fmt: skip

    def until(self, condition: Callable[[], bool], timeout_s: float, wrong: str, every_s: float = 0.05) -> None:
        """Waits; a part that dies meanwhile is told with its last words."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            for name, process in self._started.items():
                if process.poll() is not None:
                    raise RunFailed(f"{name} ended with {process.returncode}:\n{self.said(name)[-2000:]}")
            if time.monotonic() > deadline:
                raise RunFailed(f"{wrong} within {timeout_s:g} s.")
            time.sleep(every_s)

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text("utf-8", "replace")

    def close(self) -> None:
        """Gently and in turn, the server last; by force whoever does not heed."""
        for name in reversed(list(self._started)):
            process = self._started.pop(name)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    # Figures

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds of each part so far, with its children, living or reaped."""
        roots = {name: process.pid for name, process in self._started.items()} | self.guests
        return {name: _cpu_s(pid) for name, pid in roots.items()}

    def memory(self) -> tuple[int, int]:
        """(now, peak) of the server's memory in bytes."""
        with closing(self.client()) as client:
            found: Any = client.info("memory")
        return int(found["used_memory"]), int(found["used_memory_peak"])

    def client(self, database: int = 0) -> redis.Redis:
        return redis.Redis(port=self.port, db=database)

    def _answers(self) -> bool:
        try:
            with closing(self.client()) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False


def _cpu_s(pid: int) -> float:
    sum_s = 0.0
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    for process in family:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        sum_s += times.user + times.system + times.children_user + times.children_system
    return sum_s


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
