"""Reverse proxies: what they say about the client counts only if `api_proxies` names them.

A named proxy's `X-Forwarded-For` gives the client's address, and its `X-Forwarded-Proto` the scheme. The headers stay
in the request, so a forwarded request is never taken for one of this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

Address = IPv4Address | IPv6Address
Environ = MutableMapping[str, Any]

#: headers that proxies and content delivery networks add, in lower case
_NAMES = frozenset({
    "forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-original-host", "x-original-url",
    "x-proxyuser-ip", "x-host", "true-client-ip", "fastly-client-ip", "x-azure-clientip", "x-amzn-trace-id",
    "x-appengine-user-ip", "x-envoy-external-address", "x-envoy-internal", "x-arr-log-id", "cdn-loop",
})  # fmt: skip
_PREFIXES = ("x-forwarded", "cf-", "x-arr-")


def is_forwarded(headers: Iterable[str]) -> bool:
    """Whether a proxy has added one of these headers: its client may be anywhere."""
    lower = [name.lower() for name in headers]
    return any(name in _NAMES or name.startswith(_PREFIXES) for name in lower)


class Forwarding:
    """A WSGI application behind proxies: it sees the client's address and scheme instead of the proxy's."""

    def __init__(self, app: Callable[..., Any], proxies: Iterable[str]) -> None:
        self._app = app
        self._proxies = tuple(ip_network(cidr, strict=False) for cidr in proxies)

    def __call__(self, environ: Environ, start_response: Any) -> Any:
        if self._proxies and self._is_proxy(_parsed(environ.get("REMOTE_ADDR", ""))):
            environ["REMOTE_ADDR"] = self._client(environ)
            if environ.get("HTTP_X_FORWARDED_PROTO", "").rpartition(",")[2].strip().lower() == "https":
                environ["wsgi.url_scheme"] = "https"
        return self._app(environ, start_response)

    def _client(self, environ: Environ) -> str:
        """The last address in the chain that is no named proxy: a client can invent only what is before it."""
        client: str = environ["REMOTE_ADDR"]
        for text in reversed(environ.get("HTTP_X_FORWARDED_FOR", "").split(",")):
            address = _parsed(text.strip())
            if address is None:
                break
            client = str(address)
            if not self._is_proxy(address):
                break
        return client

    def _is_proxy(self, address: Address | None) -> bool:
        if address is None:
            return False
        return any(address in network for network in self._proxies if network.version == address.version)


def _parsed(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
