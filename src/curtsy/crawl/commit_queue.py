"""Results on their way into the store: gathered in groups, committed in order, held until they are durable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from curtsy.core.clock import boot
from curtsy.core.settings import Settings
from curtsy.crawl.results import Finished
from curtsy.frontier.messages import Times


class CommitQueue:
    """One per process. A result is held from its end on, and joins the group when its slot is back."""

    def __init__(
        self, settings: Settings, commit: Callable[[Sequence[Finished]], Awaitable[None]], durable: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._commit = commit
        #: called when a group has become durable
        self._durable = durable
        #: results that are not durable yet, by fence
        self.held: dict[int, Finished] = {}
        #: what is being committed
        self.writing: list[Finished] = []
        self._queue: asyncio.Queue[list[Finished]] = asyncio.Queue()
        self._group: list[Finished] = []
        self._bytes = 0
        self._since = 0.0
        self._urgent = False

    def begin(self) -> None:
        """A run begins: what an earlier one could not commit is found by expiry."""
        self.held.clear()
        self.writing = []
        self._queue = asyncio.Queue()
        self._group, self._bytes, self._urgent = [], 0, False

    @property
    def is_full(self) -> bool:
        """Two groups wait for the store: nothing more is to be leased."""
        return self._queue.qsize() >= 2

    @property
    def is_begun(self) -> bool:
        """Something waits to be handed over."""
        return bool(self._group)

    @property
    def is_empty(self) -> bool:
        """Everything that joined is durable."""
        return not (self._group or self.writing) and self._queue.empty()

    def hold(self, done: Finished) -> None:
        self.held[done.lease.fence] = done

    def collect(self, done: Finished, times: Times | None) -> None:
        """The slot is back; a page that is still being read joins when that is done."""
        done.times, done.returned = times, True
        if done.complete:
            self.add(done)

    def add(self, done: Finished) -> None:
        if not self._group:
            self._since = boot()
        self._group.append(done)
        self._bytes += done.size
        blocks = done.effect is not None and done.effect.block_ms > 0
        if blocks or done.robots is not None or done.member is not None:
            self._urgent = True

    def hand_over(self, *, idle: bool) -> None:
        """A group is handed over at 200 pages, 16 MB or 1 s; at once if it blocks a host or changes its rules."""
        if not self._group:
            return
        s = self._settings
        full = len(self._group) >= s.commit_pages or self._bytes >= s.commit_mb * 1_000_000
        if full or idle or self._urgent or boot() - self._since >= s.commit_s:
            self._queue.put_nowait(self._group)
            self._group, self._bytes, self._urgent = [], 0, False

    async def write(self) -> None:
        """Commits groups in order, for ever."""
        while True:
            group = await self._queue.get()
            self.writing = group
            await self._commit(group)
            for done in group:
                self.held.pop(done.lease.fence, None)
            self.writing = []
            self._durable()
