"""What an operator sets for a host: its delay, requests at once, the deny list, blocks and their end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from curtsy.core.model import HostState
from curtsy.core.settings import Settings
from curtsy.rules.urls import hosts_named
from curtsy.services.backends import Services
from curtsy.services.epochs import introduce_hosts
from curtsy.store import crawls, hosts, queues, urls
from curtsy.store.engine import Store


def host_meant(tx: Any, name: str, unit: str) -> str:
    """The unit of politeness that somebody means by a name: `example.com` by `example.com:80`, unless crawls know only
    a unit that is really called so."""
    first, *others = hosts_named(name, unit)
    if not others or queues.of_host(tx, first, 1):
        return first
    return next((host for host in others if queues.of_host(tx, host, 1)), first)


def say(tx: Any, host: str, changes: Mapping[str, Any]) -> None:
    """Changes of `operator_delay_ms`, `operator_per_host` or `denied`; what is not named stays."""
    state = replace(hosts.get(tx, host) or HostState(host=host), **changes)
    hosts.set_operator(
        tx, host, delay_ms=state.operator_delay_ms, per_host=state.operator_per_host, denied=state.denied
    )


def block(tx: Any, host: str, until_ms: int) -> None:
    """Nobody asks the host before; a block that lasts longer stays."""
    hosts.raise_times(tx, [(host, 0, until_ms)])


def lift(store: Store, settings: Settings, host: str, now_ms: int) -> None:
    """Ends every wait of the host: it may be asked a delay from now, whichever is the longest that may be in force."""
    with store.read() as tx:
        state = hosts.get(tx, host) or HostState(host=host)
        wishes_s = [crawl.delay_s or 0 for crawl in crawls.running(tx)]
    asked_for_ms = (state.operator_delay_ms, state.robots_delay_ms, state.adaptive_ms)
    delay_ms = max(int(max([settings.delay_s, *wishes_s]) * 1000), *(ms or 0 for ms in asked_for_ms))
    store.run(hosts.lift, host, now_ms + delay_ms)
    store.run(urls.hasten, host, now_ms)


async def introduce(services: Services, host: str, lift: bool) -> None:
    """Lets a frontier that is there know what the store has of a host now."""
    await introduce_hosts(services.frontier, services.store, {host}, again=True, lift=lift)
    if lift:
        await services.frontier.hasten(host)


async def tell(services: Services, host: str, *, lift: bool = False) -> bool:
    """Whether the frontier heard of it at once; otherwise it learns it from the store."""
    return await services.tell_frontier(lambda: introduce(services, host, lift))
