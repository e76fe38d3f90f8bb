"""Why something is not done, over HTTP."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from curtsy.web.models.asking import Address, CrawlId, Name


class ExplainQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    url: Address | None = Field(None, description="Give a URL or a host.")
    host: Name | None = None
    crawl: CrawlId | None = Field(None, description="Of a URL: in this crawl; left out: in the newest that knows it.")

    @model_validator(mode="after")
    def _one(self) -> ExplainQuery:
        if (self.url is None) == (self.host is None):
            raise ValueError("give either url or host")
        return self


class Explanation(BaseModel):
    """Where a URL or a host is, and why it is not done."""

    why: list[str] = Field(description="For people, most telling first.")
    url: str | None
    host: str
    crawl: str | None = Field(description="The crawl that was looked at.")
    state: str | None = Field(description="Of the URL: `open`, `done`, `skipped`, `failed`; null: not of the crawl.")
    reason: str | None
    waits_for_rendering: bool = Field(False, description="Of a URL: it is open and waits for a browser.")
    attempts: int | None
    retry_at: str | None
    page: str | None = Field(description="Id of the page that came of it.")
    dead_letter: str | None = Field(description="Id; `POST /v1/failures/replay` tries it again.")
    robots: dict[str, Any] | list[dict[str, Any]] = Field(
        description="Of a URL: `allowed` and the `rule` that decides; of a host: its origins."
    )
    frontier: dict[str, Any] | None = Field(
        description="Where it stands in the frontier: `queued_behind`, `leased_since`, `owner`, `host_due`, "
        "`host_blocked_until`, ...; null: it does not stand there, or the frontier is away."
    )
    queues: list[dict[str, Any]] = Field(description="Of a host: its crawls.")
