"""URLs: inserted once, settled once. The database is the fence: a result counts only if its row is open and its
fence is higher than any that touched the row before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from curtsy.core.model import Chain, NewUrl, UrlState
from curtsy.store import meta
from curtsy.store.rows import Bulk, Lock, is_postgresql, unique_sorted

#: (crawl, fingerprint)
Key = tuple[int, bytes]

#: one step of PostgreSQL's sequence is a block of this many numbers
_SEQ_BLOCK = 1000


class Settle(NamedTuple):
    """The result for an open row: settled, or (state open) to be retried at `retry_ms`."""

    crawl: int
    fp: bytes
    fence: int
    state: str
    reason: str = ""
    attempts: int = 0
    retry_ms: int | None = None
    chain: Chain | None = None
    #: where it redirects to
    target: str | None = None


class OpenRow(NamedTuple):
    seq: int
    url: str
    kind: str
    depth: int
    attempts: int
    crashes: int
    solo_crashes: int
    retry_ms: int | None
    chain: Chain | None


class UrlRow(NamedTuple):
    """Everything about one URL, for `explain`."""

    crawl: int
    fp: bytes
    seq: int
    host: str
    url: str
    kind: str
    depth: int
    state: str
    reason: str
    attempts: int
    crashes: int
    solo_crashes: int
    retry_ms: int | None
    fence: int
    chain: Chain | None
    added_ms: int
    settled_ms: int | None
    #: by a sitemap
    lastmod: str | None = None
    priority: float | None = None
    #: fingerprint of the URL that named it first
    found_on: bytes | None = None
    #: where it redirects to
    target: str | None = None


class SitemapEntry(NamedTuple):
    """What a sitemap says about a URL of a crawl."""

    crawl: int
    fp: bytes
    lastmod: str | None
    priority: float | None


_insert = Bulk(
    "INSERT INTO urls (crawl, fp, seq, host, url, kind, depth, chain, added_ms, found_on) "
    "SELECT crawl, fp, seq, host, url, kind, depth, chain, added_ms, found_on FROM v WHERE true "
    "ON CONFLICT (crawl, fp) DO NOTHING RETURNING crawl, fp, seq",
    "crawl bigint, fp bytea, seq bigint, host text, url text, kind text, depth int, chain text, added_ms bigint, "
    "found_on bytea",
)
lock = Lock("urls", "crawl bigint, fp bytea")
_settle = Bulk(
    "UPDATE urls SET state = v.state, reason = v.reason, attempts = v.attempts, retry_ms = v.retry_ms, "
    "chain = v.chain, fence = v.fence, settled_ms = v.settled_ms, target = v.target FROM v "
    "WHERE urls.crawl = v.crawl AND urls.fp = v.fp AND urls.state = 'open' AND urls.fence < v.fence "
    "RETURNING urls.crawl, urls.fp",
    "crawl bigint, fp bytea, fence bigint, state text, reason text, attempts int, retry_ms bigint, "
    "chain text, settled_ms bigint, target text",
)
_end_leases = Bulk(
    "UPDATE urls SET crashes = urls.crashes + v.crash, solo_crashes = urls.solo_crashes + v.solo, fence = v.fence "
    "FROM v "
    "WHERE urls.crawl = v.crawl AND urls.fp = v.fp AND urls.state = 'open' AND urls.fence < v.fence "
    "RETURNING urls.crawl, urls.fp, urls.crashes, urls.solo_crashes",
    "crawl bigint, fp bytea, fence bigint, crash int, solo int",
)
_ROW = (
    "u.crawl, u.fp, u.seq, u.host, u.url, u.kind, u.depth, u.state, u.reason, u.attempts, u.crashes, u.solo_crashes, "
    "u.retry_ms, u.fence, u.chain, u.added_ms, u.settled_ms, u.lastmod, u.priority, u.found_on, u.target"
)
_select = Bulk(
    f"SELECT {_ROW} FROM v JOIN urls u ON u.crawl = v.crawl AND u.fp = v.fp",
    "crawl bigint, fp bytea",
)
_note_sitemap = Bulk(
    "UPDATE urls SET lastmod = v.lastmod, priority = v.priority FROM v WHERE urls.crawl = v.crawl AND urls.fp = v.fp",
    "crawl bigint, fp bytea, lastmod text, priority float8",
)
_sitemap_entries = Bulk(
    "SELECT u.crawl, u.fp, u.lastmod, u.priority FROM v JOIN urls u ON u.crawl = v.crawl AND u.fp = v.fp "
    "WHERE u.lastmod IS NOT NULL OR u.priority IS NOT NULL",
    "crawl bigint, fp bytea",
)
_reopen = Bulk(
    "UPDATE urls SET state = 'open', reason = '', attempts = 0, crashes = 0, solo_crashes = 0, retry_ms = NULL, "
    "settled_ms = NULL FROM v WHERE urls.crawl = v.crawl AND urls.fp = v.fp AND urls.state = 'failed'",
    "crawl bigint, fp bytea",
)
_OPEN_ROWS, _RENDER_ROWS = (
    text(
        "SELECT seq, url, kind, depth, attempts, crashes, solo_crashes, retry_ms, chain FROM urls "
        f"WHERE crawl = :crawl AND host = :host AND state = 'open' AND kind {kind} AND seq > :after "
        "ORDER BY seq LIMIT :limit"
    )
    for kind in ("<> 'b'", "= 'b'")
)
# Whether a queue has pages that wait for a browser, and whether it has other rows. Only the first 200 open rows are
# searched for the latter.
_kinds = Bulk(
    "SELECT v.crawl, v.host, "
    "EXISTS (SELECT 1 FROM urls u WHERE u.crawl = v.crawl AND u.host = v.host AND u.state = 'open' AND u.kind = 'b'), "
    "EXISTS (SELECT 1 FROM (SELECT u.kind FROM urls u WHERE u.crawl = v.crawl AND u.host = v.host "
    "AND u.state = 'open' ORDER BY u.seq LIMIT 200) f WHERE f.kind <> 'b') "
    "FROM v JOIN crawls c ON c.n = v.crawl WHERE c.render <> 'never'",
    "crawl bigint, host text",
)
_rekind = Bulk(
    "UPDATE urls SET kind = v.kind FROM v WHERE urls.crawl = v.crawl AND urls.fp = v.fp AND urls.state = 'open'",
    "crawl bigint, fp bytea, kind text",
)
# By crawl first: so the index of open rows serves it.
_DELAYED = text(
    "SELECT crawl, fp FROM urls WHERE crawl IN (SELECT crawl FROM queues WHERE host = :host AND state = 'open') "
    "AND host = :host AND state = 'open' AND retry_ms > :now_ms"
)
_clear_retry = Bulk(
    "UPDATE urls SET retry_ms = NULL FROM v WHERE urls.crawl = v.crawl AND urls.fp = v.fp AND urls.state = 'open' "
    "RETURNING urls.seq",
    "crawl bigint, fp bytea",
)
_HAS_LIVE = text(
    "SELECT 1 FROM queues q WHERE q.crawl = :crawl AND q.state <> 'dead' AND EXISTS "
    "(SELECT 1 FROM urls u WHERE u.crawl = q.crawl AND u.host = q.host AND u.state = 'open') LIMIT 1"
)


def insert(
    tx: Connection, rows: Sequence[NewUrl], now_ms: int, found_on: Mapping[Key, bytes] | None = None
) -> dict[Key, int]:
    """Insert new URLs; returns (crawl, fp) -> seq of the inserted rows. seq follows the order of the arguments.

    `found_on`: the URLs that named them.
    """
    if not rows:
        return {}
    fresh: dict[Key, NewUrl] = {}
    for row in rows:
        fresh.setdefault((row.crawl, row.fp), row)
    named = found_on or {}
    numbered = dict(zip(fresh, _allot_seqs(tx, len(fresh)), strict=True))
    inserted = _insert(
        tx,
        [
            (
                *key,
                numbered[key],
                row.host,
                row.url,
                row.kind.value,
                row.depth,
                chain_json(row.chain),
                now_ms,
                named.get(key),
            )
            for key, row in sorted(fresh.items(), key=_by_key)
        ],
    )
    return {(crawl, fp): seq for crawl, fp, seq in inserted}


def _by_key(item: tuple[Key, NewUrl]) -> Key:
    return item[0]


def _allot_seqs(tx: Connection, n: int) -> Iterable[int]:
    if not is_postgresql(tx):
        # We hold the write lock already: a counter row is as good as a sequence.
        end = meta.add(tx, "urls_seq", n)
        return range(end - n + 1, end + 1)
    blocks = -(-n // _SEQ_BLOCK)
    starts = tx.exec_driver_sql("SELECT nextval('urls_seq') FROM generate_series(1, %s)", (blocks,)).scalars().all()
    return [start + i for start in starts for i in range(_SEQ_BLOCK)][:n]


def settle(tx: Connection, rows: Iterable[Settle], now_ms: int) -> set[Key]:
    """Settle open rows, or keep them open for a retry; the keys of the rows that changed.

    A row that is settled, or was touched under the same or a later fence, stays as it is.
    """
    latest: dict[Key, Settle] = {}
    for row in rows:
        before = latest.get((row[0], row[1]))
        if before is None or before.fence < row.fence:
            latest[row[0], row[1]] = row
    keys = sorted(latest)
    lock(tx, keys)
    changed = _settle(tx, [_settle_row(latest[key], now_ms) for key in keys])
    return {(crawl, fp) for crawl, fp in changed}


def _settle_row(row: Settle, now_ms: int) -> tuple[Any, ...]:
    crawl, fp, fence, state, reason, attempts, retry_ms, chain, target = row
    settled_ms = None if state == UrlState.OPEN else now_ms
    return (crawl, fp, fence, str(state), reason, attempts, retry_ms, chain_json(chain), settled_ms, target)


def end_leases(tx: Connection, rows: Iterable[tuple[int, bytes, int, bool, bool]]) -> dict[Key, tuple[int, int]]:
    """Reject late results of expired leases (crawl, fp, fence, crash, solo). A crash while solo
    counts in both; key -> (crashes, solo crashes) of the rows changed.
    """
    latest = {
        (crawl, fp): (crawl, fp, fence, int(crash), int(crash and solo))
        for crawl, fp, fence, crash, solo in sorted(rows)
    }
    lock(tx, latest)
    return {(crawl, fp): (crashes, solo) for crawl, fp, crashes, solo in _end_leases(tx, list(latest.values()))}


def change_kinds(tx: Connection, rows: Iterable[tuple[int, bytes, str]]) -> None:
    """(crawl, fp, kind) of open rows that this transaction schedules for a retry with another kind."""
    _rekind(tx, unique_sorted(rows))


def kinds_open(tx: Connection, pairs: Iterable[tuple[int, str]]) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Which of these queues (crawl, host) have rows for plain requests, and which have pages for a browser."""
    wanted = unique_sorted(pairs)
    mixed = {(crawl, host): (render, plain) for crawl, host, render, plain in _kinds(tx, wanted)}
    # A queue without any open row closes by its plain rescan.
    plain = [pair for pair in wanted if pair not in mixed or mixed[pair][1] or not mixed[pair][0]]
    return plain, [pair for pair in wanted if pair in mixed and mixed[pair][0]]


