"""A crawl in a thread of its own, for scripts and notebooks: with its own loop, so that whoever uses its pages may take
as long as they like, and may have a loop of their own.

The thread ends when the crawl has ended, when it is asked to stop, and before the interpreter does. What is under way
then may end, and is committed; the crawl can be resumed.
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

#: beyond the drain and a commit, what closing the parts may take
_CLOSE_S = 30.0


class CrawlThread:
    """One crawl, new or taken up again by its id, in this process."""

    def __init__(
        self, settings: Settings, what: Crawl | str, seeds: Iterable[str] = (), wishes: Mapping[str, Any] | None = None,
        on_progress: Callable[[Counts], None] | None = None,
    ) -> None:  # fmt: skip
        self._settings, self._what, self._seeds, self._wishes = settings, what, seeds, wishes
        self._on_progress = on_progress
        self._stop = StopFlag()
        self._lock = threading.Lock()
        #: how often it was asked to stop, and whether it listens to that already
        self._asked, self._listens = 0, False
        self._ready, self._ended = threading.Event(), threading.Event()
        self._thread = LoopThread("curtsy", self._run, loop_factory=uvloop.new_event_loop, on_end=self._over)
        #: as it was stored; None before that
        self.crawl: Crawl | None = None
        #: as last told
        self.counts = Counts()
        #: what ended it, unless it ended well
        self.error: BaseException | None = None

    def start(self) -> None:
        _see_to_the_end()
        _living.add(self)
        self._thread.start()

    def begun(self) -> Crawl:
        """Waits until the crawl and its seeds are stored; raises what went wrong until then."""
        self._ready.wait()
        if self.crawl is None:
            raise self.error or Unavailable("The crawl was stopped before it began.")
        return self.crawl

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """True once it has ended."""
        return self._ended.wait(timeout_s)

    def stop(self) -> None:
        """Once: what is under way may end. Twice: at once."""
        with self._lock:
            self._asked += 1
            if self._listens:
                self._thread.call(self._stop.request)

    def leave(self) -> None:
        """Stops it and waits until nothing of it runs any more."""
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
                crawl = await submit.resume_crawl(built, self._what, self._wishes)
            else:
                crawl = await submit.submit(built, self._what, self._seeds)
            self.counts = await read(built.store, crawls.counts, crawl.n)
            self.crawl = crawl
            self._ready.set()
            self.counts = await run.run(
                built, crawl.n, self._tell, self._stop, alone=False, tidy=lambda: retention.tidy(built)
            )
            if crawl.schema is not None or crawl.webhook is not None:
                await stages.run_all(built, crawl.n, self._stop)
                self.counts = replace(await read(built.store, crawls.counts, crawl.n), waiting=self.counts.waiting)
        finally:
            await built.close()
        if self._on_progress is not None:
            self._on_progress(self.counts)

    def _tell(self, counts: Counts) -> None:
        self.counts = counts
        if self._on_progress is not None:
            self._on_progress(counts)


_living: WeakSet[CrawlThread] = WeakSet()
_seen_to = False


def _see_to_the_end() -> None:
    """A script that ends in the middle leaves well.

    Not by `atexit`: before that the interpreter closes the executors that a commit needs. What is registered here runs
    before, last registered first.
    """
    global _seen_to
    if not _seen_to:
        threading._register_atexit(_leave_all)  # type: ignore[attr-defined]
        _seen_to = True


def _leave_all() -> None:
    for one in list(_living):
        one.leave()
