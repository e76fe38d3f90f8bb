"""Hosts: the timeline of requests and delays, robots.txt, the next request, and the operator's actions."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from flask import Response, request

from curtsy.core import clock
from curtsy.core.model import RobotsState
from curtsy.rules import robots_policy
from curtsy.rules.urls import normalise, origin
from curtsy.store import dashboard_queries
from curtsy.store import hosts as stored
from curtsy.web.api import hosts as api
from curtsy.web.dashboard import charts, words
from curtsy.web.dashboard.site import ROWS, PageRequest, action, filled, valid, view
from curtsy.web.models.hosts import Block, HostsQuery, HostStatus, OwnDelay
from curtsy.web.problems import Problem

#: requests in a timeline
_SHOWN = 30
#: lines of a robots.txt that the page shows
_MOST_LINES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The robots.txt of one origin, and its rule for one URL."""

    origin: str
    verdict: str
    fetched_ms: int
    expires_ms: int
    #: (number, line, whether it decides)
    lines: tuple[tuple[int, str, bool], ...]
    cut: bool
    delay_s: float | None
    #: for the given URL; None: no URL was given, or there are no rules
    allowed: bool | None = None
    rule: str | None = None


@view("GET", "/hosts")
def hosts(req: PageRequest) -> Response:
    if (name := request.args.get("find", "").strip()) != "":
        return req.redirect(f"/hosts/{quote(req.call().host(name), safe=':')}")
    query = req.query(HostsQuery, "cursor", limit=ROWS, notable=bool(request.args.get("notable")))
    return req.render("hosts.html", found=api.list_hosts(req.call(), query), notable=query.notable)


@view("GET", "/hosts/<host>")
def host(req: PageRequest, host: str) -> Response:
    status = api.host(req.call(), host)
    asked = request.args.get("url", "").strip()[:4000]
    with req.store.read() as tx:
        requests = dashboard_queries.requests_of_host(tx, status.host, _SHOWN)
        rules = stored.get_robots(tx, [one.origin for one in status.robots])
    home = origin(requests[-1].url) if requests else next(iter(rules), f"https://{status.host}")
    target = _target(asked, home) or (requests[-1].url if requests else None)
    return req.render(
        "host.html", host=status, timeline=charts.timeline(requests), asked=asked, target=target,
        rules=[_rules(state, target, req.settings.agent) for state in rules.values()],
        now_ms=clock.now_ms(),
    )  # fmt: skip


def _target(asked: str, home: str) -> str | None:
    """The URL to check: a complete URL, or a path on this host."""
    if not asked:
        return None
    return normalise(asked if "://" in asked else f"{home}/{asked.lstrip('/')}")


def _rules(state: RobotsState, target: str | None, agent: str) -> Rules:
    rules = robots_policy.parsed(state)
    same_origin = target is not None and rules is not None and origin(target) == state.origin
    line = rules.rule(target, agent) if same_origin and rules is not None and target is not None else None
    text = state.body.decode("utf-8", "replace").splitlines()
    return Rules(
        origin=state.origin,
        verdict=state.verdict,
        fetched_ms=state.fetched_ms,
        expires_ms=state.expires_ms,
        lines=tuple(
            (number, words.inert(said)[:500], line is not None and said.partition("#")[0].strip() == line)
            for number, said in enumerate(text[:_MOST_LINES], 1)
        ),
        cut=len(text) > _MOST_LINES,
        delay_s=rules.delay(agent) if rules is not None else None,
        allowed=rules.allows(target, agent) if same_origin and rules is not None and target is not None else None,
        rule=line,
    )


# Actions of the operator


def _page(host: HostStatus) -> str:
    return f"/hosts/{quote(host.host, safe=':')}"


@view("POST", "/hosts/<host>/block", scope="admin")
def block(req: PageRequest, host: str) -> Response:
    minutes = _number("minutes") or 0.0
    done = api.block(req.call(), host, valid(Block, "form", {"seconds": minutes * 60}))
    return req.redirect(_page(done), f"{done.host} gets no requests for {words.span(minutes * 60)}.")


@view("POST", "/hosts/<host>/delay", scope="admin")
def delay(req: PageRequest, host: str) -> Response:
    at_once = _number("per_host")
    if at_once is not None and not at_once.is_integer():
        raise Problem(422, "invalid-request", "Concurrent requests must be a whole number.")
    body = {"delay_s": _number("delay_s"), "per_host": None if at_once is None else int(at_once)}
    done = api.delay(req.call(), host, valid(OwnDelay, "form", body))
    change = "removed" if body["delay_s"] is None else "set"
    return req.redirect(_page(done), f"Your delay is {change}. The delay is {words.span(done.delay.in_force_s)} now.")


action("/hosts/<host>/unblock", "admin", api.unblock, _page, "{0.host} gets its next request a delay from now.")
action("/hosts/<host>/deny", "admin", api.deny, _page, "{0.host} is on the deny list. Requests stop within 2 s.")
action("/hosts/<host>/allow", "admin", api.allow, _page, "{0.host} is no longer on the deny list.")


def _number(name: str) -> float | None:
    text = filled(name)
    if text is None:
        return None
    with suppress(ValueError):
        if math.isfinite(number := float(text)):
            return number
    raise Problem(422, "invalid-request", f"Invalid number for {name}: {text[:100]!r}.")
