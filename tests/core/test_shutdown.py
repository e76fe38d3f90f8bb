"""What is to end ends in a limited time, and says what it waited for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from curtsy.core import shutdown
from curtsy.core.shutdown import end, wait_limited


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What was logged: action -> what it waited for. The logger itself keeps the first stderr that it meets."""
    lines: dict[str, str] = {}

    def note(action: str, level: str, waited_for: Any, **_: Any) -> None:
        lines[action] = str(waited_for)

    monkeypatch.setattr(shutdown, "log", note)
    return lines


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


def test_tasks_that_outlive_the_limit_are_named(said: dict[str, str]) -> None:
    async def deaf(freed: asyncio.Event) -> None:
        while not freed.is_set():
            try:
                await freed.wait()
            except asyncio.CancelledError:
                pass

    async def scene() -> None:
        freed = asyncio.Event()
        task = asyncio.create_task(deaf(freed))
        await asyncio.sleep(0)
        await end([task], limit_s=0.3)
        assert not task.done()
        freed.set()
        await task

    asyncio.run(scene())
    assert "deaf test_shutdown.py:" in said["tasks_left_behind"]
    assert "Event.wait locks.py:" in said["tasks_left_behind"]


def test_work_that_has_no_more_time_is_left_and_named(said: dict[str, str]) -> None:
    async def waits(for_ever: asyncio.Event) -> None:
        await for_ever.wait()

    async def scene() -> bool:
        asked = 0

        def time_left() -> float | None:
            nonlocal asked
            asked += 1
            return 0.1 if asked > 1 else None

        task = asyncio.create_task(waits(asyncio.Event()))
        await asyncio.wait_for(wait_limited(task, time_left), 10)
        left = not task.done()
        await end([task])
        return left and task.cancelled()

    assert asyncio.run(scene())
    assert "waits test_shutdown.py:" in said["cut_short"]


def test_work_that_fails_says_so() -> None:
    async def fails() -> None:
        raise ValueError("of ours")

    async def scene() -> None:
        await wait_limited(asyncio.create_task(fails()), lambda: None)

    with pytest.raises(ValueError, match="of ours"):
        asyncio.run(scene())


STUCK = """
import asyncio, threading
from curtsy.core.shutdown import end_by

async def main():
    end_by(0.3, 4, asyncio.get_running_loop())
    asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)

asyncio.run(main())
print("not reached")
"""


def test_a_process_that_cannot_close_its_loop_is_ended_and_says_what_held_it() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert "ended_by_force" in done.stderr
    assert "thread asyncio_0:" in done.stderr
