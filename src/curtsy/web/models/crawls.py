"""Crawls over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, FailFast, Field

from curtsy.control.crawl_request import CrawlRequest
from curtsy.control.crawls import Status
from curtsy.core.model import MOST_RENDER, Counts, Crawl
from curtsy.core.settings import Settings
from curtsy.web.paging import Paged
from curtsy.web.problems import Mistake, Problem

State = Literal["loading", "running", "paused", "extracting", "finished", "cancelled", "deleting"]


class NewCrawl(CrawlRequest):
    """A crawl to be made."""

    seeds: Annotated[list[str], FailFast()] = Field(
        min_length=1, description="Where it begins: http and https URLs. Very many are better sent as NDJSON."
    )


class Accepted(BaseModel):
    """The crawl is stored; workers take it up."""

    id: str = Field(description="UUIDv7.")
    request_id: str


class CrawlCounts(BaseModel):
    """URLs by what became of them."""

    pages: int
    done: int
    pending: int
    pending_render: int = Field(
        description=f"Of the pending ones, pages that wait for a browser; at most {MOST_RENDER:,} are counted."
    )
    skipped: dict[str, int] = Field(description="By reason.")
    failed: dict[str, int] = Field(description="Dead letters of URLs by cause.")
    failed_stages: dict[str, int] = Field(description="Dead letters of stages after fetching: their URLs are done.")


class CrawlSummary(BaseModel):
    """A crawl in a list."""

    id: str
    state: State
    reason: str | None = Field(description="Why it ended, where that is not plain.")
    lane: str
    scope: str
    pages: int
    request_id: str
    created: datetime
    started: datetime | None
    ended: datetime | None


class CrawlStatus(CrawlSummary):
    """How far a crawl is."""

    counts: CrawlCounts
    pages_per_s: float = Field(description="Over the last minute, or the last 500 pages.")
    estimated_end: datetime | None = Field(
        description="At this rate and if no more links are found; null where there is nothing to tell from."
    )
    wishes: dict[str, str | int | float | bool | list[str] | None] = Field(description="What was asked for.")


class CrawlsQuery(Paged):
    state: State | None = Field(None, description="Only crawls in this state.")


def check_offered(wish: CrawlRequest, settings: Settings, where: str) -> None:
    """Over HTTP a crawl names only what the settings list."""
    schema = wish.schema_name if isinstance(wish.schema_name, str) else None
    named = (
        ("schema", schema, settings.api_schemas, "api_schemas"),
        ("rubric", wish.rubric, settings.api_rubrics, "api_rubrics"),
        ("llm", wish.llm, ("none", settings.llm_kind), "llm"),
        ("proxy_pool", wish.proxy_pool, tuple(settings.proxies), "proxies"),
    )
    mistakes = [
        Mistake(
            where=f"{where}.{field}", message=f"there is no {field} of that name here: the setting {setting} lists all"
        )
        for field, name, listed, setting in named
        if name is not None and name not in listed
    ]
    if wish.render != "never" and settings.renderer not in settings.api_renderers:
        told = f"pages are not rendered here: the setting api_renderers does not list {settings.renderer}"
        mistakes.append(Mistake(where=f"{where}.render", message=told))
    if mistakes:
        told = "; ".join(f"{mistake.where}: {mistake.message}" for mistake in mistakes)
        raise Problem(422, "invalid-request", f"The crawl does not fit: {told}.", errors=mistakes)


def when(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)


def summary_of(crawl: Crawl) -> CrawlSummary:
    return CrawlSummary.model_validate(_summary(crawl))


def status_of(status: Status) -> CrawlStatus:
    names = [field.alias or name for name, field in CrawlRequest.model_fields.items() if name != "webhook_secret"]
    wishes = {name: getattr(status.crawl, name) for name in names if hasattr(status.crawl, name)}
    return CrawlStatus.model_validate(
        _summary(status.crawl)
        | {
            "counts": counts_of(status.counts),
            "pages_per_s": round(status.pages_per_s, 3),
            "estimated_end": when(status.ends_ms),
            "wishes": {name: list(value) if isinstance(value, tuple) else value for name, value in wishes.items()},
        }
    )


def counts_of(counts: Counts) -> CrawlCounts:
    return CrawlCounts(
        pages=counts.pages,
        done=counts.done,
        pending=counts.pending,
        pending_render=counts.pending_render,
        skipped=dict(counts.skipped),
        failed=dict(counts.failed),
        failed_stages=dict(counts.failed_stages),
    )


def _summary(crawl: Crawl) -> dict[str, object]:
    return {
        "id": crawl.id,
        "state": crawl.state.value,
        "reason": crawl.reason,
        "lane": crawl.lane.value,
        "scope": crawl.scope,
        "pages": crawl.pages,
        "request_id": crawl.request_id,
        "created": when(crawl.created_ms),
        "started": when(crawl.started_ms),
        "ended": when(crawl.ended_ms),
    }
