"""A crawl: progress, hosts, pages, records, dead letters, changes; pause, resume, cancel, export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import Response, render_template, request

from curtsy.control import changes
from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.core.model import MOST_RENDER, Crawl, Request
from curtsy.store import dashboard_queries, listing, url_queries
from curtsy.web.api import crawls, deletion, failures, pages, records
from curtsy.web.dashboard import charts, exporting
from curtsy.web.dashboard.site import ROWS, PageRequest, action, filled, html, valid, view
from curtsy.web.models.crawls import CrawlDescription, CrawlStatus
from curtsy.web.models.failures import FailuresQuery, GroupsQuery
from curtsy.web.models.pages import PageOf, page_of
from curtsy.web.models.records import ChangesQuery, RecordsQuery
from curtsy.web.paging import Page, encode
from curtsy.web.problems import Problem

TABS = (
    ("Progress", ""),
    ("Hosts", "/hosts"),
    ("Pages", "/pages"),
    ("Records", "/records"),
    ("Dead letters", "/failures"),
    ("Changes", "/changes"),
    ("Export", "/export"),
)
#: up to this many pages the chart counts exactly; for larger crawls it estimates
_COUNTED = 100_000
#: number of intervals in a chart, and their least length
_PARTS = 48
_FEWEST = 12
_PART_S = 1
_TOP = 10
_NEWEST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTimes:
    """Response times of a host in the newest requests of a crawl."""

    host: str
    requests: int
    mean_s: float
    longest_s: float


def _shown(req: PageRequest, id: str, **more: Any) -> dict[str, Any]:
    status: CrawlStatus = crawls.crawl(req.call(), id)
    known = status.counts.pending + status.counts.done + sum(status.counts.skipped.values())
    known += sum(status.counts.failed.values())
    with req.store.read() as tx:
        name = dashboard_queries.names(tx, [status.id]).get(status.id)
    return {"crawl": status, "name": name, "known": known, "most_render": MOST_RENDER, "tabs": TABS, **more}


# Progress


def _progress(req: PageRequest, id: str) -> dict[str, Any]:
    found = req.call().crawl(id)
    now_ms = clock.now_ms()
    with req.store.read() as tx:
        begin = found.started_ms or found.created_ms
        end = (
            found.ended_ms
            or (dashboard_queries.last_page_ms(tx, found.n) if found.state != "running" else None)
            or now_ms
        )
        parts = _parts(end - begin)
        ends_ms = dashboard_queries.moments(begin, max(end, begin + parts * 1000) + 1, parts)
        counted = found.pages <= _COUNTED
        stored = dashboard_queries.pages_between(tx, found.n, ends_ms) if counted else _estimated(tx, found, ends_ms)
        dead = dashboard_queries.failures_between(tx, found.n, ends_ms)
        sample = dashboard_queries.requests_of_crawl(tx, found.n)
        depths = dashboard_queries.depths(tx, found.n, _NEWEST)
    return _shown(
        req, found.id,
        rate=charts.rates(stored, ends_ms), counted=counted,
        dead=charts.columns(dead, ends_ms, "dead letter", "server"),
        answers=charts.answers([one for one in sample if one.nature == "sent"], parts),
        depths=depths, newest=_NEWEST, tab="",
    )  # fmt: skip


def _parts(length_ms: int) -> int:
    """Few for a short crawl: intervals shorter than a delay would show the delays, not the rate."""
    return min(_PARTS, max(_FEWEST, length_ms // (_PART_S * 1000)))


def _estimated(tx: Any, crawl: Crawl, ends_ms: list[int]) -> list[int]:
    """Page numbers count the pages of all crawls: scale them by the share of this crawl."""
    numbers = dashboard_queries.stored_between(tx, [crawl.n], ends_ms)
    share = crawl.pages / max(1, sum(numbers))
    return [round(n * min(1.0, share)) for n in numbers]


@view("GET", "/crawls/<id>")
def crawl(req: PageRequest, id: str) -> Response:
    return req.render("crawl.html", **_progress(req, id))


@view("GET", "/crawls/<id>/part")
def crawl_part(req: PageRequest, id: str) -> Response:
    """The part that is updated live."""
    return html(render_template("_crawl.html", req=req, **_progress(req, id)))


def _page(crawl: CrawlStatus) -> str:
    return f"/crawls/{crawl.id}"


action("/crawls/<id>/pause", "write", crawls.pause, _page, "Paused. The last requests leave within 2 s.")
action("/crawls/<id>/resume", "write", crawls.resume, _page, "Resumed.")
action("/crawls/<id>/cancel", "write", crawls.cancel, _page, "Canceled. Fetched pages stay; open URLs are skipped.")


# Rename, delete


@view("GET", "/crawls/<id>/edit", scope="write")
def edit_crawl(req: PageRequest, id: str) -> Response:
    found = crawls.crawl(req.call(), id)
    given = {"name": found.name or "", "tags": " ".join(found.tags)}
    return req.render("crawl_edit.html", **_shown(req, found.id, given=given, problem=None))


@view("POST", "/crawls/<id>/edit", scope="write")
def rename_crawl(req: PageRequest, id: str) -> Response:
    given = {"name": request.form.get("name", ""), "tags": request.form.get("tags", "")}
    body = {"name": filled("name"), "tags": given["tags"].split()}
    try:
        done = crawls.describe_crawl(req.call(), id, valid(CrawlDescription, "form", body))
    except Problem as problem:
        if problem.status != 422:
            raise
        shown = _shown(req, id, given=given, problem=problem)
        return req.render("crawl_edit.html", problem.status, **shown)
    return req.redirect(f"/crawls/{done.id}", "Name and tags saved.")


@view("GET", "/crawls/<id>/delete", scope="admin")
def confirm_deletion(req: PageRequest, id: str) -> Response:
    found = req.call().crawl(id)
    with req.store.read() as tx:
        some, n = url_queries.seeds(tx, found.n, _TOP)
    return req.render("crawl_delete.html", **_shown(req, found.id, seeds=some, seed_count=n))


@view("POST", "/crawls/<id>/delete", scope="admin")
def delete_crawl(req: PageRequest, id: str) -> Response:
    deletion.delete_crawl(req.call(), id)
    return req.redirect("/crawls", "The crawl is being deleted.")


# Hosts


@view("GET", "/crawls/<id>/hosts")
def crawl_hosts(req: PageRequest, id: str) -> Response:
    found = req.call().crawl(id)
    now_ms = clock.now_ms()
    with req.store.read() as tx:
        largest = dashboard_queries.largest_hosts(tx, found.n, 25)
        troubled = dashboard_queries.troubled_hosts(tx, found.n, now_ms, _TOP)
        sample = dashboard_queries.requests_of_crawl(tx, found.n)
        blocked = dashboard_queries.unanswered_hosts(tx, found.n, _TOP)
    times = _times(sample)
    shown = _shown(
        req, found.id, tab="/hosts", largest=largest, troubled=troubled, looked_at=len(sample), now_ms=now_ms,
        slowest=sorted(times, key=lambda one: -one.mean_s)[:_TOP],
        blocked=blocked,
        most=max((one.urls for one in largest), default=0),
    )  # fmt: skip
    return req.render("crawl_hosts.html", **shown)


def _times(sample: list[Request]) -> list[HostTimes]:
    by_host: dict[str, list[Request]] = {}
    for one in sample:
        by_host.setdefault(one.host, []).append(one)
    return [
        HostTimes(
            host=host,
            requests=len(some),
            mean_s=sum(one.end_ms - one.start_ms for one in some) / len(some) / 1000,
            longest_s=max(one.end_ms - one.start_ms for one in some) / 1000,
        )
        for host, some in by_host.items()
    ]


# Pages


@view("GET", "/crawls/<id>/pages")
def crawl_pages(req: PageRequest, id: str) -> Response:
    found = req.call().crawl(id)
    wanted = _wanted(req, found.n)
    position = pages.position(request.args.get("cursor") or None)
    with req.store.read() as tx:
        some, following = listing.pages_of(tx, wanted, position, ROWS)
    items = [page_of(one, found.id) for one in some]
    listed = Page[PageOf](items=items, next=encode(following))
    asked = {name: request.args.get(name, "") for name in ("q", "status", "host")}
    return req.render("crawl_pages.html", **_shown(req, found.id, tab="/pages", found=listed, asked=asked))


def _wanted(req: PageRequest, n: int) -> listing.PagesWanted:
    host = request.args.get("host", "").strip()[:300]
    status = request.args.get("status", "").strip()
    if status and not (status.isascii() and status.isdigit() and len(status) == 3):
        raise Problem(422, "invalid-request", "A status has three digits, such as 200 or 404.")
    text = " ".join(request.args.get("q", "").split())[:200].replace("\0", "")
    return listing.PagesWanted(
        crawl=n,
        host=req.call().host(host) if host else None,
        status=int(status) if status else None,
        text=text or None,
    )


# Records, dead letters, changes


@view("GET", "/crawls/<id>/records")
def crawl_records(req: PageRequest, id: str) -> Response:
    query = req.query(RecordsQuery, "cursor", "status", limit=ROWS)
    found = records.crawl_records(req.call(), id, query)
    return req.render("crawl_records.html", **_shown(req, id, tab="/records", found=found, asked=query))


@view("GET", "/crawls/<id>/failures")
def crawl_failures(req: PageRequest, id: str) -> Response:
    query = req.query(FailuresQuery, "cursor", "cause", "host", "stage", limit=ROWS)
    shown = _shown(req, id, tab="/failures")
    groups = failures.failure_groups(req.call(), GroupsQuery(by="cause,stage", crawl=shown["crawl"].id))
    found = failures.list_failures(req.call(), id, query)
    return req.render("crawl_failures.html", **shown, found=found, groups=groups.groups, asked=query)


@view("GET", "/crawls/<id>/changes")
def crawl_changes(req: PageRequest, id: str) -> Response:
    query = req.query(ChangesQuery, "cursor", "kind", "against", limit=ROWS)
    shown = _shown(req, id, tab="/changes", asked=query, kinds=changes.KINDS)
    try:
        return req.render("crawl_changes.html", **shown, found=records.crawl_changes(req.call(), id, query), why="")
    except UsageError as error:
        return req.render("crawl_changes.html", **shown, found=None, why=str(error))


# Export


@view("GET", "/crawls/<id>/export")
def export(req: PageRequest, id: str) -> Response:
    return req.render("crawl_export.html", **_shown(req, id, tab="/export", formats=exporting.FORMATS))


@view("GET", "/crawls/<id>/export/<name>")
def export_file(req: PageRequest, id: str, name: str) -> Response:
    found = req.call().crawl(id)
    made = exporting.stream(req.store, req.settings, found, name)
    if made is None:
        raise Problem(404, "no-such-route", "Unknown format.")
    return made
