"""Schedules and their runs."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from curtsy.core.errors import CurtsyError
from curtsy.web.api import schedules as api
from curtsy.web.dashboard import seeds
from curtsy.web.dashboard.site import ROWS, PageRequest, action, filled, valid, view
from curtsy.web.models.schedules import ScheduleChanges, ScheduleInfo
from curtsy.web.paging import Paged
from curtsy.web.problems import Problem

#: options of its crawls that the form changes; the others stay
_NUMBERS = ("max_pages", "max_depth", "delay_s", "per_host")


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


@view("POST", "/schedules/<id>/run", scope="write")
def run_schedule(req: PageRequest, id: str) -> Response:
    found = api.schedule(req.call(), id)
    done = api.run_schedule(req.call(), found.id)
    return req.redirect(_page(found), "Beat starts the run now." if done.state == "planned" else "The run waits.")


@view("GET", "/schedules/<id>/edit", scope="write")
def edit_schedule(req: PageRequest, id: str) -> Response:
    found = api.schedule(req.call(), id)
    names = ("name", "cron", "zone", "overlap")
    given = {name: str(getattr(found, name)) for name in names} | {"seeds": "\n".join(found.seeds)}
    given |= {name: "" if (value := found.crawl.get(name)) is None else str(value) for name in _NUMBERS}
    given |= {"keep": str(found.keep or ""), "tags": " ".join(found.crawl.get("tags") or ())}
    return req.render("schedule_edit.html", schedule=found, given=given, problem=None)


@view("POST", "/schedules/<id>/edit", scope="write")
def change_schedule(req: PageRequest, id: str) -> Response:
    found = api.schedule(req.call(), id)
    given = {name: request.form.get(name, "") for name in request.form}
    try:
        body = valid(ScheduleChanges, "form", _changes(found))
        done = api.edit_schedule(req.call(), found.id, body)
    except (Problem, CurtsyError) as error:
        problem = req.mistake(error)
        return req.render("schedule_edit.html", problem.status, schedule=found, given=given, problem=problem)
    return req.redirect(_page(done), f"Schedule {done.name} saved.")


def _changes(found: ScheduleInfo) -> dict[str, Any]:
    """What the form changes. Options of the crawl are sent only if one differs."""
    changes: dict[str, Any] = {name: filled(name) or "" for name in ("name", "cron", "zone", "overlap")}
    changes |= {
        "keep": filled("keep"),
        "seeds": [line for line in seeds.lines_of(request.form.get("seeds", "")) if line],
    }
    options = {name: filled(name) for name in _NUMBERS} | {"tags": (filled("tags") or "").split()}
    before = {name: None if found.crawl.get(name) is None else str(found.crawl[name]) for name in _NUMBERS}
    if options != before | {"tags": found.crawl.get("tags") or []}:
        changes["crawl"] = found.crawl | options
    return changes


@view("POST", "/schedules/<id>/remove", scope="write")
def remove_schedule(req: PageRequest, id: str) -> Response:
    found = api.schedule(req.call(), id)
    api.remove_schedule(req.call(), found.id)
    return req.redirect("/schedules", f"Schedule {found.name} removed. Its crawls stay.")
