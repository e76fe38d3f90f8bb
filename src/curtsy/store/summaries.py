"""Counts for users. They read many rows and are not on a hot path."""

from __future__ import annotations

from sqlalchemy import Connection, text

_HOSTS = text("SELECT count(*) FROM queues WHERE crawl = :crawl")
_REQUESTED = text(
    "SELECT count(DISTINCT host) FROM requests WHERE crawl = :crawl AND kind <> 'subresource' AND nature <> 'gap'"
)
_UNLOGGED = text(
    "SELECT count(*) FROM pages p WHERE (p.crawl = :crawl OR :crawl = 0) AND p.fetched_ms >= :since_ms "
    "AND NOT EXISTS (SELECT 1 FROM requests r WHERE r.fence = p.fence)"
)


def hosts_of(tx: Connection, crawl: int) -> int:
    """Hosts on which a crawl has, or had, URLs."""
    return int(tx.execute(_HOSTS, {"crawl": crawl}).scalar_one())


def requested_hosts(tx: Connection, crawl: int) -> int:
    """Hosts to which a crawl sent requests, as an audit of the crawl counts them."""
    return int(tx.execute(_REQUESTED, {"crawl": crawl}).scalar_one())


def pages_without_request(tx: Connection, crawl: int | None = None, since_ms: int = 0) -> int:
    """Pages that no row of the request log accounts for."""
    return int(tx.execute(_UNLOGGED, {"crawl": crawl or 0, "since_ms": since_ms}).scalar_one())
