"""A loop in a thread: results, errors, time limits, and its end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from curtsy.core.errors import Unavailable
from curtsy.core.loop_thread import LoopThread


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


def test_results_and_errors_reach_the_caller() -> None:
    async def broken() -> None:
        raise KeyError("broken")

    thread = LoopThread("test")
    assert thread.wait(answer(5)) == 5
    with pytest.raises(KeyError):
        thread.wait(broken())
    thread.stop(5)


def test_a_coroutine_that_takes_too_long_is_canceled() -> None:
    ended = threading.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    thread = LoopThread("test")
    with pytest.raises(TimeoutError):
        thread.wait(endless(), 0.05)
    assert ended.wait(5)
    thread.stop(5)


def test_stopping_cancels_what_runs_and_refuses_more() -> None:
    thread = LoopThread("test")
    future = thread.submit(asyncio.sleep(3600))
    thread.stop(5)
    assert future.cancelled()
    assert not thread.is_alive
    with pytest.raises(Unavailable):
        thread.submit(answer(1))


def test_the_end_of_main_ends_the_thread_and_is_reported() -> None:
    async def main() -> None:
        raise ValueError("over")

    errors: list[BaseException | None] = []
    over = threading.Event()

    def on_end(error: BaseException | None) -> None:
        errors.append(error)
        over.set()

    thread = LoopThread("test", main, on_end=on_end)
    thread.start()
    assert over.wait(5)
    thread.stop(5)
    assert isinstance(errors[0], ValueError)
