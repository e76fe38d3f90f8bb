"""The audit log: every request that changed something, and every request that was refused because of its key."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, select

from curtsy.store.tables import audit_log


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    at_ms: int
    #: id of the key; None: this machine without a key, or an unknown caller
    key_id: str | None
    address: str
    method: str
    path: str
    status: int
    #: id of the crawl that the request was about
    crawl: str | None
    request_id: str
    n: int = 0


def add(tx: Connection, entry: Entry) -> None:
    values = asdict(entry)
    del values["n"]
    tx.execute(audit_log.insert().values(values))


def chunk(
    tx: Connection, limit: int, before: int | None = None, *, key_id: str | None = None, crawl: str | None = None,
    since_ms: int = 0,
) -> list[Entry]:  # fmt: skip
    """Newest first, before a number."""
    query = select(audit_log).where(audit_log.c.at_ms >= since_ms).order_by(audit_log.c.n.desc()).limit(limit)
    if before is not None:
        query = query.where(audit_log.c.n < before)
    if key_id is not None:
        query = query.where(audit_log.c.key_id == key_id)
    if crawl is not None:
        query = query.where(audit_log.c.crawl == crawl)
    return [Entry(**row._mapping) for row in tx.execute(query)]


def forget(tx: Connection, before_ms: int) -> None:
    tx.execute(delete(audit_log).where(audit_log.c.at_ms < before_ms))
