"""Schedules and their runs."""

from __future__ import annotations

from flask import Response

from curtsy.web.api import schedules as api
from curtsy.web.dashboard.site import ROWS, PageRequest, action, view
from curtsy.web.models.schedules import ScheduleInfo
from curtsy.web.paging import Paged


@view("GET", "/schedules")
def schedules(req: PageRequest) -> Response:
    query = req.query(Paged, "cursor", limit=ROWS)
    return req.render("schedules.html", found=api.list_schedules(req.call(), query))


@view("GET", "/schedules/<id>")
def schedule(req: PageRequest, id: str) -> Response:
    query = req.query(Paged, "cursor", limit=ROWS)
    found = api.schedule(req.call(), id)
    return req.render("schedule.html", schedule=found, runs=api.schedule_runs(req.call(), id, query))


def _page(schedule: ScheduleInfo) -> str:
    return f"/schedules/{schedule.id}"


action("/schedules/<id>/pause", "write", api.pause_schedule, _page, "Paused: it starts no runs until you resume it.")
action("/schedules/<id>/resume", "write", api.resume_schedule, _page, "Resumed from now on.")


@view("POST", "/schedules/<id>/remove", scope="write")
def remove_schedule(req: PageRequest, id: str) -> Response:
    found = api.schedule(req.call(), id)
    api.remove_schedule(req.call(), found.id)
    return req.redirect("/schedules", f"Schedule {found.name} removed. Its crawls stay.")
