"""Crawls: their rows, their members, their ledger."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, func, select, text, update

from curtsy.core.errors import UnknownCrawl
from curtsy.core.model import MOST_RENDER, Counts, Crawl, CrawlState, Lane
from curtsy.store import crawl_events, definitions, failures, meta
from curtsy.store.crawl_events import CrawlIdentity
from curtsy.store.rows import Bulk, Lock, is_postgresql, unique_sorted
from curtsy.store.tables import crawl_counts, crawl_members, crawls

ENDED = (CrawlState.FINISHED, CrawlState.CANCELLED, CrawlState.DELETING)
#: crawls whose queues the frontier holds
ACTIVE = (CrawlState.LOADING, CrawlState.RUNNING)

#: what the log says when a crawl enters a state
_ACTIONS = {state: f"crawl_{state.value}" for state in CrawlState} | {CrawlState.RUNNING: "crawl_resumed"}

_lock = Lock("crawls", "n bigint")
_add_members = Bulk(
    "INSERT INTO crawl_members (crawl, member) SELECT crawl, member FROM v WHERE true "
    "ON CONFLICT (crawl, member) DO NOTHING RETURNING member",
    "crawl bigint, member text",
)
_add_counts = Bulk(
    "INSERT INTO crawl_counts (crawl, state, reason, n) SELECT crawl, state, reason, n FROM v WHERE true "
    "ON CONFLICT (crawl, state, reason) DO UPDATE SET n = crawl_counts.n + excluded.n",
    "crawl bigint, state text, reason text, n bigint",
)
_add_pages = Bulk("UPDATE crawls SET pages = pages + v.by FROM v WHERE crawls.n = v.n", "n bigint, by bigint")
# The outbox delivers the webhook of a crawl's end, again if the crawl ends again after a replay.
_TELL = text(
    "INSERT INTO outbox (kind, crawl, subject, payload, next_ms, request_id) SELECT 'webhook', n, :state, :payload, "
    ":now, request_id FROM crawls WHERE n = :n AND webhook IS NOT NULL ON CONFLICT (kind, crawl, subject) DO UPDATE "
    "SET state = 'open', attempts = 0, sent_ms = NULL, begun_ms = NULL, next_ms = excluded.next_ms, "
    "payload = excluded.payload"
)
# CROSS JOIN: SQLite begins with the dead queues, which are few, and not with all open URLs.
_DEAD_ROWS = text(
    "SELECT q.reason, count(*) FROM queues q CROSS JOIN urls u WHERE u.crawl = q.crawl AND u.host = q.host "
    "AND u.state = 'open' AND q.crawl = :crawl AND q.state = 'dead' GROUP BY q.reason"
)
# Along their own index, which has no other rows.
_RENDER_ROWS = text(
    "SELECT count(*) FROM (SELECT 1 FROM urls u WHERE u.crawl = :crawl AND u.state = 'open' AND u.kind = 'b' "
    "AND NOT EXISTS (SELECT 1 FROM queues q WHERE q.crawl = u.crawl AND q.host = u.host AND q.state = 'dead') "
    "LIMIT :most) AS w"
)


def create(tx: Connection, crawl: Crawl, settings: Mapping[str, Any] | None = None) -> Crawl:
    """Write a new crawl; returns it with its number. `settings` are stored as JSON, for --resume and for display."""
    values = {
        column.name: getattr(crawl, column.name) for column in crawls.columns if column.name not in ("n", "settings")
    }
    values |= {name: json.dumps(getattr(crawl, name)) for name in ("include", "exclude", "tags")}
    values |= {"settings": json.dumps(settings or {}, default=str)}
    if not is_postgresql(tx):
        # SQLite would give the number of a deleted crawl to the next one.
        newest = tx.execute(select(func.max(crawls.c.n))).scalar() or 0
        values["n"] = 1 + max(newest, int(meta.get(tx, "last_deleted_crawl") or 0))
    n = int(tx.execute(crawls.insert().values(values).returning(crawls.c.n)).scalar_one())
    _add_members(tx, [(n, member) for member in sorted(crawl.members)])
    definitions.keep(tx, crawl.definitions)
    crawl_events.note(tx, CrawlIdentity(crawl.id, crawl.request_id), "crawl_created", lane=crawl.lane.value)
    return replace(crawl, n=n)


def get(tx: Connection, id: str, *, members: bool = True) -> Crawl:
    """The crawl with that id, or with an id that begins so if there is only one; `last` is the newest that is not
    being deleted.

    A crawl may have many members; `members=False` does not read them.
    """
    if id == "last":
        remaining = select(crawls).where(crawls.c.state != CrawlState.DELETING)
        rows = tx.execute(remaining.order_by(crawls.c.n.desc()).limit(1)).all()
    else:
        rows = tx.execute(select(crawls).where(crawls.c.id == id)).all()
        if not rows and id:
            rows = tx.execute(select(crawls).where(crawls.c.id.startswith(id, autoescape=True)).limit(2)).all()
    if len(rows) == 1:
        return _crawl(rows[0], _members(tx, rows[0].n) if members else frozenset())
    if not rows:
        raise UnknownCrawl(f"There is no crawl {id!r} here. `curtsy status --all` lists them.")
    raise UnknownCrawl(f"Several crawls begin with {id!r}: give more of the id. `curtsy status --all` lists them.")


_NOTE_REASON = text("UPDATE crawls SET reason = :reason WHERE n = :n AND state IN ('running', 'extracting')")


def note_reason(tx: Connection, n: int, reason: str | None) -> None:
    """Store why a crawl that has not ended makes no progress."""
    tx.execute(_NOTE_REASON, {"n": n, "reason": reason})


def by_n(tx: Connection, n: int, *, members: bool = True) -> Crawl:
    """The crawl of that number. Numbers are never reused, so a missing one is returned in the state DELETING."""
    row = tx.execute(select(crawls).where(crawls.c.n == n)).first()
    if row is None:
        return Crawl(n=n, id="", request_id="", state=CrawlState.DELETING)
    return _crawl(row, _members(tx, n) if members else frozenset())


def ids(tx: Connection, ns: Iterable[int]) -> dict[int, str]:
    """The ids of these crawls by their numbers."""
    rows = tx.execute(select(crawls.c.n, crawls.c.id).where(crawls.c.n.in_(unique_sorted(ns))))
    return {row.n: row.id for row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlFilter:
    """Which crawls a list has; None: any."""

    states: Collection[CrawlState] = ()
    #: text in the name or in a tag, the beginning of the id, or a host or domain of the scope
    search: str | None = None
    tag: str | None = None
    owner: str | None = None
    #: number of a schedule
    schedule: int | None = None
    #: of the runs of a schedule only the newest
    newest_runs: bool = False


def list_all(
    tx: Connection, limit: int = 100, states: Collection[CrawlState] = (), before: int | None = None,
    wanted: CrawlFilter | None = None,
) -> list[Crawl]:  # fmt: skip
    """Newest first, without their members; `before`: only those with a smaller number."""
    query = select(crawls).order_by(crawls.c.n.desc()).limit(limit)
    if states:
        query = query.where(crawls.c.state.in_(states))
    if before is not None:
        query = query.where(crawls.c.n < before)
    if wanted is not None:
        query = query.where(*_conditions(wanted))
    return [_crawl(row, frozenset()) for row in tx.execute(query)]


def _conditions(wanted: CrawlFilter) -> list[Any]:
    found: list[Any] = [crawls.c.state.in_(wanted.states)] if wanted.states else []
    if wanted.tag is not None:
        found.append(crawls.c.tags.contains(json.dumps(wanted.tag), autoescape=True))
    if wanted.owner is not None:
        found.append(crawls.c.owner == wanted.owner)
    if wanted.schedule is not None:
        found.append(crawls.c.schedule == wanted.schedule)
    if wanted.search is not None:
        text = wanted.search.lower()
        member = select(crawl_members.c.crawl).where(
            crawl_members.c.crawl == crawls.c.n, crawl_members.c.member == text
        )
        named = func.lower(crawls.c.name).contains(text, autoescape=True)
        tagged = crawls.c.tags.contains(text, autoescape=True)
        found.append(named | tagged | crawls.c.id.startswith(text, autoescape=True) | member.exists())
    if wanted.newest_runs:
        later = crawls.alias("later")
        newest = select(func.max(later.c.n)).where(later.c.schedule == crawls.c.schedule).scalar_subquery()
        found.append(crawls.c.schedule.is_(None) | (crawls.c.n == newest))
    return found


def describe(tx: Connection, n: int, changes: Mapping[str, Any]) -> None:
    """Change `name` or `tags`, which processes that crawl need not know."""
    values = {name: json.dumps(value) if name == "tags" else value for name, value in changes.items()}
    if values:
        tx.execute(update(crawls).where(crawls.c.n == n).values(values))


def running(tx: Connection) -> list[Crawl]:
    """Every crawl that is loading or running, with its members, oldest first."""
    rows = tx.execute(select(crawls).where(crawls.c.state.in_(ACTIVE)).order_by(crawls.c.n)).all()
    return [_crawl(row, _members(tx, row.n)) for row in rows]


def ended_before(tx: Connection, before_ms: int) -> list[Crawl]:
    """Some crawls that ended before then, oldest first, without their members."""
    over = crawls.c.state.in_((CrawlState.FINISHED, CrawlState.CANCELLED))
    query = select(crawls).where(over, crawls.c.ended_ms < before_ms).order_by(crawls.c.n).limit(1000)
    return [_crawl(row, frozenset()) for row in tx.execute(query)]


def states(tx: Connection) -> dict[int, tuple[CrawlState, int]]:
    """State and version of every crawl that has not ended."""
    query = select(crawls.c.n, crawls.c.state, crawls.c.version).where(crawls.c.state.not_in(ENDED))
    return {n: (CrawlState(state), version) for n, state, version in tx.execute(query)}


def state_of(tx: Connection, n: int) -> CrawlState | None:
    """None if it was deleted."""
    found = tx.execute(select(crawls.c.state).where(crawls.c.n == n)).scalar()
    return None if found is None else CrawlState(found)


def settings_of(tx: Connection, n: int) -> dict[str, Any]:
    found = tx.execute(select(crawls.c.settings).where(crawls.c.n == n)).scalar()
    loaded: dict[str, Any] = json.loads(found or "{}")
    return loaded


def keep_settings(tx: Connection, n: int, settings: Mapping[str, Any]) -> None:
    """Store the settings that the crawl runs with, for the next --resume."""
    tx.execute(update(crawls).where(crawls.c.n == n).values(settings=json.dumps(settings, default=str)))


def change_options(tx: Connection, n: int, changes: Mapping[str, Any]) -> None:
    """Change `delay_s`, `per_host` or `max_pages`. The new version makes every process read the crawl again."""
    tx.execute(update(crawls).where(crawls.c.n == n).values(**changes, version=crawls.c.version + 1))


def set_plan(tx: Connection, n: int, plan: Crawl) -> None:
    """Make records with the schema, rubric and model of `plan` from now on."""
    definitions.keep(tx, plan.definitions)
    names = ("schema", "schema_hash", "per", "rubric", "rubric_hash", "llm", "verify", "judge_model")
    tx.execute(update(crawls).where(crawls.c.n == n).values({name: getattr(plan, name) for name in names}))


def set_state(
    tx: Connection,
    n: int,
    state: CrawlState,
    reason: str | None,
    now_ms: int,
    only_from: Collection[CrawlState] = (),
) -> bool:
    """Change the state; False if it was not in `only_from` (empty: any other state)."""
    values: dict[str, Any] = {"state": state, "reason": reason}
    values["ended_ms"] = now_ms if state in ENDED else None
    if state is CrawlState.RUNNING:
        values["started_ms"] = func.coalesce(crawls.c.started_ms, now_ms)
    allowed = crawls.c.state.in_(only_from) if only_from else crawls.c.state != state
    change = update(crawls).where(crawls.c.n == n, allowed).values(values).returning(crawls.c.id, crawls.c.request_id)
    row = tx.execute(change).first()
    changed = row is not None
    if row is not None:
        started = state is CrawlState.RUNNING and tuple(only_from) == (CrawlState.LOADING,)
        action = "crawl_started" if started else _ACTIONS[state]
        crawl_events.note(tx, CrawlIdentity(row.id, row.request_id), action, reason=reason)
    if changed and state in (CrawlState.FINISHED, CrawlState.CANCELLED):
        tx.execute(_TELL, {"n": n, "state": state.value, "now": now_ms, "payload": json.dumps({"since_ms": now_ms})})
    return changed


def lock_budgets(tx: Connection, ns: Iterable[int]) -> dict[int, tuple[int | None, int]]:
    """(max_pages, pages) of each crawl, by number. Locks the rows until the transaction ends."""
    query = select(crawls.c.n, crawls.c.max_pages, crawls.c.pages)
    query = query.where(crawls.c.n.in_(unique_sorted(ns))).order_by(crawls.c.n)
    if is_postgresql(tx):
        query = query.with_for_update()
    return {n: (max_pages, pages) for n, max_pages, pages in tx.execute(query)}


def lock_limited(tx: Connection, ns: Iterable[int]) -> None:
    """Lock those of these crawls that have max_pages: every transaction locks them before anything else."""
    if is_postgresql(tx):
        limited = crawls.c.n.in_(unique_sorted(ns)), crawls.c.max_pages.is_not(None)
        tx.execute(select(crawls.c.n).where(*limited).order_by(crawls.c.n).with_for_update())


def lock(tx: Connection, ns: Iterable[int]) -> None:
    _lock(tx, [(n,) for n in ns])


def add_pages(tx: Connection, pages: Mapping[int, int]) -> None:
    """Count pages against each crawl's max_pages."""
    rows = sorted((n, by) for n, by in pages.items() if by)
    if len(rows) > 1:
        lock(tx, pages)
    _add_pages(tx, rows)


