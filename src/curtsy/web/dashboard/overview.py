"""Overview: everything at a glance, at a cost that does not grow with the crawls."""

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
from curtsy.fleet.coordination import SEATED_S, Worker
from curtsy.frontier.watch import LANES, look
from curtsy.store import crawls, dashboard_queries, pages
from curtsy.web.backend_thread import BackendThread
from curtsy.web.dashboard import charts
from curtsy.web.dashboard.site import Visit, html, view

#: crawls that are shown, and looked at for the rate
_SHOWN = 8
_LOOKED_AT = 12
_MINUTES = 60
#: newest pages of a crawl that its rate is told from
_NEWEST = 200
#: everybody who looks within this time sees the same
_FRESH_S = 1.0
#: newest crawls whose dead letters are added up
_LEDGERS = 50
#: how long the overview waits for a frontier that is not open yet
_OPEN_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    name: str
    #: queues in play, hosts that may be asked now, requests under way, shifts that run
    queues: int
    due: int
    under_way: int
    shifts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A crawl that has not ended."""

    crawl: Crawl
    #: (a website of it, whether there are others)
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
class Glance:
    """All that the overview shows."""

    at_ms: int
    #: None: the frontier is away
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
        """Of the crawls that run, lately."""
        return sum(one.pages_per_s for one in self.crawls)

    def total(self, name: str) -> int | None:
        return None if self.lanes is None else sum(getattr(lane, name) for lane in self.lanes)

    @property
    def digest(self) -> str:
        told = (self.lanes, self.workers and [w.name for w in self.workers], self.crawls, self.causes, self.pages_hour)
        return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


_openers = concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="overview")
_lock = threading.Lock()
_last: dict[int, tuple[float, Glance]] = {}


def glance_of(bridge: BackendThread) -> Glance:
    """However many look, the store is asked once a second."""
    with _lock:
        at, found = _last.get(id(bridge), (0.0, None))
        if found is None or time.monotonic() - at >= _FRESH_S:
            found = _look(bridge)
            _last.clear()
            _last[id(bridge)] = (time.monotonic(), found)
        return found


def _look(bridge: BackendThread) -> Glance:
    now_ms = clock.now_ms()
    # The last part is the minute that has not ended.
    ends_ms = [(now_ms // 60_000 - _MINUTES + 1 + k) * 60_000 for k in range(_MINUTES)] + [now_ms + 1]
    with bridge.store.read() as tx:
        active = dashboard_queries.lately_active(tx, ends_ms[0], _LOOKED_AT)
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
    lanes, workers = _fleet(bridge)
    return Glance(
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
        rate = control.rate_of(crawl, *pages.lately(tx, crawl.n, now_ms - 60_000, _NEWEST), now_ms, _NEWEST)
        left = known - settled if crawl.max_pages is None else min(known - settled, crawl.max_pages - crawl.pages)
        ends_ms = now_ms + int(max(0, left) / rate * 1000) if rate else None
    return Progress(
        crawl=crawl, name=name, known=known, settled=settled, failed=failed, pages_per_s=rate, ends_ms=ends_ms
    )


def _fleet(bridge: BackendThread) -> tuple[tuple[Lane, ...] | None, tuple[Worker, ...] | None]:
    try:
        # A frontier that is being rebuilt may keep whoever opens it waiting for minutes: not those who look.
        frontier = _openers.submit(lambda: bridge.services).result(_OPEN_S).frontier
        fleet = bridge.fleet

        async def ask() -> tuple[Any, list[Worker], list[int]]:
            view = await look(frontier, detail=True)
            return view, await fleet.workers(), [await fleet.running(lane.value) for lane in LANES]

        seen, workers, running = bridge.wait(ask(), 5.0)
    except (CurtsyError, concurrent.futures.TimeoutError) as error:
        log("frontier_not_asked", level="warning", error=str(error))
        return None, None
    lanes = tuple(
        Lane(
            name=lane.value, queues=seen.in_play.get(lane, 0), due=seen.hosts(lane),
            under_way=seen.in_flight.get(lane, 0), shifts=shifts,
        )
        for lane, shifts in zip(LANES, running, strict=True)
    )  # fmt: skip
    return lanes, tuple(workers)


def shown(bridge: BackendThread) -> dict[str, Any]:
    return {"seen": glance_of(bridge), "seated_ms": int(SEATED_S * 1000)}


@view("GET", "/")
def overview(visit: Visit) -> Response:
    return visit.page("overview.html", **shown(visit.bridge))


@view("GET", "/overview/part")
def overview_part(visit: Visit) -> Response:
    """What is live of it."""
    return html(render_template("_overview.html", visit=visit, **shown(visit.bridge)))
