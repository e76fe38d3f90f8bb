"""The hosts with faults, each by name."""

from __future__ import annotations

from collections.abc import Iterable

from curtsy.tinyweb.faults import bodies, caching, markup, redirects, robots, spaces, statuses, types
from curtsy.tinyweb.faults.registry import REGISTRY, FaultHost

#: importing them declares their hosts
MODULES = (robots, redirects, statuses, bodies, types, markup, spaces, caching)


def every() -> list[FaultHost]:
    """All hosts with faults, in the order of their declaration."""
    return list(REGISTRY.values())


def by_host() -> dict[str, FaultHost]:
    return _BY_HOST


def select(names: Iterable[str] | None) -> list[FaultHost]:
    """The named hosts and those they point to; None: all of them."""
    if names is None:
        return every()
    wanted = [name.partition(".")[0] for name in names]
    unknown = [name for name in wanted if name not in REGISTRY]
    if unknown:
        raise ValueError(f"There is no host {', '.join(unknown)} in the tiny web; --list shows those there are.")
    # Hosts without seeds are there for others to point to; they cost nothing.
    return [host for host in every() if host.name in wanted or (wanted and not host.seeds)]


_BY_HOST = {host.host: host for host in REGISTRY.values()}
