"""Curtsy in Python: `import curtsy.api as curtsy`.

    async for page in curtsy.crawl("https://example.com/", max_pages=100):
        print(page.url, page.title)

    for page in curtsy.crawl("https://example.com/"): ...       the same without a loop, and where one runs already
    for page in curtsy.pages("last"): ...                       what is stored
    server = curtsy.connect("http://127.0.0.1:8080")            a control plane

docs/how-to/python.md has examples that are tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from curtsy.core.errors import (
    CurtsyError,
    Damaged,
    MissingPart,
    RefusedSeeds,
    SettingsError,
    Unavailable,
    UnknownCrawl,
    UsageError,
)

if TYPE_CHECKING:
    from curtsy.api.crawling import Crawling, connect, connect_async, crawl, pages, records, resume
    from curtsy.api.page import Page
    from curtsy.core.model import Counts

__all__ = [
    "Counts", "Crawling", "CurtsyError", "Damaged", "MissingPart", "Page", "RefusedSeeds", "SettingsError",
    "Unavailable", "UnknownCrawl", "UsageError", "connect", "connect_async", "crawl", "pages", "records", "resume",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The rest is imported when it is used first: a program that only imports this module starts at once."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from curtsy.api import crawling

    value = globals()[name] = getattr(crawling, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
