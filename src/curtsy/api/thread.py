"""A crawl in its own thread and event loop, for scripts and notebooks: its reader may be slow, and may run a loop too.

The thread ends with the crawl, after a request to stop, and before the interpreter exits. Requests in flight then
finish and are committed; the crawl can be resumed.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - it registers its exit hook, which must be before ours
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import uvloop

from curtsy.control import retention, submit
from curtsy.core.errors import Unavailable
from curtsy.core.loop_thread import LoopThread
from curtsy.core.model import Counts, Crawl
from curtsy.core.settings import Settings
from curtsy.core.shutdown import StopFlag
from curtsy.crawl import run
from curtsy.records import stages
from curtsy.services import backends
from curtsy.store import crawls
from curtsy.store.engine import read

#: seconds to close everything, after the drain and a commit
_CLOSE_S = 30.0


class CrawlThread:
    """One crawl in this process: a new one, or one that is resumed by its id."""

    def __init__(
        self, settings: Settings, what: Crawl | str, seeds: Iterable[str] = (),
        changes: Mapping[str, Any] | None = None, on_progress: Callable[[Counts], None] | None = None,
    ) -> None:  # fmt: skip
        self._settings, self._what, self._seeds, self._changes = settings, what, seeds, changes
        self._on_progress = on_progress
        self._stop = StopFlag()
        self._lock = threading.Lock()
        #: number of requests to stop, and whether the loop handles them already
        self._asked, self._listens = 0, False
        self._ready, self._ended = threading.Event(), threading.Event()
        self._thread = LoopThread("curtsy", self._run, loop_factory=uvloop.new_event_loop, on_end=self._over)
        #: the stored crawl; None before that
        self.crawl: Crawl | None = None
        #: the latest counts
        self.counts = Counts()
        #: the error that ended it
        self.error: BaseException | None = None

    def start(self) -> None:
        _register_exit()
        _running.add(self)
        self._thread.start()

    def begun(self) -> Crawl:
        """Wait until the crawl and its seeds are stored; raises an error of that."""
        self._ready.wait()
        if self.crawl is None:
            raise self.error or Unavailable("The crawl was stopped before it started.")
        return self.crawl

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """True once it has ended."""
        return self._ended.wait(timeout_s)

    def stop(self) -> None:
        """Once: requests in flight finish. Twice: they are aborted."""
        with self._lock:
            self._asked += 1
            if self._listens:
                self._thread.call(self._stop.request)

    def leave(self) -> None:
        """Stop the crawl and wait for the end of its thread."""
        if not self._thread.is_alive:
            return
        self.stop()
        limits = self._settings
        if not self._ended.wait(limits.drain_s + limits.commit_timeout_s + _CLOSE_S):
            self.stop()
        self._thread.stop(_CLOSE_S)

    def _over(self, error: BaseException | None) -> None:
        self.error = error  # it is raised where the pages are read
        self._ready.set()
        self._ended.set()

    async def _run(self) -> None:
        with self._lock:
            self._listens = True
            for _ in range(self._asked):
                self._stop.request()
        built = backends.build(self._settings)
        try:
            await built.open()
            if isinstance(self._what, str):
                crawl = await submit.resume_crawl(built, self._what, self._changes)
            else:
                crawl = await submit.submit(built, self._what, self._seeds)
            self.counts = await read(built.store, crawls.counts, crawl.n)
            self.crawl = crawl
            self._ready.set()
            self.counts = await run.run(
                built, crawl.n, self._update, self._stop, alone=False, tidy=lambda: retention.tidy(built)
            )
            if crawl.schema is not None or crawl.webhook is not None:
                await stages.run_all(built, crawl.n, self._stop)
                self.counts = replace(await read(built.store, crawls.counts, crawl.n), waiting=self.counts.waiting)
        finally:
            await built.close()
        if self._on_progress is not None:
            self._on_progress(self.counts)

    def _update(self, counts: Counts) -> None:
        self.counts = counts
        if self._on_progress is not None:
            self._on_progress(counts)


_running: WeakSet[CrawlThread] = WeakSet()
_registered = False


def _register_exit() -> None:
    """Stops crawls cleanly when a script exits.

    `atexit` is too late: the interpreter closes the executors that a commit needs before. These hooks run earlier, last
    registered first.
    """
    global _registered
    if not _registered:
        threading._register_atexit(_leave_all)  # type: ignore[attr-defined]
        _registered = True


def _leave_all() -> None:
    for one in list(_running):
        one.leave()
