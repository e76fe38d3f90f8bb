"""BrowserFetcher with a real Chromium, and what a test asks of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from curtsy.errors import MissingPart
from curtsy.fetch.browser import BrowserFetcher
from curtsy.fetch.chromium import find
from curtsy.fetch.transfer import FetchJob, boot_clock
from curtsy.model import Outcome
from curtsy.settings import Settings

_ids = count(1)


def why_not() -> str | None:
    """Why nothing can be rendered here."""
    try:
        find(Settings())
        import playwright  # noqa: F401
    except MissingPart as error:
        return str(error)
    except ImportError:
        return "Playwright is not installed"
    return None


def allow_all(_url: str, _agent: str) -> bool | None:
    return True


@asynccontextmanager
async def rendering(
    allows: Callable[[str, str], bool | None] = allow_all, **settings: Any
) -> AsyncIterator[BrowserFetcher]:
    fetcher = BrowserFetcher(Settings(**settings), asyncio.get_running_loop(), allows)
    try:
        yield fetcher
    finally:
        await fetcher.close()


def page_job(url: str, **changes: Any) -> FetchJob:
    usual: dict[str, Any] = {
        "id": next(_ids), "url": url, "deadline": boot_clock() + 67, "timeout_s": 60, "max_bytes": 10_000_000,
    }  # fmt: skip
    return FetchJob(**{**usual, **changes})


def begin(fetcher: BrowserFetcher, job: FetchJob) -> asyncio.Future[Outcome]:
    future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    fetcher.start(job, lambda _id, outcome: future.set_result(outcome))
    return future


async def visit(fetcher: BrowserFetcher, url: str, **changes: Any) -> Outcome:
    return await begin(fetcher, page_job(url, **changes))


def browser_pids(parent: int | None = None) -> list[int]:
    """Processes of Chromium and their watchers that live now; of this process or another parent only."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path("/proc", name, "cmdline").read_bytes()
            stat = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if b"curtsy-chromium-" in command and stat[0] != b"Z":
            found.append((int(name), int(stat[1])))
    if parent is None:
        return [pid for pid, _ in found]
    family = {parent}
    while True:
        more = {pid for pid, above in found if above in family} - family
        if not more:
            return sorted(family - {parent})
        family |= more
