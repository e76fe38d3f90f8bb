"""What the operator says about hosts, heeded by crawls that are running: delays, requests at once, the deny list."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from curtsy.frontier.frontier import Frontier
from curtsy.services.epochs import introduce_hosts
from curtsy.store import hosts
from curtsy.store.engine import Store, read

if TYPE_CHECKING:
    pass


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
