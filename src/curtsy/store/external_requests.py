"""Requests of external clients: added once, held by one process at a time, done, or failed and replayed.

A process holds a request from the moment it takes it until it reports the outcome. A process that does not renew its
hold loses it: the request is open again, and its crash is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from curtsy.store.rows import Bulk, is_postgresql, unique_sorted

#: a request whose process died this often becomes a dead letter
MOST_CRASHES = 3

_BEGIN = text(
    "INSERT INTO guest_runs (name, started_ms) VALUES (:name, :now_ms) "
    "ON CONFLICT (name) WHERE state = 'running' DO NOTHING"
)
_RUNNING = text("SELECT n FROM guest_runs WHERE name = :name AND state = 'running'")
_END = text(
    "UPDATE guest_runs SET state = 'finished', ended_ms = :now_ms WHERE n = :run AND state = 'running' "
    "AND NOT EXISTS (SELECT 1 FROM guest_requests WHERE run = :run AND state IN ('open', 'held'))"
)
# Numbered in the order of arrival, because older requests go first. PostgreSQL still gets them by key: two processes
# that add the same ones in different orders would wait for each other.
_ADDED = "run, key, host, url, rank, payload, at_ms"
_ONCE = "ON CONFLICT (run, key) DO NOTHING RETURNING key"
_KINDS = "run bigint, key bytea, host text, url text, rank bigint, payload text, at_ms bigint"
_add_sqlite = Bulk(f"INSERT INTO guest_requests ({_ADDED}) SELECT {_ADDED} FROM v WHERE true {_ONCE}", _KINDS)
_add_postgresql = Bulk(
    f", numbered AS (SELECT nextval(pg_get_serial_sequence('guest_requests', 'n')) AS n, {_ADDED} FROM v) "
    f"INSERT INTO guest_requests (n, {_ADDED}) SELECT n, {_ADDED} FROM numbered ORDER BY run, key {_ONCE}",
    _KINDS,
)
# Host by host along the index: the cost depends on the number of hosts, not on that of waiting requests.
_HOSTS = text(
    "WITH RECURSIVE found(host) AS ("
    "SELECT min(host) FROM guest_requests WHERE run = :run AND state = 'open' UNION ALL "
    "SELECT (SELECT min(host) FROM guest_requests WHERE run = :run AND state = 'open' AND host > found.host) "
    "FROM found WHERE found.host IS NOT NULL) SELECT host FROM found WHERE host IS NOT NULL LIMIT :limit"
)
_TAKE = (
    "UPDATE guest_requests SET state = 'held', holder = :holder, held_until_ms = :until_ms WHERE n = ("
    "SELECT n FROM guest_requests WHERE run = :run AND host = :host AND state = 'open' ORDER BY rank, n LIMIT 1 {}) "
    "AND state = 'open' RETURNING n, host, url, payload, crashes"
)
_TAKE_SQLITE, _TAKE_POSTGRESQL = text(_TAKE.format("")), text(_TAKE.format("FOR UPDATE SKIP LOCKED"))
_renew = Bulk(
    "UPDATE guest_requests SET held_until_ms = v.until_ms FROM v WHERE guest_requests.n = v.n "
    "AND guest_requests.state = 'held' AND guest_requests.holder = v.holder RETURNING guest_requests.n",
    "n bigint, holder text, until_ms bigint")  # fmt: skip
_settle = Bulk(
    "UPDATE guest_requests SET state = v.state, cause = v.cause, detail = v.detail, at_ms = v.at_ms FROM v "
    "WHERE guest_requests.n = v.n AND guest_requests.state = 'held' AND guest_requests.holder = v.holder",
    "n bigint, holder text, state text, cause text, detail text, at_ms bigint")  # fmt: skip
_LAPSE = text(
    "UPDATE guest_requests SET crashes = crashes + 1, holder = '', at_ms = :now_ms, "
    "state = CASE WHEN crashes + 1 >= :most THEN 'failed' ELSE 'open' END, "
    "cause = CASE WHEN crashes + 1 >= :most THEN 'kills_worker' ELSE cause END "
    "WHERE run = :run AND state = 'held' AND held_until_ms < :now_ms"
)
_GIVE_BACK = text(
    "UPDATE guest_requests SET state = 'open', holder = '' WHERE run = :run AND state = 'held' AND holder = :holder"
)
_PENDING = text("SELECT EXISTS (SELECT 1 FROM guest_requests WHERE run = :run AND state IN ('open', 'held'))")
_FAILED = text(
    "SELECT q.n, q.url, q.host, q.cause, q.detail, q.at_ms, r.name FROM guest_requests q "
    "JOIN guest_runs r ON r.n = q.run WHERE q.state = 'failed' AND (:name = '' OR r.name = :name "
    "OR substr(r.name, 1, length(:name) + 1) = :name || ' ') "
    "AND q.at_ms >= :since_ms ORDER BY q.at_ms, q.n LIMIT :limit"
)
_RUNS = text("SELECT n, name, state, started_ms, ended_ms FROM guest_runs ORDER BY n DESC LIMIT :limit")
_COUNTS = text("SELECT run, state, count(*) AS many FROM guest_requests WHERE run >= :least GROUP BY run, state")
_REPLAY = text(
    "UPDATE guest_requests SET state = 'open', crashes = 0, holder = '', at_ms = :now_ms "
    "WHERE n = :n AND state = 'failed' AND run IN (SELECT n FROM guest_runs WHERE state = 'running')"
)
_REOPEN = text(
    "UPDATE guest_runs SET state = 'running', ended_ms = NULL WHERE state = 'finished' "
    "AND n IN (SELECT run FROM guest_requests WHERE n = :n) "
    "AND NOT EXISTS (SELECT 1 FROM guest_runs r WHERE r.name = guest_runs.name AND r.state = 'running')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest:
    """A request to store."""

    key: bytes
    host: str
    url: str
    #: smaller goes first
    rank: int
    payload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A request that this process holds."""

    n: int
    host: str
    url: str
    payload: str
    crashes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The outcome of a request that this process held."""

    n: int
    #: `done` | `failed` | `open` (given back)
    state: str = "done"
    cause: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A dead letter of an external client."""

    n: int
    name: str
    url: str
    host: str
    cause: str
    detail: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One crawl of an external client, and how many of its requests are in which state."""

    n: int
    name: str
    state: str
    started_ms: int
    ended_ms: int | None
    open: int
    held: int
    done: int
    failed: int


def begin(tx: Connection, name: str, now_ms: int) -> int:
    """The unfinished run of that name, or a new one."""
    tx.execute(_BEGIN, {"name": name, "now_ms": now_ms})
    return int(tx.execute(_RUNNING, {"name": name}).scalar_one())


def end(tx: Connection, run: int, now_ms: int) -> bool:
    """End the run if none of its requests is open or held."""
    return bool(tx.execute(_END, {"run": run, "now_ms": now_ms}).rowcount)


def add(tx: Connection, run: int, rows: Sequence[NewRequest], now_ms: int) -> set[bytes]:
    """Store requests; returns the keys of the new ones."""
    first: dict[bytes, NewRequest] = {}
    for row in rows:
        first.setdefault(row.key, row)
    values = [(run, row.key, row.host, row.url, row.rank, row.payload, now_ms) for row in first.values()]
    add_all = _add_postgresql if is_postgresql(tx) else _add_sqlite
    return {bytes(found[0]) for found in add_all(tx, values)}


def open_hosts(tx: Connection, run: int, limit: int = 10_000) -> list[str]:
    return [str(row[0]) for row in tx.execute(_HOSTS, {"run": run, "limit": limit})]


def take(tx: Connection, run: int, hosts: Iterable[str], holder: str, until_ms: int) -> list[Held]:
    """Take the next request of each of these hosts, unless another process took it."""
    statement = _TAKE_POSTGRESQL if is_postgresql(tx) else _TAKE_SQLITE
    found = []
    for host in unique_sorted(hosts):
        row = tx.execute(statement, {"run": run, "host": host, "holder": holder, "until_ms": until_ms}).first()
        if row is not None:
            found.append(Held(**row._mapping))
    return found


def renew(tx: Connection, held: Iterable[int], holder: str, until_ms: int) -> set[int]:
    """Extend the holds of this process; returns the requests that it still holds."""
    return {int(row[0]) for row in _renew(tx, [(n, holder, until_ms) for n in unique_sorted(held)])}


def settle(tx: Connection, rows: Iterable[Settled], holder: str, now_ms: int) -> None:
    """Store the outcome of requests, except of those that this process no longer holds."""
    last = {row.n: row for row in rows}
    _settle(tx, [(n, holder, row.state, row.cause, row.detail[:500], now_ms) for n, row in sorted(last.items())])


def reopen_expired(tx: Connection, run: int, now_ms: int) -> int:
    """Reopen the requests of dead processes, or make them dead letters; returns how many."""
    return int(tx.execute(_LAPSE, {"run": run, "now_ms": now_ms, "most": MOST_CRASHES}).rowcount)


def give_back(tx: Connection, run: int, holder: str) -> int:
    """Reopen all requests that this process holds, without counting a crash."""
    return int(tx.execute(_GIVE_BACK, {"run": run, "holder": holder}).rowcount)


def has_pending(tx: Connection, run: int) -> bool:
    return bool(tx.execute(_PENDING, {"run": run}).scalar_one())


def failed(tx: Connection, name: str = "", since_ms: int = 0, limit: int = 100) -> list[Failed]:
    """Dead letters, oldest first."""
    rows = tx.execute(_FAILED, {"name": name, "since_ms": since_ms, "limit": limit})
    return [Failed(**row._mapping) for row in rows]


def runs(tx: Connection, limit: int = 100) -> list[Run]:
    """Newest first."""
    found = tx.execute(_RUNS, {"limit": limit}).all()
    counted: dict[int, dict[str, int]] = {row.n: {} for row in found}
    for row in tx.execute(_COUNTS, {"least": min(counted, default=0)}):
        counted.get(row.run, {})[row.state] = int(row.many)
    return [
        Run(
            n=row.n, name=row.name, state=row.state, started_ms=row.started_ms, ended_ms=row.ended_ms,
            **{state: counted[row.n].get(state, 0) for state in ("open", "held", "done", "failed")},
        )
        for row in found
    ]  # fmt: skip


def replay(tx: Connection, letters: Iterable[int], now_ms: int) -> int:
    """Open dead letters again; a finished run continues, unless another run of its name followed."""
    opened = 0
    for n in unique_sorted(letters):
        tx.execute(_REOPEN, {"n": n})
        opened += int(tx.execute(_REPLAY, {"n": n, "now_ms": now_ms}).rowcount)
    return opened


_DISCARD = text(
    "UPDATE guest_requests SET state = 'discarded', holder = '', at_ms = :now_ms WHERE state IN ('open', 'held') "
    "AND run IN (SELECT n FROM guest_runs WHERE name = :name AND state = 'running')"
)
_ENDED = text("UPDATE guest_runs SET state = 'discarded', ended_ms = :now_ms WHERE name = :name AND state = 'running'")


def discard(tx: Connection, name: str, now_ms: int) -> int | None:
    """End a run and drop its open requests; how many. None if no run of this name is unfinished."""
    given = {"name": name, "now_ms": now_ms}
    dropped = tx.execute(_DISCARD, given).rowcount
    return dropped if tx.execute(_ENDED, given).rowcount else None
