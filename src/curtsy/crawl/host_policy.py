"""What the operator says about hosts, heeded by crawls that are running: delays, requests at once, the deny list."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from curtsy.core.model import HostState
from curtsy.core.settings import Settings
from curtsy.frontier.frontier import Frontier
from curtsy.rules.urls import hosts_named
from curtsy.services.epochs import introduce_hosts, read
from curtsy.store import crawls, hosts, queues, urls
from curtsy.store.engine import Store

if TYPE_CHECKING:
    from curtsy.services.backends import Services


class HostPolicy:
    """One per process; `heed` is called about once a second and costs one small read while nothing changes."""

    def __init__(self, frontier: Frontier, store: Store) -> None:
        self._frontier, self._store = frontier, store
        self._version = 0
        #: hosts that the operator has said something about
        self._named: set[str] = set()
        self._denied: set[str] = set()
        patterns = frontier.settings.deny_hosts
        self._pattern = re.compile("|".join(map(fnmatch.translate, patterns))) if patterns else None

    def denies(self, host: str) -> bool:
        return host in self._denied or (self._pattern is not None and self._pattern.match(host) is not None)

    async def heed(self) -> bool:
        """Tells the frontier what changed since the last call; whether anything did."""
        version = await read(self._store, hosts.operator_version)
        if version == self._version:
            return False
        said = await read(self._store, hosts.operated)
        named = {state.host for state in said}
        # At the beginning the frontier learns of hosts as it meets them.
        if self._version or named:
            await introduce_hosts(self._frontier, self._store, named | self._named, again=True)
        self._named, self._denied = named, {state.host for state in said if state.denied}
        self._version = version
        return True


# What the operator says


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
    from curtsy.control import crawls as control

    return await control.with_frontier(services, lambda: introduce(services, host, lift))
