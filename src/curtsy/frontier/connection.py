"""A plain connection to the server that holds the keys of one hash tag; it follows the keys when they move."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from curtsy.core.clock import boot
from curtsy.core.errors import FrontierRefused
from curtsy.frontier.client import Client, Connection, ServerError
from curtsy.frontier.server_errors import NoMaster, OtherRun, translated
from curtsy.frontier.servers import Node, Servers, connect, policy_of


class Link:
    """Never retries: a command whose reply was lost may have been carried out."""

    def __init__(
        self, servers: Servers, tag: str, check: Callable[[str], None] = lambda run_id: None, timeout_s: float = 5.0
    ) -> None:
        self.servers = servers
        #: called with the server's run_id for every new connection; raises OtherRun to refuse it
        self._check = check
        self._tag = tag
        self._timeout_s = timeout_s
        self._node: Node | None = None
        self._client: Client | None = None
        #: answers about the servers that are older than this are not used
        self._doubted_at: float | None = 0.0

    async def close(self) -> None:
        if self._client is not None:
            await self._client.disconnect()

    def look_up_again(self) -> None:
        """Looks up the server of the keys again before the next exchange."""
        self._doubted_at = boot()

    async def disconnect(self) -> None:
        """Closes the connections: new ones are made and checked."""
        if self._client is not None:
            await self._client.disconnect()

    @asynccontextmanager
    async def exchange(self) -> AsyncIterator[Client]:
        """One exchange with the server, within a time limit. Raises only errors that a caller can act on."""
        with self._translating():
            async with asyncio.timeout(self._timeout_s):
                yield await self._found()

    @asynccontextmanager
    async def separate_exchange(self) -> AsyncIterator[Client]:
        """The same over a separate connection, to any run of the server that answers now."""
        with self._translating():
            async with asyncio.timeout(self._timeout_s):
                await self._found()
                assert self._node is not None
                async with connect(self._node, _introduced) as client:
                    yield client

    async def where(self) -> str:
        """host:port or socket of the server, after checking that it answers."""
        async with self.separate_exchange():
            assert self._node is not None
            return self._node.where

    async def policies(self) -> dict[Node, str]:
        """maxmemory-policy of every server that answers; the server of this connection must answer."""
        found: dict[Node, str] = {}
        with self._translating():
            async with asyncio.timeout(self._timeout_s):
                await self._found()
                assert self._node is not None
                found[self._node] = await policy_of(self._node)
            for node in await self.servers.nodes():
                if node.url != self._node.url:
                    with suppress(ServerError, OSError):
                        async with asyncio.timeout(1.0):
                            found[node] = await policy_of(node)
        return found

    async def _found(self) -> Client:
        while (doubted_at := self._doubted_at) is not None:
            node = await self.servers.find(self._tag, doubted_at)
            if self._doubted_at != doubted_at:
                continue
            self._doubted_at = None
            if node != self._node:
                old, self._node = self._client, node
                self._client = connect(node, self._checked)
                if old is not None:
                    await old.disconnect()
        assert self._client is not None
        return self._client

    async def _checked(self, connection: Connection) -> None:
        """Every connection compares the server's run_id when it opens: a restart or failover is a loss."""
        self._check(await _introduced(connection))

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Translates errors of the client into those that a caller can act on."""
        try:
            yield
        except (ServerError, OtherRun, NoMaster, OSError) as error:
            known = translated(error)
            if known is None:
                raise
            # Neither a refusal nor another epoch on the same server means that the keys have moved.
            if not isinstance(known, FrontierRefused) and "EPOCH" not in str(error):
                self.look_up_again()
            raise known from error


async def _introduced(connection: Connection) -> str:
    """The run_id of the server, which must be a master."""
    server, replication = await connection.exchange([("INFO", "server"), ("INFO", "replication")])
    if field_of(replication, "role") != "master":
        raise NoMaster("it is a replica")
    return run_id_of(server)


def field_of(info: bytes, name: str) -> str:
    """A field of the INFO reply."""
    lines = info.decode().splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith(f"{name}:"))


def run_id_of(info: bytes) -> str:
    return field_of(info, "run_id")
