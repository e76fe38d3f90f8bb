"""The last step before Scrapy's downloader: nothing goes there without its host's turn."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from curtsy.core.clock import boot
from curtsy.crawl.external_slots import Report, Turn
from curtsy.scrapy.frontier_thread import NOBODY, worth_beginning
from curtsy.scrapy.scheduler import Scheduler

#: the turn of a download that nobody scheduled
_OWN = "_curtsy_own_turn"
#: timeout and slot as the project gave them, while the downloader is told ours
_GIVEN = "_curtsy_given"
#: left for closing the connection
_MARGIN_S = 0.2


class TurnsMiddleware:
    """Scheduled requests come with their turn; robots.txt and inline downloads wait for one here."""

    #: how the scheduler recognizes it
    takes_slots = True

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if "curtsy.scrapy" not in str(crawler.settings.get("SCHEDULER")):
            raise NotConfigured("curtsy.scrapy.TurnsMiddleware works with SCHEDULER = 'curtsy.scrapy.Scheduler' only")
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        scheduler = self._scheduler
        host = scheduler.host_of(request)
        if host == NOBODY:
            return
        hand = scheduler.begun(request)
        if hand is not None:
            turn = hand.turn
            if turn is None or not worth_beginning(turn):
                scheduler.give_back(hand)
                turn = hand.turn = await self._take(host)
            hand.started = boot()
        else:
            turn = scheduler.lend(host) or await self._take(host)
            request.meta[_OWN] = (turn, boot())
        self._tell(request, host, turn)

    def _tell(self, request: Request, host: str, turn: Turn) -> None:
        """A turn is not renewed: whoever is slower is broken off, and nothing waits in the downloader on it."""
        meta = request.meta
        meta[_GIVEN] = (meta.get("download_timeout"), meta.get("download_slot"))
        left_s = turn.left_s - _MARGIN_S
        meta["download_timeout"] = min(float(meta.get("download_timeout") or left_s), left_s)
        # One of our own: what a project's slots are set to, or who else is in them, would let turns run out.
        meta["download_slot"] = f"turn of {host}"

    def _untell(self, request: Request) -> None:
        """Spiders pass meta on: a timeout that was cut for this download is none of the next one's."""
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
        # What a middleware did not want (robots.txt forbids it) is no failure.
        unwanted = isinstance(exception, IgnoreRequest)
        self._end(request, 0, (), "" if unwanted else f"{type(exception).__name__}: {exception}")

    def _end(self, request: Request, status: int, headers: tuple[tuple[str, str], ...], fault: str) -> None:
        if _GIVEN in request.meta:
            self._untell(request)
        own: tuple[Turn, float] | None = request.meta.pop(_OWN, None)
        if own is not None:
            report = Report(turn=own[0], started=own[1], ended=boot(), url=request.url, status=status, headers=headers)
            self._scheduler.desk.report(report)
        hand = self._scheduler.begun(request)
        if hand is not None:
            self._scheduler.ended(hand, status, headers, fault)

    async def _take(self, host: str) -> Turn:
        return await asyncio.wrap_future(self._scheduler.desk.take(host))

    @property
    def _scheduler(self) -> Scheduler:
        slot: Any = getattr(self._crawler.engine, "_slot", None)
        assert isinstance(slot.scheduler, Scheduler)
        return slot.scheduler
