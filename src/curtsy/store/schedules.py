"""Schedules and their runs. A run is unique by (schedule, planned time), so several processes start it only once."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Connection, delete, func, select, text, update
from sqlalchemy.exc import IntegrityError

from curtsy.core.errors import NameTaken, UnknownSchedule
from curtsy.core.model import Run, Schedule
from curtsy.store.rows import unique_sorted
from curtsy.store.tables import crawls, runs, schedules

_CLAIM = text(
    "UPDATE runs SET lease_ms = :until WHERE schedule = :schedule AND planned_ms = :planned AND state = 'planned' "
    "AND lease_ms <= :now"
)
_PLAN = text(
    "INSERT INTO runs (schedule, planned_ms, state, crawl_id, note, at_ms) VALUES (:schedule, :planned, :state, "
    ":crawl_id, :note, :now) ON CONFLICT (schedule, planned_ms) DO NOTHING"
)
_PREVIOUS = text(
    "SELECT r.crawl FROM runs r JOIN runs this ON this.schedule = r.schedule AND this.planned_ms > r.planned_ms "
    "JOIN crawls c ON c.n = r.crawl AND c.state <> 'deleting' WHERE this.crawl = :crawl AND this.schedule = :schedule "
    "AND r.state = 'started' "
    "ORDER BY r.planned_ms DESC LIMIT 1"
)
_GOING = text(
    "SELECT r.planned_ms FROM runs r LEFT JOIN crawls c ON c.id = r.crawl_id WHERE r.schedule = :schedule "
    "AND (r.state = 'planned' OR (r.state = 'started' AND c.state NOT IN ('finished', 'cancelled', 'deleting'))) "
    "ORDER BY r.planned_ms DESC LIMIT 1"
)
_EXPIRED = text(
    "SELECT c.id FROM crawls c JOIN runs r ON r.crawl = c.n WHERE r.schedule = :schedule AND r.state = 'started' "
    "AND c.state IN ('finished', 'cancelled') ORDER BY r.planned_ms DESC LIMIT 1000 OFFSET :keep"
)


def create(tx: Connection, schedule: Schedule) -> Schedule:
    """Write a new schedule; names are unique. Harmless when repeated."""
    taken = NameTaken(f"There is a schedule {schedule.name!r} already: remove it first, or choose another name.")
    found = tx.execute(select(schedules.c.id).where(schedules.c.name == schedule.name)).scalar()
    if found == schedule.id:
        return get(tx, schedule.id)
    if found is not None:
        raise taken
    values = {column.name: getattr(schedule, column.name) for column in schedules.columns if column.name != "n"}
    values |= {"crawl": json.dumps(schedule.crawl), "seeds": json.dumps(schedule.seeds)}
    try:
        tx.execute(schedules.insert().values(values))
    except IntegrityError:  # another process created it just now
        raise taken from None
    return get(tx, schedule.id)


def change(tx: Connection, schedule: Schedule) -> Schedule:
    """Write the changed fields of a schedule; names are unique."""
    names = ("name", "cron", "zone", "overlap", "keep", "next_ms")
    values = {name: getattr(schedule, name) for name in names}
    values |= {"crawl": json.dumps(schedule.crawl), "seeds": json.dumps(schedule.seeds)}
    taken = select(schedules.c.n).where(schedules.c.name == schedule.name, schedules.c.n != schedule.n)
    if tx.execute(taken).first() is not None:
        raise NameTaken(f"There is a schedule {schedule.name!r} already: choose another name.")
    tx.execute(update(schedules).where(schedules.c.n == schedule.n).values(values))
    return get(tx, schedule.id)


def get(tx: Connection, id: str) -> Schedule:
    """The schedule with that name or id, or with the only id that begins so."""
    clean = id.isprintable()  # PostgreSQL takes no text with a zero byte
    both = (schedules.c.id == id) | (schedules.c.name == id)
    rows = tx.execute(select(schedules).where(both)).all() if clean else []
    if not rows and id and clean:
        rows = tx.execute(select(schedules).where(schedules.c.id.startswith(id, autoescape=True)).limit(2)).all()
    if len(rows) != 1:
        what = "Several schedules begin with" if rows else "There is no schedule"
        raise UnknownSchedule(f"{what} {id!r}. `curtsy schedules list` shows them.")
    return _schedule(rows[0])


def by_n(tx: Connection, n: int) -> Schedule | None:
    row = tx.execute(select(schedules).where(schedules.c.n == n)).first()
    return None if row is None else _schedule(row)


def names(tx: Connection, ns: Iterable[int | None]) -> dict[int, str]:
    """The names of these schedules by their numbers."""
    wanted = unique_sorted(n for n in ns if n is not None)
    if not wanted:
        return {}
    return {
        row.n: row.name for row in tx.execute(select(schedules.c.n, schedules.c.name).where(schedules.c.n.in_(wanted)))
    }


def count_crawls(tx: Connection, wanted: Collection[str]) -> dict[str, int]:
    """name of a schedule -> the number of its crawls."""
    if not wanted:
        return {}
    query = select(schedules.c.name, func.count()).join(crawls, crawls.c.schedule == schedules.c.n)
    query = query.where(schedules.c.name.in_(sorted(wanted))).group_by(schedules.c.name)
    return {name: int(n) for name, n in tx.execute(query)}


def list_all(tx: Connection, after: int = 0, limit: int = 100) -> list[Schedule]:
    """All schedules in the order of creation, after a number."""
    query = select(schedules).where(schedules.c.n > after).order_by(schedules.c.n).limit(limit)
    return [_schedule(row) for row in tx.execute(query)]


def due(tx: Connection, now_ms: int) -> list[Schedule]:
    query = select(schedules).where(schedules.c.enabled, schedules.c.next_ms <= now_ms).order_by(schedules.c.n)
    return [_schedule(row) for row in tx.execute(query)]


def advance(tx: Connection, schedule: Schedule, next_ms: int | None) -> bool:
    """Set the next time; False if another process did so since `schedule` was read, or it was paused."""
    mine = (schedules.c.n == schedule.n, schedules.c.enabled, schedules.c.next_ms == schedule.next_ms)
    return tx.execute(update(schedules).where(*mine).values(next_ms=next_ms)).rowcount > 0


def enable(tx: Connection, n: int, enabled: bool, next_ms: int | None) -> None:
    tx.execute(update(schedules).where(schedules.c.n == n).values(enabled=enabled, next_ms=next_ms))


def remove(tx: Connection, n: int) -> None:
    """Delete the schedule and the list of its runs; the crawls stay."""
    tx.execute(delete(schedules).where(schedules.c.n == n))
    tx.execute(delete(runs).where(runs.c.schedule == n))


def plan(tx: Connection, schedule: int, planned_ms: int, state: str, crawl_id: str, note: str, now_ms: int) -> bool:
    """Store a run; False if this planned time has one."""
    given = {"schedule": schedule, "planned": planned_ms, "state": state, "crawl_id": crawl_id, "note": note}
    return tx.execute(_PLAN, {**given, "now": now_ms}).rowcount > 0


def waiting(tx: Connection, state: str) -> list[Run]:
    """Runs that are `planned` or `queued`, by planned time; none of a schedule that is paused."""
    query = select(runs).join(schedules, schedules.c.n == runs.c.schedule).where(schedules.c.enabled)
    query = query.where(runs.c.state == state, runs.c.state.in_(("planned", "queued")))
    return [_run(row) for row in tx.execute(query.order_by(runs.c.planned_ms))]


def claim(tx: Connection, run: Run, now_ms: int, lease_ms: int) -> bool:
    """Claim a planned run; False while another process creates its crawl."""
    given = {"schedule": run.schedule, "planned": run.planned_ms, "now": now_ms, "until": now_ms + lease_ms}
    return tx.execute(_CLAIM, given).rowcount > 0


def set_run(tx: Connection, run: Run, state: str, only_from: str, **values: Any) -> bool:
    mine = (runs.c.schedule == run.schedule, runs.c.planned_ms == run.planned_ms, runs.c.state == only_from)
    return tx.execute(update(runs).where(*mine).values(state=state, **values)).rowcount > 0


def going(tx: Connection, schedule: int) -> int | None:
    """The planned time of the last run if it has not ended."""
    found = tx.execute(_GOING, {"schedule": schedule}).scalar()
    return None if found is None else int(found)


def runs_of(tx: Connection, schedule: int, before_ms: int | None = None, limit: int = 100) -> list[Run]:
    """Newest first, before a planned time."""
    query = select(runs).where(runs.c.schedule == schedule).order_by(runs.c.planned_ms.desc()).limit(limit)
    if before_ms is not None:
        query = query.where(runs.c.planned_ms < before_ms)
    return [_run(row) for row in tx.execute(query)]


def previous_crawl(tx: Connection, schedule: int, crawl: int) -> int | None:
    """The crawl of the run before this one, or None."""
    found = tx.execute(_PREVIOUS, {"schedule": schedule, "crawl": crawl}).scalar()
    return None if found is None else int(found)


def crawls_of(tx: Connection, schedule: int, limit: int) -> list[int]:
    """The crawls of its newest runs, newest first."""
    query = select(runs.c.crawl).where(runs.c.schedule == schedule, runs.c.crawl.is_not(None))
    return [int(n) for n in tx.execute(query.order_by(runs.c.planned_ms.desc()).limit(limit)).scalars()]


def expired_crawls(tx: Connection, schedule: Schedule) -> list[str]:
    """Ids of ended crawls that are older than the runs to be kept."""
    if schedule.keep is None:
        return []
    return list(tx.execute(_EXPIRED, {"schedule": schedule.n, "keep": schedule.keep}).scalars())


def _schedule(row: Any) -> Schedule:
    values = dict(row._mapping)
    values |= {"crawl": json.loads(row.crawl), "seeds": tuple(json.loads(row.seeds)), "enabled": bool(row.enabled)}
    return Schedule(**values)


def _run(row: Any) -> Run:
    values = dict(row._mapping)
    del values["lease_ms"]
    return Run(**values)