def add_counts(tx: Connection, counts: Mapping[tuple[int, str, str], int]) -> None:
    """Add to the ledger by (crawl, state, reason); ('open', '') counts the rows that were added."""
    _add_counts(tx, sorted((*key, by) for key, by in counts.items() if by))


def counts(tx: Connection, n: int) -> Counts:
    """The ledger. Open rows of a dead host count as failed for its reason; those of an ended crawl as skipped."""
    columns = (crawls.c.state, crawls.c.reason, crawls.c.pages, crawls.c.render)
    row = tx.execute(select(*columns).where(crawls.c.n == n)).first()
    if row is None:
        raise UnknownCrawl(f"There is no crawl number {n} in the store.")
    by_state: dict[str, dict[str, int]] = {"open": {}, "done": {}, "skipped": {}, "failed": {}}
    for state, reason, by in tx.execute(
        select(crawl_counts.c.state, crawl_counts.c.reason, crawl_counts.c.n).where(crawl_counts.c.crawl == n)
    ):
        if by:
            by_state[state][reason] = by
    for reason, by in tx.execute(_DEAD_ROWS, {"crawl": n}):
        by_state["failed"][reason] = by_state["failed"].get(reason, 0) + by
    added = sum(by_state["open"].values())
    pending = added - sum(sum(by_state[state].values()) for state in ("done", "skipped", "failed"))
    if pending and row.state in ENDED:
        reason = row.reason or row.state
        by_state["skipped"][reason] = by_state["skipped"].get(reason, 0) + pending
        pending = 0
    done = sum(by_state["done"].values())
    render = 0
    if pending and row.render != "never":
        render = int(tx.execute(_RENDER_ROWS, {"crawl": n, "most": MOST_RENDER}).scalar_one())
    return Counts(
        pages=row.pages, done=done, pending=pending, skipped=by_state["skipped"], failed=by_state["failed"],
        pending_render=render, failed_stages=failures.of_stages(tx, n),
    )  # fmt: skip


def extend_members(tx: Connection, n: int, members: Iterable[str]) -> int:
    """Add hosts or domains to the crawl's scope. Returns its version, which increases if any of them was new."""
    lock(tx, [n])
    if _add_members(tx, [(n, member) for member in unique_sorted(members)]):
        grown = update(crawls).where(crawls.c.n == n).values(version=crawls.c.version + 1).returning(crawls.c.version)
        return int(tx.execute(grown).scalar_one())
    return int(tx.execute(select(crawls.c.version).where(crawls.c.n == n)).scalar_one())


def _members(tx: Connection, n: int) -> frozenset[str]:
    return frozenset(tx.execute(select(crawl_members.c.member).where(crawl_members.c.crawl == n)).scalars())


def _crawl(row: Any, members: frozenset[str]) -> Crawl:
    values = dict(row._mapping)
    del values["settings"]
    values |= {"state": CrawlState(row.state), "lane": Lane(row.lane), "members": members}
    values |= {name: tuple(json.loads(values[name])) for name in ("include", "exclude", "tags")}
    return Crawl(**values)
