"""What the store knows about hosts: politeness times that only move forward, rules of the operator, robots rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, text

from curtsy.core.model import HostState, RobotsState
from curtsy.store import meta
from curtsy.store.rows import Bulk, unique_sorted

_HOST_FIELDS = tuple(field.name for field in fields(HostState))
_ROBOTS_FIELDS = tuple(field.name for field in fields(RobotsState))


def _later(name: str) -> str:
    return f"{name} = CASE WHEN excluded.{name} > hosts.{name} THEN excluded.{name} ELSE hosts.{name} END"


# The operator's fields are not updated: a commit must not undo them.
_upsert = Bulk(
    "INSERT INTO hosts (host, next_ms, blocked_until_ms, robots_delay_ms, adaptive_ms, failures, slow, last_ok_ms) "
    "SELECT host, next_ms, blocked_until_ms, robots_delay_ms, adaptive_ms, failures, slow, last_ok_ms FROM v "
    f"WHERE true ON CONFLICT (host) DO UPDATE SET {_later('next_ms')}, {_later('blocked_until_ms')}, "
    "robots_delay_ms = coalesce(excluded.robots_delay_ms, hosts.robots_delay_ms), "
    "adaptive_ms = coalesce(excluded.adaptive_ms, hosts.adaptive_ms), failures = excluded.failures, "
    "slow = excluded.slow, last_ok_ms = coalesce(excluded.last_ok_ms, hosts.last_ok_ms)",
    "host text, next_ms bigint, blocked_until_ms bigint, robots_delay_ms bigint, adaptive_ms bigint, "
    "failures int, slow boolean, last_ok_ms bigint",
)
_OBSERVED = attrgetter(
    "host", "next_ms", "blocked_until_ms", "robots_delay_ms", "adaptive_ms", "failures", "slow", "last_ok_ms"
)
_advance = Bulk(
    "INSERT INTO hosts (host, next_ms, blocked_until_ms) SELECT host, next_ms, blocked_until_ms FROM v WHERE true "
    f"ON CONFLICT (host) DO UPDATE SET {_later('next_ms')}, {_later('blocked_until_ms')}",
    "host text, next_ms bigint, blocked_until_ms bigint",
)
_FADES = "WHEN hosts.render_needed + hosts.render_plain > 100 THEN"
_learn_rendering = Bulk(
    "INSERT INTO hosts (host, render_needed, render_plain) SELECT host, needed, plain FROM v WHERE true "
    "ON CONFLICT (host) DO UPDATE SET "
    f"render_needed = CASE {_FADES} hosts.render_needed / 2 ELSE hosts.render_needed END + excluded.render_needed, "
    f"render_plain = CASE {_FADES} hosts.render_plain / 2 ELSE hosts.render_plain END + excluded.render_plain",
    "host text, needed int, plain int",
)
_rendering = Bulk("SELECT h.host, h.render_needed, h.render_plain FROM v JOIN hosts h ON h.host = v.host", "host text")
_get = Bulk(
    f"SELECT {', '.join(f'h.{name}' for name in _HOST_FIELDS)} FROM v JOIN hosts h ON h.host = v.host", "host text"
)
_upsert_robots = Bulk(
    f"INSERT INTO robots ({', '.join(_ROBOTS_FIELDS)}) SELECT {', '.join(_ROBOTS_FIELDS)} FROM v WHERE true "
    "ON CONFLICT (origin) DO UPDATE SET host = excluded.host, fetched_ms = excluded.fetched_ms, "
    "expires_ms = excluded.expires_ms, status = excluded.status, body = excluded.body, verdict = excluded.verdict "
    "WHERE excluded.fetched_ms >= robots.fetched_ms",
    "origin text, host text, fetched_ms bigint, expires_ms bigint, status int, body bytea, verdict text",
)
_get_robots = Bulk(
    f"SELECT {', '.join(f'r.{name}' for name in _ROBOTS_FIELDS)} FROM v JOIN robots r ON r.origin = v.origin",
    "origin text",
)
_robots_of = Bulk(
    "SELECT r.host, r.origin, r.fetched_ms, r.expires_ms, r.verdict FROM v JOIN robots r ON r.host = v.host",
    "host text",
)
_OPERATOR = text(
    "INSERT INTO hosts (host, operator_delay_ms, operator_per_host, denied) "
    "VALUES (:host, :delay_ms, :per_host, :denied) ON CONFLICT (host) DO UPDATE SET "
    "operator_delay_ms = excluded.operator_delay_ms, operator_per_host = excluded.operator_per_host, "
    "denied = excluded.denied"
)
_LIFT = text(
    "UPDATE hosts SET blocked_until_ms = 0, next_ms = CASE WHEN next_ms > :next_ms THEN :next_ms ELSE next_ms END "
    "WHERE host = :host"
)
_LISTED = f"SELECT {', '.join(_HOST_FIELDS)} FROM hosts"
_OPERATED = text(
    f"{_LISTED} WHERE denied OR operator_delay_ms IS NOT NULL OR operator_per_host IS NOT NULL ORDER BY host"
)
_ALL = text(f"{_LISTED} WHERE host > :after ORDER BY host LIMIT :limit")
_COMING = text(
    f"{_LISTED} WHERE host > :after AND (next_ms > :now_ms OR blocked_until_ms > :now_ms OR denied "
    "OR failures > 0 OR slow) ORDER BY host LIMIT :limit"
)


def upsert(tx: Connection, rows: Iterable[HostState]) -> None:
    """Store observations. Times only move forward, `None` keeps the stored value, operator fields are ignored."""
    fresh = {row.host: row for row in rows}
    _upsert(tx, [_OBSERVED(fresh[host]) for host in sorted(fresh)])


def learn_rendering(tx: Connection, observed: Mapping[str, tuple[int, int]]) -> None:
    """host -> (pages that need a browser, pages that do not): add to the stored counts. Older counts lose weight,
    because sites change.
    """
    _learn_rendering(tx, [(host, *observed[host]) for host in sorted(observed)])


def rendering(tx: Connection, hosts: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The stored counts of `learn_rendering`; (0, 0) for unknown hosts."""
    names = unique_sorted(hosts)
    return dict.fromkeys(names, (0, 0)) | {row[0]: (row[1], row[2]) for row in _rendering(tx, [(n,) for n in names])}


