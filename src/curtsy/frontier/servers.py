"""Which server holds which shard: `frontier_url` names it, or the Sentinels or cluster nodes to ask.

redis://[user:password@]host:port/db      rediss://...?ssl_ca_certs=/path/ca.pem      unix:///path?db=2
sentinel://[user:password@]h1:p1,h2:p2/service[/db]     the current master of this service
cluster://[user:password@]h1:p1,h2:p2                   the master that owns the slot of a shard's hash tag
sentinels:// and clusters:// are the same over TLS; options after `?` apply to every server of the URL.
"""

from __future__ import annotations

import asyncio
from binascii import crc_hqx
from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from curtsy.core.clock import boot
from curtsy.core.errors import SettingsError
from curtsy.core.model import hot_value
from curtsy.frontier.client import Client, Connection, ServerError

Family = Literal["single", "sentinel", "cluster"]
_SCHEMES: dict[str, tuple[Family, bool]] = {
    "redis": ("single", False),
    "rediss": ("single", True),
    "unix": ("single", False),
    "sentinel": ("sentinel", False),
    "sentinels": ("sentinel", True),
    "cluster": ("cluster", False),
    "clusters": ("cluster", True),
}
_PORTS: dict[Family, int] = {"single": 6379, "sentinel": 26379, "cluster": 6379}
_SLOTS = 16384
#: a Sentinel or node that does not answer must leave time for the others
_ASK_S = 1.0


@hot_value(kw_only=False)
class Node:
    """One server."""

    #: with credentials: never shown
    url: str
    #: host:port or the path of the socket
    where: str
    master: bool = True


@hot_value(kw_only=False)
class _Claim:
    """A claim that a master owns these slots."""

    first: int
    last: int
    #: epoch of the configuration; the newest is valid
    epoch: int
    node: Node


def family_of(url: str) -> Family:
    scheme = url.partition("://")[0]
    if scheme not in _SCHEMES:
        raise SettingsError(
            f"frontier_url begins with {scheme!r}: use redis://, rediss://, unix://, sentinel:// or cluster:// "
            "(docs/reference/settings.md)."
        )
    return _SCHEMES[scheme][0]


def default_shards(url: str | None) -> int:
    return 16 if url is not None and family_of(url) == "cluster" else 1


class _Parts(NamedTuple):
    scheme: str
    netloc: str
    path: str
    query: str


def _split(url: str) -> _Parts:
    """Like `urlsplit`, which may refuse several hosts if one is an IPv6 address."""
    scheme, _, rest = url.partition("://")
    rest = rest.partition("#")[0]
    rest, _, query = rest.partition("?")
    netloc, slash, path = rest.partition("/")
    return _Parts(scheme.lower(), netloc, slash + path, query)


