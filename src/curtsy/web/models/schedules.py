"""Schedules and their runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

from curtsy.control.crawl_request import CrawlRequest
from curtsy.control.schedules import MOST_SEEDS, shown
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


def schedule_of(schedule: Schedule) -> ScheduleInfo:
    times = {"next": schedule.next_ms if schedule.enabled else None, "created": schedule.created_ms}
    return ScheduleInfo.model_validate(shown(schedule) | times)
