"""Schedules: create, list, edit, run now, pause, resume, remove; and their runs."""

from __future__ import annotations

from curtsy.control import schedules as scheduling
from curtsy.control import seeds as seed_check
from curtsy.core.errors import NameTaken
from curtsy.store import schedules
from curtsy.web.models.crawls import check_offered, check_polite
from curtsy.web.models.schedules import NewSchedule, RunInfo, ScheduleChanges, ScheduleInfo, run_of, schedule_of
from curtsy.web.paging import Page, Paged, decode_one, page
from curtsy.web.problems import Problem
from curtsy.web.routing import Call, endpoint


@endpoint("POST", "/v1/schedules", scope="write", status=201, problems=(409,))
def make_schedule(call: Call, body: NewSchedule) -> ScheduleInfo:
    """Create a schedule: a crawl that runs repeatedly.

    Beat starts its runs; each planned time has one run. Seeds that cannot be crawled are refused before anything is
    stored.
    """
    check_offered(body.crawl, call.settings, "body.crawl")
    check_polite(body.crawl, call.settings, call.caller)
    urls = seed_check.checked(body.seeds, call.settings, "body.seeds.{}")
    try:
        made = scheduling.add(
            call.store, call.settings, name=body.name, cron=body.cron, zone=body.zone, seeds=urls,
            crawl=body.crawl.model_dump(by_alias=True), overlap=body.overlap, keep=body.keep,
            request_id=call.request_id, owner=call.caller.key_id,
        )  # fmt: skip
    except NameTaken as error:
        raise Problem(409, "name-taken", str(error)) from None
    return schedule_of(made)


@endpoint("GET", "/v1/schedules", scope="read")
def list_schedules(call: Call, query: Paged) -> Page[ScheduleInfo]:
    """List schedules in the order of their creation."""
    after = decode_one(query.cursor, int, 0)
    with call.store.read() as tx:
        found = schedules.list_all(tx, after, query.limit + 1)
    return page(ScheduleInfo, found, query.limit, lambda schedule: schedule.n, schedule_of)


@endpoint("GET", "/v1/schedules/{id}", scope="read")
def schedule(call: Call, id: str) -> ScheduleInfo:
    """One schedule, by its name, its id, or the beginning of its id."""
    return schedule_of(call.schedule(id))


@endpoint("PATCH", "/v1/schedules/{id}", scope="write", problems=(409,))
def edit_schedule(call: Call, id: str, body: ScheduleChanges) -> ScheduleInfo:
    """Change a schedule from its next run on. `crawl` replaces all options of its crawls."""
    changes = {name: getattr(body, name) for name in body.model_fields_set}
    if body.crawl is not None:
        check_offered(body.crawl, call.settings, "body.crawl")
        check_polite(body.crawl, call.settings, call.caller)
        changes["crawl"] = body.crawl.model_dump(by_alias=True)
    if body.seeds is not None:
        changes["seeds"] = seed_check.checked(body.seeds, call.settings, "body.seeds.{}")
    kept = {name: value for name, value in changes.items() if value is not None or name == "keep"}
    try:
        return schedule_of(scheduling.edit(call.store, call.settings, call.schedule(id).id, kept))
    except NameTaken as error:
        raise Problem(409, "name-taken", str(error)) from None


@endpoint("POST", "/v1/schedules/{id}/run", scope="write", status=202, problems=(409,))
def run_schedule(call: Call, id: str) -> RunInfo:
    """Run a schedule now, in addition to its planned times. Beat creates the crawl within about a second."""
    found = call.schedule(id)
    return run_of(scheduling.Outcome(run=scheduling.run_now(call.store, found.id)))


@endpoint("DELETE", "/v1/schedules/{id}", scope="write", status=204)
def remove_schedule(call: Call, id: str) -> None:
    """Remove a schedule and the list of its runs. Its crawls stay."""
    scheduling.remove(call.store, call.schedule(id).id)


@endpoint("POST", "/v1/schedules/{id}/pause", scope="write")
def pause_schedule(call: Call, id: str) -> ScheduleInfo:
    """Start no more runs until the schedule is resumed. A running crawl continues."""
    return schedule_of(scheduling.pause(call.store, call.schedule(id).id))


@endpoint("POST", "/v1/schedules/{id}/resume", scope="write")
def resume_schedule(call: Call, id: str) -> ScheduleInfo:
    """Resume a paused schedule from now on. Missed runs are not repeated."""
    return schedule_of(scheduling.resume(call.store, call.schedule(id).id))


@endpoint("GET", "/v1/schedules/{id}/runs", scope="read")
def schedule_runs(call: Call, id: str, query: Paged) -> Page[RunInfo]:
    """The runs of a schedule, newest first, with the results of their crawls."""
    before = decode_one(query.cursor, int)
    n = call.schedule(id).n
    with call.store.read() as tx:
        found = scheduling.outcomes(tx, n, before, query.limit + 1)
    return page(RunInfo, found, query.limit, lambda one: one.run.planned_ms, run_of)
