"""Deletions over HTTP."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field, model_validator

from curtsy.store.deletion import Deletion
from curtsy.web.models.asking import Address, CrawlId, Name
from curtsy.web.models.crawls import when


class Deleting(BaseModel):
    """It is noted, and carried out in the background."""

    id: str = Field(description="Of the deletion; `GET /v1/deletions` lists those that are not done.")
    request_id: str


class PendingDeletion(BaseModel):
    """Something that is being deleted."""

    id: str
    what: str = Field(description="`crawl` (all of it), or `pages`.")
    crawl: str | None = Field(description="Id; null: of every crawl.")
    host: str | None
    created: datetime | None
    pages: int = Field(description="Deleted so far.")
    request_id: str


class PendingDeletions(BaseModel):
    """Oldest first, at most 1,000."""

    deletions: list[PendingDeletion]


class PagesNamed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    url: Address | None = Field(None, description="Pages of this URL; give it or `host`.")
    host: Name | None = Field(None, description="All pages of this host.")
    crawl: CrawlId | None = Field(None, description="Only of this crawl; left out: of every crawl.")

    @model_validator(mode="after")
    def _one(self) -> PagesNamed:
        if (self.url is None) == (self.host is None):
            raise ValueError("give either url or host")
        return self


def pending_of(one: Deletion, crawl: str | None) -> PendingDeletion:
    return PendingDeletion(
        id=one.id,
        what="crawl" if one.whole else "pages",
        crawl=crawl,
        host=one.host,
        created=when(one.created_ms),
        pages=one.pages,
        request_id=one.request_id,
    )
