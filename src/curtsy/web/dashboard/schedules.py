"""Schedules: what is run again and again, when next, and what came of it."""

from __future__ import annotations

from flask import Response

from curtsy.web.api import schedules as api
from curtsy.web.dashboard.site import ROWS, Visit, view
from curtsy.web.paging import Paged


@view("GET", "/schedules")
def schedules(visit: Visit) -> Response:
    query = visit.asked(Paged, "cursor", limit=ROWS)
    return visit.page("schedules.html", found=api.list_schedules(visit.call(query)))


@view("GET", "/schedules/<id>")
def schedule(visit: Visit, id: str) -> Response:
    query = visit.asked(Paged, "cursor", limit=ROWS)
    found = api.schedule(visit.call(), id)
    return visit.page("schedule.html", schedule=found, runs=api.schedule_runs(visit.call(query), id))


@view("POST", "/schedules/<id>/pause", scope="write")
def pause_schedule(visit: Visit, id: str) -> Response:
    done = api.pause_schedule(visit.call(), id)
    return visit.go(f"/schedules/{done.id}", "Paused: it is fired no more until it is resumed.")


@view("POST", "/schedules/<id>/resume", scope="write")
def resume_schedule(visit: Visit, id: str) -> Response:
    done = api.resume_schedule(visit.call(), id)
    return visit.go(f"/schedules/{done.id}", "It goes on from now.")


@view("POST", "/schedules/<id>/remove", scope="write")
def remove_schedule(visit: Visit, id: str) -> Response:
    found = api.schedule(visit.call(), id)
    api.remove_schedule(visit.call(), found.id)
    return visit.go("/schedules", f"The schedule {found.name} is removed. Its crawls stay.")
