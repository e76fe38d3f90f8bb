"""Limits of documents (PDF, office files, ...): which are fetched, how large, and how much memory they use together.

A document may be five times as large as a page, and is held until it is committed: many at once would use up the
memory of a process. `BodyBudget` bounds the sum. A transfer takes bytes of it when its headers announce a document, and
more if the body turns out longer. If there is no room, the transfer is aborted (`no_room`), and the URL is tried
again later. To make that rare, a process that meets many documents has fewer requests in flight. The commit gives the
bytes back. docs/decisions/0044-memory-budget-for-documents.md has the reasons.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from curtsy.core.settings import Settings

#: bytes that are taken at a time where the length of a body is not announced
STEP = 1_000_000
#: requests over which the size of documents is averaged
_RECENT = 16
#: a smaller average needs no bound: thousands of requests fit
_NEGLIGIBLE = 10_000.0


class BodyBudget:
    """Bytes of documents that one process holds, by the fence of their lease. One thread uses it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0
        self._by_fence: dict[int, int] = {}
        self._freed = asyncio.Event()
        #: bytes of documents that a request brings on average, over the last ones
        self._expected = 0.0

    def note(self, size: int) -> None:
        """A request ended with this size of a document: 0 for a page."""
        self._expected += (size - self._expected) / _RECENT

    def requests(self) -> int | None:
        """How many requests fit, if their documents are as large as the last ones; None: any number."""
        return int((self.most - self.used) / self._expected) if self._expected > _NEGLIGIBLE else None

    async def room(self, fence: int, size: int) -> None:
        """Takes bytes as soon as there is room for them."""
        while not self.take(fence, min(size, self.most)):
            self._freed.clear()
            await self._freed.wait()

    def take(self, fence: int, size: int) -> bool:
        """Takes bytes; False if there is no room for them."""
        if self.used + size > self.most:
            return False
        self._by_fence[fence] = self._by_fence.get(fence, 0) + size
        self.used += size
        return True

    def free(self, fence: int) -> None:
        """The body is durable, or was dropped."""
        self.used -= self._by_fence.pop(fence, 0)
        self._freed.set()

    def clear(self) -> None:
        self._by_fence.clear()
        self.used = 0
        self._freed.set()

    def held(self, fence: int) -> int:
        return self._by_fence.get(fence, 0)

    def has_room(self, size: int) -> bool:
        return self.used + size <= self.most


@dataclass(frozen=True, slots=True, eq=False)
class DocumentLimits:
    """What the settings say of documents, and the budget of this process."""

    #: kinds whose bodies are kept
    kinds: frozenset[str]
    max_bytes: int
    budget: BodyBudget

    @classmethod
    def of(cls, settings: Settings) -> DocumentLimits:
        budget = BodyBudget(int(settings.document_memory_mb * 1_000_000))
        return cls(frozenset(settings.document_types), int(settings.max_document_mb * 1_000_000), budget)
