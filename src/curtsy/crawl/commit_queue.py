"""Results that wait for the store: collected in groups, committed in order, held until they are durable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from curtsy.core.clock import boot
from curtsy.core.settings import Settings
from curtsy.crawl.results import Result, Returned
from curtsy.fetch.document_limits import BodyBudget
from curtsy.frontier.messages import Times


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
        self._queue: asyncio.Queue[list[Returned]] = asyncio.Queue()
        #: times of slots that are back while their page is still being read, by fence
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
        self._queue = asyncio.Queue()
        self._group, self._bytes, self._urgent = [], 0, False

    @property
    def is_full(self) -> bool:
        """Two groups wait for the store: nothing more may be leased."""
        return self._queue.qsize() >= 2

    @property
    def is_begun(self) -> bool:
        """The next group has results."""
        return bool(self._group)

    @property
    def is_empty(self) -> bool:
        """Everything that joined a group is durable."""
        return not (self._group or self.writing) and self._queue.empty()

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
        self._bytes += len(result.outcome.body) if result.outcome is not None else 0
        blocks = result.effect is not None and result.effect.block_ms > 0
        if blocks or result.robots is not None or result.member is not None:
            self._urgent = True

    def hand_over(self, *, idle: bool) -> None:
        """Hands the group over at 200 pages, 16 MB or 1 s; at once if it blocks a host or changes its rules."""
        if not self._group:
            return
        s = self._settings
        full = len(self._group) >= s.commit_pages or self._bytes >= s.commit_mb * 1_000_000
        if full or idle or self._urgent or boot() - self._since >= s.commit_s:
            self._queue.put_nowait(self._group)
            self._group, self._bytes, self._urgent = [], 0, False

    async def write(self) -> None:
        """Commits groups in order, forever."""
        while True:
            group = await self._queue.get()
            self.writing = group
            await self._commit(group)
            for returned in group:
                self.held.pop(returned.result.lease.fence, None)
                self._documents.free(returned.result.lease.fence)
            self.writing = []
            self._durable()
