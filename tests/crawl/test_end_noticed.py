"""When a process checks whether its crawl has ended."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from curtsy.crawl.run import _Watch


def watch(shift: Any) -> _Watch:
    crawl = SimpleNamespace(n=7, render="never")
    return _Watch(shift, cast(Any, None), cast(Any, crawl), None, lambda: False)


def test_a_process_that_hears_of_an_end_checks_its_crawl_at_once_and_only_once() -> None:
    checked: list[int] = []

    async def is_finished(n: int) -> bool:
        checked.append(n)
        return False

    shift = SimpleNamespace(
        maintenance=SimpleNamespace(idle=set()), heard_of_end=False, no_browser=lambda _: "",
        background=SimpleNamespace(is_finished=is_finished),
    )  # fmt: skip
    watched = watch(shift)

    async def look() -> None:
        assert not await watched.ended()
        assert checked == [], "it was checked less than a second ago"
        shift.heard_of_end = True
        assert not await watched.ended()
        assert not await watched.ended()

    asyncio.run(look())
    assert checked == [7]
