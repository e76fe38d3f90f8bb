"""The SSRF guard: only http and https, and only addresses that are globally routable or that the operator allows.

It checks addresses, not names: every address that a connection uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

Network = IPv4Network | IPv6Network

#: IANA's special-purpose registry, plus multicast, the reserved top, and the addresses of clouds below.
#: Metadata of clouds in these ranges: 169.254.169.254 (most), 169.254.170.2 and .23 (AWS containers), 169.254.0.23
#: (Tencent), 169.254.42.42 (Scaleway), 100.100.100.200 (Alibaba), 192.0.0.192 (Oracle). Their IPv6 addresses are
#: unique local or link-local: fd00:ec2::254 (AWS), fd20:ce::254 (Google), fe80::a9fe:a9fe (OpenStack).
_FORBIDDEN_V4 = tuple(
    IPv4Network(cidr)
    for cidr in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host: metadata and certificates; a public address that is never routed
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)

#: the only range of IPv6 that is allocated for global unicast
_GLOBAL_V6 = IPv6Network("2000::/3")

#: Within it: protocol assignments with Teredo, ORCHID and benchmarking; documentation; 6to4. All
#: tunnels are refused, because the packet need not end at the wrapped address.
_FORBIDDEN_V6 = tuple(IPv6Network(cidr) for cidr in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))

#: DNS64 returns NAT64's well-known prefix on IPv6-only networks, so its IPv4 address decides.
#: The local-use prefix 64:ff9b:1::/48 lies outside 2000::/3 and is refused.
_NAT64 = IPv6Network("64:ff9b::/96")


#: names of private networks; clouds answer for their metadata under `internal`
_PRIVATE_NAMES = (".localhost", ".local", ".localdomain", ".internal", ".home.arpa", ".lan", ".intranet", ".corp")


class Target(NamedTuple):
    """The network target of a normalized URL."""

    scheme: str
    #: without brackets
    host: str
    port: int
    #: as in the URL: the value of `Host`
    authority: str


def check_url(url: str) -> Target | None:
    """The target of a normalized http(s) URL; None for another scheme or a URL that is not normalized."""
    scheme, separator, rest = url.partition("://")
    return _target(scheme, rest.partition("/")[0]) if separator and url.isascii() else None


@lru_cache(1024)
def _target(scheme: str, authority: str) -> Target | None:
    if scheme not in ("http", "https") or not authority or any(c in authority for c in "@?#\\ "):
        return None
    if authority[0] == "[":
        host, bracket, port = authority[1:].partition("]")
        if not bracket or (port and port[0] != ":"):
            return None
        port = port[1:]
    else:
        host, _, port = authority.partition(":")
    if not host or (port and not port.isdigit()):
        return None
    number = int(port) if port else (443 if scheme == "https" else 80)
    return Target(scheme, host, number, authority) if 0 < number < 65536 else None


def networks(cidrs: Iterable[str]) -> tuple[Network, ...]:
    return tuple(ip_network(cidr, strict=False) for cidr in cidrs)


@lru_cache(4096)
def is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_private_name(host: str) -> bool:
    """Whether a name can only mean a machine of a private network (RFC 6761, 6762, 8375 and ICANN's `internal`)."""
    name = host.rstrip(".").lower()
    return "." not in name or name.endswith(_PRIVATE_NAMES)


@lru_cache(maxsize=16384)
def address_allowed(address: str, allow_private: tuple[Network, ...] = ()) -> bool:
    """Whether a connection may go to this address. `allow_private`: ranges that the operator allows."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return is_listed(address, allow_private) or _is_global(parsed)


@lru_cache(maxsize=16384)
def is_listed(address: str, ranges: tuple[Network, ...]) -> bool:
    """Whether the address, or the IPv4 address mapped into it, is in one of the ranges."""
    try:
        parsed = _unmapped(ip_address(address))
    except ValueError:
        return False
    return any(parsed in network for network in ranges if network.version == parsed.version)


def _unmapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    address = _unmapped(address)
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _FORBIDDEN_V4)
    if address.scope_id is not None:
        return False
    if address in _NAT64:
        return _is_global(IPv4Address(int(address) & 0xFFFFFFFF))
    return address in _GLOBAL_V6 and not any(address in network for network in _FORBIDDEN_V6)
