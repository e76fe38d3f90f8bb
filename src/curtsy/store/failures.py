"""Dead letters: failures that are not retried automatically, and can be replayed.

The open rows of a host that is dead for a crawl are dead letters too, without rows of their own: `of_dead_hosts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, text

from curtsy.core.model import Failure
from curtsy.store.rows import Bulk, Insert, Lock, unique_sorted

_insert = Insert(
    "failures",
    "fence, ordinal",
    "fence bigint, ordinal int, id text, crawl bigint, fp bytea, url text, host text, stage text, "
    "cause text, detail text, status int, attempts int, at_ms bigint, replayed_ms bigint, request_id text",
)
_FIELDS = tuple(field.name for field in fields(Failure))
_lock = Lock("failures", "fence bigint, ordinal int")
_numbers = Bulk("SELECT f.fence, f.ordinal FROM v JOIN failures f ON f.id = v.id", "id text")
_replayed = Bulk(
    "UPDATE failures SET replayed_ms = v.now_ms FROM v WHERE failures.fence = v.fence "
    "AND failures.ordinal = v.ordinal AND failures.replayed_ms IS NULL RETURNING failures.id",
    "fence bigint, ordinal int, now_ms bigint",
)
_OF_STAGES = text(
    "SELECT fence, ordinal FROM failures WHERE crawl = :crawl AND replayed_ms IS NULL "
    "AND stage IN ('extract', 'score', 'store')"
)
# CROSS JOIN and +u.seq keep SQLite from walking all of `urls`: it begins with the dead queues, which are few.
_DEAD = text(
    "SELECT u.crawl, u.fp, u.url, u.host, q.reason, u.attempts, u.fence, q.failing_since_ms, q.detail "
    "FROM queues q CROSS JOIN urls u WHERE u.crawl = q.crawl AND u.host = q.host AND u.state = 'open' "
    "AND q.state = 'dead' AND (q.crawl = :crawl OR :crawl = 0) AND (q.host = :host OR :host = '') "
    "AND (q.reason = :cause OR :cause = '') AND +u.seq > :after ORDER BY +u.seq LIMIT :limit"
)


def insert(tx: Connection, rows: Iterable[Failure]) -> None:
    """Write dead letters; a fence and ordinal have at most one, so that a repeated transaction changes nothing."""
    fresh = {(row.fence, row.ordinal): row for row in rows}
    _insert(tx, [_insert.row(row) for _, row in sorted(fresh.items())])


_details = Bulk(
    "SELECT f.fence, f.detail FROM v JOIN failures f ON f.fence = v.fence AND f.ordinal = 0", "fence bigint"
)


def details(tx: Connection, fences: Iterable[int]) -> dict[int, str]:
    """The details of the dead letters of these leases."""
    return {int(fence): detail for fence, detail in _details(tx, [(fence,) for fence in unique_sorted(fences)])}


def find(
    tx: Connection,
    *,
    crawl: int | None = None,
    host: str | None = None,
    stage: str | None = None,
    cause: str | None = None,
    since_ms: int = 0,
    limit: int = 1000,
) -> list[Failure]:
    """Dead letters that were not replayed, oldest first."""
    wanted = {"crawl": crawl, "host": host, "stage": stage, "cause": cause}
    given: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    conditions = ["at_ms >= :since_ms", "replayed_ms IS NULL", *(f"{name} = :{name}" for name in given)]
    return where(tx, " AND ".join(conditions), given | {"since_ms": since_ms}, "at_ms, fence", limit)


def of_dead_hosts(
    tx: Connection,
    *,
    crawl: int | None = None,
    host: str | None = None,
    cause: str | None = None,
    after_seq: int = 0,
    limit: int = 1000,
) -> list[Failure]:
    """The open rows of hosts that are dead for their crawl, as dead letters. Replay them by `queues.reopen`."""
    given: dict[str, Any] = {"crawl": crawl or 0, "host": host or "", "cause": cause or ""}
    rows = tx.execute(_DEAD, {**given, "after": after_seq, "limit": limit})
    return [of_dead_row(row) for row in rows]


def of_dead_row(row: Sequence[Any]) -> Failure:
    """Of (crawl, fp, url, host, reason, attempts, fence, failing since, detail)."""
    n, fp, url, name, reason, attempts, fence, since_ms, detail = row
    return Failure(
        id=f"{n}-{fp.hex()}",
        crawl=n,
        fp=fp,
        url=url,
        host=name,
        cause=reason,
        detail=f"its host {name} does not answer{detail and f': {detail}'}",
        attempts=attempts,
        fence=fence,
        at_ms=since_ms or 0,
    )


def where(tx: Connection, condition: str, given: Mapping[str, Any], order: str, limit: int) -> list[Failure]:
    """The dead letters that meet a condition."""
    query = text(f"SELECT {', '.join(_FIELDS)} FROM failures WHERE {condition} ORDER BY {order} LIMIT :limit")
    return [Failure(**row._mapping) for row in tx.execute(query, {**given, "limit": limit})]


def under(tx: Connection, fence: int, fp: bytes) -> Failure | None:
    """The dead letter of a URL whose last lease had this fence."""
    found = where(tx, "fence = :fence AND fp = :fp AND stage = 'fetch'", {"fence": fence, "fp": fp}, "ordinal", 1)
    return found[0] if found else None


def forget_stages(tx: Connection, crawl: int, now_ms: int) -> None:
    """Mark the dead letters of the crawl's stages as replayed: its extraction starts again."""
    _mark_replayed(tx, [(row[0], row[1]) for row in tx.execute(_OF_STAGES, {"crawl": crawl})], now_ms)


def of_stages(tx: Connection, crawl: int) -> dict[str, int]:
    """Open dead letters of a crawl by the stage after fetching in which they failed."""
    count = text(
        "SELECT stage, count(*) FROM failures WHERE crawl = :crawl AND stage <> 'fetch' AND replayed_ms IS NULL "
        "GROUP BY stage"
    )
    return {stage: int(n) for stage, n in tx.execute(count, {"crawl": crawl})}


def mark_replayed(tx: Connection, ids: Iterable[str], now_ms: int) -> int:
    """Mark them as replayed; how many were not yet."""
    found = _numbers(tx, [(id,) for id in unique_sorted(ids)])
    return _mark_replayed(tx, [(row[0], row[1]) for row in found], now_ms)


def _mark_replayed(tx: Connection, keys: Iterable[tuple[int, int]], now_ms: int) -> int:
    wanted = unique_sorted(keys)
    _lock(tx, wanted)
    return len(_replayed(tx, [(*key, now_ms) for key in wanted]))
