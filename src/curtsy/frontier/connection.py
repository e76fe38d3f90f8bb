"""A plain connection to the server that holds the keys of one hash tag; it follows the keys when they move."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import hiredis
from redis.exceptions import RedisError

from curtsy.core.clock import boot
from curtsy.core.errors import FrontierRefused
from curtsy.frontier.server_errors import NoMaster, translated
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
        self._client: Any = None
        #: answers about the servers that are older than this are not used
        self._doubted_at: float | None = 0.0

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def look_up_again(self) -> None:
        """Looks up the server of the keys again before the next exchange."""
        self._doubted_at = boot()

    async def disconnect(self) -> None:
        """Closes the connections: new ones are made and checked."""
        if self._client is not None:
            await self._client.connection_pool.disconnect()

    @asynccontextmanager
    async def exchange(self) -> AsyncIterator[Any]:
        """One exchange with the server, within a time limit. Raises only errors that a caller can act on."""
        with self._translating():
            async with asyncio.timeout(self._timeout_s):
                yield await self._found()

    @asynccontextmanager
    async def separate_exchange(self) -> AsyncIterator[Any]:
        """The same over a separate connection, to any run of the server that answers now."""
        with self._translating():
            async with asyncio.timeout(self._timeout_s):
                await self._found()
                assert self._node is not None
                async with connect(self._node, self._on_open, single_connection_client=True) as client:
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
                    with suppress(RedisError, OSError):
                        async with asyncio.timeout(1.0):
                            found[node] = await policy_of(node)
        return found

    async def _found(self) -> Any:
        while (doubted_at := self._doubted_at) is not None:
            node = await self.servers.find(self._tag, doubted_at)
            if self._doubted_at != doubted_at:
                continue
            self._doubted_at = None
            if node != self._node:
                old, self._node = self._client, node
                self._client = connect(node, self._on_connect, max_connections=32)
                if old is not None:
                    await old.aclose()
        return self._client

    async def _on_connect(self, connection: Any) -> None:
        """Every connection compares the server's run_id when it opens: a restart or failover is a loss."""
        self._check(await self._on_open(connection))

    async def _on_open(self, connection: Any) -> str:
        await connection.on_connect()
        await connection.send_command("INFO", "server")
        run_id = run_id_of(await connection.read_response())
        await connection.send_command("INFO", "replication")
        if field_of(await connection.read_response(), "role") != "master":
            raise NoMaster("it is a replica")
        # The asynchronous client packs arguments in Python one by one: slow for a script with hundreds of them.
        connection.pack_command = _packed
        return run_id

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Translates errors of the client into those that a caller can act on."""
        try:
            yield
        except (RedisError, OSError) as error:
            known = translated(error)
            if known is None:
                raise
            # Neither a refusal nor another epoch on the same server means that the keys have moved.
            if not isinstance(known, FrontierRefused) and "EPOCH" not in str(error):
                self.look_up_again()
            raise known from error


def _packed(*words: Any) -> list[bytes]:
    """A command as it is sent; its name may have two words."""
    return [hiredis.pack_command((*words[0].split(), *words[1:]))]


def field_of(info: Any, name: str) -> str:
    """A field of the INFO reply."""
    if isinstance(info, dict):
        return str(info[name])
    text = info.decode() if isinstance(info, bytes) else str(info)
    return next(line.partition(":")[2].strip() for line in text.splitlines() if line.startswith(f"{name}:"))


def run_id_of(info: Any) -> str:
    return field_of(info, "run_id")
