"""The overview. Its cost does not grow with the number of crawls."""

from __future__ import annotations

import concurrent.futures
import hashlib
import threading
import time
from dataclasses import dataclass
from typing import Any

from flask import Response, render_template

from curtsy.control import crawls as control
from curtsy.core import clock
from curtsy.core.errors import CurtsyError
from curtsy.core.model import Crawl, CrawlState
from curtsy.core.observe import log
from curtsy.fleet.coordination import HEARTBEAT_LIFE_S, Worker
from curtsy.frontier.watch import LANES, look
from curtsy.store import crawls, dashboard_queries, pages
from curtsy.web.backend_thread import BackendThread
from curtsy.web.dashboard import charts
from curtsy.web.dashboard.site import PageRequest, html, view

#: crawls that are shown, and crawls that count for the rate
_SHOWN = 8
_RATED = 12
_MINUTES = 60
#: newest pages of a crawl that determine its rate
_NEWEST = 200
#: how long a result is reused
_FRESH_S = 1.0
#: newest crawls whose dead letters are summed
_LEDGERS = 50
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
    #: (one of its sites, whether there are others)
    name: tuple[str, bool] | None
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
    crawls: tuple[Progress, ...]
    more_crawls: bool
    causes: tuple[tuple[str, int], ...]
    rate: charts.Chart
    pages_hour: int
    pages_minute: int
    any_crawl: bool

    @property
    def pages_per_s(self) -> float:
        """The current rate of the running crawls."""
        return sum(one.pages_per_s for one in self.crawls)

    def total(self, name: str) -> int | None:
        return None if self.lanes is None else sum(getattr(lane, name) for lane in self.lanes)

    @property
    def digest(self) -> str:
        shown = (self.lanes, self.workers and [w.name for w in self.workers], self.crawls, self.causes, self.pages_hour)
        return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]


_openers = concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="overview")
_lock = threading.Lock()
_last: dict[int, tuple[float, Overview]] = {}


def current(backend: BackendThread) -> Overview:
    """The store is queried at most once a second, however many clients there are."""
    with _lock:
        at, found = _last.get(id(backend), (0.0, None))
        if found is None or time.monotonic() - at >= _FRESH_S:
            found = _query(backend)
            _last.clear()
            _last[id(backend)] = (time.monotonic(), found)
        return found


def _query(backend: BackendThread) -> Overview:
    now_ms = clock.now_ms()
    # The last interval is the current minute.
    ends_ms = [(now_ms // 60_000 - _MINUTES + 1 + k) * 60_000 for k in range(_MINUTES)] + [now_ms + 1]
    with backend.store.read() as tx:
        active = dashboard_queries.lately_active(tx, ends_ms[0], _RATED)
        counts = dashboard_queries.stored_between(tx, active, ends_ms)
        going = crawls.list_all(tx, _SHOWN + 1, [state for state in CrawlState if state not in crawls.ENDED])
        newest = crawls.list_all(tx, _LEDGERS)
        ledgers = dashboard_queries.ledgers(tx, {crawl.n for crawl in [*newest, *going]})
        names = dashboard_queries.names(tx, [crawl.id for crawl in going[:_SHOWN]])
        shown = [_progress(tx, crawl, names.get(crawl.id), ledgers[crawl.n], now_ms) for crawl in going[:_SHOWN]]
    causes: dict[str, int] = {}
    for ledger in ledgers.values():
        for cause, n in ledger["failed"].items():
            causes[cause] = causes.get(cause, 0) + n
    lanes, workers = _fleet(backend)
    return Overview(
        at_ms=now_ms,
        lanes=lanes,
        workers=workers,
        crawls=tuple(shown),
        more_crawls=len(going) > _SHOWN,
        causes=tuple(sorted(causes.items(), key=lambda item: (-item[1], item[0]))),
        rate=charts.rates(counts, ends_ms),
        pages_hour=sum(counts),
        pages_minute=counts[-2] + counts[-1],
        any_crawl=bool(newest),
    )


def _progress(
    tx: Any, crawl: Crawl, name: tuple[str, bool] | None, ledger: dict[str, dict[str, int]], now_ms: int
) -> Progress:
    known = sum(ledger["open"].values())
    failed = sum(ledger["failed"].values())
    settled = sum(sum(ledger[state].values()) for state in ("done", "skipped", "failed"))
    rate, ends_ms = 0.0, None
    if crawl.state is CrawlState.RUNNING:
        rate = control.rate_of(crawl, *pages.count_recent(tx, crawl.n, now_ms - 60_000, _NEWEST), now_ms, _NEWEST)
        left = known - settled if crawl.max_pages is None else min(known - settled, crawl.max_pages - crawl.pages)
        ends_ms = now_ms + int(max(0, left) / rate * 1000) if rate else None
    return Progress(
        crawl=crawl, name=name, known=known, settled=settled, failed=failed, pages_per_s=rate, ends_ms=ends_ms
    )


def _fleet(backend: BackendThread) -> tuple[tuple[Lane, ...] | None, tuple[Worker, ...] | None]:
    try:
        # Opening a frontier that is being rebuilt may take minutes; the overview does not wait for that.
        frontier = _openers.submit(lambda: backend.services).result(_OPEN_S).frontier
        fleet = backend.fleet

        async def ask() -> tuple[Any, list[Worker], list[int]]:
            view = await look(frontier, detail=True)
            return view, await fleet.workers(), [await fleet.running(lane.value) for lane in LANES]

        seen, workers, running = backend.wait(ask(), 5.0)
    except (CurtsyError, concurrent.futures.TimeoutError) as error:
        log("frontier_unavailable", level="warning", error=str(error))
        return None, None
    lanes = tuple(
        Lane(
            name=lane.value, queues=seen.in_play.get(lane, 0), due=seen.hosts(lane),
            under_way=seen.in_flight.get(lane, 0), shifts=shifts,
        )
        for lane, shifts in zip(LANES, running, strict=True)
    )  # fmt: skip
    return lanes, tuple(workers)


def shown(backend: BackendThread) -> dict[str, Any]:
    return {"seen": current(backend), "seated_ms": int(HEARTBEAT_LIFE_S * 1000)}


@view("GET", "/")
def overview(req: PageRequest) -> Response:
    return req.render("overview.html", **shown(req.backend))


@view("GET", "/overview/part")
def overview_part(req: PageRequest) -> Response:
    """The part that is updated live."""
    return html(render_template("_overview.html", req=req, **shown(req.backend)))
