"""Hosts: their state, and what the operator sets for them."""

from __future__ import annotations

from curtsy.control import hosts as operator_hosts
from curtsy.control.explain_text import about_host, next_slot
from curtsy.core import clock
from curtsy.core.errors import EpochLost, Unavailable
from curtsy.core.model import HostState
from curtsy.core.observe import log
from curtsy.frontier.inspect import HostSnapshot, inspect_host
from curtsy.store import hosts, queues
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
)  # fmt: skip
from curtsy.web.paging import Page, decode_one, page
from curtsy.web.problems import Problem
from curtsy.web.routing import Call, endpoint

_MOST_QUEUES = 100


@endpoint("GET", "/v1/hosts", scope="read")
def list_hosts(call: Call, query: HostsQuery) -> Page[HostSummary]:
    """List hosts by name."""
    now_ms = clock.now_ms()
    after = decode_one(query.cursor, str, "").replace("\0", "")
    with call.store.read() as tx:
        found = hosts.chunk(tx, after, query.limit + 1, now_ms if query.notable else None)
    return page(HostSummary, found, query.limit, lambda state: state.host, lambda state: summary_of(state, now_ms))


@endpoint("GET", "/v1/hosts/{host}", scope="read", problems=(422,))
def host(call: Call, host: str) -> HostStatus:
    """When a host gets its next request and why not now, its delay and the source of it, failures, robots.txt."""
    name = call.host(host)
    with call.store.read() as tx:
        known = hosts.get(tx, name) is not None or queues.of_host(tx, name, 1)
    if not known:
        raise Problem(404, "no-such-host", "This host is unknown. GET /v1/hosts lists the known hosts.")
    return _status(call, name)


@endpoint("POST", "/v1/hosts/{host}/block", scope="admin")
def block(call: Call, host: str, body: Block) -> HostStatus:
    """Send no requests to a host for some time, in every crawl. Its URLs wait."""
    name = call.host(host)
    call.store.run(operator_hosts.block, name, clock.now_ms() + int(body.seconds * 1000))
    return _updated(call, name)


@endpoint("POST", "/v1/hosts/{host}/unblock", scope="admin", problems=(422,))
def unblock(call: Call, host: str) -> HostStatus:
    """End a wait that the host, its failures or `block` caused. The next request follows a delay later."""
    name = call.host(host)
    operator_hosts.lift(call.store, call.settings, name, clock.now_ms())
    return _updated(call, name, lift=True)


@endpoint("POST", "/v1/hosts/{host}/delay", scope="admin")
def delay(call: Call, host: str, body: OwnDelay) -> HostStatus:
    """Set the operator's delay for a host. robots.txt and the crawls can only make it longer."""
    ms = None if body.delay_s is None else round(body.delay_s * 1000)
    return _set(call, host, operator_delay_ms=ms, operator_per_host=body.per_host)


@endpoint("POST", "/v1/hosts/{host}/deny", scope="admin", problems=(422,))
def deny(call: Call, host: str) -> HostStatus:
    """Add a host to the deny list (opt-out). It gets its last request within 2 s; its URLs are skipped as `denied`."""
    return _set(call, host, denied=True)


@endpoint("POST", "/v1/hosts/{host}/allow", scope="admin", problems=(422,))
def allow(call: Call, host: str) -> HostStatus:
    """Remove a host from the deny list. Skipped URLs stay skipped."""
    return _set(call, host, denied=False)


def _set(call: Call, host: str, **changes: int | bool | None) -> HostStatus:
    name = call.host(host)
    call.store.run(operator_hosts.set_operator_values, name, changes)
    return _updated(call, name)


def _updated(call: Call, name: str, lift: bool = False) -> HostStatus:
    services = call.services
    if services is not None:
        call.wait(services.tell_frontier(lambda: operator_hosts.send_to_frontier(services, name, lift)))
    return _status(call, name)


def _status(call: Call, name: str) -> HostStatus:
    now_ms = clock.now_ms()
    seen = inspect(call, name)
    with call.store.read() as tx:
        state = hosts.get(tx, name) or HostState(host=name)
        rules = hosts.robots_of_hosts(tx, [name]).get(name, [])
        waiting = queues.of_host(tx, name, _MOST_QUEUES)
    return status_of(
        state,
        now_ms,
        seen,
        call.settings.delay_s,
        why=[*about_host(state, now_ms), *next_slot(seen)],
        robots=[
            RobotsOf(origin=origin, verdict=verdict, fetched=fetched, expires=expires)
            for origin, fetched, expires, verdict in rules
        ],
        queues=[QueueOf(crawl=id, state=q.state, reason=q.reason or None, urls=q.added) for id, q in waiting],
    )


def inspect(call: Call, host: str, crawl: int | None = None, url: str | None = None) -> HostSnapshot | None:
    """The host, and the URL, in the frontier; None while the frontier is unavailable."""
    services = call.services
    if services is None:
        return None
    try:
        return call.backend.wait(inspect_host(services.frontier, host, crawl, url), 5.0)
    except (EpochLost, Unavailable) as error:
        log("frontier_unavailable", level="warning", error=str(error))
        return None
