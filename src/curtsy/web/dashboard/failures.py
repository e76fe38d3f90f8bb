"""Dead letters: grouped by cause, host and stage, one opened with its request, and tried again after a dry run."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from flask import Response, request

from curtsy.core.errors import UsageError
from curtsy.store import crawls, dashboard_queries
from curtsy.web.api import failures as api
from curtsy.web.dashboard.site import ROWS, Visit, filled, valid, view
from curtsy.web.models.failures import AllFailuresQuery, GroupsQuery, Replayed, ReplayRequest, letter_of
from curtsy.web.problems import Problem

_FIELDS = ("crawl", "host", "stage", "cause", "since")
_GROUPS = ("cause", "host", "stage")
STAGES = ("fetch", "extract", "score", "store", "webhook")
_GROUPS_SHOWN = 40


@view("GET", "/failures")
def failures(visit: Visit) -> Response:
    by = request.args.get("by", "cause")
    if by not in _GROUPS:
        by = "cause"
    asked = {name: request.args.get(name, "").strip() for name in _FIELDS}
    asked["cause"] = _cause(asked["cause"])
    given = {name: value for name, value in asked.items() if value}
    groups = api.failure_groups(visit.call(valid(GroupsQuery, "query", {"by": _by(by, given), **given}))).groups
    query = visit.asked(AllFailuresQuery, "cursor", limit=ROWS, **given)
    return visit.page(
        "failures.html", groups=groups[:_GROUPS_SHOWN], more=len(groups) - _GROUPS_SHOWN, by=by, given=given,
        most=max((group.dead_letters for group in groups), default=0), stages=STAGES,
        in_all=sum(group.dead_letters for group in groups), found=api.list_all_failures(visit.call(query)),
    )  # fmt: skip


def _cause(shown: str) -> str:
    """As it is stored: lists show it in words."""
    return shown.lower().replace(" ", "_")


def _by(by: str, given: dict[str, str]) -> str:
    """Hosts and stages are told with their cause, where it is not given already."""
    return by if by == "cause" or "cause" in given else f"{by},cause"


@view("GET", "/failures/<id>")
def failure(visit: Visit, id: str) -> Response:
    with visit.store.read() as tx:
        found = dashboard_queries.letter(tx, id) if id.isascii() and len(id) <= 100 else None
        crawl = crawls.ids(tx, [found.crawl]).get(found.crawl) if found is not None else None
        sent = dashboard_queries.requests_under(tx, found.fence) if found is not None and found.fence else []
    if found is None or crawl is None:
        raise Problem(404, "no-such-failure", "There is no dead letter of that id. It may have been deleted.")
    return visit.page("failure.html", letter=letter_of(found, crawl), sent=sent, agent=visit.settings.full_user_agent)


@view("POST", "/failures/replay", scope="write")
def replay(visit: Visit) -> Response:
    """First what would be done, then, from that page, the doing."""
    given = {name: value for name in _FIELDS if (value := filled(name)) is not None}
    if "cause" in given:
        given["cause"] = _cause(given["cause"])
    ids = request.form.getlist("ids")
    if not ids and "some" in request.form:
        raise UsageError("Tick the dead letters that are to be tried again.")
    wish: dict[str, Any] = {**given, "ids": ids or None, "dry_run": request.form.get("really") != "yes"}
    done: Replayed = api.replay_failures(visit.call(body=valid(ReplayRequest, "form", wish)))
    if done.dry_run:
        return visit.page("replay.html", done=done, given=given, ids=ids)
    return _replayed(visit, done.dead_letters, list(done.crawls), given)


def _replayed(visit: Visit, n: int, ids: list[str], given: dict[str, str]) -> Response:
    note = f"{n:,} dead letter{'' if n == 1 else 's'} opened again: workers take them up now."
    if len(ids) == 1:
        return visit.go(f"/crawls/{ids[0]}", note)
    return visit.go(f"/failures?{urlencode(given)}" if given else "/failures", note)