def advance_times(tx: Connection, rows: Iterable[tuple[str, int, int]]) -> None:
    """(host, next_ms, blocked_until_ms): move times forward, change nothing else; for the clean shutdown."""
    fresh = {row[0]: row for row in sorted(rows)}
    _advance(tx, list(fresh.values()))


def get_many(tx: Connection, hosts: Iterable[str]) -> dict[str, HostState]:
    return {row[0]: _host(row) for row in _get(tx, [(host,) for host in unique_sorted(hosts)])}


def get(tx: Connection, host: str) -> HostState | None:
    return get_many(tx, [host]).get(host)


def chunk(tx: Connection, after: str = "", limit: int = 5000, notable_at_ms: int | None = None) -> list[HostState]:
    """Hosts by name after a cursor; with `notable_at_ms` only those with a later time, or failing, slow, denied."""
    given: dict[str, Any] = {"after": after, "limit": limit}
    if notable_at_ms is None:
        return [_host(row) for row in tx.execute(_ALL, given)]
    return [_host(row) for row in tx.execute(_COMING, {**given, "now_ms": notable_at_ms})]


def set_operator(
    tx: Connection, host: str, *, delay_ms: int | None, per_host: int | None, denied: bool = False
) -> None:
    """Set the operator's rules for a host; None removes them."""
    tx.execute(_OPERATOR, {"host": host, "delay_ms": delay_ms, "per_host": per_host, "denied": denied})
    meta.add(tx, "operator", 1)


def lift(tx: Connection, host: str, next_ms: int) -> None:
    """The operator ends the wait that a host requested: the host is due at `next_ms` or earlier."""
    tx.execute(_LIFT, {"host": host, "next_ms": next_ms})
    meta.add(tx, "operator", 1)


def operator_version(tx: Connection) -> int:
    """Increases whenever the operator changes the rules of a host."""
    return int(meta.get(tx, "operator") or 0)


def operated(tx: Connection) -> list[HostState]:
    """The hosts with rules of the operator."""
    return [_host(row) for row in tx.execute(_OPERATED)]


def _host(row: Any) -> HostState:
    values = dict(zip(_HOST_FIELDS, row, strict=True))
    values |= {"slow": bool(values["slow"]), "denied": bool(values["denied"])}
    return HostState(**values)


def upsert_robots(tx: Connection, rows: Iterable[RobotsState]) -> None:
    """Store the rules of each origin, unless newer ones are stored."""
    fresh: dict[str, RobotsState] = {}
    for row in rows:
        if row.origin not in fresh or fresh[row.origin].fetched_ms <= row.fetched_ms:
            fresh[row.origin] = row
    _upsert_robots(tx, [tuple(getattr(fresh[origin], name) for name in _ROBOTS_FIELDS) for origin in sorted(fresh)])


def get_robots(tx: Connection, origins: Iterable[str]) -> dict[str, RobotsState]:
    rows = _get_robots(tx, [(origin,) for origin in unique_sorted(origins)])
    return {row[0]: RobotsState(**dict(zip(_ROBOTS_FIELDS, row, strict=True))) for row in rows}


def robots_of_hosts(tx: Connection, hosts: Iterable[str]) -> dict[str, list[tuple[str, int, int, str]]]:
    """host -> (origin, fetched_ms, expires_ms, verdict) of every origin known there, without bodies."""
    found: dict[str, list[tuple[str, int, int, str]]] = {}
    for host, *rest in _robots_of(tx, [(host,) for host in unique_sorted(hosts)]):
        found.setdefault(host, []).append((rest[0], rest[1], rest[2], rest[3]))
    return found
