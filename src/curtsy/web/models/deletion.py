"""Deletions."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from curtsy.web.models.fields import Address, CrawlId, Name, Time, either


class Deleting(BaseModel):
    """The deletion is stored and runs in the background."""

    id: str = Field(description="Of the deletion; `GET /v1/deletions` lists unfinished ones.")
    request_id: str


class PendingDeletion(BaseModel):
    """A deletion in progress."""

    id: str
    what: str = Field(description="`crawl` (all of it), or `pages`.")
    crawl: str | None = Field(description="Id of the crawl; null: every crawl.")
    host: str | None
    created: Time | None
    pages: int = Field(description="Pages deleted so far.")
    request_id: str


class PendingDeletions(BaseModel):
    """Oldest first, at most 1,000."""

    deletions: list[PendingDeletion]


class PagesNamed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    url: Address | None = Field(None, description="Pages of this URL; give either `url` or `host`.")
    host: Name | None = Field(None, description="All pages of this host.")
    crawl: CrawlId | None = Field(None, description="Only in this crawl; default: in every crawl.")

    @model_validator(mode="after")
    def _one(self) -> PagesNamed:
        either(("url", "host"), self)
        return self
