"""The last middleware before Scrapy's downloader: no download starts without a slot of its host."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured, ScrapyDeprecationWarning
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from curtsy.core.clock import boot
from curtsy.crawl.external_slots import ExternalSlot, Report
from curtsy.scrapy.frontier_thread import NO_HOST, is_usable
from curtsy.scrapy.scheduler import Scheduler

#: the slot of a download that was not scheduled
_OWN = "_curtsy_own_turn"
#: timeout and download slot of the project, while the downloader uses ours
_GIVEN = "_curtsy_given"
#: time for closing the connection
_MARGIN_S = 0.2


class SlotMiddleware:
    """Scheduled requests have a slot; robots.txt and inline downloads wait for one here."""

    #: how the scheduler recognizes it
    takes_slots = True

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if "curtsy.scrapy" not in str(crawler.settings.get("SCHEDULER")):
            raise NotConfigured("curtsy.scrapy.SlotMiddleware works with SCHEDULER = 'curtsy.scrapy.Scheduler' only")
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        scheduler = self._scheduler
        host = scheduler.host_of(request)
        if host == NO_HOST:
            return
        active = scheduler.active_of(request)
        if active is not None:
            slot = active.slot
            if slot is None or not is_usable(slot):
                scheduler.give_back(active)
                slot = active.slot = await self._take(host)
            active.started = boot()
        else:
            slot = scheduler.lend(host) or await self._take(host)
            request.meta[_OWN] = (slot, boot())
        self._limit(request, host, slot)

    def _limit(self, request: Request, host: str, slot: ExternalSlot) -> None:
        """A slot is not renewed: slower downloads are aborted, and nothing waits in the downloader with a slot."""
        meta = request.meta
        meta[_GIVEN] = (meta.get("download_timeout"), meta.get("download_slot"))
        left_s = slot.left_s - _MARGIN_S
        meta["download_timeout"] = min(float(meta.get("download_timeout") or left_s), left_s)
        # A separate one: the settings or other requests of the project's download slots could let our slots expire.
        meta["download_slot"] = f"curtsy {host}"

    def _restore(self, request: Request) -> None:
        """Spiders copy meta: the shorter timeout of this download must not apply to the next one."""
        timeout_s, slot = request.meta.pop(_GIVEN)
        request.meta["download_slot"] = slot or urlparse_cached(request).hostname
        if timeout_s is None:
            request.meta.pop("download_timeout", None)
        else:
            request.meta["download_timeout"] = timeout_s

    def process_response(self, request: Request, response: Response) -> Response:
        lines = [(name, value) for name, values in response.headers.items() for value in values]
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in lines)
        self._end(request, response.status, headers, "")
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        # A request that a middleware refuses (robots.txt) is not a failure.
        ignored = isinstance(exception, IgnoreRequest)
        self._end(request, 0, (), "" if ignored else f"{type(exception).__name__}: {exception}")

    def _end(self, request: Request, status: int, headers: tuple[tuple[str, str], ...], fault: str) -> None:
        if _GIVEN in request.meta:
            self._restore(request)
        own: tuple[ExternalSlot, float] | None = request.meta.pop(_OWN, None)
        if own is not None:
            report = Report(slot=own[0], started=own[1], ended=boot(), url=request.url, status=status, headers=headers)
            self._scheduler.thread.report(report)
        active = self._scheduler.active_of(request)
        if active is not None:
            self._scheduler.ended(active, status, headers, fault)

    async def _take(self, host: str) -> ExternalSlot:
        return await asyncio.wrap_future(self._scheduler.thread.take(host))

    @property
    def _scheduler(self) -> Scheduler:
        slot: Any = getattr(self._crawler.engine, "_slot", None)
        assert isinstance(slot.scheduler, Scheduler)
        return slot.scheduler


class TurnsMiddleware(SlotMiddleware):
    """Deprecated name of `SlotMiddleware`."""

    def __init__(self, crawler: Crawler) -> None:
        warnings.warn(
            "curtsy.scrapy.TurnsMiddleware is now called curtsy.scrapy.SlotMiddleware",
            ScrapyDeprecationWarning,
            stacklevel=2,
        )
        super().__init__(crawler)
