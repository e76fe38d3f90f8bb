"""Running one crawl in this process until it ends."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

from curtsy.core import tracing
from curtsy.core.clock import boot, now_ms
from curtsy.core.errors import (
    EpochLost,
    FrontierUnavailable,
    NoBrowser,
    StoreUnavailable,
)
from curtsy.core.model import Counts, Crawl, Lane
from curtsy.core.observe import count, log
from curtsy.core.settings_loading import keep
from curtsy.core.shutdown import StopFlag
from curtsy.core.threads import in_thread
from curtsy.crawl import crash_record
from curtsy.crawl.lane_plan import LANES
from curtsy.crawl.shift import Shift
from curtsy.rules import network_profile
from curtsy.rules.politeness import patience_ms
from curtsy.services import crawl_lock
from curtsy.services.backends import Services
from curtsy.services.epochs import lift_resolved
from curtsy.store import crawls, queues
from curtsy.store.engine import read

_PROGRESS_S = 0.5
#: how long pages wait for a browser that does not start: if all need one, and if others may be due
_PATIENCE_S = {"always": 5.0, "auto": 60.0}
_SWITCH_S = 0.02
_GC_OBJECTS = 20_000


async def run(
    services: Services, n: int, on_progress: Callable[[Counts], None] | None = None, stop: StopFlag | None = None,
    alone: bool = True, render: bool = True, tidy: Callable[[], None] | None = None,
    gives_up: Callable[[], bool] = lambda: False,
) -> Counts:  # fmt: skip
    """Crawls until the crawl has ended, is paused, or the stop flag is set.

    `alone`: the process does nothing else. `render`: this process starts a browser if pages of the crawl need one.
    `tidy`: applies the retention settings; called about once an hour. `gives_up`: whether hosts that do not answer are
    given up as soon as nothing else is left to fetch.
    """
    crawl = await read(services.store, crawls.by_n, n)
    tracing.begin(services.settings, "crawl")
    if alone:
        tune(services)
    shift = Shift(
        services, stop or StopFlag(), tidy,
        lanes=(*LANES, Lane.RENDER) if render and crawl.render != "never" else LANES,
        network=network_profile.of(keep(services.settings)) if services.embedded is not None else None,
    )  # fmt: skip
    try:
        await lift_resolved(services.frontier, services.store)
    except (EpochLost, FrontierUnavailable) as error:
        log("hosts_not_lifted", level="warning", error=str(error))
    watch = _Watch(shift, services, crawl, on_progress, gives_up)
    # With `frontier_url`, a fleet may continue the crawl: no lock could tell.
    own = crawl_lock.holding(services.settings.data_dir) if services.embedded is not None else nullcontext()
    try:
        with own:
            await shift.run(watch.ended)
    finally:
        await shift.close()
        await in_thread(tracing.end)
    if watch.no_browser:
        raise NoBrowser(
            f"{watch.no_browser.rstrip('.')}. Pages of crawl {crawl.id} wait for it; nothing is lost. Run "
            "`curtsy doctor` to test the browser, then resume the crawl."
        )
    count("frontier_calls", services.frontier.calls)
    count("waited_ms", int(shift.waited_s * 1000))
    return await in_thread(services.store.run, crawls.counts, n)


def tune(services: Services) -> None:
    """Tunes the interpreter for the rest of the process: saves a tenth of a page's CPU. Keeps a crash record."""
    crash_record.keep(crash_record.folder(services.settings))
    atexit.register(crash_record.end)
    # Commits run in a thread outside the event loop: switch threads less often.
    sys.setswitchinterval(_SWITCH_S)
    # Pages leave few reference cycles behind: imported objects are not searched again, the rest less often.
    gc.freeze()
    gc.set_threshold(_GC_OBJECTS, 20, 20)


class _Watch:
    """Whether the crawl has ended: checked in every round, mostly from memory."""

    def __init__(
        self, shift: Shift, services: Services, crawl: Crawl, on_progress: Callable[[Counts], None] | None,
        gives_up: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._shift, self._services, self._n, self._on_progress = shift, services, crawl.n, on_progress
        self._gives_up = gives_up
        self._patience_s = _PATIENCE_S.get(crawl.render, 0.0)
        #: why the crawl cannot continue
        self.no_browser = ""
        self._reported_at = 0.0
        self._checked_at = boot()

    async def ended(self) -> bool:
        now = boot()
        if self._on_progress is not None and now - self._reported_at >= _PROGRESS_S:
            self._reported_at = now
            await self._report()
        idle = self._shift.maintenance.idle
        if self._n in idle or self._shift.heard_of_end or now - self._checked_at >= 1.0:
            idle.discard(self._n)
            self._shift.heard_of_end = False
            self._checked_at = now
            if self._gives_up():
                await self._shift.maintenance.give_up(self._n)
            self.no_browser = self._shift.no_browser(self._patience_s)
            return bool(self.no_browser) or await self._shift.background.is_finished(self._n)
        return False

    async def _report(self) -> None:
        assert self._on_progress is not None
        try:
            counts = await read(self._services.store, crawls.counts, self._n)
            self._on_progress(await self._with_ends(self._shift.with_activity(counts)))
        except StoreUnavailable as error:
            log("progress_not_read", level="debug", error=str(error))

    async def _with_ends(self, counts: Counts) -> Counts:
        """When nothing else is left: until when each host is waited for."""
        if not counts.waiting or not counts.waiting_hosts:
            return counts
        settings = self._services.settings
        failing = await read(self._services.store, queues.failing_since, now_ms())
        ends = {
            q.host: (q.failing_since_ms or 0) + patience_ms(q.reason, has_answered, settings)
            for q, has_answered in failing
            if q.crawl == self._n
        }
        return replace(counts, waiting_hosts=tuple(h._replace(until_ms=ends.get(h.host)) for h in counts.waiting_hosts))
