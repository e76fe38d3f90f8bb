"""BrowserFetcher: rendered pages, with the interface of HttpFetcher.

A page's own response is fetched like every other. Only HTML is opened in a browser, and everything that the page loads
passes the request filter: the browser itself has no network access.
The browser process, and when it is replaced, is in `fetch.browser`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import count as counter
from typing import TYPE_CHECKING

from curtsy.core.errors import CurtsyError
from curtsy.core.observe import count, log
from curtsy.core.outcome import Fault, Outcome
from curtsy.core.settings import Settings
from curtsy.fetch.asset_cache import AssetCache
from curtsy.fetch.browser import Engine, Engines
from curtsy.fetch.browser_requests import Allows, Gate
from curtsy.fetch.http import HttpFetcher
from curtsy.fetch.page_visit import Crashed, Hung, TooLarge, VisitResult, look, new_context, see_plainly
from curtsy.fetch.third_party_robots import ThirdPartyRobots
from curtsy.fetch.transfer import Done, FetchJob, Started, boot_clock

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

#: time at the end of a visit for closing its context; a browser that takes longer is ended
_CLOSING_S = 3.0
#: no page is opened with less time left
_LEAST_S = 1.0
#: a browser that is started in advance may take this long
_AHEAD_S = 30.0
_HTML = ("text/html", "application/xhtml+xml")


class BrowserFetcher:
    """One per process and loop. Every job ends in exactly one `done` call, after its context is closed."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop, allows: Allows) -> None:
        self._settings, self._loop, self._allows = settings, loop, allows
        self._http = HttpFetcher(settings, loop)
        self._third_parties = ThirdPartyRobots(settings.robots_ttl_s)
        self._assets = AssetCache()
        self._ids = counter(1)
        self._active: dict[int, asyncio.Task[Outcome]] = {}
        self._sent: set[int] = set()
        self._engines = Engines(settings, loop)
        self._closed = False

    @property
    def in_flight(self) -> int:
        return len(self._active)

    @property
    def trouble(self) -> str:
        """Why no page can be rendered, after some attempts; else empty."""
        return self._engines.trouble

    def start(self, job: FetchJob, done: Done, started: Started | None = None) -> None:
        """Visits the page; `started(id, boot time)` is called just before the bytes of its request leave."""
        if self._closed:
            outcome = Outcome(url=job.url, fault=Fault.CANCELLED, detail="the fetcher is closed", ended=boot_clock())
            self._loop.call_soon(done, job.id, outcome)
            return
        visit = _Visit(job)
        task = self._active[job.id] = self._loop.create_task(self._run(visit, started))
        task.add_done_callback(lambda task: self._finished(visit, task, done))

    def cancel(self, job_id: int, unsent_only: bool = False) -> None:
        """Cancels a visit that is in flight: its `done` gets CANCELLED. `unsent_only`: unless something was sent."""
        task = self._active.get(job_id)
        if task is not None and not (unsent_only and job_id in self._sent):
            task.cancel()

    def drop_idle(self, older_than_s: float) -> int:
        return self._http.drop_idle(older_than_s)

    async def prepare(self, hosts: Iterable[tuple[str, int]]) -> None:
        """Resolves names and starts the browser in advance, so that it takes no time of a slot."""
        await self._http.prepare(hosts)
        with suppress(CurtsyError, TimeoutError):
            await self._engines.ready(boot_clock() + _AHEAD_S)

    async def close(self) -> None:
        """Ends every visit as canceled, the browser and everything it started."""
        if self._closed:
            return
        self._closed = True
        tasks = list(self._active.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._engines.close()
        await self._http.close()

    # One visit.

    async def _run(self, visit: _Visit, started: Started | None) -> Outcome:
        try:
            return await self._visit(visit, started)
        except Exception as error:
            log("visit_failed", level="error", error=f"{type(error).__name__}: {error}"[:500])
            return visit.outcome(Fault.BROWSER, str(error)[:500])

    def _finished(self, visit: _Visit, task: asyncio.Task[Outcome], done: Done) -> None:
        job = visit.job
        outcome = visit.outcome(Fault.CANCELLED, "cancelled") if task.cancelled() else task.result()
        del self._active[job.id]
        self._sent.discard(job.id)
        try:
            done(job.id, outcome)
        except Exception as error:
            self._loop.call_exception_handler({"message": "a fetch callback failed", "exception": error})

    async def _visit(self, visit: _Visit, started: Started | None) -> Outcome:
        job = visit.job

        def tell(_id: int, at: float) -> None:
            visit.started = at
            self._sent.add(job.id)
            if started is not None:
                started(job.id, at)

        # The browser first: a page that cannot be rendered is not fetched.
        try:
            await self._engines.ready(job.deadline - job.timeout_s / 2)
        except (CurtsyError, TimeoutError) as error:
            return visit.outcome(Fault.SLOT_EXPIRED, str(error) or "the browser did not start in time")
        visit.begun = boot_clock()
        asked = replace(job, timeout_s=min(job.timeout_s, self._settings.fetch_timeout_s))
        visit.main = main = await self._send(asked, visit.note, tell)
        if not is_shown(main):
            return main if main.started is None else replace(main, broken_off=True)
        return await self._show(visit)

    async def _show(self, visit: _Visit) -> Outcome:
        job, until = visit.job, visit.until
        if until - boot_clock() < _LEAST_S:
            return visit.outcome(Fault.BROWSER, "no time was left to show the page")
        # The browser may have been replaced while the page was fetched.
        try:
            engine = await self._engines.ready(until - _LEAST_S)
        except (CurtsyError, TimeoutError) as error:
            return visit.outcome(Fault.BROWSER, str(error) or "the browser did not start in time")
        assert visit.main is not None
        gate = Gate(
            job, visit.main, until, self._settings, self._send, self._allows, self._third_parties, self._assets
        )  # fmt: skip
        visit.gate = gate
        self._engines.enter(engine)
        count("pages_rendered")
        try:
            visit.result = await self._look(engine, gate, job, until)
            visit.by = f"Chromium {engine.browser.version}, {self._settings.renderer}"
            fault, detail = None, ""
        except TooLarge as error:
            fault, detail = Fault.TOO_LARGE, str(error)
        except (Hung, Crashed, TimeoutError) as error:
            fault, detail = Fault.BROWSER, str(error) or "the browser does not answer"
        except Exception as error:  # Playwright's errors: their classes exist only if it is installed
            fault, detail = Fault.BROWSER, str(error).partition("\n")[0][:500]
        finally:
            self._engines.leave(engine)
        return visit.outcome(fault, detail or (f"the page leads to {gate.led_to}" if gate.led_to else ""))

    async def _look(self, engine: Engine, gate: Gate, job: FetchJob, until: float) -> VisitResult:
        context: BrowserContext | None = None
        try:
            async with asyncio.timeout(until - boot_clock()):
                context = await new_context(engine.browser, self._settings.full_user_agent)
            see = engine.guide.see if engine.guide is not None else see_plainly
            pictures = self._settings.render_screenshots
            return await look(
                context, gate, lambda page: see(page, gate, job.url, job.max_bytes, pictures), until=until
            )  # fmt: skip
        finally:
            await self._leave(engine, gate, context)

    async def _leave(self, engine: Engine, gate: Gate, context: BrowserContext | None) -> None:
        """Ends everything of the visit: a context that cannot be closed ends with its browser."""
        leaving = asyncio.ensure_future(_leave(gate, context))
        task = asyncio.current_task()
        while not leaving.done():
            try:
                await asyncio.wait((leaving,), timeout=_CLOSING_S)
                break
            except asyncio.CancelledError:
                if task is not None:
                    task.uncancel()  # the visit is being closed already
        if not leaving.done() or leaving.exception() is not None:
            leaving.cancel()
            if engine.chromium.alive:
                log("browser_hung", level="warning")
            engine.chromium.kill()
            await engine.chromium.gone()

    async def _send(
        self, job: FetchJob, note: Callable[[Outcome], None], started: Started | None = None
    ) -> Outcome:  # fmt: skip
        number = next(self._ids)
        future: asyncio.Future[Outcome] = self._loop.create_future()

        def done(_id: int, outcome: Outcome) -> None:
            note(outcome)
            future.set_result(outcome)

        self._http.start(replace(job, id=number), done, started)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self._http.cancel(number)
            await asyncio.wait((future,))
            raise


class _Visit:
    """What is known about a visit so far, for its outcome."""

    def __init__(self, job: FetchJob) -> None:
        self.job = job
        self.begun = boot_clock()
        self.started: float | None = None
        self.main: Outcome | None = None
        self.gate: Gate | None = None
        self.result: VisitResult | None = None
        #: the browser and renderer
        self.by = ""

    @property
    def until(self) -> float:
        """When the page must be read; the rest of the time is for closing."""
        return min(self.job.deadline, self.begun + self.job.timeout_s) - _CLOSING_S

    def note(self, outcome: Outcome) -> None:
        self.main = outcome

    def outcome(self, fault: Fault | None, detail: str) -> Outcome:
        main = self.main
        if main is None or main.started is None:
            return main or Outcome(
                url=self.job.url, fault=fault, detail=detail, started=self.started, ended=boot_clock(),
                broken_off=self.started is not None,
            )  # fmt: skip
        result = self.result if fault is None else None
        return replace(
            main, headers=_as_read(main) if result else main.headers, body=result.html if result else b"",
            fault=fault, detail=detail, ended=boot_clock(), answered=main.ended, broken_off=True,
            subresources=tuple(self.gate.log) if self.gate is not None else (),
            rendered_by=self.by if result else "",
            screenshot=result.screenshot if result else None,
        )  # fmt: skip


def is_shown(main: Outcome) -> bool:
    """Whether a browser would render the response as a page."""
    if main.fault is not None or not 200 <= main.status < 300 or main.status == 206 or not main.body:
        return False
    if (main.header("content-disposition") or "").strip().lower().startswith("attachment"):
        return False
    essence = (main.header("content-type") or "").partition(";")[0].strip().lower()
    return essence in _HTML or (not essence and main.body.lstrip()[:1] == b"<")


def _as_read(main: Outcome) -> tuple[tuple[str, str], ...]:
    """Headers of the rendered document: it is stored in UTF-8."""
    others = tuple(pair for pair in main.headers if pair[0].lower() != "content-type")
    return (*others, ("Content-Type", "text/html; charset=utf-8"))


async def _leave(gate: Gate, context: BrowserContext | None) -> None:
    await gate.shut()
    if context is not None:
        await context.close()
