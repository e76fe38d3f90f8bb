"""Events of crawls, logged when the transaction that made them has been committed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from curtsy.core.observe import log_crawl
from curtsy.store.rows import unique_sorted
from curtsy.store.tables import crawls

_KEY = "curtsy_events"


class CrawlIdentity(NamedTuple):
    """What names a crawl in log lines."""

    id: str
    request_id: str


class Event(NamedTuple):
    crawl: CrawlIdentity
    action: str
    level: str
    fields: dict[str, Any]


def collect(tx: Connection) -> list[Event]:
    """A new list for the events of this transaction."""
    found: list[Event] = []
    tx.info[_KEY] = found
    return found


def note(tx: Connection, crawl: CrawlIdentity, action: str, level: str = "info", **fields: Any) -> None:
    """Log the event after the commit; a transaction that is rolled back logs nothing."""
    tx.info[_KEY].append(Event(crawl, action, level, fields))


def tell(events: Iterable[Event]) -> None:
    for event in events:
        log_crawl(event.crawl, event.action, event.level, **event.fields)


def identities(tx: Connection, ns: Iterable[int]) -> dict[int, CrawlIdentity]:
    """What names these crawls, by their numbers; a deleted one has empty names."""
    wanted = unique_sorted(ns)
    rows = tx.execute(select(crawls.c.n, crawls.c.id, crawls.c.request_id).where(crawls.c.n.in_(wanted)))
    found = {row.n: CrawlIdentity(row.id, row.request_id) for row in rows}
    return {n: found.get(n) or CrawlIdentity("", "") for n in wanted}


def identity(tx: Connection, n: int) -> CrawlIdentity:
    return identities(tx, [n])[n]
