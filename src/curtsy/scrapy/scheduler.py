"""Scrapy's scheduler and dupefilter on the frontier. Everything that waits is done by the desk."""

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
from curtsy.core.settings_loading import load
from curtsy.crawl.external_slots import Report, Turn
from curtsy.rules.urls import host_key, normalise
from curtsy.scrapy.frontier_thread import NOBODY, Desk, Local, Ready, worth_beginning
from curtsy.scrapy.sessions import Sessions, middlewares_of
from curtsy.store.guests import NewRequest, Settled

#: number of a request in the store, and its turn, on their way through Scrapy; copies inherit them
NUMBER, TURN = "_curtsy_n", "_curtsy_turn"
#: where a request that is kept has its cookies
_COOKIES = "_curtsy_cookies"
#: requests in hand at a time where Scrapy is told no limit
_MANY = 100
#: fingerprints that are remembered here; the store remembers all
_MOST_REMEMBERED = 200_000
#: statuses that stand for no answer, where Scrapy has given up trying again
_NO_ANSWER = frozenset({408, 425, 429, 500, 502, 503, 504, 522, 524})


@dataclass(slots=True)
class InHand:
    """A request that Scrapy works at."""

    request: Request
    #: None: it lives in this process only
    n: int | None
    #: None: it was lent to its robots.txt, or ran out
    turn: Turn | None
    #: when it went to the downloader; None: it never did
    started: float | None = None
    #: its turn went back
    reported: bool = False
    #: why there was no answer worth having
    cause: str = ""
    detail: str = ""
    #: another request came of it, by a redirect or a retry
    followed: bool = False


