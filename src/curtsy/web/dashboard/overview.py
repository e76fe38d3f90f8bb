"""The overview. Its cost does not grow with the number of crawls."""

from __future__ import annotations

import concurrent.futures
import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from flask import Response, render_template

from curtsy.control import crawls as control
from curtsy.core import clock
from curtsy.core.errors import CurtsyError
from curtsy.core.model import Crawl, CrawlState
from curtsy.core.observe import log
from curtsy.fleet.coordination import HEARTBEAT_LIFE_S, Worker, beat_problem
from curtsy.frontier.watch import LANES, look
from curtsy.store import crawls, dashboard_queries, pages, rates
from curtsy.web.backend_thread import BackendThread
from curtsy.web.dashboard import charts
from curtsy.web.dashboard.site import PageRequest, html, view

T = TypeVar("T")

#: running crawls that are shown
_SHOWN = 8
_MINUTES = 60
#: newest pages of a crawl that determine its rate
_NEWEST = 200
#: how long a result is reused
_FRESH_S = 1.0
#: how long the sums of dead letters are reused
_CAUSES_S = 5.0
#: how long the overview waits for the frontier to open
_OPEN_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    name: str
    #: active queues, due hosts, requests in flight, running shifts
    queues: int
    due: int
    under_way: int
    shifts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A crawl that has not ended."""

    crawl: Crawl
    #: its state, or `interrupted`
    state: str
    name: dashboard_queries.CrawlName | None
    known: int
    settled: int
    failed: int
    pages_per_s: float
    ends_ms: int | None

    @property
    def share(self) -> float:
        crawl = self.crawl
        if crawl.max_pages is not None and crawl.max_pages < self.known:
            return min(1.0, crawl.pages / crawl.max_pages)
        return self.settled / self.known if self.known else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The content of the overview."""

    at_ms: int
    #: None: the frontier is unavailable
    lanes: tuple[Lane, ...] | None
    workers: tuple[Worker, ...] | None
    #: what is wrong with Beat; None: nothing, or unknown
    beat: str | None
    crawls: tuple[Progress, ...]
    more_crawls: bool
    causes: tuple[tuple[str, int], ...]
    rate: charts.Chart
    pages_hour: int
    pages_per_s: float
    any_crawl: bool

    def total(self, name: str) -> int | None:
        return None if self.lanes is None else sum(getattr(lane, name) for lane in self.lanes)

    @property
    def digest(self) -> str:
        workers = self.workers and [worker.name for worker in self.workers]
        shown = (self.lanes, workers, bool(self.beat), self.crawls, self.causes, self.pages_hour)
        return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]


_openers = concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="overview")
_lock = threading.Lock()
#: backend -> query -> (time, result)
_last: WeakKeyDictionary[BackendThread, dict[Any, tuple[float, Any]]] = WeakKeyDictionary()


def current(backend: BackendThread) -> Overview:
    """The store is queried at most once a second, however many clients there are."""
    with _lock:
        return _reused(_query, backend, _FRESH_S)


def _reused(query: Callable[[BackendThread], T], backend: BackendThread, fresh_s: float) -> T:
    """The last result of a query, or a new one after that time."""
    known = _last.setdefault(backend, {})
    if query not in known or time.monotonic() - known[query][0] >= fresh_s:
        found = query(backend)
        known[query] = (time.monotonic(), found)
    result: T = known[query][1]
    return result


