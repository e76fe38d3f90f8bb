"""Seeds uploaded by a client: received in parts, each stored and listed before the next is read.

So memory is bounded, and an interrupted upload continues under the same Idempotency-Key. All of this runs in the
request's thread; only the listing in the frontier runs in the event loop.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from curtsy.control import seeds, submit
from curtsy.core import clock
from curtsy.core.errors import KeyReused, UnknownCrawl, UploadHeld, UsageError, WrongState
from curtsy.core.model import Crawl, CrawlState, NewUrl
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import keep
from curtsy.store import crawls, idempotency
from curtsy.store.engine import Store

#: seeds stored in one transaction
PART = 5_000
#: seeds that arrived all at once are stored before the first are listed, for a faster answer
PART_AT_HAND = 10_000

#: puts stored rows into the frontier: (crawl, rows, the new ones)
Listing = Callable[[Crawl, list[NewUrl], dict[tuple[int, bytes], int]], None]


@dataclass(slots=True, kw_only=True)
class Part:
    """Some seeds, and how much of the body ends with them. `normal`: they are already checked."""

    seeds: list[str]
    #: the position of the first seed, and the format of a position: `line {}`, `body.seeds.{}`
    first: int
    place: str
    received: int
    digest: str
    last: bool
    normal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The sender of an upload and its key. Without a key, an interrupted upload cannot continue."""

    caller: str
    key: str | None = None
    #: digest of what must be equal for two uploads to be the same
    options: str = ""
    #: identifies this request among those that send the same upload
    request_id: str = field(default_factory=lambda: os.urandom(8).hex())


def receive(
    store: Store, settings: Settings, crawl: Crawl, parts: Iterable[Part], sender: Sender, listing: Listing
) -> str:
    """Store the seeds and return the crawl's id: of this crawl, or of the one that the key already created."""
    if sender.key is None:
        return _Intake(store, settings, crawl, sender, listing, None).run(parts)
    known = store.run(
        idempotency.take,
        sender.caller,
        sender.key,
        crawl=crawl.id,
        wishes=sender.options,
        holder=sender.request_id,
        now_ms=clock.now_ms(),
    )
    if known.wishes != sender.options:
        _release(store, sender)
        raise KeyReused("This Idempotency-Key was used for another crawl. Use a new key.")
    if known.holder != sender.request_id:
        raise UploadHeld("Another request is sending the same upload. Wait until it ends.")
    try:
        return _Intake(store, settings, crawl, sender, listing, known).run(parts)
    finally:
        _release(store, sender)


def _release(store: Store, sender: Sender) -> None:
    store.run(idempotency.release, sender.caller, sender.key or "", sender.request_id)


class _Intake:
    def __init__(
        self, store: Store, settings: Settings, crawl: Crawl, sender: Sender, listing: Listing,
        known: idempotency.Submission | None,
    ) -> None:  # fmt: skip
        self._store, self._settings, self._sender, self._listing = store, settings, sender, listing
        #: this body was read up to the end of what was stored before, and is the same so far
        self._matches_stored = False
        self._known = known if known is not None and known.received else None
        #: the crawl has seeds, or an earlier request created it
        self._has_crawl = bool(known is not None and (known.received or known.crawl != crawl.id))
        self._crawl = crawl if known is None else _crawl_of_key(store, crawl, known.crawl)

    def run(self, parts: Iterable[Part]) -> str:
        ended = False
        try:
            for part in parts:
                self._take(part)
                ended = part.last
        except BaseException:
            self._abandon()
            raise
        if not ended:
            self._abandon()
            raise UsageError("There are no seeds: give at least one URL.")
        return self._crawl.id

    def _take(self, part: Part) -> None:
        if self._known is not None and part.received <= self._known.received:
            self._compare(part, self._known)
            return
        if self._known is not None and (self._known.complete or not self._matches_stored):
            raise KeyReused("This Idempotency-Key was used for other seeds. Use a new key for a new crawl.")
        urls = part.seeds if part.normal else seeds.checked(part.seeds, self._settings, part.place, part.first)
        unit = self._settings.politeness_unit
        crawl, rows, inserted = self._store.run(
            submit.load_chunk, self._crawl, urls, unit, part.last, keep(self._settings)
        )
        self._crawl, self._has_crawl = crawl, True
        self._note(part)
        self._listing(crawl, rows, inserted)

    def _compare(self, part: Part, known: idempotency.Submission) -> None:
        """Check that these seeds, which are stored already, are the same."""
        if part.received == known.received:
            self._matches_stored = part.digest == known.digest
        if part.last and not (self._matches_stored and known.complete):
            raise KeyReused("This Idempotency-Key was used for other seeds. Use a new key for a new crawl.")

    def _note(self, part: Part) -> None:
        sender = self._sender
        if sender.key is None:
            return
        ours = self._store.run(
            idempotency.stored,
            sender.caller,
            sender.key,
            sender.request_id,
            received=part.received,
            digest=part.digest,
            complete=part.last,
            now_ms=clock.now_ms(),
        )
        if not ours:
            raise UploadHeld("Another request took over this upload, because this one was silent for too long.")

    def _abandon(self) -> None:
        """The upload was interrupted. Only with a key, the stored part waits for the rest."""
        if self._sender.key is None and self._crawl.n:
            self._store.run(submit.give_up, self._crawl.n)
        elif self._sender.key is not None and not self._has_crawl:
            self._store.run(idempotency.forget, self._sender.caller, self._sender.key, self._sender.request_id)


def _crawl_of_key(store: Store, crawl: Crawl, id: str) -> Crawl:
    """Return the crawl that the key started, or the new one under the id reserved for it."""
    with store.read() as tx:
        try:
            found = crawls.get(tx, id)
        except UnknownCrawl:
            return replace(crawl, id=id)
    if found.state is CrawlState.CANCELLED and found.reason == "upload_incomplete":
        raise WrongState("The upload under this Idempotency-Key was canceled after an hour. Use a new key.")
    return found


def in_parts(urls: list[str], place: str, digest: str) -> Iterator[Part]:
    """Split checked seeds that are all present, under the digest of their whole body."""
    for start in range(0, len(urls), PART_AT_HAND):
        end = start + PART_AT_HAND
        yield Part(
            seeds=urls[start:end],
            first=start,
            place=place,
            received=end,
            digest=digest,
            last=end >= len(urls),
            normal=True,
        )


def digest_of(*parts: bytes) -> str:
    return hashlib.sha256(b"\n".join(parts)).hexdigest()
