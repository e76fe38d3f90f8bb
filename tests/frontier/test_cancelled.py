"""A call to the frontier ends in time: when its task is cancelled, at whatever moment, and when nobody answers."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
import uvloop
from frontier_servers import Server

from curtsy.core.errors import FrontierUnavailable
from curtsy.frontier.shard import Shard

pytest_plugins = ["frontier_fixtures"]

#: turns of the loop from the call to well after its reply
TURNS = 12


async def calls_on_and_on(shard: Shard) -> None:
    while True:
        await shard.command("TIME")
        await asyncio.sleep(0.01)


async def survivors(url: str) -> list[int]:
    """After how many turns of the loop a cancellation came that its task outlived."""
    shard = Shard(0, url)
    await shard.command("TIME")  # so that there is a connection: connecting takes turns of its own
    found = []
    for turns in range(TURNS):
        task = asyncio.create_task(calls_on_and_on(shard))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=2)
        if not done:
            found.append(turns)
            while not done:
                task.cancel()
                done, _ = await asyncio.wait({task}, timeout=0.1)
    await shard.close()
    return found


async def answered(shard: Shard, *words: str) -> Any:
    """The first answer: a server that goes on on a busy machine may need more than the limit."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return await shard.command(*words)
        except FrontierUnavailable:
            assert time.monotonic() < deadline


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_no_moment_of_a_call_swallows_a_cancellation(
    frontier_server: Server, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        assert runner.run(survivors(frontier_server.url)) == []


def test_a_server_that_stands_still_is_unavailable_after_the_limit(frontier_server: Server) -> None:
    server = Server(frontier_server.program)
    server.start()
    assert server.process is not None
    pid = server.process.pid

    async def scene() -> None:
        shard = Shard(0, server.url, timeout_s=0.2)
        await answered(shard, "TIME")
        os.kill(pid, signal.SIGSTOP)
        for _ in range(2):  # over the kept connection, then over a new one
            with pytest.raises(FrontierUnavailable):
                await shard.command("TIME")
        with pytest.raises(FrontierUnavailable):
            await shard.facts()
        os.kill(pid, signal.SIGCONT)
        # A late reply to a question that was given up is no answer to the next one.
        assert await answered(shard, "PING") in (b"PONG", True)
        await shard.close()

    try:
        asyncio.run(scene())
    finally:
        server.remove()
