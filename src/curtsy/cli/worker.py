"""One more process of `crawl --processes N`: it works as long as its parent lives, then ends within a limited time.

Standard input brings the task, then one line per press of Ctrl-C. Its end is the end of the parent, or of the crawl. A
thread listens, not the loop: while a process starts, or waits for a part that is away, its loop may stand still.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import typer
import uvloop

from curtsy.cli import DONE, INTERRUPTED
from curtsy.control import retention
from curtsy.core.observe import configure, counters
from curtsy.core.settings import Settings
from curtsy.core.shutdown import StopFlag, end_now
from curtsy.crawl import run
from curtsy.services import backends

#: beyond the drain, commits get this long
COMMIT_S = 3.0
#: then everything is broken off, and the process is ended if it has not left after this
LEAVE_S = 7.0


class Parent:
    """What it says. Read by the descriptor: a thread that waits in a buffered reader cannot be left behind at exit."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._read = b""

    def line(self) -> bytes | None:
        """The next line; None when the parent is gone, or has no more to say."""
        while b"\n" not in self._read:
            if not (more := os.read(self._descriptor, 65536)):
                return None
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return line

    def obey(self, loop: asyncio.AbstractEventLoop, stop: StopFlag, drain_s: float) -> None:
        """For a thread: passes its words on to the loop, and ends this process after its last one."""
        while self.line() is not None:
            _tell(loop, stop.request)
        _tell(loop, lambda: None if stop.drain else stop.request())
        time.sleep(drain_s + COMMIT_S)
        _tell(loop, stop.request)
        time.sleep(LEAVE_S)
        end_now(drain_s + COMMIT_S + LEAVE_S, INTERRUPTED, loop)


def crawl_worker() -> None:
    """One more process of a crawl."""
    raise typer.Exit(work())


def work() -> int:
    """Until the crawl has ended, or the parent."""
    parent = Parent(sys.stdin.fileno())
    told = parent.line()
    if told is None:
        return INTERRUPTED
    task = json.loads(told)
    settings = Settings(**task["settings"])
    configure(settings.log_level, settings.log_format)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(settings, task["crawl"], parent))
    print(json.dumps(counters), flush=True)
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
        await run.run(built, crawl, None, stop, render=False, tidy=lambda: retention.tidy(built))
    finally:
        await built.close()


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:
        pass  # the loop is closed: this process is about to end