class Scheduler(BaseScheduler):
    """`SCHEDULER = "curtsy.scrapy.Scheduler"`."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._filter = DupeFilter()
        self._sessions: Sessions | None = None
        #: how often a start request came that is not to be filtered
        self._starts: Counter[bytes] = Counter()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._in_hand: dict[int, InHand] = {}
        self._duplicates = 0
        self._desk: Desk | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    @property
    def desk(self) -> Desk:
        assert self._desk is not None, "the spider is not open"
        return self._desk

    @property
    def _spider(self) -> Spider:
        assert self._crawler.spider is not None
        return self._crawler.spider

    def open(self, spider: Spider) -> None:
        settings = self._crawler.settings
        check_parts(self._crawler)
        self._loop = _running_loop()
        self._sessions = Sessions(self._crawler)
        name = settings.get("CURTSY_RUN") or spider.name
        capacity = settings.getint("CONCURRENT_REQUESTS") or _MANY
        self._desk = Desk(curtsy_settings(settings), name, capacity, self._rung, slot_delays(settings))
        self._desk.open()
        if not hasattr(self._engine_slot(), "inprogress"):
            raise MissingPart("This Scrapy keeps no list of requests in progress. Use Scrapy 2.13 to 2.19.")
        self._crawler.signals.connect(self._callback_broke, signals.spider_error)

    def close(self, reason: str) -> None:
        if self._desk is not None:
            self._settle_ended()
            self._desk.close(ended=reason == "finished")
            self._count_duplicates()

    def has_pending_requests(self) -> bool:
        self._settle_ended()
        return bool(self._in_hand) or self.desk.has_pending

    def enqueue_request(self, request: Request) -> bool:
        parent = self._in_hand.get(request.meta.pop(NUMBER, -1))
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
        except (ValueError, TypeError, pickle.PicklingError, AttributeError):
            # Its callback is no method of the spider, or its meta cannot be written.
            self._stat("curtsy/kept_in_memory_only")
            self.desk.add_local(Local(host, request))
            return True
        self.desk.add(NewRequest(key=key, host=host, url=request.url, rank=-request.priority, payload=payload))
        return True

    def _key(self, request: Request, *, started: bool) -> bytes:
        """What makes it the same request as another, here or in another process."""
        fingerprinter = self._crawler.request_fingerprinter
        assert fingerprinter is not None
        key = fingerprinter.fingerprint(request)
        if not request.dont_filter:
            return key
        if started and request.meta.get("is_start_request"):
            # Every process of a spider begins with the same ones: the third one of its kind is the third one anywhere.
            self._starts[key] += 1
            return b"start:%d:" % self._starts[key] + key
        return key + os.urandom(8)

    def next_request(self) -> Request | None:
        desk = self.desk
        if desk.error is not None:
            self._give_up(desk.error)
            return None
        self._settle_ended()
        self._count_duplicates()
        while desk.ready:
            ready = desk.ready.popleft()
            if not worth_beginning(ready.turn):
                self._put_off(ready)
                continue
            request = self._request_of(ready)
            if request is not None:
                self._stat("scheduler/dequeued")
                return request
        return None

    def host_of(self, request: Request) -> str:
        """Whose turn it takes."""
        url = normalise(request.url)
        if url is not None:
            return host_key(url, self.desk.settings.politeness_unit)
        return urlsplit(request.url).hostname or NOBODY

    # What became of requests

    def begun(self, request: Request) -> InHand | None:
        """Of a request that goes to the downloader now; None for one that nobody scheduled."""
        found = self._in_hand.get(request.meta.get(NUMBER, 0))
        return found if found is not None and found.request is request else None

    def give_back(self, hand: InHand) -> None:
        """Its turn ran out before anything was sent."""
        if hand.turn is not None:
            self.desk.report(Report(turn=hand.turn, started=None, ended=boot()))
            hand.turn = None

    def lend(self, host: str) -> Turn | None:
        """The turn of a request that waits for its robots.txt: else both would wait for each other."""
        for hand in self._in_hand.values():
            turn = hand.turn
            if turn is not None and turn.host == host and hand.started is None and worth_beginning(turn):
                hand.turn = None
                return turn
        return None

    def ended(self, hand: InHand, status: int, headers: tuple[tuple[str, str], ...], fault: str) -> None:
        """Its download is over: the turn goes back, whatever becomes of the response."""
        if hand.reported or hand.turn is None:
            return
        hand.reported = True
        hand.cause, hand.detail = (f"status {status}", "") if status in _NO_ANSWER else (fault.partition(":")[0], fault)
        self.desk.report(
            Report(turn=hand.turn, started=hand.started, ended=boot(), url=hand.request.url, status=status,
                   headers=headers)
        )  # fmt: skip

    def _settle_ended(self) -> None:
        """What Scrapy has no longer in progress is through: its callback has ended, what it yielded is kept."""
        slot = self._engine_slot()
        for key, hand in list(self._in_hand.items()):
            if slot is not None and hand.request in slot.inprogress:
                continue
            del self._in_hand[key]
            if not hand.reported and hand.turn is not None:
                self.desk.report(Report(turn=hand.turn, started=hand.started, ended=boot(), url=hand.request.url))
            if hand.n is None:
                continue
            failed = hand.cause and not hand.followed
            self._stat("curtsy/dead_letters" if failed else "curtsy/done")
            state = "failed" if failed else "done"
            self.desk.settle(Settled(n=hand.n, state=state, cause=hand.cause if failed else "", detail=hand.detail))

    def _callback_broke(self, failure: Failure, response: Response | None, spider: Spider) -> None:
        request = None if response is None else response.request
        hand = None if request is None else self._in_hand.get(request.meta.get(NUMBER, 0))
        if hand is not None:
            hand.cause, hand.detail = "callback", repr(failure.value)

    def _give_up(self, error: BaseException) -> None:
        """Without its desk a spider would wait for ever; everything that is kept goes on with the next start."""
        engine = self._crawler.engine
        if engine is not None and getattr(self._engine_slot(), "closing", None) is None:
            log("spider_closed", level="error", error=repr(error))
            engine.close_spider(self._spider, reason="curtsy_failed")

    # Between the two worlds

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
        self._in_hand[number] = InHand(request, None if ready.held is None else number, ready.turn)
        return request

    def _refuse(self, ready: Ready, why: str) -> None:
        assert ready.held is not None
        self.desk.report(Report(turn=ready.turn, started=None, ended=boot()))
        self.desk.settle(Settled(n=ready.held.n, state="failed", cause="unreadable", detail=why))

    def _put_off(self, ready: Ready) -> None:
        """Scrapy was busy for so long that the turn is as good as over."""
        self.desk.report(Report(turn=ready.turn, started=None, ended=boot()))
        if ready.held is not None:
            self.desk.settle(Settled(n=ready.held.n, state="open"))
        elif ready.local is not None:
            self.desk.add_local(ready.local)

    def _engine_slot(self) -> Any:
        return getattr(self._crawler.engine, "_slot", None)

    def _written(self, request: Request) -> str:
        # As Scrapy's own disk queues do: meta may hold what JSON cannot.
        found = request.to_dict(spider=self._spider)
        assert self._sessions is not None
        if cookies := self._sessions.of(request):
            found["meta"] = {**found["meta"], _COOKIES: cookies}
        return base64.b64encode(pickle.dumps(found, protocol=4)).decode()

    def _read(self, payload: str) -> Request:
        request = request_from_dict(pickle.loads(base64.b64decode(payload)), spider=self._spider)
        assert self._sessions is not None
        self._sessions.bring(request, request.meta.pop(_COOKIES, ()))
        return request

    def _rung(self) -> None:
        """From the desk's thread: Scrapy asks for requests again."""
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ask_again)

    def _ask_again(self) -> None:
        slot = self._engine_slot()
        if slot is not None and slot.closing is None:
            slot.nextcall.schedule()

    def _count_duplicates(self) -> None:
        fresh = self.desk.duplicates - self._duplicates
        if fresh:
            self._duplicates += fresh
            self._stat("dupefilter/filtered", fresh)

    def _stat(self, name: str, by: int = 1) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(name, by)