class Servers:
    """One per frontier: all its shards find their servers here."""

    def __init__(self, url: str) -> None:
        self.family = family_of(url)
        parts = _split(url)
        self._tls = _SCHEMES[parts.scheme][1]
        self._user, at, hosts = parts.netloc.rpartition("@")
        self._user += at
        #: the Sentinels or cluster nodes to query
        self.seeds = [_address(word, _PORTS[self.family]) for word in hosts.split(",") if word]
        self.service, self._database = "", ""
        options = dict(parse_qsl(parts.query))
        self._sentinel_user = _user_info(options.pop("sentinel_username", ""), options.pop("sentinel_password", ""))
        self._query = f"?{urlencode(options, safe='/', quote_via=quote)}" if options else ""
        self._claims: list[_Claim] = []
        self._nodes: list[Node] = []
        self._read_at = 0.0
        self._reading = asyncio.Lock()
        if self.family == "single":
            where = parts.path if parts.scheme == "unix" else hosts
            self._nodes = [Node(url, where)]
            self._claims = [_Claim(0, _SLOTS - 1, 0, self._nodes[0])]
        elif not self.seeds:
            raise SettingsError(f"frontier_url names no server: {parts.scheme}://host:port,host:port/...")
        elif self.family == "sentinel":
            self.service, _, self._database = parts.path.strip("/").partition("/")
            if not self.service:
                raise SettingsError(
                    "frontier_url lacks the service that the Sentinels watch: sentinel://host:port/service"
                )

    @property
    def moves(self) -> bool:
        """Another server may take over while the old one still answers some clients."""
        return self.family != "single"

    async def find(self, tag: str, since: float) -> Node:
        """The master that holds the keys with this hash tag, according to an answer after `since` (boot clock)."""
        await self._look(since)
        slot = _slot_of(tag)
        owners = [claim for claim in self._claims if claim.first <= slot <= claim.last]
        if not owners:
            raise ConnectionError(f"no node of the cluster owns slot {slot}")
        return max(owners, key=lambda claim: claim.epoch).node

    async def nodes(self) -> list[Node]:
        """Every server that holds, or may take over, a part of the frontier."""
        await self._look(boot())
        return self._nodes

    async def _look(self, since: float) -> None:
        if not self.moves:
            return
        async with self._reading:
            if self._read_at >= since and self._claims:
                return
            now = boot()
            claims, nodes = await self._ask_all()
            self._claims, self._nodes, self._read_at = claims, nodes, now

    async def _ask_all(self) -> tuple[list[_Claim], list[Node]]:
        """The answers of all servers that respond: the newest configuration is among them."""
        claims: list[_Claim] = []
        nodes: dict[str, Node] = {}
        refusals: list[str] = []
        ask = self._ask_sentinel if self.family == "sentinel" else self._ask_node
        for host, port in self.seeds:
            try:
                async with asyncio.timeout(_ASK_S):
                    said, known = await ask(host, port)
            except (ServerError, OSError) as error:
                refusals.append(f"{_joined(host, port)}: {str(error).rstrip('.') or 'no answer'}")
                continue
            claims += said
            nodes |= {node.where: node for node in known}
        if not claims:
            what = "Sentinel" if self.family == "sentinel" else "cluster node"
            raise ConnectionError(f"no {what} answered ({'; '.join(refusals)})")
        return claims, list(nodes.values())

    async def _ask_sentinel(self, host: str, port: int) -> tuple[list[_Claim], list[Node]]:
        async with _client(self._url_of(host, port, self._sentinel_user)) as client:
            master = _fields(await client.command("SENTINEL", "MASTER", self.service))
            # REPLICAS exists since 5.0; newer servers dropped SLAVES.
            others = [_fields(raw) for raw in await client.command("SENTINEL", "REPLICAS", self.service)]
        node = self._node(master["ip"], int(master["port"]), database=self._database)
        replicas = [self._node(one["ip"], int(one["port"]), master=False, database=self._database) for one in others]
        return [_Claim(0, _SLOTS - 1, int(master["config-epoch"]), node)], [node, *replicas]

    async def _ask_node(self, host: str, port: int) -> tuple[list[_Claim], list[Node]]:
        async with _client(self._url_of(host, port, self._user)) as client:
            text = (await client.command("CLUSTER", "NODES")).decode()
        claims: list[_Claim] = []
        nodes: list[Node] = []
        for line in text.splitlines():
            _id, address, flags, _master, _ping, _pong, epoch, _link, *slots = line.split(" ")
            if "noaddr" in flags or "handshake" in flags:
                continue
            where, _, name = address.partition(",")
            node_host, node_port = _address(where.partition("@")[0], port)
            if self._tls and (name := name.partition(",")[0]):
                node_host = name  # certificates are issued for names
            # A node that no other node has contacted does not know its own address.
            node = self._node(node_host or host, node_port, master="master" in flags)
            nodes.append(node)
            for word in slots:
                if not word.startswith("["):
                    first, _, last = word.partition("-")
                    claims.append(_Claim(int(first), int(last or first), int(epoch), node))
        return claims, nodes

    def _node(self, host: str, port: int, *, master: bool = True, database: str = "") -> Node:
        return Node(self._url_of(host, port, self._user, database), _joined(host, port), master)

    def _url_of(self, host: str, port: int, user: str, database: str = "") -> str:
        return f"{'rediss' if self._tls else 'redis'}://{user}{_joined(host, port)}/{database}{self._query}"


def connect(node: Node, greet: Callable[[Connection], Awaitable[object]] | None = None) -> Client:
    """A client of one server. `greet` is called with every new connection."""
    try:
        return Client(node.url, greet)
    except ValueError as error:
        raise SettingsError(f"frontier_url cannot be read: {error}") from error


async def policy_of(node: Node) -> str:
    """The server's maxmemory-policy; 'unknown' where CONFIG is not allowed."""
    async with connect(node) as client:
        try:
            answer = _fields(await client.command("CONFIG", "GET", "maxmemory-policy"))
        except ServerError:
            return "unknown"
    return answer.get("maxmemory-policy", "unknown")


def _client(url: str) -> Client:
    return connect(Node(url, ""))


def _slot_of(tag: str) -> int:
    """The hash slot of all keys with this tag, as clusters compute it."""
    return crc_hqx(tag.strip("{}").encode(), 0) % _SLOTS


def _fields(raw: list[bytes]) -> dict[str, str]:
    """A reply of names and values."""
    return {name.decode(): value.decode() for name, value in zip(raw[::2], raw[1::2], strict=True)}


def _address(word: str, default_port: int) -> tuple[str, int]:
    host, colon, port = word.rpartition(":")
    if not colon or word.endswith("]"):
        host, port = word, str(default_port)
    if not port.isdigit():
        raise SettingsError(f"frontier_url names {word!r}, which is not host:port.")
    return host.strip("[]"), int(port)


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _user_info(user: str, password: str) -> str:
    return f"{quote(user, safe='')}:{quote(password, safe='')}@" if user or password else ""
