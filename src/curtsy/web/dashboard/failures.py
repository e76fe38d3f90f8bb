"""Dead letters: groups by cause, host and stage, details, and replay after a dry run."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from flask import Response, request

from curtsy.core.errors import UsageError
from curtsy.web.api import failures as api
from curtsy.web.dashboard import words
from curtsy.web.dashboard.site import ROWS, PageRequest, filled, valid, view
from curtsy.web.models.failures import AllFailuresQuery, GroupsQuery, Replayed, ReplayRequest

_FIELDS = ("crawl", "host", "stage", "cause", "since")
_GROUPS = ("cause", "host", "stage")
STAGES = ("fetch", "extract", "score", "store", "webhook")
_GROUPS_SHOWN = 40


@view("GET", "/failures")
def failures(req: PageRequest) -> Response:
    by = request.args.get("by", "cause")
    if by not in _GROUPS:
        by = "cause"
    asked = {name: request.args.get(name, "").strip() for name in _FIELDS}
    asked["cause"] = _cause(asked["cause"])
    given = {name: value for name, value in asked.items() if value}
    groups = api.failure_groups(req.call(), valid(GroupsQuery, "query", {"by": _by(by, given), **given})).groups
    query = req.query(AllFailuresQuery, "cursor", limit=ROWS, **given)
    return req.render(
        "failures.html", groups=groups[:_GROUPS_SHOWN], more=len(groups) - _GROUPS_SHOWN, by=by, given=given,
        most=max((group.dead_letters for group in groups), default=0), stages=STAGES,
        in_all=sum(group.dead_letters for group in groups), found=api.list_all_failures(req.call(), query),
    )  # fmt: skip


def _cause(shown: str) -> str:
    """As stored: lists show it with spaces."""
    return shown.lower().replace(" ", "_")


def _by(by: str, given: dict[str, str]) -> str:
    """Group hosts and stages by cause too, unless a cause is given."""
    return by if by == "cause" or "cause" in given else f"{by},cause"


@view("GET", "/failures/<id>")
def failure(req: PageRequest, id: str) -> Response:
    found = api.failure(req.call(), id)
    return req.render("failure.html", letter=found, agent=req.settings.full_user_agent)


@view("POST", "/failures/replay", scope="write")
def replay(req: PageRequest) -> Response:
    """First a dry run; the page with its result submits the replay."""
    given = {name: value for name in _FIELDS if (value := filled(name)) is not None}
    if "cause" in given:
        given["cause"] = _cause(given["cause"])
    ids = request.form.getlist("ids")
    if not ids and "some" in request.form:
        raise UsageError("Select the dead letters to retry.")
    body: dict[str, Any] = {**given, "ids": ids or None, "dry_run": request.form.get("really") != "yes"}
    done: Replayed = api.replay_failures(req.call(), valid(ReplayRequest, "form", body))
    if done.dry_run:
        return req.render("replay.html", done=done, given=given, ids=ids)
    return _replayed(req, done.dead_letters, list(done.crawls), given)


def _replayed(req: PageRequest, n: int, ids: list[str], given: dict[str, str]) -> Response:
    note = f"{words.count(n, 'dead letter')} reopened. Workers retry them now."
    if len(ids) == 1:
        return req.redirect(f"/crawls/{ids[0]}", note)
    return req.redirect(f"/failures?{urlencode(given)}" if given else "/failures", note)