def _query(backend: BackendThread) -> Overview:
    now_ms = clock.now_ms()
    # The last interval is the current minute.
    ends_ms = [(now_ms // 60_000 - _MINUTES + 1 + k) * 60_000 for k in range(_MINUTES)] + [now_ms + 1]
    attended = control.attended(backend.settings)
    with backend.store.read() as tx:
        counts = rates.pages_of_all(tx, ends_ms)
        per_s = rates.pages_per_s(tx, now_ms)
        going = crawls.list_all(tx, _SHOWN + 1, [state for state in CrawlState if state not in crawls.ENDED])
        newest = crawls.list_all(tx, 1)
        ledgers = dashboard_queries.ledgers(tx, {crawl.n for crawl in going})
        names = dashboard_queries.names(tx, [crawl.id for crawl in going[:_SHOWN]])
        shown = [
            _progress(tx, crawl, names.get(crawl.id), ledgers[crawl.n], now_ms, attended) for crawl in going[:_SHOWN]
        ]
    causes = _reused(_causes, backend, _CAUSES_S)
    lanes, workers, beat = _fleet(backend)
    return Overview(
        at_ms=now_ms,
        lanes=lanes,
        workers=workers,
        beat=beat,
        crawls=tuple(shown),
        more_crawls=len(going) > _SHOWN,
        causes=tuple(sorted(causes.items(), key=lambda item: (-item[1], item[0]))),
        rate=charts.rates(counts, ends_ms),
        pages_hour=sum(counts),
        pages_per_s=per_s,
        any_crawl=bool(newest),
    )


def _causes(backend: BackendThread) -> dict[str, int]:
    """Dead letters of all crawls by cause, as the crawls count them."""
    with backend.store.read() as tx:
        return dashboard_queries.dead_letters(tx)


def _progress(
    tx: Any,
    crawl: Crawl,
    name: dashboard_queries.CrawlName | None,
    ledger: dict[str, dict[str, int]],
    now_ms: int,
    attended: bool,
) -> Progress:
    known = sum(ledger["open"].values())
    failed = sum(ledger["failed"].values())
    settled = sum(sum(ledger[state].values()) for state in ("done", "skipped", "failed"))
    rate, ends_ms = 0.0, None
    if crawl.state is CrawlState.RUNNING:
        rate = control.rate_of(crawl, *pages.count_recent(tx, crawl.n, now_ms - 60_000, _NEWEST), now_ms, _NEWEST)
        urls_rate = rates.urls_per_s(tx, crawl.n, crawl.started_ms or crawl.created_ms, now_ms)
        ends_ms = control.estimated_end_ms(tx, crawl, known - settled, max(rate, urls_rate), now_ms)
    state = control.shown_state(crawl, settled > 0, attended)
    return Progress(
        crawl=crawl,
        state=state,
        name=name,
        known=known,
        settled=settled,
        failed=failed,
        pages_per_s=rate,
        ends_ms=ends_ms,
    )


def _fleet(backend: BackendThread) -> tuple[tuple[Lane, ...] | None, tuple[Worker, ...] | None, str | None]:
    try:
        # Opening a frontier that is being rebuilt may take minutes; the overview does not wait for that.
        frontier = _openers.submit(lambda: backend.services).result(_OPEN_S).frontier
        fleet = backend.fleet

        async def ask() -> tuple[Any, list[Worker], list[int], str | None]:
            view = await look(frontier, detail=True)
            running = [await fleet.running(lane.value) for lane in LANES]
            return view, await fleet.workers(), running, beat_problem(await fleet.beat_age_s())

        seen, workers, running, beat = backend.wait(ask(), 5.0)
    except (CurtsyError, concurrent.futures.TimeoutError) as error:
        log("frontier_unavailable", level="warning", error=str(error))
        return None, None, None
    lanes = tuple(
        Lane(
            name=lane.value, queues=seen.in_play.get(lane, 0), due=seen.hosts(lane),
            under_way=seen.in_flight.get(lane, 0), shifts=shifts,
        )
        for lane, shifts in zip(LANES, running, strict=True)
    )  # fmt: skip
    return lanes, tuple(workers), beat


def shown(backend: BackendThread) -> dict[str, Any]:
    return {"seen": current(backend), "seated_ms": int(HEARTBEAT_LIFE_S * 1000)}


@view("GET", "/")
def overview(req: PageRequest) -> Response:
    return req.render("overview.html", **shown(req.backend))


@view("GET", "/overview/part")
def overview_part(req: PageRequest) -> Response:
    """The part that is updated live."""
    return html(render_template("_overview.html", req=req, **shown(req.backend)))