def note_sitemap_entries(tx: Connection, rows: Iterable[SitemapEntry]) -> None:
    """Keep what a sitemap says about URLs of the crawl, whose rows the caller has locked or inserted."""
    newest = {(row.crawl, row.fp): row for row in rows}
    _note_sitemap(tx, [newest[key] for key in sorted(newest)])


def sitemap_entries(tx: Connection, keys: Iterable[Key]) -> dict[Key, SitemapEntry]:
    """What sitemaps say about these URLs; those that no sitemap describes are left out."""
    return {
        (crawl, fp): SitemapEntry(crawl, fp, *facts) for crawl, fp, *facts in _sitemap_entries(tx, unique_sorted(keys))
    }


def open_rows(
    tx: Connection, crawl: int, host: str, after_seq: int = 0, limit: int = 512, render: bool = False
) -> list[OpenRow]:
    """Open rows of a queue by seq, after a cursor: those that wait for a browser, or all others."""
    statement = _RENDER_ROWS if render else _OPEN_ROWS
    found = tx.execute(statement, {"crawl": crawl, "host": host, "after": after_seq, "limit": limit})
    return [OpenRow._make((*row[:8], chain_of(row[8]))) for row in found]


def get(tx: Connection, crawl: int, fp: bytes) -> UrlRow | None:
    found = select_many(tx, [(crawl, fp)])
    return found.get((crawl, fp))


