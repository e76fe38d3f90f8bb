"""Scrapy's scheduler and dupefilter on the frontier. All waiting happens in `FrontierThread`."""

from __future__ import annotations

import asyncio
import base64
import os
import pickle
import re
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.http import Response
from scrapy.utils.request import request_from_dict
from twisted.python.failure import Failure

from curtsy.core.clock import boot
from curtsy.core.errors import CurtsyError, MissingPart
from curtsy.core.observe import log
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import OLD_NAMES, load
from curtsy.crawl.external_slots import ExternalSlot, Report
from curtsy.rules.urls import host_key, normalise
from curtsy.scrapy.frontier_thread import NO_HOST, FrontierThread, LocalRequest, Ready, is_usable
from curtsy.scrapy.run_name import name_of
from curtsy.scrapy.sessions import Sessions, middlewares_of
from curtsy.store.external_requests import NewRequest, Settled

#: meta keys of a request's number in the store and of its slot; copies of a request inherit them
NUMBER, TURN = "_curtsy_n", "_curtsy_turn"
#: meta key of the cookies of a stored request
_COOKIES = "_curtsy_cookies"
#: concurrent requests if Scrapy has no limit
_MANY = 100
#: fingerprints kept in memory; the store has all
_MOST_REMEMBERED = 200_000
#: statuses that count as failures after Scrapy's last retry
_NO_ANSWER = frozenset({408, 425, 429, 500, 502, 503, 504, 522, 524})


@dataclass(slots=True)
class ActiveRequest:
    """A request that Scrapy is processing."""

    request: Request
    #: None: it exists only in this process
    n: int | None
    #: None: it was lent to robots.txt, or expired
    slot: ExternalSlot | None
    #: when the download started; None: not yet
    started: float | None = None
    #: its slot was released
    reported: bool = False
    #: why it failed
    cause: str = ""
    detail: str = ""
    #: a redirect or retry replaced it
    followed: bool = False


