"""The list of crawls, and a new one: seeds checked as they are typed, politeness in plain words."""

from __future__ import annotations

from typing import Any

from flask import Response, render_template, request

from curtsy.core.errors import CurtsyError
from curtsy.store import dashboard_queries
from curtsy.web.api import crawls, schedules
from curtsy.web.dashboard import seeds, words
from curtsy.web.dashboard.site import ROWS, Visit, filled, html, valid, view
from curtsy.web.models.crawls import CrawlsQuery, NewCrawl
from curtsy.web.models.schedules import NewSchedule
from curtsy.web.problems import Problem

_HUGE = 1e12
_NUMBERS = {"max_pages": int, "max_depth": int, "delay_s": float, "per_host": int}
_LISTS = ("include", "exclude")
_STATES = ("loading", "running", "paused", "extracting", "finished", "cancelled")


@view("GET", "/crawls")
def list_crawls(visit: Visit) -> Response:
    query = visit.asked(CrawlsQuery, "state", "cursor", limit=ROWS)
    found = crawls.list_crawls(visit.call(query))
    with visit.store.read() as tx:
        names = dashboard_queries.names(tx, [crawl.id for crawl in found.items])
    return visit.page("crawls.html", found=found, names=names, state=query.state, states=_STATES)


@view("GET", "/new", scope="write")
def new_crawl(visit: Visit) -> Response:
    given = {"seeds": request.args.get("seed", ""), "scope": "host", "lane": "batch", "sitemaps": "on"}
    return _form(visit, given)


@view("POST", "/new/check", scope="write")
def check_seeds(visit: Visit) -> Response:
    """What the form says of the seeds, while they are typed; without a script, the form once more with it."""
    if request.headers.get("X-Part") != "seeds":
        return _form(visit, _given())
    return html(render_template("_seeds.html", checked=_checked(visit)))


@view("POST", "/new", scope="write")
def make_crawl(visit: Visit) -> Response:
    given = _given()
    checked = _checked(visit)
    try:
        _check_seeds(checked)
        wishes = _wishes()
        if (name := filled("schedule_name")) is not None:
            return _make_schedule(visit, name, wishes, checked.urls)
        if filled("cron") is not None:
            raise Problem(422, "invalid-request", "Nothing was made: a schedule needs a name, or no time to run at.")
        made = crawls.submit(visit.call(body=valid(NewCrawl, "form", {**wishes, "seeds": checked.urls})))
        return visit.go(f"/crawls/{made.id}", f"The crawl is made, with {words.count(len(checked.urls), 'seed')}.")
    except (Problem, CurtsyError) as error:
        problem = visit.site.problem_of(error)
        if problem.status >= 500:
            raise
        return _form(visit, given, problem)


def _check_seeds(checked: seeds.Checked) -> None:
    """All or none, as over the API: what was left out in silence would be missed too late."""
    if checked.beyond:
        raise Problem(
            422,
            "refused-seeds",
            f"Nothing was made: this form takes {seeds.MOST:,} seeds at most, and more were given: "
            f"{words.count(checked.beyond, 'line')} too many. Send them all to the API as NDJSON.",
        )
    if checked.refused_in_all:
        refused = words.count(checked.refused_in_all, "seed")
        raise Problem(422, "refused-seeds", f"Nothing was made: {refused} cannot be crawled. They are named below.")
    if not checked.urls:
        raise Problem(422, "refused-seeds", "There is no seed that can be crawled: give at least one URL.")


def _make_schedule(visit: Visit, name: str, wishes: dict[str, Any], urls: list[str]) -> Response:
    body = {"name": name, "cron": filled("cron") or "", "zone": filled("zone") or "UTC", "seeds": urls, "crawl": wishes}
    made = schedules.make_schedule(visit.call(body=valid(NewSchedule, "form", body)))
    return visit.go(f"/schedules/{made.id}", f"The schedule {made.name} is made.")


def _form(visit: Visit, given: dict[str, str], problem: Problem | None = None) -> Response:
    checked = _checked(visit) if request.method == "POST" else seeds.check([], visit.settings)
    status = 200 if problem is None else problem.status
    return visit.page("new.html", status, given=given, checked=checked, problem=problem)


def _given() -> dict[str, str]:
    """The form as it was filled in, to be shown again; of a file what it held."""
    return {**{name: request.form.get(name, "") for name in request.form}, "seeds": "\n".join(_lines())}


def _lines() -> list[str]:
    sent = request.files.get("file")
    if sent is not None and sent.filename:
        sent.stream.seek(0)
        return seeds.lines_of(request.form.get("seeds", "")) + seeds.lines_of(
            sent.stream.read().decode("utf-8", "replace")
        )
    return seeds.lines_of(request.form.get("seeds", ""))


def _checked(visit: Visit) -> seeds.Checked:
    found = seeds.check(_lines(), visit.settings)
    numbers = {name: _number(name) for name in _NUMBERS}
    delay_s, per_host = numbers["delay_s"], numbers["per_host"]
    most = numbers["max_pages"]
    found.pace = seeds.pace(
        found,
        max(0.0, visit.settings.delay_s if delay_s is None else delay_s),
        max(1, int(visit.settings.per_host if per_host is None else per_host)),
        None if most is None else max(1, int(most)),
    )
    return found


def _number(name: str) -> float | None:
    """For the words about pace; what is no number is told when the form is sent."""
    try:
        number = float(filled(name) or "nan")
    except ValueError:
        return None
    return number if abs(number) < _HUGE else None  # so that it can be told as a time; no number is not less


def _wishes() -> dict[str, Any]:
    """The wishes of a crawl, as the API takes them."""
    wishes: dict[str, Any] = {"lane": filled("lane") or "batch", "scope": filled("scope") or "host"}
    for name, kind in _NUMBERS.items():
        if (text := filled(name)) is not None:
            wishes[name] = _read(name, kind, text)
    for name in _LISTS:
        wishes[name] = [line for line in seeds.lines_of(request.form.get(name, "")) if line]
    wishes |= {"sitemaps": "sitemaps" in request.form, "cookies": "cookies" in request.form}
    wishes |= {
        name: text
        for name in ("schema", "rubric", "render", "proxy_pool", "webhook")
        if (text := filled(name)) is not None
    }
    return wishes


def _read(name: str, kind: type, text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise Problem(422, "invalid-request", f"{name} is no number: {text[:40]!r}.") from None
