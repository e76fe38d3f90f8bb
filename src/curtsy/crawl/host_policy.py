"""The operator's settings of hosts, applied to running crawls: delays, requests at a time, the deny list."""

from __future__ import annotations

import fnmatch
import re

from curtsy.frontier.frontier import Frontier
from curtsy.services.epochs import send_hosts
from curtsy.store import hosts
from curtsy.store.engine import Store, read


class HostPolicy:
    """One per process. Call `refresh` about once a second: it costs one small read while nothing changes."""

    def __init__(self, frontier: Frontier, store: Store) -> None:
        self._frontier, self._store = frontier, store
        self._version = 0
        #: hosts that have settings of the operator
        self._named: set[str] = set()
        self._denied: set[str] = set()
        patterns = frontier.settings.deny_hosts
        self._pattern = re.compile("|".join(map(fnmatch.translate, patterns))) if patterns else None

    def denies(self, host: str) -> bool:
        return host in self._denied or (self._pattern is not None and self._pattern.match(host) is not None)

    async def refresh(self) -> bool:
        """Sends the frontier what changed since the last call. Returns whether anything changed."""
        version = await read(self._store, hosts.operator_version)
        if version == self._version:
            return False
        said = await read(self._store, hosts.operated)
        named = {state.host for state in said}
        # At the start nothing needs to be sent: the frontier asks for hosts that it does not know.
        if self._version or named:
            await send_hosts(self._frontier, self._store, named | self._named, again=True)
        self._named, self._denied = named, {state.host for state in said if state.denied}
        self._version = version
        return True
