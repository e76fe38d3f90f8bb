"""Proxy pools with health: a proxy that failed pauses, longer each time; the next one is used."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

_FIRST_REST_S = 5.0
_LONGEST_REST_S = 600.0


@dataclass(slots=True)
class _Proxy:
    url: str
    failures: int = 0
    rests_until: float = 0.0


@dataclass(slots=True)
class _Pool:
    proxies: list[_Proxy]
    turn: int = field(default=0)


#: libcurl resolves names for the first scheme of each pair; for the second, the proxy does
_RESOLVING = {"socks4": "socks4a", "socks5": "socks5h"}


class Proxies:
    """Times are the boot clock's, given by the caller. The proxies of the pools in `resolving` resolve names."""

    def __init__(self, pools: Mapping[str, Sequence[str]], resolving: Collection[str] = ()):
        self._pools = {
            name: _Pool([_Proxy(_resolving(url) if name in resolving else url) for url in urls])
            for name, urls in pools.items()
        }
        self._resolving = frozenset(resolving)

    def resolves(self, pool: str | None) -> bool:
        """Whether the proxies of this pool resolve names."""
        return pool in self._resolving

    def pick(self, pool: str, now: float) -> str | None:
        """The next usable proxy; None if all are paused or the pool is unknown."""
        known = self._pools.get(pool)
        if known is None:
            return None
        for step in range(len(known.proxies)):
            proxy = known.proxies[(known.turn + step) % len(known.proxies)]
            if proxy.rests_until <= now:
                known.turn = (known.turn + step + 1) % len(known.proxies)
                return proxy.url
        return None

    def failed(self, pool: str, url: str, now: float) -> None:
        for proxy in self._find(pool, url):
            # Requests that were in flight at the same time fail together: they count once.
            if proxy.rests_until <= now:
                proxy.failures += 1
                proxy.rests_until = now + min(_FIRST_REST_S * 2 ** (proxy.failures - 1), _LONGEST_REST_S)

    def worked(self, pool: str, url: str) -> None:
        for proxy in self._find(pool, url):
            proxy.failures = 0
            proxy.rests_until = 0.0

    def _find(self, pool: str, url: str) -> list[_Proxy]:
        known = self._pools.get(pool)
        return [proxy for proxy in known.proxies if proxy.url == url] if known else []


def _resolving(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    return f"{_RESOLVING.get(scheme, scheme)}{mark}{rest}"
