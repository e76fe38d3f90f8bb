"""Explain why a URL or a host is not done."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from curtsy.core.errors import CurtsyError
from curtsy.web.api import explain as api
from curtsy.web.dashboard import words
from curtsy.web.dashboard.site import PageRequest, valid, view
from curtsy.web.models.explain import ExplainQuery
from curtsy.web.problems import Problem

_NAMES = {
    "queued_behind": "Position in its queue",
    "delayed_until": "Next attempt",
    "leased_since": "Held by a worker since",
    "lease_ends": "Lease expires",
    "owner": "Worker",
    "loaded": "Its queue",
    "listed": "URLs listed before it",
    "starved": "Budget",
    "host_due": "Next request to the host",
    "host_blocked_until": "Host blocked until",
    "host_slots_out": "Requests to the host in flight",
    "host_delay_s": "Delay of the host",
    "at": "Frontier queried",
}
_TIMES = ("delayed_until", "leased_since", "lease_ends", "host_due", "host_blocked_until", "at")


def frontier_rows(seen: dict[str, Any] | None) -> list[tuple[str, str]]:
    """The state in the frontier as (title, text)."""
    rows: list[tuple[str, str]] = []
    for name, title in _NAMES.items():
        value = (seen or {}).get(name)
        if value is None or (not value and name not in ("queued_behind", "loaded")):
            continue
        rows.append((title, words.iso_stamp(str(value)) if name in _TIMES else _text(name, value)))
    return rows if len(rows) > 1 else []  # the time alone says nothing


def _text(name: str, value: Any) -> str:
    if name == "queued_behind":
        return f"behind {words.count(value, 'other')}" if value else "next"
    if name == "loaded":
        return "in the frontier" if value else "in the store, until the frontier has room"
    if name == "starved":
        return "the requests in flight may use up the page limit of the crawl"
    if name == "host_delay_s":
        return words.span(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


@view("GET", "/explain")
def explain(req: PageRequest) -> Response:
    asked = request.args.get("url", "").strip()
    crawl = request.args.get("crawl", "").strip()
    if not asked:
        return req.render("explain.html", asked="", crawl=crawl, found=None, problem=None)
    bare = "://" not in asked and "/" not in asked
    given = {"host": asked} if bare else {"url": asked if "://" in asked else f"https://{asked}"}
    try:
        query = valid(ExplainQuery, "query", given | ({"crawl": crawl} if crawl and not bare else {}))
        found = api.explain(req.call(), query)
    except (Problem, CurtsyError) as error:
        problem = req.mistake(error)
        return req.render("explain.html", problem.status, asked=asked, crawl=crawl, found=None, problem=problem)
    return req.render("explain.html", asked=asked, crawl=crawl, found=found, problem=None, frontier_rows=frontier_rows)
