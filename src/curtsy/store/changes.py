"""The pages of two crawls side by side, compared by the database over the index of pages by fingerprint."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Connection, text

#: kinds of change: the first three of pages that the later crawl has, the others of pages that it lacks
NOW = ("new", "changed", "unchanged")
BEFORE = ("gone", "moved", "unread")
KINDS = (*NOW, *BEFORE)

_KIND_NOW = "CASE WHEN a.fp IS NULL THEN 'new' WHEN a.sha256 = b.sha256 THEN 'unchanged' ELSE 'changed' END"
_FROM_NOW = "pages b LEFT JOIN pages a ON a.fp = b.fp AND a.crawl = :before WHERE b.crawl = :now"
_KIND_BEFORE = (
    "CASE WHEN u.fp IS NULL THEN :absent WHEN u.reason = 'gone' THEN 'gone' WHEN u.reason = 'redirect' THEN 'moved' "
    "ELSE 'unread' END"
)
_FROM_BEFORE = (
    "pages a LEFT JOIN pages b ON b.fp = a.fp AND b.crawl = :now LEFT JOIN urls u ON u.crawl = :now AND u.fp = a.fp "
    "WHERE a.crawl = :before AND b.fp IS NULL"
)
_LIST_NOW = text(
    f"SELECT b.n, {_KIND_NOW} AS kind, b.url, '' AS why, a.sha256, b.sha256, a.fetched_ms, b.fetched_ms "
    f"FROM {_FROM_NOW} AND b.n > :after AND (:kind = '' OR {_KIND_NOW} = :kind) ORDER BY b.n LIMIT :limit"
)
_LIST_BEFORE = text(
    f"SELECT a.n, {_KIND_BEFORE} AS kind, a.url, coalesce(nullif(u.reason, ''), u.state, 'absent') AS why, a.sha256, "
    f"NULL, a.fetched_ms, u.settled_ms FROM {_FROM_BEFORE} AND a.n > :after "
    f"AND (:kind = '' OR {_KIND_BEFORE} = :kind) ORDER BY a.n LIMIT :limit"
)
_COUNT_NOW = text(f"SELECT {_KIND_NOW} AS kind, count(*) FROM {_FROM_NOW} GROUP BY 1")
_COUNT_BEFORE = text(f"SELECT {_KIND_BEFORE} AS kind, count(*) FROM {_FROM_BEFORE} GROUP BY 1")


class Change(NamedTuple):
    #: number of the page; also the cursor
    n: int
    kind: str
    url: str
    #: of a page that the later crawl lacks: `gone`, `redirect`, `robots`, `timeout`, ..., `absent`
    why: str
    sha256_before: str | None
    sha256: str | None
    before_ms: int | None
    at_ms: int | None


def counts(tx: Connection, now: int, before: int, absent: str) -> dict[str, int]:
    given = {"now": now, "before": before}
    rows = [*tx.execute(_COUNT_NOW, given), *tx.execute(_COUNT_BEFORE, {**given, "absent": absent})]
    return {kind: int(n) for kind, n in rows}


def of_pages_now(
    tx: Connection, now: int, before: int, _absent: str, kind: str | None, after: int, limit: int
) -> list[Change]:
    if limit < 1 or kind not in (None, *NOW):
        return []
    given = {"now": now, "before": before, "after": after, "kind": kind or "", "limit": limit}
    return [_change(row) for row in tx.execute(_LIST_NOW, given)]


def of_pages_before(
    tx: Connection, now: int, before: int, absent: str, kind: str | None, after: int, limit: int
) -> list[Change]:
    if limit < 1 or kind not in (None, *BEFORE):
        return []
    given = {"now": now, "before": before, "after": after, "kind": kind or "", "limit": limit, "absent": absent}
    return [_change(row) for row in tx.execute(_LIST_BEFORE, given)]


def _change(row: Any) -> Change:
    n, kind, url, why, old, new, before_ms, at_ms = row
    return Change(n, kind, url, why, _hex(old), _hex(new), before_ms, at_ms)


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else bytes(digest).hex()
