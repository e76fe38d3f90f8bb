"""An operator's settings for a host: its delay, requests at a time, the deny list, blocks and their end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from curtsy.core.model import HostState
from curtsy.core.settings import Settings
from curtsy.rules.urls import hosts_named
from curtsy.services.backends import Services
from curtsy.services.epochs import send_hosts
from curtsy.store import crawls, hosts, queues, urls
from curtsy.store.engine import Store


def resolve_host(tx: Any, name: str, unit: str) -> str:
    """Return the unit of politeness for a name: `example.com` for `example.com:80`, unless crawls know only a unit of
    exactly that name."""
    first, *others = hosts_named(name, unit)
    if not others or queues.of_host(tx, first, 1):
        return first
    return next((host for host in others if queues.of_host(tx, host, 1)), first)


def set_operator_values(tx: Any, host: str, changes: Mapping[str, Any]) -> None:
    """Change `operator_delay_ms`, `operator_per_host` or `denied`; other values stay."""
    state = replace(hosts.get(tx, host) or HostState(host=host), **changes)
    hosts.set_operator(
        tx, host, delay_ms=state.operator_delay_ms, per_host=state.operator_per_host, denied=state.denied
    )


def block(tx: Any, host: str, until_ms: int) -> None:
    """Send no request to the host before `until_ms`; a longer block stays."""
    hosts.advance_times(tx, [(host, 0, until_ms)])


def lift(store: Store, settings: Settings, host: str, now_ms: int) -> None:
    """End every wait of the host: it is due after the longest delay that may be in force."""
    with store.read() as tx:
        state = hosts.get(tx, host) or HostState(host=host)
        delays_s = [crawl.delay_s or 0 for crawl in crawls.running(tx)]
    asked_for_ms = (state.operator_delay_ms, state.robots_delay_ms, state.adaptive_ms)
    delay_ms = max(int(max([settings.delay_s, *delays_s]) * 1000), *(ms or 0 for ms in asked_for_ms))
    store.run(hosts.lift, host, now_ms + delay_ms)
    store.run(urls.clear_retry_delays, host, now_ms)


async def send_to_frontier(services: Services, host: str, lift: bool) -> None:
    """Send the store's current state of a host to the frontier."""
    await send_hosts(services.frontier, services.store, {host}, again=True, lift=lift)
    if lift:
        await services.frontier.make_retries_due(host)
