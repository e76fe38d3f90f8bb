"""BrowserFetcher with a real Chromium, and what a test asks of it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import uvloop
from small_site import Answer, Say, SmallSite

from curtsy.core.errors import MissingPart
from curtsy.core.outcome import Outcome
from curtsy.core.settings import Settings
from curtsy.fetch.browser import Engine
from curtsy.fetch.chromium import find
from curtsy.fetch.renderer import BrowserFetcher
from curtsy.fetch.transfer import FetchJob, boot_clock
from curtsy.rules.urls import host_key, origin

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


class Stage:
    """A site whose pages a test writes, and one browser for all tests of a module; visits are made one by one."""

    def __init__(self, site: SmallSite, **settings: Any) -> None:
        self.site = site
        #: what robots.txt is known to say, by host; None: not known, to be learnt
        self.known: dict[str, Callable[[str], bool] | None] = {}
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._settings = Settings(**{"resolve": (site.resolve_rule,), **settings})
        self.fetcher: BrowserFetcher = self.run(self._made())

    async def _made(self) -> BrowserFetcher:
        return BrowserFetcher(self._settings, asyncio.get_running_loop(), self._allows)

    def _allows(self, url: str, _agent: str) -> bool | None:
        rule = self.known.get(host_key(url), lambda _: True)
        return None if rule is None else rule(url)

    @property
    def engine(self) -> Engine | None:
        """The browser that takes the next visit."""
        return self.fetcher._engines._engine

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(90)

    def show(self, url: str, html: bytes | None = None, **changes: Any) -> Outcome:
        """Visit a page; `html`: say so first. What the site was asked before is forgotten."""
        if html is not None:
            self.say(url, html)
        self.site.asked.clear()
        outcome: Outcome = self.run(visit(self.fetcher, url, **changes))
        return outcome

    def say(self, url: str, body: bytes, kind: str = "text/html", status: int = 200, *headers: tuple[str, str]) -> None:
        path = url[len(origin(url)) :] if "//" in url else url
        self.pages[path] = Say(body, status, (("Content-Type", kind), *headers))

    @property
    def pages(self) -> dict[str, Answer]:
        assert isinstance(self.site.pages, dict)
        return self.site.pages

    def close(self) -> None:
        self.run(self.fetcher.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def staged(site: SmallSite | None = None, **settings: Any) -> Iterator[Stage]:
    """`site`: one that runs already."""
    with SmallSite({}) if site is None else nullcontext(site) as running:
        stage = Stage(running, **settings)
        try:
            yield stage
        finally:
            stage.close()
