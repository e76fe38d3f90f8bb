"""Questions about the URLs of crawls, for reports, exports, the API and the dashboard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, text

from curtsy.store.rows import Bulk, unique_sorted
from curtsy.store.urls import Key

# Seeds are the first rows of a crawl: those of redirects have a chain.
_SEEDS = "FROM urls WHERE crawl = :crawl AND depth = 0 AND found_on IS NULL AND chain IS NULL"
_SOME_SEEDS = text(f"SELECT url {_SEEDS} ORDER BY seq LIMIT :limit")
_SEED_COUNT = text(f"SELECT count(*) {_SEEDS}")
_SEED_FPS = text(f"SELECT fp {_SEEDS}")
_SKIPPED = text("SELECT url FROM urls WHERE crawl = :crawl AND state = 'skipped' AND reason = :reason LIMIT :limit")
_urls = Bulk(
    "SELECT u.crawl, u.fp, u.url FROM v JOIN urls u ON u.crawl = v.crawl AND u.fp = v.fp", "crawl bigint, fp bytea"
)
#: newest crawls that are searched for a URL
_CRAWLS = 1000
# CROSS JOIN makes SQLite begin with the crawls: each is one lookup by key.
_KNOWN = text(
    "SELECT u.crawl, u.fence FROM (SELECT n FROM crawls ORDER BY n DESC LIMIT :crawls) AS c CROSS JOIN urls u "
    "WHERE u.crawl = c.n AND u.fp = :fp ORDER BY u.crawl DESC LIMIT :limit"
)
_FETCHED = text("SELECT crawl, fence FROM pages WHERE fp = :fp ORDER BY crawl DESC LIMIT :limit")
_KNOWN_URLS = text(
    "SELECT fp, url, state, reason, depth, lastmod FROM urls WHERE crawl = :crawl AND fp > :after ORDER BY fp "
    "LIMIT :limit"
)


class KnownUrl(NamedTuple):
    fp: bytes
    url: str
    state: str
    reason: str
    depth: int
    lastmod: str | None


def seeds(tx: Connection, crawl: int, limit: int) -> tuple[list[str], int]:
    """The first seeds of a crawl, and how many it has."""
    found = list(tx.execute(_SOME_SEEDS, {"crawl": crawl, "limit": limit}).scalars())
    return found, int(tx.execute(_SEED_COUNT, {"crawl": crawl}).scalar_one())


def seed_fps(tx: Connection, crawl: int) -> frozenset[bytes]:
    return frozenset(map(bytes, tx.execute(_SEED_FPS, {"crawl": crawl}).scalars()))


def skipped(tx: Connection, crawl: int, reason: str, limit: int) -> list[str]:
    """Some URLs that were skipped for that reason."""
    return list(tx.execute(_SKIPPED, {"crawl": crawl, "reason": reason, "limit": limit}).scalars())


def addresses(tx: Connection, keys: Iterable[Key]) -> dict[Key, str]:
    """The URLs of these rows."""
    return {(crawl, fp): url for crawl, fp, url in _urls(tx, unique_sorted(keys))}


def known(tx: Connection, crawl: int, after: bytes, limit: int) -> list[KnownUrl]:
    """Known URLs of a crawl in the order of their fingerprints, fetched or not."""
    return [KnownUrl(*row) for row in tx.execute(_KNOWN_URLS, {"crawl": crawl, "after": after, "limit": limit})]


def known_to(tx: Connection, fp: bytes, limit: int = 20) -> list[tuple[int, int]]:
    """(crawl, fence that touched it last) of the newest crawls that know this URL, newest first, for `explain`; of
    crawls before the newest thousand, those that have a page of it.
    """
    found = tx.execute(_KNOWN, {"fp": fp, "crawls": _CRAWLS, "limit": limit}).all()
    found = found or tx.execute(_FETCHED, {"fp": fp, "limit": limit}).all()
    return [(int(n), int(fence)) for n, fence in found]
