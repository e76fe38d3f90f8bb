"""The records that need a decision: filters, the next and the previous one, and decisions about many.

A record waits as a whole (`held`), or it is published and some of its fields wait, with contradicting values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from curtsy.core.errors import CurtsyError
from curtsy.core.model import new_id
from curtsy.core.record import Record
from curtsy.records.review import Decision, decide
from curtsy.records.review_undo import undo
from curtsy.rules.urls import host_key
from curtsy.store import records, reviews
from curtsy.store.engine import Store

#: records that one call examines: a record may be large
WINDOW = 2_000
_CHUNK = 200
#: records that one call decides about
MOST_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFilter:
    """Which records of the queue are wanted; None: any."""

    schema: str | None = None
    #: what needs a decision: `record` or `field`
    needs: str | None = None
    #: why it waits: `thin`, `contradicted`, ...
    reason: str | None = None
    host: str | None = None
    #: JSON pointer; it has a value there or below
    field: str | None = None
    #: share of its values that have evidence
    min_confidence: float | None = None
    max_confidence: float | None = None

    @property
    def is_empty(self) -> bool:
        return not any(value is not None for value in asdict(self).values())

    def matches(self, record: Record) -> bool:
        confidence = record.confidence
        share = confidence.get("share") or 0
        return (
            (self.schema is None or self.schema == record.schema)
            and (self.reason is None or self.reason in confidence.get("reasons", ()))
            and (self.host is None or host_key(record.url) == self.host.lower())
            and (self.field is None or self._has_field(record))
            and (self.min_confidence is None or share >= self.min_confidence)
            and (self.max_confidence is None or share <= self.max_confidence)
        )

    def _has_field(self, record: Record) -> bool:
        return any(f"{value['path']}/".startswith(f"{self.field}/") for value in (*record.fields, *record.withheld))


def waiting(
    store: Store, crawl: int | None, wanted: ReviewFilter, after: int = 0, limit: int = 50, window: int = WINDOW
) -> tuple[list[Record], int | None]:
    """Records that wait, in the order they were stored, and where the next ones begin; None: there are no more.

    At most `window` records are examined, so a list may be short although another one follows.
    """
    found: list[Record] = []
    chunk = min(_CHUNK, limit + 1) if wanted.is_empty else _CHUNK
    for examined, record in enumerate(_walk(store, crawl, wanted, after, chunk, backwards=False), 1):
        if wanted.matches(record):
            if len(found) == limit:
                return found, found[-1].n
            found.append(record)
        if examined >= window:
            return found, record.n
    return found, None


def beside(store: Store, n: int, crawl: int | None, wanted: ReviewFilter) -> tuple[int | None, int | None]:
    """The waiting records before and after this one that match."""
    found = []
    chunk = 1 if wanted.is_empty else _CHUNK
    for backwards in (True, False):
        walked = zip(range(WINDOW), _walk(store, crawl, wanted, n, chunk, backwards=backwards), strict=False)
        found.append(next((record.n for _, record in walked if wanted.matches(record)), None))
    return found[0], found[1]


def _walk(
    store: Store, crawl: int | None, wanted: ReviewFilter, after: int, chunk: int, *, backwards: bool
) -> Iterator[Record]:
    while True:
        with store.read() as tx:
            some = records.waiting_beside(tx, crawl, after, chunk, backwards, wanted.needs)
        yield from some
        if len(some) < chunk:
            return
        after = some[-1].n


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyDecided:
    """The result of a decision about many records."""

    #: undoes all of them
    batch: str
    records: tuple[int, ...]
    #: (record, why not)
    refused: tuple[tuple[int, str], ...]


def decide_many(store: Store, ns: Iterable[int], decision: Decision, now_ms: int) -> ManyDecided:
    """Decide the same about each record. A record that cannot be decided so does not stop the others."""
    batch = new_id()
    return _each(batch, ns, lambda n: decide(store, n, replace(decision, batch=batch), now_ms))


def undo_many(store: Store, batch: str, who: str, now_ms: int, note: str = "", request_id: str = "") -> ManyDecided:
    """Undo the decisions of a batch that are still the last ones of their records."""
    with store.read() as tx:
        ns: Sequence[int] = reviews.of_batch(tx, batch)
    return _each(batch, ns, lambda n: undo(store, n, who, now_ms, note=note, request_id=request_id, batch=batch))


def _each(batch: str, ns: Iterable[int], step: Any) -> ManyDecided:
    done: list[int] = []
    refused: list[tuple[int, str]] = []
    for n in dict.fromkeys(ns):
        try:
            step(n)
            done.append(n)
        except CurtsyError as error:
            refused.append((n, str(error)))
    return ManyDecided(batch=batch, records=tuple(done), refused=tuple(refused))
