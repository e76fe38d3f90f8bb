"""The list of crawls, and the form for a new crawl, which checks the seeds while they are typed."""

from __future__ import annotations

from typing import Any

from flask import Response, render_template, request

from curtsy.core.errors import CurtsyError
from curtsy.store import dashboard_queries, keys, url_queries
from curtsy.store import schedules as schedule_rows
from curtsy.web.api import crawls, schedules
from curtsy.web.dashboard import schema_editor, seeds, words
from curtsy.web.dashboard.site import ROWS, PageRequest, filled, html, valid, view
from curtsy.web.models.crawls import CrawlsQuery, NewCrawl
from curtsy.web.models.schedules import NewSchedule
from curtsy.web.problems import Problem

_HUGE = 1e12
_NUMBERS = {"max_pages": int, "max_depth": int, "delay_s": float, "per_host": int}
_LISTS = ("include", "exclude")
_STATES = ("loading", "running", "interrupted", "paused", "extracting", "finished", "cancelled")


@view("GET", "/crawls")
def list_crawls(req: PageRequest) -> Response:
    filters = ("q", "tag", "owner", "schedule", "state")
    filtered = any(request.args.get(name, "").strip() for name in filters)
    # The runs of a schedule are one line, unless the list is filtered.
    every = filtered or request.args.get("runs") == "all"
    query = req.query(CrawlsQuery, *filters, "cursor", limit=ROWS, runs="all" if every else "newest")
    found = crawls.list_crawls(req.call(), query)
    with req.store.read() as tx:
        names = dashboard_queries.names(tx, [crawl.id for crawl in found.items])
        runs = schedule_rows.count_crawls(tx, {one.schedule for one in found.items if one.schedule})
        owners = {key.id: key.name for key in keys.list_all(tx)} if req.may("admin") else {}
    return req.render(
        "crawls.html", found=found, names=names, asked=query, filtered=filtered, states=_STATES, runs=runs,
        owners=owners,
    )  # fmt: skip


@view("GET", "/new", scope="write")
def new_crawl(req: PageRequest) -> Response:
    given = {"seeds": request.args.get("seed", ""), "scope": "host", "lane": "batch", "sitemaps": "on"}
    if "clone" in request.args:
        given = _cloned(req, request.args["clone"])
    return _form(req, given)


def _cloned(req: PageRequest, id: str) -> dict[str, str]:
    """The form filled in with the options and seeds of a crawl. Its webhook secret is not copied."""
    found = req.call().crawl(id)
    with req.store.read() as tx:
        urls, n = url_queries.seeds(tx, found.n, seeds.MOST)
    if n > len(urls):
        raise Problem(422, "too-many-seeds", f"This form takes {seeds.MOST:,} seeds, and this crawl has {n:,}.")
    given = {
        "seeds": "\n".join(urls),
        "sitemaps": "on" if found.sitemaps else "",
        "cookies": "on" if found.cookies else "",
    }
    given |= {name: "\n".join(getattr(found, name)) for name in _LISTS} | {"tags": " ".join(found.tags)}
    names = ("scope", "lane", "schema", "rubric", "render", "llm", "proxy_pool", "webhook", *_NUMBERS)
    given |= {name: str(value) for name in names if (value := getattr(found, name)) is not None}
    given["schema_text"] = schema_editor.text_of(req.store, found, tuple(req.settings.api_schemas))
    return given | {"name": f"{found.name} (copy)" if found.name else ""}


@view("POST", "/new/check", scope="write")
def check_seeds(req: PageRequest) -> Response:
    """The result of checking the seeds while they are typed; without scripts, the whole form."""
    if request.headers.get("X-Part") != "seeds":
        return _form(req, _given())
    return html(render_template("_seeds.html", checked=_checked(req)))


@view("POST", "/new/test", scope="write")
def test_schema(req: PageRequest) -> Response:
    """The form with what its schema finds on a stored page."""
    try:
        return _form(req, _given(), trial=schema_editor.tested(req))
    except (Problem, CurtsyError) as error:
        return _form(req, _given(), req.mistake(error))


