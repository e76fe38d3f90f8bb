"""Starts leases. A lease whose crawl or robots rules this process does not know waits until they are loaded."""

from __future__ import annotations

from curtsy.core.model import Lane, Lease, Page
from curtsy.core.shutdown import StopFlag
from curtsy.crawl.crawl_cache import CrawlCache
from curtsy.crawl.in_flight import InFlight
from curtsy.crawl.outages import Outages


class LeaseStarter:
    """One per process."""

    def __init__(self, in_flight: InFlight, crawl_cache: CrawlCache, outages: Outages, stop: StopFlag) -> None:
        self._in_flight, self._crawl_cache = in_flight, crawl_cache
        self._outages, self._stop = outages, stop
        #: leases whose crawl or robots rules are being read from the store, by fence
        self._waiting: dict[int, Lease] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def waiting(self) -> list[Lease]:
        return list(self._waiting.values())

    def of_lane(self, lane: Lane) -> int:
        return sum(lease.lane is lane for lease in self._waiting.values())

    def clear(self) -> None:
        self._waiting.clear()

    def start(self, leases: list[Lease]) -> None:
        """Leases that need data from the store wait for it in a task: other slots are returned meanwhile."""
        # All URLs of a run need the same data.
        waiting = [lease for lease in leases if self._crawl_cache.is_missing(lease)]
        if waiting:
            self._waiting.update((lease.fence, lease) for lease in waiting)
            self._in_flight.spawn(self._load_and_start(waiting))
        self._start_ready([lease for lease in leases if lease.fence not in self._waiting], {})

    def _start_ready(self, leases: list[Lease], before: dict[int, Page]) -> None:
        for lease in leases:
            if lease.follows:
                self._in_flight.runs.add(lease, before.get(lease.fence))
        for lease in leases:
            if not lease.follows:
                self._in_flight.start(lease, before.get(lease.fence))

    async def _load_and_start(self, leases: list[Lease]) -> None:
        try:
            await self._outages.persist(lambda: self._crawl_cache.load(leases))
            before = await self._outages.persist(lambda: self._crawl_cache.previous(leases))
        finally:
            for lease in leases:
                self._waiting.pop(lease.fence, None)
        if self._stop.drain:
            # In this order, the first one ends at the head of its list again.
            for lease in reversed(leases):
                self._in_flight.give_back(lease)
        else:
            self._start_ready(leases, before)
