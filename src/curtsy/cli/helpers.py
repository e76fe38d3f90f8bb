"""More processes on the same crawl. Each reads commands from its standard input and ends when that closes.

They are forked from the process of the command, which has imported everything that they need. Imports take each new
interpreter 0.3 s of CPU. A process is forked only while it has one thread, no database open and no event loop: threads
do not exist in the child, but their locks and SQLite's do. Otherwise a new interpreter is started.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from typing import NoReturn

from curtsy.cli import OUR_ERROR, exit_code, worker
from curtsy.core.observe import counters
from curtsy.core.settings import Settings

_LOOK_S = 0.005


class Helper:
    """One process, and the descriptors of its standard input and output."""

    def __init__(self, pid: int, to: int, from_: int) -> None:
        self.pid = pid
        self._to, self._from = to, from_

    def send(self, line: str) -> None:
        with suppress(BrokenPipeError):  # it has exited; the others continue
            os.write(self._to, line.encode() + b"\n")

    def close_input(self) -> None:
        os.close(self._to)

    def result(self, timeout_s: float) -> dict[str, int]:
        """Wait for its end. Its counters; empty if it had to be killed."""
        deadline = time.monotonic() + timeout_s
        while (status := self._exit_status()) is None:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(_LOOK_S)
        with open(self._from, "rb") as output:
            said = output.read().strip()
        return dict(json.loads(said)) if said and status == 0 else {}

    def _exit_status(self) -> int | None:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return status if pid else None


class Helpers:
    """The processes that this one has started."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._helpers: list[Helper] = []
        #: counters of the helpers that exited by themselves
        self.counted: Counter[str] = Counter()

    def start(self, n: int) -> None:
        """Start processes that wait for `assign`."""
        for _ in range(n):
            (input_, to), (from_, output) = os.pipe(), os.pipe()
            pid = _fork(input_, output) if _has_one_thread() else _spawn(input_, output)
            os.close(input_)
            os.close(output)
            self._helpers.append(Helper(pid, to, from_))

    def assign(self, crawl: int) -> None:
        self.send(json.dumps({"settings": self._settings.model_dump(mode="json"), "crawl": crawl}))

    def send(self, word: str) -> None:
        for helper in self._helpers:
            helper.send(word)

    async def wait(self, timeout_s: float) -> None:
        """Wait for all to exit, or kill them."""
        helpers, self._helpers = self._helpers, []
        for helper in helpers:
            helper.close_input()
        for counted in await asyncio.gather(*(asyncio.to_thread(helper.result, timeout_s) for helper in helpers)):
            self.counted.update(counted)


def _has_one_thread() -> bool:
    """Also libraries have threads, which Python does not know. Without /proc, there could be some."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _spawn(input_: int, output: int) -> int:
    """Start a new interpreter. A new session: Ctrl-C reaches only the parent, which passes it on."""
    command = [sys.executable, "-m", "curtsy.cli", "crawl-worker"]
    ends = [(os.POSIX_SPAWN_DUP2, input_, 0), (os.POSIX_SPAWN_DUP2, output, 1)]
    return os.posix_spawn(sys.executable, command, os.environ, file_actions=ends, setsid=True)


def _fork(input_: int, output: int) -> int:
    return os.fork() or _live(input_, output)


def _live(input_: int, output: int) -> NoReturn:
    """Be a helper until the end. The stack and the buffers belong to the parent: nothing of them is left or written."""
    code = OUR_ERROR
    try:
        atexit._clear()  # what the parent registered is for its end: it may stop servers that it uses
        os.setsid()
        os.dup2(input_, 0)
        os.dup2(output, 1)
        # Otherwise it would keep locks of the parent, such as that of the output, and inputs of other helpers.
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        counters.clear()
        code = exit_code(worker.work)
        atexit._run_exitfuncs()
    finally:
        os._exit(code)
