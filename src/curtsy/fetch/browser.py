"""Engines: the browser of a process, started on first use and replaced regularly.

It is replaced after a number of pages or megabytes, and whenever it crashes or hangs. A browser to be replaced takes no
new visits. The next one starts when it has ended, so that a process does not run two browsers at a time. If a visit
takes long, the next browser starts after a limited wait.
This is the only module that imports playwright.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from curtsy.core.errors import MissingPart, Unavailable
from curtsy.core.observe import count, log
from curtsy.core.settings import Settings
from curtsy.fetch.chromium import Chromium
from curtsy.fetch.crawl4ai import Guide
from curtsy.fetch.transfer import boot_clock

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

#: pause after a browser that did not start; it doubles with each failure
_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_WATCH_S = 1.0
#: a browser is killed during visits at this multiple of the memory at which it is replaced between them
_RUNAWAY = 2.0
#: the next browser waits at most this long for the visits of the one before
HANDOVER_S = 5.0
#: failed starts in a row after which the failure is reported
_IN_VAIN = 3


class Engine:
    """One browser and the connection to it."""

    def __init__(self, settings: Settings, chromium: Chromium) -> None:
        self._settings = settings
        self.chromium = chromium
        self.pages = 0
        self.users = 0
        self.retired = False
        #: all of its processes have ended
        self.gone = asyncio.Event()
        #: from then on the next one may start although this one runs (boot clock)
        self.waited_for_until = 0.0
        self._watching: asyncio.Task[None] | None = None
        self._playwright: Playwright | None = None
        self.browser: Browser
        #: renders pages instead of us
        self.guide: Guide | None = None

    @classmethod
    async def start(cls, settings: Settings) -> Engine:
        engine = cls(settings, await Chromium.start(settings))
        try:
            await engine._connect()
        except BaseException:
            await engine.close()
            raise
        engine._watching = asyncio.ensure_future(engine._watch())
        return engine

    async def _connect(self) -> None:
        endpoint = self.chromium.endpoint
        if self._settings.renderer == "crawl4ai":
            self.guide = await Guide.start(self._settings, endpoint)
            self.browser = self.guide.browser
            return
        try:
            from playwright.async_api import async_playwright  # an optional extra
        except ImportError as error:
            raise MissingPart("Playwright is not installed: pip install 'curtsy[browser]'") from error
        manager = async_playwright()
        self._playwright = await manager.start()
        _hush(manager)
        self.browser = await self._playwright.chromium.connect_over_cdp(endpoint)

    @property
    def usable(self) -> bool:
        return not self.retired and self.chromium.alive and self.browser.is_connected()

    @property
    def worn(self) -> bool:
        settings = self._settings
        return self.pages >= settings.render_recycle_pages or self.chromium.memory_mb() >= settings.render_recycle_mb

    async def _watch(self) -> None:
        """Kills the browser if its pages take too much memory."""
        most_mb = self._settings.render_recycle_mb * _RUNAWAY
        while True:
            await asyncio.sleep(_WATCH_S)
            if self.users and (held_mb := self.chromium.memory_mb()) > most_mb:
                log("browser_runaway", level="warning", memory_mb=round(held_mb))
                self.chromium.kill()
                return

    async def close(self) -> None:
        """End the browser. None of its processes is left."""
        if self._watching is not None:
            self._watching.cancel()
        self.chromium.kill()
        try:
            if not await self.chromium.gone():
                log("browser_lingers", level="error", pids=self.chromium.pids)
            if self.guide is not None:
                await self.guide.close()
            if self._playwright is not None:
                with suppress(Exception):
                    await asyncio.wait_for(self._playwright.stop(), 5.0)
        finally:
            self.gone.set()


def _hush(manager: object) -> None:
    """A signal to the whole process group ends Playwright's driver before this process. Every call then fails; the
    unawaited future that fails too is not worth a log line.
    """
    transport = getattr(getattr(manager, "_client", None), "_transport", None)
    future = getattr(transport, "on_error_future", None)
    if isinstance(future, asyncio.Future):
        future.add_done_callback(lambda one: one.cancelled() or one.exception())


class Engines:
    """At most one browser takes visits. A browser at its limit is replaced, a replaced one is ended, and none remains
    at the end.
    """

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        self._settings, self._loop = settings, loop
        self._engine: Engine | None = None
        self._starting = asyncio.Lock()
        self._failures = 0
        self._complaint = ""
        self._next_start = 0.0
        self._retired: set[Engine] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def trouble(self) -> str:
        """Why no browser starts, after some attempts; else empty."""
        return self._complaint if self._failures >= _IN_VAIN else ""

    async def ready(self, until: float) -> Engine:
        """A usable browser; if necessary, start one, and retry until the deadline (boot clock)."""
        if self._engine is not None and self._engine.usable:
            return self._engine
        async with asyncio.timeout(until - boot_clock()), self._starting:
            while self._engine is None or not self._engine.usable:
                self._retire()
                if self._closed:
                    raise Unavailable("the fetcher is closed")
                await self._handed_over()
                await asyncio.sleep(self._next_start - boot_clock())
                await self._start()
            return self._engine

    def enter(self, engine: Engine) -> None:
        """A visit begins in this browser."""
        engine.users += 1
        engine.pages += 1

    def leave(self, engine: Engine) -> None:
        """A visit in this browser has ended: if it is worn or dead, it is replaced."""
        engine.users -= 1
        if engine is self._engine and (not engine.usable or engine.worn):
            self._retire()
        elif engine.retired and not engine.users:
            self._end(engine)

    async def close(self) -> None:
        """Call it when all visits have ended."""
        self._closed = True
        async with self._starting:
            self._retire()
        if self._ending:
            await asyncio.wait(self._ending)

    async def _handed_over(self) -> None:
        for engine in tuple(self._retired):
            with suppress(TimeoutError):
                async with asyncio.timeout(engine.waited_for_until - boot_clock()):
                    await engine.gone.wait()

    async def _start(self) -> None:
        try:
            self._engine = await Engine.start(self._settings)
        except MissingPart:
            raise
        except Exception as error:
            self._failures, self._complaint = self._failures + 1, str(error)[:500]
            pause_s = min(_LONGEST_PAUSE_S, _PAUSE_S * 2**self._failures)
            self._next_start = boot_clock() + pause_s
            log("browser_does_not_start", level="error", error=self._complaint, pause_s=pause_s)
        else:
            self._failures, self._next_start = 0, 0.0
            count("browsers_started")

    def _retire(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.retired = True
            engine.waited_for_until = boot_clock() + HANDOVER_S
            self._retired.add(engine)
            if not engine.users:
                self._end(engine)

    def _end(self, engine: Engine) -> None:
        task = self._loop.create_task(engine.close())
        self._ending.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._ending.discard(task)
            self._retired.discard(engine)

        task.add_done_callback(ended)
