"""Results that wait for the store: collected in groups, committed in order, held until they are durable."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from curtsy.core.clock import boot
from curtsy.core.settings import Settings
from curtsy.crawl.results import Result, Returned
from curtsy.fetch.document_limits import BodyBudget
from curtsy.frontier.messages import Times

#: a group is handed over at this age if the frontier has no other work: its links may be what all processes wait for
_EARLY_S = 0.05
#: waiting groups that are committed together may have this many times the size of one
_TOGETHER = 2


class CommitQueue:
    """One per process. A result is held from the end of its fetch, and joins the group when its slot was returned."""

    def __init__(
        self, settings: Settings, commit: Callable[[Sequence[Returned]], Awaitable[None]], durable: Callable[[], None],
        documents: BodyBudget | None = None,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._commit = commit
        #: the memory of documents, which is free again when they are durable
        self._documents = documents or BodyBudget(0)
        #: called when a group has become durable
        self._durable = durable
        #: results that are not durable yet, by fence
        self.held: dict[int, Result] = {}
        #: the group that is being committed
        self.writing: list[Returned] = []
        #: groups that wait for the store, oldest first, with their bytes
        self._ready: deque[tuple[list[Returned], int]] = deque()
        self._some_ready = asyncio.Event()
        #: times of returned slots whose page is still being read, by fence
        self._waiting: dict[int, Times | None] = {}
        self._group: list[Returned] = []
        self._bytes = 0
        self._since = 0.0
        self._urgent = False

    def begin(self) -> None:
        """A run begins. The leases of results that an earlier run did not commit expire."""
        self.held.clear()
        self._documents.clear()
        self._waiting.clear()
        self.writing = []
        self._ready.clear()
        self._some_ready.clear()
        self._group, self._bytes, self._urgent = [], 0, False

    @property
    def is_full(self) -> bool:
        """Two groups wait for the store: nothing more may be leased."""
        return len(self._ready) >= 2

    @property
    def is_begun(self) -> bool:
        """The next group has results."""
        return bool(self._group)

    @property
    def is_empty(self) -> bool:
        """Everything that joined a group is durable."""
        return not (self._group or self.writing or self._ready)

    def hold(self, result: Result) -> None:
        """The fetch ended, or a page that was still being read is complete now."""
        fence = result.lease.fence
        self.held[fence] = result
        if result.is_complete and fence in self._waiting:
            self._add(Returned(result=result, times=self._waiting.pop(fence)))

    def collect(self, fence: int, times: Times | None) -> None:
        """The slot was returned. A page that is still being read joins the group when it is complete."""
        result = self.held.get(fence)
        if result is None:
            return  # it was dropped
        if result.is_complete:
            self._add(Returned(result=result, times=times))
        else:
            self._waiting[fence] = times

    def drop(self, fence: int) -> None:
        """The result cannot be completed: its lease expires."""
        self.held.pop(fence, None)
        self._documents.free(fence)
        self._waiting.pop(fence, None)

    def _add(self, returned: Returned) -> None:
        if not self._group:
            self._since = boot()
        self._group.append(returned)
        result = returned.result
        if (outcome := result.outcome) is not None:
            self._bytes += len(outcome.body) + len(outcome.gzipped) + len(outcome.beginning)
        blocks = result.effect is not None and result.effect.block_ms > 0
        if blocks or result.robots is not None or result.member is not None:
            self._urgent = True

    def hand_over(self, *, idle: bool, starved: bool = False) -> None:
        """Starts the commit of the group at 200 pages, 16 MB or 1 s; at once if it blocks a host or changes its rules.

        `idle`: this process has nothing else to do. `starved`: the frontier lists no URL that is not leased.
        """
        if not self._group:
            return
        s = self._settings
        age_s = boot() - self._since
        full = len(self._group) >= s.commit_pages or self._bytes >= s.commit_mb * 1_000_000
        early = starved and age_s >= _EARLY_S and not (self.writing or self._ready)
        if full or idle or self._urgent or early or age_s >= s.commit_s:
            self._ready.append((self._group, self._bytes))
            self._some_ready.set()
            self._group, self._bytes, self._urgent = [], 0, False

    async def write(self) -> None:
        """Commits groups in order, forever."""
        while True:
            await self._some_ready.wait()
            self.writing = group = self._take()
            await self._commit(group)
            for returned in group:
                self.held.pop(returned.result.lease.fence, None)
                self._documents.free(returned.result.lease.fence)
            self.writing = []
            self._durable()

    def _take(self) -> list[Returned]:
        """The next group, together with the one after it if both wait: a slow store syncs less often."""
        group, size = self._ready.popleft()
        s = self._settings
        while self._ready:
            more, bytes_ = self._ready[0]
            large = len(group) + len(more) > _TOGETHER * s.commit_pages
            if large or size + bytes_ > _TOGETHER * s.commit_mb * 1_000_000:
                break
            self._ready.popleft()
            group, size = [*group, *more], size + bytes_
        if not self._ready:
            self._some_ready.clear()
        return group
