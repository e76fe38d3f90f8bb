"""URLs of a crawl."""

from __future__ import annotations

from pydantic import BaseModel, Field


class UrlOf(BaseModel):
    """A URL that a crawl knows."""

    url: str
    state: str = Field(description="`open`, `done`, `skipped` or `failed`.")
    reason: str | None = Field(description="Why it was skipped or failed.")
    depth: int = Field(description="Links from a seed.")
    lastmod: str | None = Field(description="Its last change, as a sitemap says.")