@view("POST", "/new", scope="write")
def make_crawl(req: PageRequest) -> Response:
    given = _given()
    checked = _checked(req)
    try:
        _check_seeds(checked)
        options = _options()
        if (name := filled("schedule_name")) is not None:
            return _make_schedule(req, name, options, checked.urls)
        if filled("cron") is not None:
            raise Problem(422, "invalid-request", "Nothing was created: a schedule needs a name.")
        made = crawls.submit(req.call(), valid(NewCrawl, "form", {**options, "seeds": checked.urls}))
        return req.redirect(f"/crawls/{made.id}", f"Crawl created with {words.count(len(checked.urls), 'seed')}.")
    except (Problem, CurtsyError) as error:
        return _form(req, given, req.mistake(error))


def _check_seeds(checked: seeds.Checked) -> None:
    """All or nothing, as in the API: a silently skipped seed would be noticed too late."""
    if checked.beyond:
        raise Problem(
            422,
            "refused-seeds",
            f"Nothing was created: this form accepts at most {seeds.MOST:,} seeds, and "
            f"{words.count(checked.beyond, 'line')} exceed that. Send all seeds to the API as NDJSON.",
        )
    if checked.refused_in_all:
        refused = words.count(checked.refused_in_all, "seed")
        raise Problem(422, "refused-seeds", f"Nothing was created: {refused} cannot be crawled. See the list below.")
    if not checked.urls:
        raise Problem(422, "refused-seeds", "There is no valid seed. Enter at least one URL.")


def _make_schedule(req: PageRequest, name: str, options: dict[str, Any], urls: list[str]) -> Response:
    body = {
        "name": name,
        "cron": filled("cron") or "",
        "zone": filled("zone") or "UTC",
        "seeds": urls,
        "crawl": options,
    }
    made = schedules.make_schedule(req.call(), valid(NewSchedule, "form", body))
    return req.redirect(f"/schedules/{made.id}", f"Schedule {made.name} created.")


def _form(
    req: PageRequest, given: dict[str, str], problem: Problem | None = None, trial: schema_editor.Trial | None = None
) -> Response:
    checked = _checked(req) if request.method == "POST" else seeds.check([], req.settings)
    status = 200 if problem is None else problem.status
    return req.render("new.html", status, given=given, checked=checked, problem=problem, trial=trial)


def _given() -> dict[str, str]:
    """The submitted values, to show the form again; an uploaded file becomes part of the seeds."""
    return {**{name: request.form.get(name, "") for name in request.form}, "seeds": "\n".join(_lines())}


def _lines() -> list[str]:
    sent = request.files.get("file")
    if sent is not None and sent.filename:
        sent.stream.seek(0)
        return seeds.lines_of(request.form.get("seeds", "")) + seeds.lines_of(
            sent.stream.read().decode("utf-8", "replace")
        )
    return seeds.lines_of(request.form.get("seeds", ""))


def _checked(req: PageRequest) -> seeds.Checked:
    found = seeds.check(_lines(), req.settings)
    numbers = {name: _number(name) for name in _NUMBERS}
    delay_s, per_host = numbers["delay_s"], numbers["per_host"]
    most = numbers["max_pages"]
    found.pace = seeds.pace(
        found,
        max(0.0, req.settings.delay_s if delay_s is None else delay_s),
        max(1, int(req.settings.per_host if per_host is None else per_host)),
        None if most is None else max(1, int(most)),
    )
    return found


def _number(name: str) -> float | None:
    """For the estimate of the duration; an invalid number is reported when the form is submitted."""
    try:
        number = float(filled(name) or "nan")
    except ValueError:
        return None
    return number if abs(number) < _HUGE else None  # larger values and NaN cannot be shown as a duration


def _options() -> dict[str, Any]:
    """The options of a crawl, in the form of the API."""
    options: dict[str, Any] = {"lane": filled("lane") or "batch", "scope": filled("scope") or "host"}
    for name, kind in _NUMBERS.items():
        if (text := filled(name)) is not None:
            options[name] = _read(name, kind, text)
    options["tags"] = (filled("tags") or "").split()
    for name in _LISTS:
        options[name] = [line for line in seeds.lines_of(request.form.get(name, "")) if line]
    options |= {"sitemaps": "sitemaps" in request.form, "cookies": "cookies" in request.form}
    options |= {
        name: text
        for name in ("name", "rubric", "render", "llm", "proxy_pool", "webhook")
        if (text := filled(name)) is not None
    }
    if (schema := schema_editor.given_schema()) is not None:
        options["schema"] = schema
    return options


def _read(name: str, kind: type, text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise Problem(422, "invalid-request", f"Invalid number for {name}: {text[:40]!r}.") from None
