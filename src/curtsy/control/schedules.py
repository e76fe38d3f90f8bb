"""Recurring crawls: schedules are created here and fired from Beat's tick.

A run is written to the store before its crawl is created, under the key (schedule, planned time) and with the id of the
future crawl. So two Beats fire it once, and if one crashes in between, the next one continues. Times that passed while
no Beat was running cause one run, not many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from curtsy.control import crawl_request, submit
from curtsy.control import seeds as seeds_
from curtsy.control.crawl_request import request_from
from curtsy.core import clock
from curtsy.core.errors import UsageError, WrongState
from curtsy.core.model import Counts, Crawl, Run, Schedule, new_id
from curtsy.core.observe import log, log_crawl, request_id
from curtsy.core.settings import Settings
from curtsy.core.threads import in_thread
from curtsy.rules.cron import Cron
from curtsy.services.backends import Services
from curtsy.store import crawls, schedules
from curtsy.store.engine import Store, read

#: for this long, a run belongs to the process that is creating its crawl
_LEASE_MS = 60_000
#: the seeds of a schedule are in one row of the store
MOST_SEEDS = 10_000
_MOST_COUNTED = 1000


def add(
    store: Store,
    settings: Settings,
    *,
    name: str,
    cron: str,
    seeds: Iterable[str],
    crawl: dict[str, Any] | None = None,
    zone: str = "UTC",
    overlap: str = "skip",
    keep: int | None = None,
    request_id: str = "",
    owner: str | None = None,
    now_ms: int | None = None,
) -> Schedule:
    """Create a schedule; errors are raised before anything is written. `crawl` has the fields of a CrawlRequest."""
    now = now_ms or clock.now_ms()
    request = request_from(crawl or {}, "crawl.{}")
    made = Schedule(
        id=new_id(), name=name, cron=cron, zone=zone, crawl=request.model_dump(by_alias=True, mode="json"),
        seeds=_seeds(seeds, settings), overlap=overlap, keep=keep, created_ms=now, request_id=request_id, owner=owner,
    )  # fmt: skip
    return store.run(schedules.create, _checked(made, settings, now))


def _checked(schedule: Schedule, settings: Settings, now_ms: int) -> Schedule:
    """The schedule with its next time; UsageError for a value that cannot be used."""
    _check_name(schedule.name)
    if schedule.overlap not in ("skip", "queue"):
        raise UsageError(f"Invalid overlap: {schedule.overlap!r}. Use skip or queue.")
    if schedule.keep is not None and not 1 <= schedule.keep <= 1_000_000:
        raise UsageError("Invalid number of runs to keep. Use 1 to 1000000, or omit it to keep all.")
    next_ms = Cron.parse(schedule.cron, schedule.zone).next_after(now_ms)
    if next_ms is None:
        raise UsageError(f"{schedule.cron!r} never fires: there is no such day.")
    crawl_of(schedule, settings, "check", "check")
    return replace(schedule, next_ms=next_ms)


def edit(store: Store, settings: Settings, id: str, changes: Mapping[str, Any], now_ms: int | None = None) -> Schedule:
    """Change `name`, `cron`, `zone`, `seeds`, `crawl`, `overlap` or `keep` from the next run on.

    `crawl` replaces all options. The secret of an unchanged webhook is kept. Errors are raised before anything is
    written.
    """
    now = now_ms or clock.now_ms()
    with store.read() as tx:
        known = schedules.get(tx, id)
    values = dict(changes)
    if "crawl" in values:
        values["crawl"] = _with_secret(values["crawl"], known.crawl)
    if "seeds" in values:
        values["seeds"] = _seeds(values["seeds"], settings)
    made = _checked(replace(known, **values), settings, now)
    if (made.cron, made.zone) == (known.cron, known.zone):
        made = replace(made, next_ms=known.next_ms)
    return store.run(schedules.change, made)


def _with_secret(crawl: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    made = request_from(crawl, "crawl.{}").model_dump(by_alias=True, mode="json")
    same = made["webhook"] is not None and made["webhook"] == before.get("webhook")
    return made | {"webhook_secret": made["webhook_secret"] or (before.get("webhook_secret") if same else None)}


def run_now(store: Store, id: str, now_ms: int | None = None) -> Run:
    """Plan a run for now, in addition to the planned times. Beat creates its crawl within about a second."""
    return store.run(_run_now, id, now_ms or clock.now_ms())


def _run_now(tx: Any, id: str, now_ms: int) -> Run:
    found = schedules.get(tx, id)
    if not found.enabled:
        raise WrongState(f"The schedule {found.name!r} is paused. Resume it first.")
    going_ms = schedules.going(tx, found.n)
    if going_ms is not None and found.overlap == "skip":
        raise WrongState(f"The run of {_when(going_ms)} has not ended. Wait for its end, or cancel its crawl.")
    if any(run.schedule == found.n for run in schedules.waiting(tx, "queued")):
        raise WrongState("Another run is already waiting.")
    state, note = ("planned", "started by hand") if going_ms is None else ("queued", f"waits for {_when(going_ms)}")
    schedules.plan(tx, found.n, now_ms, state, new_id(), note, now_ms)
    return schedules.runs_of(tx, found.n, now_ms + 1, 1)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run, and the result of its crawl; None: it has no crawl, or it was deleted."""

    run: Run
    crawl: Crawl | None = None
    counts: Counts | None = None


