"""Counts of each crawl in the last hours, in intervals of 10 s. Every commit adds to it, so reading it is cheap and
exact.

A URL counts when it is settled: done, skipped or failed. A page counts when it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from sqlalchemy import Connection, text

from curtsy.store.rows import Bulk

PART_S = 10
#: rates are averages over this time
WINDOW_MS = 60_000
#: older intervals are deleted
KEPT_S = 2 * 3600

_add = Bulk(
    "INSERT INTO crawl_rates (crawl, at_s, pages, urls) SELECT crawl, at_s, pages, urls FROM v WHERE true "
    "ON CONFLICT (crawl, at_s) DO UPDATE SET pages = crawl_rates.pages + excluded.pages, "
    "urls = crawl_rates.urls + excluded.urls",
    "crawl bigint, at_s bigint, pages bigint, urls bigint",
)
_SINCE = text("SELECT coalesce(sum(urls), 0) FROM crawl_rates WHERE crawl = :crawl AND at_s >= :since")
_PAGES = text("SELECT coalesce(sum(pages), 0) FROM crawl_rates WHERE at_s >= :since")
_BY_PART = text("SELECT at_s, sum(pages) FROM crawl_rates WHERE at_s >= :since GROUP BY at_s")
_FORGET = text("DELETE FROM crawl_rates WHERE at_s < :before")


class Done(NamedTuple):
    pages: int
    urls: int


def add(tx: Connection, done: Mapping[int, Done], now_ms: int) -> None:
    """Count pages and settled URLs of crawls."""
    at_s = _part(now_ms)
    _add(tx, sorted((crawl, at_s, *some) for crawl, some in done.items() if any(some)))


def urls_per_s(tx: Connection, crawl: int, begun_ms: int, now_ms: int) -> float:
    """URLs of a crawl that were settled per second, in the last minute or since its start."""
    since_s = _part(now_ms - WINDOW_MS)
    urls = int(tx.execute(_SINCE, {"crawl": crawl, "since": since_s}).scalar_one())
    return urls * 1000 / max(1000, now_ms - max(since_s * 1000, begun_ms))


def pages_per_s(tx: Connection, now_ms: int) -> float:
    """Pages of all crawls per second, in the last minute."""
    since_s = _part(now_ms - WINDOW_MS)
    pages = int(tx.execute(_PAGES, {"since": since_s}).scalar_one())
    return pages * 1000 / (now_ms - since_s * 1000)


def pages_of_all(tx: Connection, ends_ms: Sequence[int]) -> list[int]:
    """How many pages all crawls together stored in each part of a time span."""
    parts = [(int(at_s) * 1000, int(pages)) for at_s, pages in tx.execute(_BY_PART, {"since": _part(ends_ms[0])})]
    return [sum(pages for at_ms, pages in parts if since <= at_ms < until) for since, until in pairwise(ends_ms)]


def forget(tx: Connection, now_ms: int) -> None:
    tx.execute(_FORGET, {"before": now_ms // 1000 - KEPT_S})


def _part(at_ms: int) -> int:
    return at_ms // 1000 // PART_S * PART_S
