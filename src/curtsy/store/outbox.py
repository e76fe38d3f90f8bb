"""The outbox: pending work for a page or a crawl. The store is the source of truth, not the messages.

A row is inserted in the transaction that makes it necessary, and deleted in the one that completes it. The sender
leases it: if it is not done when the lease ends, it is due again. So every message may be lost or arrive twice. A
row that failed permanently stays as `dead`, along with its dead letter, and can be replayed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from curtsy.core.model import Failure
from curtsy.store import failures
from curtsy.store.rows import Bulk, Delete, Insert, Lock, is_postgresql, unique_sorted

#: in the order of execution, which is also the ordinal of their dead letters
KINDS = ("extract", "score", "store", "webhook")

_COLUMNS = "n, kind, crawl, subject, payload, state, attempts, next_ms, sent_ms, request_id"
#: crawls whose stages may run
_ACTIVE = "('loading', 'running', 'extracting')"


class Put(NamedTuple):
    """Work to add to the outbox."""

    kind: str
    crawl: int
    subject: str
    next_ms: int
    payload: dict[str, Any] = {}  # noqa: RUF012
    request_id: str = ""


class Row(NamedTuple):
    n: int
    kind: str
    crawl: int
    subject: str
    payload: dict[str, Any]
    state: str
    attempts: int
    next_ms: int
    sent_ms: int | None
    request_id: str


_put = Insert(
    "outbox",
    "kind, crawl, subject",
    "kind text, crawl bigint, subject text, next_ms bigint, payload text, request_id text",
)
_lock = Lock("outbox", "n bigint")
_sent = Bulk(
    "UPDATE outbox SET sent_ms = v.now_ms, begun_ms = NULL, next_ms = v.until_ms FROM v "
    "WHERE outbox.n = v.n AND outbox.state = 'open'",
    "n bigint, now_ms bigint, until_ms bigint",
)
_unsent = Bulk(
    "UPDATE outbox SET sent_ms = NULL, next_ms = v.now_ms FROM v "
    "WHERE outbox.n = v.n AND outbox.state = 'open' AND outbox.sent_ms IS NOT NULL AND outbox.begun_ms IS NULL",
    "n bigint, now_ms bigint",
)
_dead = Bulk(
    "SELECT o.n FROM v JOIN outbox o ON o.kind = v.kind AND o.crawl = v.crawl AND o.subject = v.subject "
    "WHERE o.state = 'dead'",
    "kind text, crawl bigint, subject text",
)
_again = Bulk(
    "UPDATE outbox SET state = 'open', attempts = 0, sent_ms = NULL, begun_ms = NULL, next_ms = v.now_ms FROM v "
    "WHERE outbox.n = v.n AND outbox.state = 'dead' RETURNING outbox.kind, outbox.crawl, outbox.subject",
    "n bigint, now_ms bigint",
)
delete_rows = Delete("outbox", "n bigint")
delete_results = Delete("results", "crawl bigint, subject text, stage text")
_stages_of, _results_of = (
    Bulk(f"SELECT {found} AND t.crawl = v.crawl AND t.subject = v.subject", "crawl bigint, subject text")
    for found in (
        "t.n FROM v JOIN outbox t ON t.kind IN ('extract', 'score', 'store')",
        "t.crawl, t.subject, t.stage FROM v JOIN results t ON true",
    )
)
_delete_open = Bulk(
    "DELETE FROM outbox WHERE n IN (SELECT n FROM v) AND kind IN ('score', 'store') AND state = 'open' "
    "RETURNING crawl, subject",
    "n bigint",
)
_CRAWLS = text(f"SELECT n FROM crawls WHERE schema IS NOT NULL AND state IN {_ACTIVE} ORDER BY n")
_BEGIN = text(
    "UPDATE outbox SET attempts = attempts + 1, sent_ms = :now, begun_ms = :now, next_ms = :until WHERE n = :n "
    "AND kind = :kind AND state = 'open' AND (next_ms <= :now OR (sent_ms IS NOT NULL AND begun_ms IS NULL)) "
    "AND (kind = 'webhook' OR EXISTS (SELECT 1 "
    f"FROM crawls c WHERE c.n = outbox.crawl AND c.state IN {_ACTIVE})) RETURNING {_COLUMNS}"
)
_BEGIN_SOME = (
    "UPDATE outbox SET sent_ms = :now, begun_ms = :now, next_ms = :until WHERE n IN "
    "(SELECT o.n FROM outbox o JOIN crawls c ON c.n = o.crawl WHERE o.crawl = :crawl AND o.kind = 'extract' "
    f"AND o.state = 'open' AND o.attempts = 0 AND o.begun_ms IS NULL AND o.next_ms <= :now AND c.state IN {_ACTIVE} "
    "ORDER BY o.next_ms, o.n LIMIT :limit{}) RETURNING " + _COLUMNS
)
_done_some = Bulk("DELETE FROM outbox WHERE n IN (SELECT n FROM v) RETURNING n", "n bigint")
_tried = Bulk("UPDATE outbox SET attempts = 1 FROM v WHERE outbox.n = v.n AND outbox.state = 'open'", "n bigint")
_give_back = Bulk(
    "UPDATE outbox SET sent_ms = NULL, begun_ms = NULL, next_ms = v.now_ms FROM v "
    "WHERE outbox.n = v.n AND outbox.state = 'open'",
    "n bigint, now_ms bigint",
)
_ONE = text(f"SELECT {_COLUMNS} FROM outbox WHERE kind = :kind AND crawl = :crawl AND subject = :subject")
_OPEN = text("SELECT EXISTS (SELECT 1 FROM outbox WHERE crawl = :crawl AND state = 'open' AND kind <> 'webhook')")
_LEFT = text("SELECT count(DISTINCT subject) FROM outbox WHERE crawl = :crawl AND state = 'open' AND kind <> 'webhook'")
_NEXT = text(
    "SELECT min(o.next_ms) FROM outbox o JOIN crawls c ON c.n = o.crawl WHERE o.crawl = :crawl AND o.state = 'open' "
    f"AND o.kind <> 'webhook' AND c.state IN {_ACTIVE}"
)
_DELETE = text("DELETE FROM outbox WHERE n = :n")
_LATER = text("UPDATE outbox SET sent_ms = NULL, begun_ms = NULL, next_ms = :at WHERE n = :n AND state = 'open'")
_WAIT = text(
    "UPDATE outbox SET attempts = attempts - 1, sent_ms = NULL, begun_ms = NULL, next_ms = :at "
    "WHERE n = :n AND state = 'open'"
)
_RENEW = text("UPDATE outbox SET next_ms = :until WHERE n = :n AND state = 'open' AND begun_ms IS NOT NULL")
_DEAD = text(
    "UPDATE outbox SET state = 'dead', sent_ms = NULL, payload = coalesce(:payload, payload) "
    "WHERE n = :n AND state = 'open'"
)


def put(tx: Connection, rows: Iterable[Put]) -> None:
    """Add work; rows that exist already stay as they are."""
    fresh = {(row.kind, row.crawl, row.subject): row for row in rows}
    _put(
        tx,
        [
            (row.kind, row.crawl, row.subject, row.next_ms, json.dumps(row.payload), row.request_id)
            for _, row in sorted(fresh.items())
        ],
    )


def due(tx: Connection, now_ms: int, limit: int, lock: bool = True) -> list[Row]:
    """Rows that may be sent: never sent, to be retried, or sent and not done within their lease. Crawls alternate.

    On PostgreSQL the rows are locked, and rows that another process is about to send are skipped.
    """
    found = _due(tx, "kind = 'webhook' AND next_ms <= :now", {"now": now_ms}, limit, lock)
    crawls = list(tx.execute(_CRAWLS).scalars())
    for place, crawl in enumerate(crawls):
        room = limit - len(found)
        if room <= 0:
            break
        share = max(1, room // (len(crawls) - place))
        where = "crawl = :crawl AND kind <> 'webhook' AND next_ms <= :now"
        found += _due(tx, where, {"crawl": crawl, "now": now_ms}, share, lock)
    return found


def _due(tx: Connection, where: str, given: dict[str, Any], limit: int, lock: bool = True) -> list[Row]:
    locked = " FOR UPDATE SKIP LOCKED" if lock and is_postgresql(tx) else ""
    sql = f"SELECT {_COLUMNS} FROM outbox WHERE state = 'open' AND {where} ORDER BY next_ms LIMIT :limit{locked}"
    return [_row(row) for row in tx.execute(text(sql), {**given, "limit": limit})]


def due_of(tx: Connection, crawl: int, now_ms: int, limit: int) -> list[Row]:
    """Rows of one crawl that may be sent, including webhooks."""
    return _due(tx, "crawl = :crawl AND next_ms <= :now", {"crawl": crawl, "now": now_ms}, limit)


def next_of(tx: Connection, crawl: int) -> int | None:
    """When the next row of this crawl is due; None if it has no work left, or is not allowed to run."""
    found = tx.execute(_NEXT, {"crawl": crawl}).scalar()
    return None if found is None else int(found)


def sent(tx: Connection, ns: Iterable[int], now_ms: int, lease_ms: int) -> None:
    """Mark rows as sent: they are not due again before the lease ends."""
    _sent(tx, [(n, now_ms, now_ms + lease_ms) for n in unique_sorted(ns)])


def unsent(tx: Connection, ns: Iterable[int], now_ms: int) -> None:
    """Mark rows as not sent: they are due at once, except those that a worker has started."""
    wanted = unique_sorted(ns)
    _lock(tx, [(n,) for n in wanted])
    _unsent(tx, [(n, now_ms) for n in wanted])


def under_way(tx: Connection, now_ms: int) -> int:
    """How many rows were sent, are not done, and still have their lease."""
    count = text("SELECT count(*) FROM outbox WHERE state = 'open' AND sent_ms IS NOT NULL AND next_ms > :now")
    return int(tx.execute(count, {"now": now_ms}).scalar_one())


def begin(tx: Connection, kind: str, n: int, now_ms: int, lease_ms: int) -> Row | None:
    """Start a row. The attempt counts from here, so a row that kills its worker is not tried forever.

    None if it is done, dead, waiting for its next try, leased by another process, or of a crawl that is paused or
    canceled.
    """
    row = tx.execute(_BEGIN, {"n": n, "kind": kind, "now": now_ms, "until": now_ms + lease_ms}).first()
    return None if row is None else _row(row)


def begin_some(tx: Connection, crawl: int, now_ms: int, lease_ms: int, limit: int) -> list[Row]:
    """Start first stages of a crawl that are due and were never started, oldest first. This does not
    count as an attempt: if their process dies, `begin` starts them one by one.
    """
    locked = " FOR UPDATE SKIP LOCKED" if is_postgresql(tx) else ""
    given = {"crawl": crawl, "now": now_ms, "until": now_ms + lease_ms, "limit": limit}
    rows = [_row(row) for row in tx.execute(text(_BEGIN_SOME.format(locked)), given)]
    return sorted(rows, key=lambda row: row.n)


def done_some(tx: Connection, ns: Iterable[int]) -> set[int]:
    """Delete completed rows; those that another process deleted are not returned."""
    wanted = [(n,) for n in unique_sorted(ns)]
    _lock(tx, wanted)
    return {int(row[0]) for row in _done_some(tx, wanted)}


def tried(tx: Connection, ns: Iterable[int]) -> None:
    """These rows were started in bulk and failed: count their first attempt."""
    wanted = [(n,) for n in unique_sorted(ns)]
    _lock(tx, wanted)
    _tried(tx, wanted)


def give_back(tx: Connection, ns: Iterable[int], now_ms: int) -> None:
    """Return rows that were started but not processed: they are due at once."""
    wanted = unique_sorted(ns)
    _lock(tx, [(n,) for n in wanted])
    _give_back(tx, [(n, now_ms) for n in wanted])


def renew(tx: Connection, n: int, until_ms: int) -> None:
    """Extend the lease: the row is not due again before then."""
    tx.execute(_RENEW, {"n": n, "until": until_ms})


def find(tx: Connection, kind: str, crawl: int, subject: str) -> Row | None:
    row = tx.execute(_ONE, {"kind": kind, "crawl": crawl, "subject": subject}).first()
    return None if row is None else _row(row)


def done(tx: Connection, n: int) -> bool:
    """Delete a completed row; False if another process did."""
    return tx.execute(_DELETE, {"n": n}).rowcount > 0


def failed(
    tx: Connection, n: int, cause: str, detail: str, retry_ms: int | None, letter: Failure | None = None,
    payload: dict[str, Any] | None = None,
) -> bool:  # fmt: skip
    """Retry the row at `retry_ms`; None: mark it dead and write `letter`, the dead letter. False if
    another process has completed it. `payload` replaces that of the dead row.
    """
    if retry_ms is not None:
        return tx.execute(_LATER, {"n": n, "at": retry_ms}).rowcount > 0
    given = {"n": n, "payload": None if payload is None else json.dumps(payload)}
    changed = tx.execute(_DEAD, given).rowcount > 0
    if changed and letter is not None:
        failures.insert(tx, [_numbered(tx, letter, cause, detail)])
    return changed


def wait(tx: Connection, n: int, at_ms: int) -> None:
    """The row waits for something else until then; this does not count as an attempt."""
    tx.execute(_WAIT, {"n": n, "at": at_ms})


def _numbered(tx: Connection, letter: Failure, cause: str, detail: str) -> Failure:
    """A stage that fails again after a replay gets a new dead letter, so the history is kept."""
    first = 1 + KINDS.index(letter.stage)
    count = text("SELECT count(*) FROM failures WHERE fence = :fence AND stage = :stage")
    earlier = tx.execute(count, {"fence": letter.fence, "stage": letter.stage}).scalar_one()
    ordinal = first + len(KINDS) * int(earlier)
    return replace(letter, ordinal=ordinal, id=f"{letter.fence:x}.{ordinal}", cause=cause, detail=detail)


def again(tx: Connection, keys: Iterable[tuple[str, int, str]], now_ms: int) -> list[tuple[str, int, str]]:
    """Open dead rows (kind, crawl, subject) again with 0 attempts; returns those that existed."""
    found = unique_sorted((row[0],) for row in _dead(tx, unique_sorted(keys)))
    _lock(tx, found)
    return [(row[0], row[1], row[2]) for row in _again(tx, [(*n, now_ms) for n in found])]


def delete_stages(
    tx: Connection, subjects: Iterable[tuple[int, str]], begun: Iterable[tuple[int, str]]
) -> set[tuple[int, str]]:
    """Delete the stages and results of (crawl, subject). For those in `begun`, the first stage stays.

    Returns the keys of `begun` that had an open later stage: they begin again.
    """
    rest = unique_sorted(begun)
    gone, kept = _stages_of(tx, unique_sorted(subjects)), _stages_of(tx, rest)
    _lock(tx, [(row[0],) for row in (*gone, *kept)])
    again = {(row[0], row[1]) for row in _delete_open(tx, unique_sorted((row[0],) for row in kept))}
    delete_rows(tx, [(row[0],) for row in gone])
    delete_results(tx, [*_results_of(tx, unique_sorted(subjects)), *_results_of(tx, rest)])
    return again


def drop_of(tx: Connection, crawl: int, subject: str, kinds: Iterable[str]) -> None:
    """Delete these stages of a page or a site, open or dead: an earlier stage runs again."""
    for kind in kinds:
        where = "crawl = :crawl AND subject = :subject AND kind = :kind"
        delete_rows.where(tx, where, {"crawl": crawl, "subject": subject, "kind": kind})


def drop_stages(tx: Connection, crawl: int) -> None:
    """Delete the pending stages of a crawl and their results: extraction starts again."""
    delete_rows.where(tx, "crawl = :crawl AND kind <> 'webhook'", {"crawl": crawl})
    delete_results.where(tx, "crawl = :crawl", {"crawl": crawl})


def has_open(tx: Connection, crawl: int) -> bool:
    """Does this crawl have pending stages? Webhooks do not count, because they report its end."""
    return bool(tx.execute(_OPEN, {"crawl": crawl}).scalar())


def left(tx: Connection, crawl: int) -> int:
    """How many pages or sites have pending stages."""
    return int(tx.execute(_LEFT, {"crawl": crawl}).scalar_one())


def _row(row: Sequence[Any]) -> Row:
    n, kind, crawl, subject, payload, *rest = row
    return Row(n, kind, crawl, subject, json.loads(payload), *rest)


_BACKLOG = text("SELECT kind, count(*), min(next_ms) FROM outbox WHERE state = 'open' GROUP BY kind")


def backlog(tx: Connection) -> dict[str, tuple[int, int]]:
    """kind -> rows that must still run, and when the first of them is due."""
    return {kind: (int(n), int(due_ms)) for kind, n, due_ms in tx.execute(_BACKLOG)}
