"""One more process of `crawl --processes N`: it works while its parent lives, then exits within a limited time.

Standard input brings the task, then one line per Ctrl-C. It closes when the parent or the crawl ends. A thread reads
it, not the loop: the loop may be blocked while a process starts or waits for an unavailable part.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import typer
import uvloop

from curtsy.cli import DONE, INTERRUPTED
from curtsy.core.observe import configure, counters
from curtsy.core.settings import Settings
from curtsy.core.shutdown import StopFlag, end_now
from curtsy.crawl import run
from curtsy.services import backends

#: of the process, for `ps` and `top`
NAME = "crawl-worker"
#: after the drain, commits have this long
COMMIT_S = 3.0
#: then everything is canceled, and the process is killed if it is still there after this
LEAVE_S = 7.0


class Parent:
    """Reads the parent's lines by descriptor: a thread that waits in a buffered reader would block the exit."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._read = b""

    def line(self) -> bytes | None:
        """The next line; None when the parent is gone or sends no more."""
        while b"\n" not in self._read:
            if not (more := os.read(self._descriptor, 65536)):
                return None
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return line

    def obey(self, loop: asyncio.AbstractEventLoop, stop: StopFlag, drain_s: float) -> None:
        """For a thread: passes commands on to the loop, and ends this process after the last one."""
        while self.line() is not None:
            _call(loop, stop.request)
        _call(loop, lambda: None if stop.drain else stop.request())
        time.sleep(drain_s + COMMIT_S)
        _call(loop, stop.request)
        time.sleep(LEAVE_S)
        end_now(drain_s + COMMIT_S + LEAVE_S, INTERRUPTED, loop)


def crawl_worker() -> None:
    """One more process of a crawl."""
    raise typer.Exit(work())


def work() -> int:
    """Work until the crawl or the parent has ended."""
    with suppress(OSError):  # only Linux has it
        Path("/proc/self/comm").write_text(NAME)
    parent = Parent(0)
    line = parent.line()
    if line is None:
        return INTERRUPTED
    task = json.loads(line)
    settings = Settings(**task["settings"])
    configure(settings.log_level, settings.log_format)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(settings, task["crawl"], parent))
    os.write(1, json.dumps(counters).encode())
    return DONE


async def _work(settings: Settings, crawl: int, parent: Parent) -> None:
    stop = StopFlag()
    loop = asyncio.get_running_loop()
    threading.Thread(target=parent.obey, args=(loop, stop, settings.drain_s), name="parent", daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.request)
    built = backends.build(settings)
    try:
        await built.open()
        # The parent has the browser, if one is needed.
        await run.run(built, crawl, None, stop, render=False, tidy=lambda: tidy(built))
    finally:
        await built.close()


def tidy(built: backends.Services) -> None:
    from curtsy.control import retention  # start-up: crawls of over an hour need it

    retention.tidy(built)


def _call(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:
        pass  # the loop is closed: this process is about to exit