def outcomes(tx: Any, schedule: int, before_ms: int | None = None, limit: int = 100) -> list[Outcome]:
    """The runs of a schedule, newest first, with their results."""
    found = []
    for run in schedules.runs_of(tx, schedule, before_ms, limit):
        crawl = None if run.crawl is None else crawls.by_n(tx, run.crawl, members=False)
        if crawl is None or not crawl.id:
            found.append(Outcome(run=run))
        else:
            found.append(Outcome(run=run, crawl=crawl, counts=crawls.counts(tx, crawl.n)))
    return found


def outcome_document(one: Outcome) -> dict[str, Any]:
    """An outcome as it is shown; times in milliseconds."""
    run, crawl, counts = one.run, one.crawl, one.counts
    failed = None if counts is None else sum(counts.failed.values()) + sum(counts.failed_stages.values())
    return {
        "planned": run.planned_ms, "state": run.state, "note": run.note,
        "crawl": run.crawl_id if run.crawl is not None else None,
        "outcome": None if crawl is None else crawl.state.value,
        "reason": None if crawl is None else crawl.reason,
        "pages": None if counts is None else counts.pages, "dead_letters": failed,
        "started": None if crawl is None else crawl.started_ms, "ended": None if crawl is None else crawl.ended_ms,
    }  # fmt: skip


def _check_name(name: str) -> None:
    if not 0 < len(name) <= 100 or not name.isprintable():
        raise UsageError("A schedule needs a name of 1 to 100 printable characters, for example 'news'.")
    if "/" in name or name in (".", ".."):
        # Even escaped, these do not arrive as they were sent.
        raise UsageError(
            f"Invalid schedule name: {name!r}. The name is part of API URLs: it must not contain '/' or be '.' or '..'."
        )


def _seeds(given: Iterable[str], settings: Settings) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for url in seeds_.each(given, settings):
        found[url] = None
        if len(found) > MOST_SEEDS:
            raise UsageError(f"A schedule has at most {MOST_SEEDS:,} seeds. Make several schedules.")
    if not found:
        raise UsageError("A schedule needs at least one URL as its seed.")
    return tuple(found)


def crawl_of(schedule: Schedule, settings: Settings, id: str, request_id: str) -> Crawl:
    """The crawl of one run: it has the name of the schedule, unless the options name it."""
    request = request_from({**schedule.crawl, "name": schedule.crawl.get("name") or schedule.name}, "crawl.{}")
    return replace(crawl_request.crawl_of(request, settings, request_id, id, schedule.owner), schedule=schedule.n)