class DupeFilter(BaseDupeFilter):
    """`DUPEFILTER_CLASS = "curtsy.scrapy.DupeFilter"`. What it does not remember, the store does."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def remembers(self, key: bytes) -> bool:
        if key in self._seen:
            return True
        self._seen[key] = None
        if len(self._seen) > _MOST_REMEMBERED:
            self._seen.popitem(last=False)
        return False


def curtsy_settings(told: Any) -> Settings:
    """Of a Scrapy project: `CURTSY_DELAY_S` is `delay_s`, and so on; curtsy.toml and the environment hold too."""
    names = {name: f"CURTSY_{name.upper()}" for name in Settings.model_fields}
    given = {name: told.get(key) for name, key in names.items() if told.get(key) is not None}
    unknown = [key for key in told if re.match("CURTSY_", key) and key not in (*names.values(), "CURTSY_RUN")]
    if unknown:
        raise CurtsyError(f"Unknown setting {unknown[0]}. See docs/reference/settings.md and docs/how-to/scrapy.md.")
    return load(**given)


def slot_delays(told: Any) -> dict[str, float]:
    """By host, what DOWNLOAD_SLOTS asks for."""
    slots = told.getdict("DOWNLOAD_SLOTS")
    return {host: float(slot["delay"]) for host, slot in slots.items() if slot.get("delay")}


def check_parts(crawler: Crawler) -> None:
    """Half of the parts would look as if all was well, and ask hosts out of turn."""
    if not any(getattr(one, "takes_slots", False) for one in middlewares_of(crawler)):
        raise CurtsyError("Add curtsy.scrapy.TurnsMiddleware to DOWNLOADER_MIDDLEWARES (docs/how-to/scrapy.md).")
    told = crawler.settings
    if told.getfloat("DOWNLOAD_DELAY") or told.getbool("AUTOTHROTTLE_ENABLED"):
        raise CurtsyError(
            "The frontier keeps the pauses: say CURTSY_DELAY_S instead of DOWNLOAD_DELAY and AUTOTHROTTLE_ENABLED, "
            "or use the add-on, which does that."
        )


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise CurtsyError("Scrapy must run on asyncio here: leave TWISTED_REACTOR as it is.") from None
