"""Limits of documents (PDF, office files, ...): which are fetched, how large, and how much memory they use together.

A document may be five times as large as a page, and is held until it is committed: many at once would use up the
memory of a process. `BodyBudget` bounds the sum. A transfer takes bytes of it when its headers announce a document, and
more if the body turns out longer. If there is no room, the transfer is aborted (`no_room`), and the URL is tried
again later. The commit gives the bytes back. docs/decisions/0044-documents-in-memory.md has the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass

from curtsy.core.settings import Settings

#: bytes that are taken at a time where the length of a body is not announced
STEP = 1_000_000


class BodyBudget:
    """Bytes of documents that one process holds, by the fence of their lease. One thread uses it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0
        self._by_fence: dict[int, int] = {}

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

    def clear(self) -> None:
        self._by_fence.clear()
        self.used = 0

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
