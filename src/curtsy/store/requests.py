"""The request log, which `audit` checks. On PostgreSQL it is partitioned by month of the start."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, bindparam, text

from curtsy.core.model import Request
from curtsy.store.rows import Bulk, Insert, is_postgresql, unique_sorted

_insert = Insert(
    "requests",
    "fence, ordinal, start_ms",
    "fence bigint, ordinal int, crawl bigint, host text, url text, start_ms bigint, end_ms bigint, "
    "kind text, status int, fault text, delay_ms bigint, per_host int, nature text",
)
_COLUMNS = "fence, ordinal, crawl, host, url, start_ms, end_ms, kind, status, fault, delay_ms, per_host, nature"

_newest = text("SELECT max(fence) FROM requests WHERE fence >= :first AND fence < :end")

#: months whose partition exists, as far as this process knows, by database
_months: set[tuple[str, int, int]] = set()


def insert(tx: Connection, rows: Iterable[Request]) -> None:
    """Write requests, except those that exist (same fence, ordinal and start)."""
    fresh = {(row.fence, row.ordinal, row.start_ms): row for row in rows}
    if is_postgresql(tx):
        _ensure_months(tx, {key[2] for key in fresh})
    _insert(tx, [_insert.row(fresh[key]) for key in sorted(fresh)])


_under = Bulk(
    f"SELECT {', '.join(f'r.{name}' for name in _COLUMNS.split(', '))} FROM v JOIN requests r ON r.fence = v.fence "
    "WHERE r.ordinal = 0",
    "fence bigint",
)


def under(tx: Connection, fences: Iterable[int]) -> dict[int, Request]:
    """The requests of these leases, without subresources of browsers."""
    names = _COLUMNS.split(", ")
    found = [Request(**dict(zip(names, row, strict=True))) for row in _under(tx, [(n,) for n in unique_sorted(fences)])]
    return {one.fence: one for one in found}


def insert_reaped(tx: Connection, sent: Iterable[Request], presumed: Iterable[Request]) -> None:
    """Write requests of dead processes: those in `sent` only if the log has nothing of their fence."""
    listed = list(sent)
    rows = [*listed, *presumed]
    if is_postgresql(tx):
        # Before the log is read: creating a partition locks the table exclusively, and two readers would wait for each
        # other.
        _ensure_months(tx, {row.start_ms for row in rows})
    known = known_fences(tx, [row.fence for row in listed])
    insert(tx, [row for row in rows if row.nature == "presumed" or row.fence not in known])


def _ensure_months(tx: Connection, starts_ms: Iterable[int]) -> None:
    database = str(tx.engine.url)
    for year, month in sorted({_month(start_ms) for start_ms in starts_ms}):
        if (database, year, month) not in _months:
            _make_partition(tx, year, month)
            _months.add((database, year, month))


def _month(start_ms: int) -> tuple[int, int]:
    moment = datetime.fromtimestamp(start_ms / 1000, UTC)
    return moment.year, moment.month


def _make_partition(tx: Connection, year: int, month: int) -> None:
    """Create the partition of a month. If a wrong clock put rows of that month into the default partition, this is
    impossible, and all rows of the month stay there.
    """
    first_ms = int(datetime(year, month, 1, tzinfo=UTC).timestamp()) * 1000
    last_ms = int(datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp()) * 1000
    name = f"requests_{year:04}_{month:02}"
    _serialize(tx)
    known = tx.exec_driver_sql("SELECT to_regclass(%s)", (name,)).scalar()
    taken = tx.exec_driver_sql(
        "SELECT 1 FROM requests_default WHERE start_ms >= %s AND start_ms < %s LIMIT 1", (first_ms, last_ms)
    ).first()
    if known is None and taken is None:
        tx.exec_driver_sql(f"CREATE TABLE {name} PARTITION OF requests FOR VALUES FROM ({first_ms}) TO ({last_ms})")


#: rows of the log deleted in one transaction
_FORGOTTEN = 5000
_OF_CRAWL = text("DELETE FROM requests WHERE crawl = :crawl AND fence > :after AND fence <= :upto")
_FORGET = text(
    "DELETE FROM requests WHERE (fence, ordinal, start_ms) IN (SELECT fence, ordinal, start_ms FROM requests "
    "WHERE start_ms < :before_ms LIMIT :limit)"
)
_PARTITIONS = (
    "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
    "WHERE i.inhparent = to_regclass('requests') ORDER BY c.relname"
)


def forget_before(tx: Connection, before_ms: int) -> int:
    """Delete some requests that began before then; returns how many. Whole months are dropped at once."""
    _serialize(tx)
    gone = _drop_months(tx, before_ms) if is_postgresql(tx) else 0
    return gone + int(tx.execute(_FORGET, {"before_ms": before_ms, "limit": _FORGOTTEN}).rowcount)


def forget_crawl(tx: Connection, crawl: int, after: int, upto: int) -> None:
    """Delete the requests of a crawl with fences in (after, upto]."""
    _serialize(tx)
    tx.execute(_OF_CRAWL, {"crawl": crawl, "after": after, "upto": upto})


def _serialize(tx: Connection) -> None:
    """One transaction at a time creates partitions or deletes from the log: rows of the log are never locked."""
    if is_postgresql(tx):
        tx.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('curtsy:partitions'))")


def _drop_months(tx: Connection, before_ms: int) -> int:
    dropped = 0
    for name in tx.exec_driver_sql(_PARTITIONS).scalars().all():
        found = re.fullmatch(r"requests_(\d{4})_(\d{2})", name)
        if found is None:
            continue
        year, month = int(found[1]), int(found[2])
        behind_ms = int(datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp()) * 1000
        if behind_ms <= before_ms:
            tx.exec_driver_sql(f"DROP TABLE {name}")
            _months.discard((str(tx.engine.url), year, month))
            dropped += 1
    return dropped


#: A request may be reported twice, by its worker and by the process that found the worker dead. Both rows have the same
#: fence. Their times differ a little: the worker subtracts the travel time of its message.
_OUTDONE = (
    "((nature = 'presumed' AND EXISTS (SELECT 1 FROM requests k WHERE k.fence = r.fence AND k.nature = 'sent')) OR "
    "(COALESCE(fault, '') = 'lost' AND EXISTS (SELECT 1 FROM requests k WHERE k.fence = r.fence "
    "AND k.ordinal = r.ordinal AND k.nature = 'sent' AND (k.fault IS NULL OR k.fault <> 'lost'))))"
)


def known_fences(tx: Connection, fences: Iterable[int]) -> set[int]:
    """Those whose outcome is in the log."""
    query = text("SELECT fence FROM requests WHERE fence IN :fences AND ordinal = 0").bindparams(
        bindparam("fences", expanding=True)
    )
    return set(tx.execute(query, {"fences": sorted(fences)}).scalars())


def newest_fence(tx: Connection, first: int, end: int) -> int:
    """The highest fence from `first` up to `end` that the log has; 0 if it has none."""
    found = tx.execute(_newest, {"first": first, "end": end}).scalar()
    return int(found or 0)


def by_host(tx: Connection, since_ms: int = 0, crawl: int | None = None) -> Iterator[Request]:
    """The log by (host, start), streamed. A presumed or lost row is omitted if the real request was reported later."""
    which = " AND (crawl = :crawl OR crawl IS NULL)" if crawl is not None else ""
    query = text(
        f"SELECT {_COLUMNS} FROM requests r WHERE start_ms >= :since{which} AND NOT {_OUTDONE} "
        "ORDER BY host, start_ms, fence"
    )
    given: dict[str, Any] = {"since": since_ms} | ({} if crawl is None else {"crawl": crawl})
    for row in tx.execute(query, given, execution_options={"yield_per": 2000}):
        yield request_of(row)


def any_since(tx: Connection, host: str, since_ms: int) -> bool:
    """Was a request sent to the host since then?"""
    query = text("SELECT 1 FROM requests WHERE host = :host AND start_ms >= :since_ms LIMIT 1")
    return tx.execute(query, {"host": host, "since_ms": since_ms}).first() is not None


def request_of(row: Any) -> Request:
    return Request(**row._mapping)
