"""Crawl4AI as the renderer: over CDP in the same supervised browser, and behind the same gate.

It gets a page of a context that we made, so that everything the page loads goes through the gate, and nothing is kept
from one visit to the next. It navigates and waits. The rules for a page at rest and for its size are the same as
without it. Its Markdown is not used: Curtsy reads the rendered document itself.
"""

from __future__ import annotations

import asyncio
import base64
import os
import time
from contextlib import suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curtsy.core.errors import MissingPart
from curtsy.core.settings import Settings
from curtsy.fetch.browser_requests import Gate
from curtsy.fetch.page_visit import Crashed, VisitResult, come_to_rest, read

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

_PAGE_TIMEOUT_MS = 60_000
_CLOSE_S = 5.0


class _Seen:
    """What the hook found in one visit."""

    def __init__(self, gate: Gate, max_bytes: int) -> None:
        self.gate, self.max_bytes = gate, max_bytes
        self.html: bytes | None = None
        self.fault: Exception | None = None


class Guide:
    """One per browser."""

    def __init__(self, library: Any, crawler: Any) -> None:
        self._library, self._crawler = library, crawler
        self._numbers = count(1)
        self._visits: dict[Page, _Seen] = {}
        crawler.crawler_strategy.set_hook("before_retrieve_html", self._before_reading)

    @classmethod
    async def start(cls, settings: Settings, endpoint: str) -> Guide:
        library = await asyncio.to_thread(_load, settings.data_dir)
        config = library.BrowserConfig(
            cdp_url=endpoint, cdp_cleanup_on_close=True, cdp_close_delay=0, user_agent=settings.full_user_agent,
            accept_downloads=False, verbose=False,
        )  # fmt: skip
        crawler = library.AsyncWebCrawler(config=config, base_directory=str(_home(settings.data_dir)))
        await crawler.start()
        return cls(library, crawler)

    @property
    def browser(self) -> Browser:
        """Crawl4AI's own connection to the browser."""
        browser: Browser = self._pages.browser
        return browser

    @property
    def _pages(self) -> Any:
        return self._crawler.crawler_strategy.browser_manager

    async def see(self, page: Page, gate: Gate, url: str, max_bytes: int, screenshot: bool) -> VisitResult:
        name = f"visit-{next(self._numbers)}"
        seen = self._visits[page] = _Seen(gate, max_bytes)
        # A session makes it use an existing page.
        self._pages.sessions[name] = (page.context, page, time.time())
        try:
            result = await self._crawler.arun(url, config=self._wishes(name, screenshot))
        finally:
            del self._visits[page]
            self._pages.sessions.pop(name, None)
        if seen.fault is not None:
            raise seen.fault
        if seen.html is None:
            raise Crashed(f"Crawl4AI gave no page: {_line(result.error_message)}")
        picture = base64.b64decode(result.screenshot) if result.screenshot else None
        return VisitResult(html=seen.html, screenshot=picture)

    def _wishes(self, session: str, screenshot: bool) -> Any:
        return self._library.CrawlerRunConfig(
            session_id=session,
            cache_mode=self._library.CacheMode.BYPASS,
            check_robots_txt=False,  # checked before, by the crawl loop and at the gate
            page_timeout=_PAGE_TIMEOUT_MS,
            wait_until="commit",
            delay_before_return_html=0,
            ignore_body_visibility=True,
            max_retries=0,
            screenshot=screenshot,
            verbose=False,
        )

    async def _before_reading(self, page: Page, **_: Any) -> Page:
        seen = self._visits[page]
        try:
            await come_to_rest(page, seen.gate)
            seen.html = await read(page, seen.max_bytes)
        except Exception as error:
            seen.fault = error
            raise
        return page

    async def close(self) -> None:
        with suppress(Exception):
            await asyncio.wait_for(self._crawler.close(), _CLOSE_S)


def _load(data_dir: Path) -> Any:
    """Environment variables that the library reads on import: its folder, no output, no network."""
    home = _home(data_dir)
    home.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("CRAWL4_AI_BASE_DIRECTORY", str(home))
    os.environ.setdefault("CRAWL4AI_NO_CLOUD_NOTICE", "1")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        return import_module("crawl4ai")
    except ImportError as error:
        raise MissingPart(f"Crawl4AI is not installed ({error}): pip install 'curtsy[crawl4ai]'") from error


def _home(data_dir: Path) -> Path:
    return data_dir.resolve() / "crawl4ai"


def _line(text: str | None) -> str:
    return next((line for line in (text or "").splitlines() if "Error" in line), text or "")[:300]