def shown(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule for display: without its webhook secret."""
    names = ("id", "name", "cron", "zone", "overlap", "enabled", "keep", "owner")
    crawl = {name: value for name, value in schedule.crawl.items() if name != "webhook_secret"}
    return {name: getattr(schedule, name) for name in names} | {"seeds": list(schedule.seeds), "crawl": crawl}


def pause(store: Store, id: str) -> Schedule:
    """Start no run until it is resumed, not even a queued one."""
    return store.run(_enable, id, False, 0)


def resume(store: Store, id: str, now_ms: int | None = None) -> Schedule:
    """Resume a schedule. Missed runs are not repeated; a queued run keeps waiting."""
    return store.run(_enable, id, True, now_ms or clock.now_ms())


def _enable(tx: Any, id: str, enabled: bool, now_ms: int) -> Schedule:
    found = schedules.get(tx, id)
    if found.enabled != enabled:
        next_ms = Cron.parse(found.cron, found.zone).next_after(now_ms) if enabled else found.next_ms
        schedules.enable(tx, found.n, enabled, next_ms)
    return schedules.get(tx, found.id)


def remove(store: Store, id: str) -> Schedule:
    """Remove the schedule and the list of its runs; its crawls stay."""
    return store.run(_remove, id)


def _remove(tx: Any, id: str) -> Schedule:
    found = schedules.get(tx, id)
    schedules.remove(tx, found.n)
    return found


# Firing


async def fire(services: Services, now_ms: int | None = None) -> list[str]:
    """Create crawls for due runs; return the ids of those that this call created."""
    now = now_ms or clock.now_ms()
    store = services.store
    if await read(store, _anything, now):
        await in_thread(store.run, _plan_due, now)
    planned = await read(store, schedules.waiting, "planned")
    return [run.crawl_id for run in planned if await _claimed(store, run, now) and await _make(services, run, now)]


def _anything(tx: Any, now_ms: int) -> bool:
    return bool(schedules.due(tx, now_ms) or schedules.waiting(tx, "queued"))


async def _claimed(store: Store, run: Run, now_ms: int) -> bool:
    return await in_thread(store.run, schedules.claim, run, now_ms, _LEASE_MS)


def _plan_due(tx: Any, now_ms: int) -> None:
    for run in schedules.waiting(tx, "queued"):
        if schedules.going(tx, run.schedule) is None:
            schedules.set_run(tx, run, "planned", "queued", note="")
    for schedule in schedules.due(tx, now_ms):
        cron, planned_ms = Cron.parse(schedule.cron, schedule.zone), schedule.next_ms
        assert planned_ms is not None
        if not schedules.advance(tx, schedule, cron.next_after(now_ms)):
            continue
        state, note = _fate(tx, schedule, cron, planned_ms, now_ms)
        schedules.plan(tx, schedule.n, planned_ms, state, new_id(), note, now_ms)


def _fate(tx: Any, schedule: Schedule, cron: Cron, planned_ms: int, now_ms: int) -> tuple[str, str]:
    """Return the state of a run and a note that explains it."""
    going_ms = schedules.going(tx, schedule.n)
    if going_ms is None:
        missed = _missed(cron, planned_ms, now_ms)
        return "planned", f"replaces {missed} more that were missed" if missed else ""
    if schedule.overlap == "skip":
        return "skipped", f"the run of {_when(going_ms)} had not ended"
    if any(run.schedule == schedule.n for run in schedules.waiting(tx, "queued")):
        return "skipped", "another run was already waiting"
    return "queued", f"waits for the run of {_when(going_ms)}"


def _missed(cron: Cron, planned_ms: int, now_ms: int) -> int:
    found, at_ms = 0, cron.next_after(planned_ms)
    while at_ms is not None and at_ms <= now_ms and found < _MOST_COUNTED:
        found, at_ms = found + 1, cron.next_after(at_ms)
    return found


async def _make(services: Services, run: Run, now_ms: int) -> bool:
    """Create the crawl of a run. Another process may repeat this after a crash: the crawl already has its id."""
    schedule = await read(services.store, schedules.by_n, run.schedule)
    if schedule is None or not schedule.enabled:
        return False  # removed or paused in the meantime
    token = request_id.set(run.crawl_id)
    try:
        crawl = crawl_of(schedule, services.settings, run.crawl_id, run.crawl_id)
        submitted = await submit.submit(services, crawl, schedule.seeds)
    except UsageError as error:
        # A retry would fail too: the settings or the schedule must change.
        await in_thread(services.store.run, _give_up, run, str(error), now_ms)
        log(
            "run_not_made", level="error", schedule=schedule.name, crawl=run.crawl_id, request_id=run.crawl_id,
            error=str(error),
        )  # fmt: skip
        return False
    finally:
        request_id.reset(token)
    await in_thread(services.store.run, _started, run, submitted.n, now_ms)
    log_crawl(submitted, "run_started", schedule=schedule.name, planned=_when(run.planned_ms))
    return True


def _started(tx: Any, run: Run, crawl: int, now_ms: int) -> None:
    schedules.set_run(tx, run, "started", "planned", crawl=crawl, at_ms=now_ms)


def _give_up(tx: Any, run: Run, why: str, now_ms: int) -> None:
    schedules.set_run(tx, run, "skipped", "planned", note=why[:500], at_ms=now_ms)


def expired_crawls(tx: Any) -> list[str]:
    """Return the ids of ended crawls beyond the number of runs that their schedule keeps."""
    found: list[str] = []
    after = 0
    while some := schedules.list_all(tx, after, 1000):
        after = some[-1].n
        for schedule in some:
            found += schedules.expired_crawls(tx, schedule)
    return found


def previous(tx: Any, crawl: Crawl) -> Crawl | None:
    """Return the crawl of the previous run."""
    if crawl.schedule is None:
        return None
    n = schedules.previous_crawl(tx, crawl.schedule, crawl.n)
    return None if n is None else crawls.by_n(tx, n)


def _when(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
