"""Plain commands and small scripts on the frontier's server, outside of epochs: the state of the fleet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Any

from curtsy.core.errors import EpochLost, FrontierUnavailable
from curtsy.frontier.client import Client, ServerError
from curtsy.frontier.connection import Link
from curtsy.frontier.servers import Servers

#: the hash tag of every key of the fleet, so that one server of a cluster holds them all
TAG = "{fleet}"


@cache
def _source(name: str) -> str:
    return (files("curtsy.frontier") / "lua" / f"{name}.lua").read_text("utf-8")


@cache
def _digest(name: str) -> str:
    return sha1(_source(name).encode()).hexdigest()


class Plain:
    """One client of the server, for one event loop. Raises FrontierUnavailable; never retries."""

    def __init__(self, url: str) -> None:
        self._link = Link(Servers(url), TAG, timeout_s=5.0)

    @asynccontextmanager
    async def _talking(self) -> AsyncIterator[Client]:
        try:
            async with self._link.exchange() as client:
                yield client
        except EpochLost as error:
            # No epoch is involved: the next call goes to the server that holds the keys then.
            raise FrontierUnavailable(str(error)) from error

    async def command(self, *words: str | int | float) -> Any:
        async with self._talking() as client:
            return await client.command(*words)

    async def script(self, name: str, keys: list[str], *args: str | int | float) -> Any:
        words = (len(keys), *keys, *args)
        async with self._talking() as client:
            try:
                return await client.command("EVALSHA", _digest(name), *words)
            except ServerError as error:
                if error.code != "NOSCRIPT":
                    raise
                return await client.command("EVAL", _source(name), *words)

    async def add(self, key: str, deltas: dict[str, float]) -> None:
        """HINCRBYFLOAT for every field, in one exchange."""
        async with self._talking() as client:
            await client.commands([("HINCRBYFLOAT", key, field, by) for field, by in deltas.items()])

    async def close(self) -> None:
        await self._link.close()