class Scheduler(BaseScheduler):
    """`SCHEDULER = "curtsy.scrapy.Scheduler"`."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._filter = DupeFilter()
        self._sessions: Sessions | None = None
        #: number of unfiltered start requests by fingerprint
        self._starts: Counter[bytes] = Counter()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._active: dict[int, ActiveRequest] = {}
        self._duplicates = 0
        self._thread: FrontierThread | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    @property
    def thread(self) -> FrontierThread:
        assert self._thread is not None, "the spider is not open"
        return self._thread

    @property
    def _spider(self) -> Spider:
        assert self._crawler.spider is not None
        return self._crawler.spider

    def open(self, spider: Spider) -> None:
        settings = self._crawler.settings
        check_components(self._crawler)
        self._loop = _running_loop()
        self._sessions = Sessions(self._crawler)
        name = settings.get("CURTSY_RUN") or name_of(spider)
        capacity = settings.getint("CONCURRENT_REQUESTS") or _MANY
        self._thread = FrontierThread(curtsy_settings(settings), name, capacity, self._on_notify, slot_delays(settings))
        self._thread.open()
        if not hasattr(self._engine_slot(), "inprogress"):
            raise MissingPart("This Scrapy version is not supported. Use Scrapy 2.13 to 2.19.")
        self._crawler.signals.connect(self._on_callback_error, signals.spider_error)

    def close(self, reason: str) -> None:
        if self._thread is not None:
            self._settle_ended()
            self._thread.close(ended=reason == "finished")
            self._count_duplicates()

    def has_pending_requests(self) -> bool:
        self._settle_ended()
        return bool(self._active) or self.thread.has_pending

    def enqueue_request(self, request: Request) -> bool:
        parent = self._active.get(request.meta.pop(NUMBER, -1))
        if parent is not None and request.meta.pop(TURN, None) is not None:
            parent.followed = True
        key = self._key(request, started=parent is None)
        if self._filter.remembers(key):
            self._stat("dupefilter/filtered")
            return False
        host = self.host_of(request)
        self._stat("scheduler/enqueued")
        try:
            payload = self._written(request)
            if not getattr(self._engine_slot(), "close_if_idle", True):
                raise ValueError("the shell waits for this very request")
        except (ValueError, TypeError, pickle.PicklingError, AttributeError):
            # Its callback is not a method of the spider, its meta cannot be serialized, or it is one of `scrapy shell`.
            self._stat("curtsy/kept_in_memory_only")
            self.thread.add_local(LocalRequest(host, request))
            return True
        self.thread.add(NewRequest(key=key, host=host, url=request.url, rank=-request.priority, payload=payload))
        return True

    def _key(self, request: Request, *, started: bool) -> bytes:
        """The identity of a request, across processes."""
        fingerprinter = self._crawler.request_fingerprinter
        assert fingerprinter is not None
        key = fingerprinter.fingerprint(request)
        if not request.dont_filter:
            return key
        if started and request.meta.get("is_start_request"):
            # Every process has the same start requests: the third one of its kind is the same one everywhere.
            self._starts[key] += 1
            return b"start:%d:" % self._starts[key] + key
        return key + os.urandom(8)

    def next_request(self) -> Request | None:
        thread = self.thread
        if thread.error is not None:
            self._give_up(thread.error)
            return None
        self._settle_ended()
        self._count_duplicates()
        while thread.ready:
            ready = thread.ready.popleft()
            if not is_usable(ready.slot):
                self._postpone(ready)
                continue
            request = self._request_of(ready)
            if request is not None:
                self._stat("scheduler/dequeued")
                return request
        return None

    def host_of(self, request: Request) -> str:
        """The host whose slot it needs."""
        url = normalise(request.url)
        if url is not None:
            return host_key(url, self.thread.settings.politeness_unit)
        return urlsplit(request.url).hostname or NO_HOST

    # Results of requests

    def active_of(self, request: Request) -> ActiveRequest | None:
        """The scheduled request that is downloaded now; None for a request that was not scheduled."""
        found = self._active.get(request.meta.get(NUMBER, 0))
        return found if found is not None and found.request is request else None

    def give_back(self, active: ActiveRequest) -> None:
        """Release its slot, which expired before anything was sent."""
        if active.slot is not None:
            self.thread.report(Report(slot=active.slot, started=None, ended=boot()))
            active.slot = None

    def lend(self, host: str) -> ExternalSlot | None:
        """The slot of a request that waits for robots.txt: otherwise both would wait for each other."""
        for active in self._active.values():
            slot = active.slot
            if slot is not None and slot.host == host and active.started is None and is_usable(slot):
                active.slot = None
                return slot
        return None

    def ended(self, active: ActiveRequest, status: int, headers: tuple[tuple[str, str], ...], fault: str) -> None:
        """Its download has ended: release the slot before the response is processed."""
        if active.reported or active.slot is None:
            return
        active.reported = True
        active.cause, active.detail = (
            (f"status {status}", "") if status in _NO_ANSWER else (fault.partition(":")[0], fault)
        )
        self.thread.report(
            Report(slot=active.slot, started=active.started, ended=boot(), url=active.request.url, status=status,
                   headers=headers)
        )  # fmt: skip

    def _settle_ended(self) -> None:
        """Settles requests that Scrapy has finished: the callback has ended, and its requests are stored."""
        slot = self._engine_slot()
        for key, active in list(self._active.items()):
            if slot is not None and active.request in slot.inprogress:
                continue
            del self._active[key]
            if not active.reported and active.slot is not None:
                self.thread.report(
                    Report(slot=active.slot, started=active.started, ended=boot(), url=active.request.url)
                )
            if active.n is None:
                continue
            failed = active.cause and not active.followed
            self._stat("curtsy/dead_letters" if failed else "curtsy/done")
            state = "failed" if failed else "done"
            self.thread.settle(
                Settled(n=active.n, state=state, cause=active.cause if failed else "", detail=active.detail)
            )

    def _on_callback_error(self, failure: Failure, response: Response | None, spider: Spider) -> None:
        request = None if response is None else response.request
        active = None if request is None else self._active.get(request.meta.get(NUMBER, 0))
        if active is not None:
            active.cause, active.detail = "callback", repr(failure.value)

    def _give_up(self, error: BaseException) -> None:
        """Without the thread a spider would wait forever; the next start continues with the stored requests."""
        engine = self._crawler.engine
        if engine is not None and getattr(self._engine_slot(), "closing", None) is None:
            log("spider_closed", level="error", error=repr(error))
            engine.close_spider(self._spider, reason="curtsy_failed")

    # Conversion between Scrapy and the store

    def _request_of(self, ready: Ready) -> Request | None:
        request: Request
        if ready.local is not None:
            request, number = ready.local.request, -id(ready.local.request)
        else:
            assert ready.held is not None
            number = ready.held.n
            try:
                request = self._read(ready.held.payload)
            except Exception as error:
                self._refuse(ready, f"{type(error).__name__}: {error}")
                return None
        request.meta[NUMBER], request.meta[TURN] = number, True
        self._active[number] = ActiveRequest(request, None if ready.held is None else number, ready.slot)
        return request

    def _refuse(self, ready: Ready, why: str) -> None:
        assert ready.held is not None
        self.thread.report(Report(slot=ready.slot, started=None, ended=boot()))
        self.thread.settle(Settled(n=ready.held.n, state="failed", cause="unreadable", detail=why))

    def _postpone(self, ready: Ready) -> None:
        """Scrapy was busy until the slot had nearly expired."""
        self.thread.report(Report(slot=ready.slot, started=None, ended=boot()))
        if ready.held is not None:
            self.thread.settle(Settled(n=ready.held.n, state="open"))
        elif ready.local is not None:
            self.thread.add_local(ready.local)

    def _engine_slot(self) -> Any:
        return getattr(self._crawler.engine, "_slot", None)

    def _written(self, request: Request) -> str:
        # Pickle, as in Scrapy's disk queues: meta may contain values that JSON cannot.
        found = request.to_dict(spider=self._spider)
        assert self._sessions is not None
        if cookies := self._sessions.of(request):
            found["meta"] = {**found["meta"], _COOKIES: cookies}
        return base64.b64encode(pickle.dumps(found, protocol=4)).decode()

    def _read(self, payload: str) -> Request:
        request = request_from_dict(pickle.loads(base64.b64decode(payload)), spider=self._spider)
        assert self._sessions is not None
        self._sessions.add(request, request.meta.pop(_COOKIES, ()))
        return request

    def _on_notify(self) -> None:
        """Called from the thread: Scrapy requests more work."""
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ask_again)

    def _ask_again(self) -> None:
        slot = self._engine_slot()
        if slot is not None and slot.closing is None:
            slot.nextcall.schedule()

    def _count_duplicates(self) -> None:
        fresh = self.thread.duplicates - self._duplicates
        if fresh:
            self._duplicates += fresh
            self._stat("dupefilter/filtered", fresh)

    def _stat(self, name: str, by: int = 1) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(name, by)


class DupeFilter(BaseDupeFilter):
    """`DUPEFILTER_CLASS = "curtsy.scrapy.DupeFilter"`. The store detects duplicates that are not in memory."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def remembers(self, key: bytes) -> bool:
        if key in self._seen:
            return True
        self._seen[key] = None
        if len(self._seen) > _MOST_REMEMBERED:
            self._seen.popitem(last=False)
        return False


