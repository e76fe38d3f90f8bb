"""The renderer of this deployment: which one, whether there is one, and how it is made. Imported where needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.util import find_spec

from curtsy.core.errors import MissingPart
from curtsy.core.settings import Settings
from curtsy.crawl.in_flight import Renderer
from curtsy.fetch import chromium
from curtsy.fetch.renderer import BrowserFetcher

#: what robots rules say of a URL to an agent; None: they are not known
Allows = Callable[[str, str], bool | None]


def make(settings: Settings, loop: asyncio.AbstractEventLoop, allows: Allows) -> Renderer:
    """Its browser is started by its first visit."""
    return BrowserFetcher(settings, loop, allows)


def check(settings: Settings) -> str:
    """The browser's program. Raises MissingPart with what is to be installed."""
    package = "crawl4ai" if settings.renderer == "crawl4ai" else "playwright"
    if find_spec(package) is None:
        extra = "crawl4ai" if package == "crawl4ai" else "browser"
        raise MissingPart(f"Pages cannot be rendered without {package}: pip install 'curtsy[{extra}]'.")
    return chromium.find(settings)


def is_there(settings: Settings) -> bool:
    try:
        check(settings)
    except MissingPart:
        return False
    return True
