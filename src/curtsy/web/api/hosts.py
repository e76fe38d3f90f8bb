"""Hosts: what is known of them, and what the operator says about them."""

from __future__ import annotations

from curtsy.control import hosts as operator_hosts
from curtsy.control.explain_text import about_host, turn
from curtsy.core import clock
from curtsy.core.errors import EpochLost, Unavailable
from curtsy.core.model import HostState
from curtsy.core.observe import log
from curtsy.frontier.inspect import Sight, look
from curtsy.store import hosts, queues
from curtsy.web.models.crawls import when
from curtsy.web.models.hosts import (
    Block,
    HostsQuery,
    HostStatus,
    HostSummary,
    OwnDelay,
    QueueOf,
    RobotsOf,
    status_of,
    summary_of,
)
from curtsy.web.paging import Page, decode, page
from curtsy.web.problems import Problem
from curtsy.web.routing import Call, endpoint

_MOST_QUEUES = 100


@endpoint("GET", "/v1/hosts", scope="read", query=HostsQuery, answers={200: Page[HostSummary]}, tags=("hosts",))
def list_hosts(call: Call) -> Page[HostSummary]:
    """List hosts by name."""
    query: HostsQuery = call.query
    now_ms = clock.now_ms()
    position = decode(query.cursor, str)
    after = "" if position is None else position[0].replace("\0", "")
    with call.store.read() as tx:
        found = hosts.chunk(tx, after, query.limit + 1, now_ms if query.notable else None)
    whole = page(found, query.limit, lambda state: (state.host,))
    return Page[HostSummary](items=[summary_of(state, now_ms) for state in whole.items], next=whole.next)


@endpoint("GET", "/v1/hosts/{host}", scope="read", answers={200: HostStatus}, problems=(422,), tags=("hosts",))
def host(call: Call, host: str) -> HostStatus:
    """When a host may be asked and why not now, its delay and where that comes from, failures, robots.txt."""
    name = call.host(host)
    with call.store.read() as tx:
        known = hosts.get(tx, name) is not None or queues.of_host(tx, name, 1)
    if not known:
        raise Problem(404, "no-such-host", "Nothing is known of this host. GET /v1/hosts lists those asked so far.")
    return _status(call, name)


@endpoint(
    "POST",
    "/v1/hosts/{host}/block",
    scope="admin",
    body=Block,
    answers={200: HostStatus},
    tags=("hosts",),
)
def block(call: Call, host: str) -> HostStatus:
    """Leave a host alone for some time, in every crawl. Its URLs wait."""
    wish: Block = call.body
    name = call.host(host)
    call.store.run(operator_hosts.block, name, clock.now_ms() + int(wish.seconds * 1000))
    return _told(call, name)


@endpoint(
    "POST", "/v1/hosts/{host}/unblock", scope="admin", answers={200: HostStatus}, problems=(422,), tags=("hosts",)
)
def unblock(call: Call, host: str) -> HostStatus:
    """End the wait that a host asked for, that its failures brought, or that `block` set: it is asked a delay later."""
    name = call.host(host)
    operator_hosts.lift(call.store, call.settings, name, clock.now_ms())
    return _told(call, name, lift=True)


@endpoint(
    "POST",
    "/v1/hosts/{host}/delay",
    scope="admin",
    body=OwnDelay,
    answers={200: HostStatus},
    tags=("hosts",),
)
def delay(call: Call, host: str) -> HostStatus:
    """Set a host's own delay. Its robots.txt and the crawls may ask for more care, never for less."""
    wish: OwnDelay = call.body
    ms = None if wish.delay_s is None else round(wish.delay_s * 1000)
    return _said(call, host, operator_delay_ms=ms, operator_per_host=wish.per_host)


@endpoint("POST", "/v1/hosts/{host}/deny", scope="admin", answers={200: HostStatus}, problems=(422,), tags=("hosts",))
def deny(call: Call, host: str) -> HostStatus:
    """Put a host on the deny list (opt-out): nobody asks it later than 2 s from now; its URLs are skipped `denied`."""
    return _said(call, host, denied=True)


@endpoint("POST", "/v1/hosts/{host}/allow", scope="admin", answers={200: HostStatus}, problems=(422,), tags=("hosts",))
def allow(call: Call, host: str) -> HostStatus:
    """Take a host off the deny list. URLs that were skipped stay so."""
    return _said(call, host, denied=False)


def _said(call: Call, host: str, **changes: int | bool | None) -> HostStatus:
    name = call.host(host)
    call.store.run(operator_hosts.say, name, changes)
    return _told(call, name)


def _told(call: Call, name: str, lift: bool = False) -> HostStatus:
    services = call.services
    if services is not None:
        call.wait(operator_hosts.tell(services, name, lift=lift))
    return _status(call, name)


def _status(call: Call, name: str) -> HostStatus:
    now_ms = clock.now_ms()
    seen = sight(call, name)
    with call.store.read() as tx:
        state = hosts.get(tx, name) or HostState(host=name)
        rules = hosts.robots_of_hosts(tx, [name]).get(name, [])
        waiting = queues.of_host(tx, name, _MOST_QUEUES)
    return status_of(
        state,
        now_ms,
        seen,
        call.settings.delay_s,
        why=[*about_host(state, now_ms), *turn(seen)],
        robots=[
            RobotsOf(origin=origin, verdict=verdict, fetched=when(fetched), expires=when(expires))
            for origin, fetched, expires, verdict in rules
        ],
        queues=[QueueOf(crawl=id, state=q.state, reason=q.reason or None, urls=q.added) for id, q in waiting],
    )


def sight(call: Call, host: str, crawl: int | None = None, url: str | None = None) -> Sight | None:
    """What the frontier knows; None while it is away."""
    services = call.services
    if services is None:
        return None
    try:
        return call.bridge.wait(look(services.frontier, host, crawl, url), 5.0)
    except (EpochLost, Unavailable) as error:
        log("frontier_not_asked", level="warning", error=str(error))
        return None
