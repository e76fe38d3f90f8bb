"""Hosts: the timeline of their requests with the delay drawn in, robots.txt, when they may be asked next and why."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from flask import Response, request

from curtsy.core import clock
from curtsy.core.model import RobotsState
from curtsy.rules.robots import Robots
from curtsy.rules.urls import normalise, origin
from curtsy.store import dashboard_queries
from curtsy.store import hosts as stored
from curtsy.web.api import hosts as api
from curtsy.web.dashboard import charts, words
from curtsy.web.dashboard.site import ROWS, Visit, filled, valid, view
from curtsy.web.models.hosts import Block, HostsQuery, OwnDelay
from curtsy.web.problems import Problem

#: requests of a timeline
_SHOWN = 30
_MOST_LINES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The robots.txt of one origin, and what it says to one URL."""

    origin: str
    verdict: str
    fetched_ms: int
    expires_ms: int
    #: (number, line, it decides)
    lines: tuple[tuple[int, str, bool], ...]
    cut: bool
    delay_s: float | None
    #: of the URL that was asked about; None: none was, or nothing is known
    allowed: bool | None = None
    rule: str | None = None


@view("GET", "/hosts")
def hosts(visit: Visit) -> Response:
    if (name := request.args.get("find", "").strip()) != "":
        return visit.go(f"/hosts/{quote(visit.call().host(name), safe=':')}")
    query = visit.asked(HostsQuery, "cursor", limit=ROWS, notable=bool(request.args.get("notable")))
    return visit.page("hosts.html", found=api.list_hosts(visit.call(query)), notable=query.notable)


@view("GET", "/hosts/<host>")
def host(visit: Visit, host: str) -> Response:
    status = api.host(visit.call(), host)
    asked = request.args.get("url", "").strip()[:4000]
    with visit.store.read() as tx:
        some = dashboard_queries.requests_of_host(tx, status.host, _SHOWN)
        rules = stored.get_robots(tx, [one.origin for one in status.robots])
    home = origin(some[-1].url) if some else next(iter(rules), f"https://{status.host}")
    target = _target(asked, home) or (some[-1].url if some else None)
    return visit.page(
        "host.html", host=status, timeline=charts.timeline(some), asked=asked, target=target,
        rules=[_rules(state, target, visit.settings.agent) for state in rules.values()],
        now_ms=clock.now_ms(),
    )  # fmt: skip


def _target(asked: str, home: str) -> str | None:
    """The URL that somebody wants to know about: whole, or a path of this host."""
    if not asked:
        return None
    return normalise(asked if "://" in asked else f"{home}/{asked.lstrip('/')}")


def _rules(state: RobotsState, target: str | None, agent: str) -> Rules:
    rules = Robots.parse(state.body) if state.verdict == "rules" else None
    concerned = target is not None and rules is not None and origin(target) == state.origin
    line = rules.rule(target, agent) if concerned and rules is not None and target is not None else None
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
        allowed=rules.allows(target, agent) if concerned and rules is not None and target is not None else None,
        rule=line,
    )


# What the operator says


def _back(visit: Visit, host: str, note: str) -> Response:
    return visit.go(f"/hosts/{quote(host, safe=':')}", note)


@view("POST", "/hosts/<host>/block", scope="admin")
def block(visit: Visit, host: str) -> Response:
    minutes = _number("minutes") or 0.0
    done = api.block(visit.call(body=valid(Block, "form", {"seconds": minutes * 60})), host)
    return _back(visit, done.host, f"{done.host} is left alone for {words.span(minutes * 60)}.")


@view("POST", "/hosts/<host>/unblock", scope="admin")
def unblock(visit: Visit, host: str) -> Response:
    done = api.unblock(visit.call(), host)
    return _back(visit, done.host, f"{done.host} is asked again, a delay from now.")


@view("POST", "/hosts/<host>/delay", scope="admin")
def delay(visit: Visit, host: str) -> Response:
    at_once = _number("per_host")
    if at_once is not None and not at_once.is_integer():
        raise Problem(422, "invalid-request", "Requests at once are a whole number.")
    wish = {"delay_s": _number("delay_s"), "per_host": None if at_once is None else int(at_once)}
    done = api.delay(visit.call(body=valid(OwnDelay, "form", wish)), host)
    said = "Your own delay is taken back" if wish["delay_s"] is None else "Your delay is set"
    return _back(visit, done.host, f"{said}: {words.span(done.delay.in_force_s)} from request to request from now on.")


@view("POST", "/hosts/<host>/deny", scope="admin")
def deny(visit: Visit, host: str) -> Response:
    done = api.deny(visit.call(), host)
    return _back(visit, done.host, f"{done.host} is on the deny list: nobody asks it later than 2 s from now.")


@view("POST", "/hosts/<host>/allow", scope="admin")
def allow(visit: Visit, host: str) -> Response:
    done = api.allow(visit.call(), host)
    return _back(visit, done.host, f"{done.host} is off the deny list.")


def _number(name: str) -> float | None:
    text = filled(name)
    if text is None:
        return None
    with suppress(ValueError):
        if math.isfinite(number := float(text)):
            return number
    raise Problem(422, "invalid-request", f"{name} is no number: {text[:100]!r}.")
