"""How long the hosts of a crawl still need at their delays: a crawl cannot end before its slowest host."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, text

from curtsy.store.rows import is_postgresql

#: open queues of a crawl that are examined
_QUEUES = 5_000
#: hosts whose open URLs are counted, and the maximum count
_HOSTS = 5
_URLS = 10_000

# The delay is the longest of the crawl's, the operator's for the host, robots.txt's and the adaptive one.
_SLOWEST = (
    "SELECT q.host, q.added, {longest}(:delay, coalesce(h.operator_delay_ms, 0), coalesce(h.robots_delay_ms, 0), "
    "coalesce(h.adaptive_ms, 0)) AS delay, coalesce(h.blocked_until_ms, 0) AS blocked FROM (SELECT host, added "
    "FROM queues WHERE crawl = :crawl AND state = 'open' ORDER BY host LIMIT :queues) AS q "
    "LEFT JOIN hosts h ON h.host = q.host ORDER BY q.added * {longest}(:delay, coalesce(h.operator_delay_ms, 0), "
    "coalesce(h.robots_delay_ms, 0), coalesce(h.adaptive_ms, 0)) DESC LIMIT :hosts"
)
_POSTGRESQL, _SQLITE = text(_SLOWEST.format(longest="greatest")), text(_SLOWEST.format(longest="max"))
_OPEN = text(
    "SELECT count(*) FROM (SELECT 1 AS one FROM urls WHERE crawl = :crawl AND host = :host AND state = 'open' "
    "LIMIT :most) AS o"
)


def slowest_host_ms(tx: Connection, crawl: int, delay_ms: int, most: int, now_ms: int) -> int:
    """The time that the slowest host needs for its open URLs, `most` of them at most; 0 if no host has a delay."""
    given = {"crawl": crawl, "delay": delay_ms, "queues": _QUEUES, "hosts": _HOSTS}
    rows = tx.execute(_POSTGRESQL if is_postgresql(tx) else _SQLITE, given).all()
    return max((_needed_ms(tx, crawl, row, most, now_ms) for row in rows), default=0)


def _needed_ms(tx: Connection, crawl: int, row: Any, most: int, now_ms: int) -> int:
    left = int(tx.execute(_OPEN, {"crawl": crawl, "host": row.host, "most": min(most, _URLS)}).scalar_one())
    if left >= _URLS:
        left = min(most, row.added)
    return left * int(row.delay) + (max(0, row.blocked - now_ms) if left else 0)
