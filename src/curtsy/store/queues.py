"""Queues: which (crawl, host) pairs have work. Rebuild, resume and the completion check read these, never `urls`.

A queue is `open`, `empty` (a rescan found no open row) or `dead` for its crawl, with the reason. The reason of an open
queue is the first failure since its host stopped answering. An open queue whose `next_ms` is not 0 waits in the store
because enough queues are loaded; waiting queues are loaded in the order of that time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from sqlalchemy import Connection, text

from curtsy.store.rows import Bulk, Lock, is_postgresql, unique_sorted

#: queues that are marked dead at a time
_MOST_GIVEN_UP = 10_000
#: (crawl, host)
Key = tuple[int, str]


class Queue(NamedTuple):
    crawl: int
    host: str
    lane: str
    next_ms: int
    state: str
    reason: str
    #: URLs ever added
    added: int
    #: when the host began to fail every request; None: it answers
    failing_since_ms: int | None
    #: message of the first of these failures
    detail: str


_COLUMNS = "crawl, host, lane, next_ms, state, reason, added, failing_since_ms, detail"
_LISTED = "q.crawl, q.host, q.lane, q.next_ms, q.state, q.reason, q.added, q.failing_since_ms, q.detail"

_lock = Lock("queues", "crawl bigint, host text")
_unanswered = Bulk(
    "UPDATE queues SET refused = queues.refused + v.refused, silent = queues.silent + v.silent FROM v "
    "WHERE queues.crawl = v.crawl AND queues.host = v.host",
    "crawl bigint, host text, refused bigint, silent bigint",
)
_NEW = "INSERT INTO queues (crawl, host, lane, state, added) SELECT crawl, host, lane, 'open', added FROM v WHERE true "
_insert = Bulk(
    f"{_NEW} ON CONFLICT (crawl, host) DO NOTHING RETURNING {_COLUMNS}",
    "crawl bigint, host text, lane text, added bigint",
)
_open = Bulk(
    f"{_NEW} ON CONFLICT (crawl, host) DO UPDATE SET added = queues.added + excluded.added, "
    f"state = CASE WHEN queues.state = 'dead' THEN 'dead' ELSE 'open' END RETURNING {_COLUMNS}",
    "crawl bigint, host text, lane text, added bigint",
)
_count = Bulk(
    "UPDATE queues SET added = queues.added + v.added FROM v WHERE queues.crawl = v.crawl AND queues.host = v.host",
    "crawl bigint, host text, added bigint",
)
_wait = Bulk(
    "UPDATE queues SET next_ms = v.next_ms FROM v WHERE queues.crawl = v.crawl AND queues.host = v.host "
    "AND queues.state = 'open' AND queues.next_ms = 0 RETURNING queues.lane",
    "crawl bigint, host text, next_ms bigint",
)
_loaded = Bulk(
    "UPDATE queues SET next_ms = 0 FROM v WHERE queues.crawl = v.crawl AND queues.host = v.host AND queues.next_ms > 0",
    "crawl bigint, host text",
)
# Only queues that will change are locked: in a running crawl these are few, so commits rarely wait for each other.
_to_mark = Bulk(
    "SELECT q.crawl, q.host FROM v JOIN queues q ON q.host = v.host WHERE "
    "(v.answered AND q.failing_since_ms IS NOT NULL) OR "
    "(v.silent AND q.state = 'open' AND q.failing_since_ms IS NULL) OR "
    "(v.present AND q.state = 'open' AND substr(q.reason, 1, 7) <> 'status_')",
    "host text, answered boolean, silent boolean, present boolean",
)
_failing = Bulk(
    "UPDATE queues SET failing_since_ms = coalesce(queues.failing_since_ms, v.now_ms), reason = v.fault, "
    "detail = v.detail FROM v WHERE queues.crawl = v.crawl AND queues.host = v.host AND queues.state = 'open'",
    "crawl bigint, host text, now_ms bigint, fault text, detail text",
)
_recovered = Bulk(
    "UPDATE queues SET failing_since_ms = NULL, detail = CASE WHEN state = 'open' THEN '' ELSE detail END, "
    "reason = CASE WHEN state = 'open' THEN '' ELSE reason END "
    "FROM v WHERE queues.crawl = v.crawl AND queues.host = v.host AND queues.failing_since_ms IS NOT NULL",
    "crawl bigint, host text",
)
_get = Bulk(
    f"SELECT {_LISTED} FROM v JOIN queues q ON q.crawl = v.crawl AND q.host = v.host", "crawl bigint, host text"
)

_LOCK = text("SELECT state FROM queues WHERE crawl = :crawl AND host = :host FOR UPDATE")
_OPEN_ROW, _PLAIN_ROW, _RENDER_ROW = (
    text(f"SELECT 1 FROM urls WHERE crawl = :crawl AND host = :host AND state = 'open'{kind} LIMIT 1")
    for kind in ("", " AND kind <> 'b'", " AND kind = 'b'")
)
_SET = text("UPDATE queues SET state = :state, reason = :reason WHERE crawl = :crawl AND host = :host AND state = :old")
_DEAD = text(
    "UPDATE queues SET state = 'dead', reason = :reason WHERE crawl = :crawl AND host = :host AND state <> 'dead'"
)
_REOPEN = text(
    "UPDATE queues SET state = 'open', reason = '', detail = '', failing_since_ms = NULL "
    "WHERE crawl = :crawl AND host = :host AND state = 'dead'"
)
_FAILING_OF = text(
    "SELECT crawl, host FROM queues WHERE crawl = :crawl AND (host = :host OR :host = '') AND state <> 'dead' "
    "AND failing_since_ms IS NOT NULL"
)
_reset_patience = Bulk(
    "UPDATE queues SET failing_since_ms = NULL, reason = '' FROM v WHERE queues.crawl = v.crawl "
    "AND queues.host = v.host AND queues.state <> 'dead' AND queues.failing_since_ms IS NOT NULL",
    "crawl bigint, host text",
)
# `host > ''` is always true: it lets SQLite search the small index of failing queues.
_FAILING = text(
    f"SELECT h.last_ok_ms, {_LISTED} FROM queues q CROSS JOIN crawls c LEFT JOIN hosts h ON h.host = q.host "
    "WHERE q.host > '' AND q.failing_since_ms <= :before_ms "
    "AND +q.crawl = c.n AND q.state = 'open' AND c.state IN ('running', 'loading')"
)
_FAULTS = text(
    "SELECT q.host, q.reason, q.failing_since_ms FROM queues q LEFT JOIN hosts h ON h.host = q.host "
    "WHERE q.failing_since_ms IS NOT NULL AND q.reason <> '' AND (q.host = :host OR :host = '') "
    "AND (h.last_ok_ms IS NULL OR h.last_ok_ms < q.failing_since_ms) ORDER BY q.failing_since_ms"
)
_RUNNING = text("SELECT n FROM crawls WHERE state IN ('running', 'loading') AND n >= :crawl ORDER BY n")
_OPEN_OF_ONE = (
    f"SELECT {_LISTED} FROM queues q WHERE q.crawl = :crawl AND q.host > :host AND q.state = 'open' %s"
    "ORDER BY q.host LIMIT :limit"
)
_OPEN = text(_OPEN_OF_ONE % "")
_OPEN_IN_PLAY = text(_OPEN_OF_ONE % "AND q.next_ms = 0 ")
_WAITING = text(
    f"SELECT {_LISTED} FROM queues q WHERE q.crawl = :crawl AND q.lane = :lane AND q.state = 'open' AND q.next_ms > 0 "
    "AND (q.next_ms > :next OR (q.next_ms = :next AND (q.crawl > :after OR (q.crawl = :after AND q.host > :host)))) "
    "ORDER BY q.next_ms, q.host LIMIT :limit"
)


def open_queues(tx: Connection, rows: Iterable[tuple[int, str, str, int]]) -> dict[Key, Queue]:
    """Open the queues (crawl, host, lane, added) and lock them until the transaction ends; a dead queue stays dead.

    Call it before inserting URLs: the lock keeps a concurrent rescan from closing the queue. `added` may be 0 here;
    `count_added` then counts the rows that the insert found to be new.
    """
    merged: dict[Key, tuple[str, int]] = {}
    for crawl, host, lane, added in rows:
        merged[crawl, host] = (lane, merged.get((crawl, host), ("", 0))[1] + added)
    wanted = [(*key, *merged[key]) for key in sorted(merged)]
    # Two passes, each in key order: `lock` has the same two.
    found = _insert(tx, wanted) if is_postgresql(tx) else []
    new = {(row[0], row[1]) for row in found}
    found += _open(tx, [row for row in wanted if (row[0], row[1]) not in new])
    return {(row[0], row[1]): Queue(*row) for row in found}


def lock(tx: Connection, keys: Iterable[Key], opening: Iterable[tuple[int, str, str]] = ()) -> None:
    """Lock queues for a transaction that changes them in several steps; creates those of `opening` (crawl, host, lane).

    New rows are inserted before existing ones are locked. A transaction waits for an uncommitted row only if it inserts
    the same row, so the two passes cannot wait for each other in a circle.
    """
    if is_postgresql(tx):
        new = unique_sorted(opening)
        _insert(tx, [(*row, 0) for row in new])
        _lock(tx, {*keys, *((crawl, host) for crawl, host, _ in new)})


def count_added(tx: Connection, added: Mapping[tuple[int, str], int]) -> None:
    """Count rows that were really inserted; the queues are already locked by `open_queues`."""
    _count(tx, [(*key, added[key]) for key in sorted(added) if added[key]])


def get(tx: Connection, keys: Iterable[Key]) -> dict[Key, Queue]:
    return {(row[0], row[1]): Queue(*row) for row in _get(tx, unique_sorted(keys))}


def mark_empty_if_none(tx: Connection, crawl: int, host: str) -> bool:
    """Close the queue if, under its lock, it has no open URL; True if it is now (or was) not open."""
    key = {"crawl": crawl, "host": host}
    if is_postgresql(tx):
        tx.execute(_LOCK, key)
    if tx.execute(_OPEN_ROW, key).first() is not None:
        return False
    tx.execute(_SET, {**key, "state": "empty", "reason": "", "old": "open"})
    return True


def has_open_rows(tx: Connection, crawl: int, host: str, *, render: bool) -> bool:
    """Has the queue an open row, of those that wait for a browser or of the others?"""
    return tx.execute(_RENDER_ROW if render else _PLAIN_ROW, {"crawl": crawl, "host": host}).first() is not None


def mark_dead(tx: Connection, crawl: int, host: str, reason: str) -> bool:
    """The host is dead for this crawl: its open rows count as failed by that reason. False if it already was."""
    return tx.execute(_DEAD, {"crawl": crawl, "host": host, "reason": reason}).rowcount > 0


def reopen(tx: Connection, crawl: int, host: str) -> bool:
    """Open a dead queue again, for a replay."""
    return tx.execute(_REOPEN, {"crawl": crawl, "host": host}).rowcount > 0


def reset_patience(tx: Connection, crawl: int, host: str = "") -> None:
    """Restart host_patience_s for the silent hosts of a crawl, or for one host, on a resume or replay."""
    found = unique_sorted((row[0], row[1]) for row in tx.execute(_FAILING_OF, {"crawl": crawl, "host": host}))
    lock(tx, found)
    _reset_patience(tx, found)


def mark(
    tx: Connection,
    *,
    answered: Collection[str] = (),
    silent: Mapping[str, tuple[str, str]] = MappingProxyType({}),
    dead: Mapping[Key, str] = MappingProxyType({}),
    unanswered: Mapping[Key, tuple[int, int]] = MappingProxyType({}),
    opening: Iterable[tuple[int, str, str]] = (),
    now_ms: int = 0,
) -> set[Key]:
    """Mark the queues of hosts that answered, of silent hosts (with fault and detail), and dead queues (with a reason).

    `unanswered` are responses 429 and 503, and requests without a response, to add to the counts of queues. Returns the
    queues that were not dead before. `opening` names queues that the transaction opens afterwards.
    """
    present = {host for host, (fault, _) in silent.items() if fault.startswith("status_")}
    hosts = [(host, host in answered, host in silent, host in present) for host in unique_sorted((*answered, *silent))]
    found = unique_sorted((row[0], row[1]) for row in _to_mark(tx, hosts))
    lock(tx, [*found, *dead, *unanswered], opening)
    _recovered(tx, [key for key in found if key[1] in answered])
    _failing(tx, [(*key, now_ms, *silent[key[1]]) for key in found if key[1] in silent])
    _unanswered(tx, [(*key, *unanswered[key]) for key in sorted(unanswered)])
    return {key for key in sorted(dead) if mark_dead(tx, *key, dead[key])}


def faults(tx: Connection, host: str = "") -> dict[str, tuple[str, int]]:
    """host -> (first failure since it stopped answering, its time), for all silent hosts or one."""
    return {row[0]: (row[1], row[2]) for row in tx.execute(_FAULTS, {"host": host})}


def failing_since(tx: Connection, before_ms: int) -> list[tuple[Queue, bool]]:
    """Open queues of running crawls whose host has failed since `before_ms` or longer, and whether it ever answered."""
    return sorted((Queue(*row[1:]), bool(row[0])) for row in tx.execute(_FAILING, {"before_ms": before_ms}))


def all_failing(tx: Connection, crawl: int) -> list[Queue]:
    """Open queues of a crawl if all of their hosts fail; otherwise an empty list."""
    found = [Queue(*row) for row in tx.execute(_OPEN, {"crawl": crawl, "host": "", "limit": _MOST_GIVEN_UP})]
    return found if all(queue.failing_since_ms is not None for queue in found) else []


def open_of(
    tx: Connection, crawl: int | None = None, after: tuple[int, str] = (0, ""), limit: int = 5000, in_play: bool = False
) -> list[Queue]:
    """Open queues after (crawl, host), in that order: of one crawl in any state, or of all running crawls.

    `in_play`: without those that wait in the store.
    """
    statement = _OPEN_IN_PLAY if in_play else _OPEN
    found: list[Queue] = []
    # Crawl by crawl: one statement over all would read the queues of every crawl that has ended.
    for n in [crawl] if crawl is not None else tx.execute(_RUNNING, {"crawl": after[0]}).scalars().all():
        host = after[1] if n == after[0] or crawl is not None else ""
        rows = tx.execute(statement, {"crawl": n, "host": host, "limit": limit - len(found)})
        found += [Queue(*row) for row in rows]
        if len(found) >= limit:
            break
    return found


def of_host(tx: Connection, host: str, limit: int) -> list[tuple[str, Queue]]:
    """(id of the crawl, queue) of a host, newest crawl first."""
    query = text(
        f"SELECT c.id, {_LISTED} FROM queues q JOIN crawls c ON c.n = q.crawl WHERE q.host = :host "
        "ORDER BY q.crawl DESC LIMIT :limit"
    )
    return [(row[0], Queue(*row[1:])) for row in tx.execute(query, {"host": host, "limit": limit})]


def wait(tx: Connection, rows: Iterable[tuple[int, str, int]]) -> set[str]:
    """(crawl, host, not before): these queues wait in the store from now on. Returns the lanes of those that did not
    wait already.
    """
    wanted = unique_sorted(rows)
    _lock(tx, [row[:2] for row in wanted])
    return {row[0] for row in _wait(tx, wanted)}


def loaded(tx: Connection, keys: Iterable[Key]) -> None:
    """Mark these (crawl, host) as loaded into the frontier."""
    wanted = unique_sorted(keys)
    _lock(tx, wanted)
    _loaded(tx, wanted)


def waiting(tx: Connection, lane: str, after: tuple[int, int, str] = (0, 0, ""), limit: int = 1000) -> list[Queue]:
    """Queues of running crawls that wait in the store, by (next_ms, crawl, host), after a cursor."""
    found: list[Queue] = []
    for n in tx.execute(_RUNNING, {"crawl": 0}).scalars().all():
        key = {"crawl": n, "lane": lane, "next": after[0], "after": after[1], "host": after[2], "limit": limit}
        found += [Queue(*row) for row in tx.execute(_WAITING, key)]
    return sorted(found, key=lambda q: (q.next_ms, q.crawl, q.host))[:limit]