def select_many(tx: Connection, keys: Iterable[Key]) -> dict[Key, UrlRow]:
    rows = map(_url_row, _select(tx, unique_sorted(keys)))
    return {(row.crawl, row.fp): row for row in rows}


def _url_row(row: Sequence[Any]) -> UrlRow:
    return UrlRow._make((*row[:14], chain_of(row[14]), *row[15:]))


_CHUNK = text(f"SELECT {_ROW} FROM urls u WHERE u.crawl = :crawl AND u.seq > :after ORDER BY u.seq LIMIT :limit")


def chunk(tx: Connection, crawl: int, after_seq: int = 0, limit: int = 500) -> list[UrlRow]:
    """All rows of a crawl in the order in which they were added, after a cursor."""
    found = tx.execute(_CHUNK, {"crawl": crawl, "after": after_seq, "limit": limit})
    return [_url_row(row) for row in found]


def select_locked(tx: Connection, keys: Iterable[Key]) -> dict[Key, UrlRow]:
    """The current rows, locked until the transaction ends."""
    wanted = unique_sorted(keys)
    lock(tx, wanted)
    return select_many(tx, wanted)


def reopen(tx: Connection, keys: Iterable[Key]) -> list[UrlRow]:
    """Open dead letters again for a replay: attempts start at 0, the fence stays. Returns the rows as they were before.

    The caller opens their queues before this call. After it, the caller corrects the table crawl_counts and wakes the
    frontier.
    """
    failed = [row for row in select_locked(tx, keys).values() if row.state == UrlState.FAILED]
    _reopen(tx, sorted((row.crawl, row.fp) for row in failed))
    return failed


def clear_retry_delays(tx: Connection, host: str, now_ms: int) -> int:
    """Make delayed retries of a host due now; how many."""
    found = [(row[0], row[1]) for row in tx.execute(_DELAYED, {"host": host, "now_ms": now_ms})]
    lock(tx, found)
    return len(_clear_retry(tx, found))


def has_open(tx: Connection, crawl: int) -> bool:
    """Whether a row of the crawl is open, on a host that is not dead for the crawl."""
    return tx.execute(_HAS_LIVE, {"crawl": crawl}).first() is not None


def chain_json(chain: Chain | None) -> str | None:
    if chain is None:
        return None
    fields = {name: value for name in Chain.__slots__ if (value := getattr(chain, name)) not in (None, (), False)}
    return json.dumps(fields, separators=(",", ":"))


def chain_of(stored: str | None) -> Chain | None:
    if stored is None:
        return None
    fields = json.loads(stored)
    for name in ("trail", "cookies"):
        fields[name] = tuple(fields.get(name, ()))
    return Chain(**fields)