def curtsy_settings(project: Any) -> Settings:
    """The settings in a Scrapy project: `CURTSY_DELAY_S` is `delay_s`. curtsy.toml and the environment apply too."""
    names = {name: f"CURTSY_{name.upper()}" for name in (*Settings.model_fields, *OLD_NAMES)}
    given = {name: project.get(key) for name, key in names.items() if project.get(key) is not None}
    unknown = [key for key in project if re.match("CURTSY_", key) and key not in (*names.values(), "CURTSY_RUN")]
    if unknown:
        raise CurtsyError(f"Unknown setting {unknown[0]}. See docs/reference/settings.md and docs/how-to/scrapy.md.")
    return load(**given)


def slot_delays(project: Any) -> dict[str, float]:
    """The delays of DOWNLOAD_SLOTS by host."""
    slots = project.getdict("DOWNLOAD_SLOTS")
    return {host: float(slot["delay"]) for host, slot in slots.items() if slot.get("delay")}


def check_components(crawler: Crawler) -> None:
    """Refuse a partial set of components, which would send requests without slots."""
    if not any(getattr(one, "takes_slots", False) for one in middlewares_of(crawler)):
        raise CurtsyError("Add curtsy.scrapy.SlotMiddleware to DOWNLOADER_MIDDLEWARES (docs/how-to/scrapy.md).")
    settings = crawler.settings
    if settings.getfloat("DOWNLOAD_DELAY") or settings.getbool("AUTOTHROTTLE_ENABLED"):
        raise CurtsyError(
            "The frontier applies the delays: set CURTSY_DELAY_S instead of DOWNLOAD_DELAY and AUTOTHROTTLE_ENABLED, "
            "or use the add-on, which does that."
        )


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise CurtsyError("Scrapy must run on asyncio: do not change TWISTED_REACTOR.") from None
