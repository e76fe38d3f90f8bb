"""Tasks end although a cancellation was swallowed once."""

from __future__ import annotations

import asyncio

from curtsy.stopping import end


def test_a_task_that_swallows_a_cancellation_is_cancelled_again() -> None:
    async def stubborn(swallowed: list[int]) -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if swallowed:
                    raise
                swallowed.append(1)

    async def scene() -> list[int]:
        swallowed: list[int] = []
        task = asyncio.create_task(stubborn(swallowed))
        await asyncio.sleep(0)
        await end([task])
        assert task.done()
        return swallowed

    assert asyncio.run(scene()) == [1]
