"""Explanations."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from curtsy.web.models.documents import DocumentInfo
from curtsy.web.models.fields import Address, CrawlId, Name, either


class ExplainQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    url: Address | None = Field(None, description="Give a URL or a host.")
    host: Name | None = None
    crawl: CrawlId | None = Field(
        None, description="With `url`: look in this crawl; default: the newest one that contains the URL."
    )

    @model_validator(mode="after")
    def _one(self) -> ExplainQuery:
        either(("url", "host"), self)
        return self


class Explanation(BaseModel):
    """The state of a URL or host, and why it is not done."""

    why: list[str] = Field(description="For people; the most important reason first.")
    url: str | None
    folded_from: str | None = Field(None, description="The URL of the query, if it was folded into `url`.")
    folded_by: list[str] | None = Field(None, description="Rules of the setting `fold` that changed it.")
    canonical: str | None = Field(None, description="The canonical URL that the page names.")
    host: str
    crawl: str | None = Field(description="The crawl that was examined.")
    state: str | None = Field(
        description="Of the URL: `open`, `done`, `skipped`, `failed`; null: the crawl does not contain it."
    )
    reason: str | None
    waits_for_rendering: bool = Field(False, description="The URL is open and waits for a browser.")
    redirect_target: str | None = Field(None, description="Where it redirects to, also outside the scope.")
    referrer: str | None = Field(None, description="The URL that named it first.")
    attempts: int | None
    retry_at: str | None
    page: str | None = Field(description="Id of the resulting page.")
    response: str | None = Field(None, description="Id of its last redirect or error that is stored.")
    document: DocumentInfo | None = Field(None, description="If that page is a document.")
    truncated: bool | None = Field(None, description="Whether parts of that page could not be read; null: no page.")
    lastmod: str | None = Field(None, description="When the page changed, by a sitemap.")
    priority: float | None = Field(None, description="0 to 1, by a sitemap.")
    incomplete_record: dict[str, Any] | None = Field(
        None, description="The record lacks a language model's values: `record`, `stage`, `cause`, `detail`, `fields`."
    )
    dead_letter: str | None = Field(description="Id; `POST /v1/failures/replay` retries it.")
    robots: dict[str, Any] | list[dict[str, Any]] = Field(
        description="Of a URL: `allowed` and the `rule` that decides; of a host: its origins."
    )
    frontier: dict[str, Any] | None = Field(
        description="State in the frontier: `queued_behind`, `leased_since`, `owner`, `host_due`, "
        "`host_blocked_until`, ...; null: it is not in the frontier, or the frontier is unavailable."
    )
    queues: list[dict[str, Any]] = Field(description="Of a host: its crawls.")
