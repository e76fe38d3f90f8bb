"""Explain: paste a URL or a host, and read why it is not done."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from curtsy.core.errors import CurtsyError
from curtsy.web.api import explain as api
from curtsy.web.dashboard import words
from curtsy.web.dashboard.site import Visit, valid, view
from curtsy.web.models.explain import ExplainQuery
from curtsy.web.problems import Problem

_NAMES = {
    "queued_behind": "Place in its queue",
    "delayed_until": "Tried again",
    "leased_since": "With a worker since",
    "lease_ends": "The worker has it until",
    "owner": "Worker",
    "loaded": "Its queue",
    "listed": "URLs listed before it",
    "starved": "Budget",
    "host_due": "Host may be asked",
    "host_blocked_until": "Host blocked until",
    "host_slots_out": "Requests to the host under way",
    "host_delay_s": "Delay of the host",
    "at": "The frontier said so",
}
_TIMES = ("delayed_until", "leased_since", "lease_ends", "host_due", "host_blocked_until", "at")


def standing(seen: dict[str, Any] | None) -> list[tuple[str, str]]:
    """What the frontier knows, as people say it."""
    told: list[tuple[str, str]] = []
    for name, title in _NAMES.items():
        value = (seen or {}).get(name)
        if value is None or (not value and name not in ("queued_behind", "loaded")):
            continue
        told.append((title, words.told(str(value)) if name in _TIMES else _told(name, value)))
    return told if len(told) > 1 else []  # not the time alone


def _told(name: str, value: Any) -> str:
    if name == "queued_behind":
        return f"behind {words.count(value, 'other')}" if value else "the next one"
    if name == "loaded":
        return "in the frontier" if value else "waits in the store until there is room"
    if name == "starved":
        return "what is under way may use up the most pages of its crawl"
    if name == "host_delay_s":
        return words.span(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


@view("GET", "/explain")
def explain(visit: Visit) -> Response:
    asked = request.args.get("url", "").strip()
    crawl = request.args.get("crawl", "").strip()
    if not asked:
        return visit.page("explain.html", asked="", crawl=crawl, found=None, problem=None)
    bare = "://" not in asked and "/" not in asked
    given = {"host": asked} if bare else {"url": asked if "://" in asked else f"https://{asked}"}
    try:
        query = valid(ExplainQuery, "query", given | ({"crawl": crawl} if crawl and not bare else {}))
        found = api.explain(visit.call(query))
    except (Problem, CurtsyError) as error:
        problem = visit.site.problem_of(error)
        if problem.status >= 500:
            raise
        return visit.page("explain.html", problem.status, asked=asked, crawl=crawl, found=None, problem=problem)
    return visit.page("explain.html", asked=asked, crawl=crawl, found=found, problem=None, standing=standing)
