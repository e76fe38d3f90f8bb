"""How a command that has written into the store tells the frontier of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from curtsy.core.settings import Settings
from curtsy.services import backends
from curtsy.services.backends import Services
from curtsy.services.valkey import EmbeddedValkey

T = TypeVar("T")


def is_there(settings: Settings) -> bool:
    """A frontier runs: who crawls takes up at once what it is told. Without one, the next process reads the store."""
    return settings.frontier_url is not None or EmbeddedValkey.running(settings.data_dir) is not None


def with_services(settings: Settings, step: Callable[[Services], Awaitable[T]]) -> T:
    """What a step comes to that needs store and frontier; a folder's own server is started for it if need be."""

    async def run() -> T:
        built = backends.build(settings)
        try:
            await built.open()
            return await step(built)
        finally:
            await built.close()

    return asyncio.run(run())
