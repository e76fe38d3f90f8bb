"""Schedules and their runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

from curtsy.control.crawl_request import CrawlRequest
from curtsy.control.schedules import MOST_SEEDS, Outcome, outcome_document, shown
from curtsy.core.model import Schedule
from curtsy.web.models.fields import Time


class NewSchedule(BaseModel):
    """A schedule to create."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=100, description="A unique name without `/`.")
    cron: str = Field(
        max_length=200, description="Five fields, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`."
    )
    zone: str = Field("UTC", max_length=100, description="IANA name of the time zone of `cron`.")
    seeds: Annotated[list[str], FailFast()] = Field(
        min_length=1, max_length=MOST_SEEDS, description="The URLs that each run starts from."
    )
    crawl: CrawlRequest = Field(
        default_factory=lambda: CrawlRequest.model_validate({}), description="The options of each crawl."
    )
    overlap: Literal["skip", "queue"] = Field(
        "skip", description="What happens to a run that is due while the previous one is still running."
    )
    keep: int | None = Field(None, ge=1, le=1_000_000, description="Keep the crawls of this many runs; null: keep all.")


class ScheduleChanges(BaseModel):
    """Changes of a schedule; an omitted field stays as it is."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = Field(None, min_length=1, max_length=100)
    cron: str | None = Field(None, max_length=200)
    zone: str | None = Field(None, max_length=100)
    seeds: list[str] | None = Field(None, min_length=1, max_length=MOST_SEEDS)
    crawl: CrawlRequest | None = Field(None, description="All options of its crawls, instead of the old ones.")
    overlap: Literal["skip", "queue"] | None = None
    keep: int | None = Field(None, ge=1, le=1_000_000, description="null: keep the crawls of all runs.")


class ScheduleInfo(BaseModel):
    """A crawl that runs repeatedly."""

    id: str
    name: str
    cron: str
    zone: str
    seeds: list[str]
    crawl: dict[str, Any] = Field(description="The options of each crawl, without the webhook secret.")
    overlap: str
    enabled: bool
    next: Time | None = Field(description="Next planned time; null if it is paused or has no next time.")
    keep: int | None
    owner: str | None = Field(description="Id of the API key that made it, and so the owner of its crawls.")
    created: Time


class RunInfo(BaseModel):
    """The result of one planned time."""

    planned: Time
    state: Literal["planned", "queued", "started", "skipped"]
    crawl: str | None = Field(description="Id of its crawl, from its creation until its deletion.")
    note: str = Field(description="Why it was skipped or waits, or how many missed runs it replaces.")
    outcome: str | None = Field(description="State of its crawl; null: it has none, or it was deleted.")
    reason: str | None = Field(description="Why the crawl ended, if it did not simply finish.")
    pages: int | None
    dead_letters: int | None = Field(description="Of URLs and of later stages.")
    started: Time | None
    ended: Time | None


def schedule_of(schedule: Schedule) -> ScheduleInfo:
    times = {"next": schedule.next_ms if schedule.enabled else None, "created": schedule.created_ms}
    return ScheduleInfo.model_validate(shown(schedule) | times)


def run_of(outcome: Outcome) -> RunInfo:
    return RunInfo.model_validate(outcome_document(outcome))
