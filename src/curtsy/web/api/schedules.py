"""Schedules: made, listed, paused, resumed, removed; and their runs."""

from __future__ import annotations

from curtsy.control import schedules as scheduling
from curtsy.control import uploads
from curtsy.core.errors import NameTaken, UnknownSchedule
from curtsy.core.model import Schedule
from curtsy.store import schedules
from curtsy.web.models.crawls import check_offered
from curtsy.web.models.schedules import NewSchedule, RunInfo, ScheduleInfo, run_of, schedule_of
from curtsy.web.paging import Page, Paged, decode, page
from curtsy.web.problems import Problem
from curtsy.web.routing import Call, endpoint

_TAGS = ("schedules",)


@endpoint(
    "POST", "/v1/schedules", scope="write", body=NewSchedule, answers={201: ScheduleInfo}, problems=(409,), tags=_TAGS
)
def make_schedule(call: Call) -> ScheduleInfo:
    """Make a schedule: a crawl that is run again and again.

    Beat fires it; each planned time has one run. What cannot be crawled is refused before anything is stored.
    """
    new: NewSchedule = call.body
    check_offered(new.crawl, call.settings, "body.crawl")
    urls = uploads.checked(new.seeds, call.settings, "body.seeds.{}")
    try:
        made = scheduling.add(
            call.store, call.settings, name=new.name, cron=new.cron, zone=new.zone, seeds=urls,
            crawl=new.crawl.model_dump(by_alias=True), overlap=new.overlap, keep=new.keep, request_id=call.request_id,
        )  # fmt: skip
    except NameTaken as error:
        raise Problem(409, "name-taken", str(error)) from None
    return schedule_of(made)


@endpoint("GET", "/v1/schedules", scope="read", query=Paged, answers={200: Page[ScheduleInfo]}, tags=_TAGS)
def list_schedules(call: Call) -> Page[ScheduleInfo]:
    """List schedules, in the order they were made."""
    query: Paged = call.query
    position = decode(query.cursor, int)
    with call.store.read() as tx:
        found = schedules.list_all(tx, 0 if position is None else position[0], query.limit + 1)
    whole = page(found, query.limit, lambda schedule: (schedule.n,))
    return Page[ScheduleInfo](items=[schedule_of(one) for one in whole.items], next=whole.next)


@endpoint("GET", "/v1/schedules/{id}", scope="read", answers={200: ScheduleInfo}, tags=_TAGS)
def schedule(call: Call, id: str) -> ScheduleInfo:
    """One schedule, by its name, its id, or the beginning of its id."""
    return schedule_of(_find(call, id))


@endpoint("DELETE", "/v1/schedules/{id}", scope="write", answers={204: None}, tags=_TAGS)
def remove_schedule(call: Call, id: str) -> None:
    """Remove a schedule and the list of its runs. Its crawls stay."""
    scheduling.remove(call.store, _find(call, id).id)


@endpoint("POST", "/v1/schedules/{id}/pause", scope="write", answers={200: ScheduleInfo}, tags=_TAGS)
def pause_schedule(call: Call, id: str) -> ScheduleInfo:
    """Fire it no more until it is resumed. A crawl that is under way goes on."""
    return schedule_of(scheduling.pause(call.store, _find(call, id).id))


@endpoint("POST", "/v1/schedules/{id}/resume", scope="write", answers={200: ScheduleInfo}, tags=_TAGS)
def resume_schedule(call: Call, id: str) -> ScheduleInfo:
    """Let a paused schedule go on from now; what it missed is not made up for."""
    return schedule_of(scheduling.resume(call.store, _find(call, id).id))


@endpoint("GET", "/v1/schedules/{id}/runs", scope="read", query=Paged, answers={200: Page[RunInfo]}, tags=_TAGS)
def schedule_runs(call: Call, id: str) -> Page[RunInfo]:
    """The runs of a schedule, newest first, with the ids of their crawls."""
    query: Paged = call.query
    position = decode(query.cursor, int)
    n = _find(call, id).n
    with call.store.read() as tx:
        found = schedules.runs_of(tx, n, None if position is None else position[0], query.limit + 1)
    whole = page(found, query.limit, lambda run: (run.planned_ms,))
    return Page[RunInfo](items=[run_of(run) for run in whole.items], next=whole.next)


def _find(call: Call, id: str) -> Schedule:
    try:
        with call.store.read() as tx:
            return schedules.get(tx, id)
    except UnknownSchedule:
        raise Problem(
            404, "no-such-schedule", "There is no schedule of that name or id. GET /v1/schedules lists them."
        ) from None
