"""Schedules and their runs over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

from curtsy.control.crawl_request import CrawlRequest
from curtsy.control.schedules import MOST_SEEDS, shown
from curtsy.core.model import Run, Schedule
from curtsy.web.models.crawls import when


class NewSchedule(BaseModel):
    """A schedule to be made."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=100, description="Yours to choose, without `/`; no two share one.")
    cron: str = Field(
        max_length=200, description="Five fields, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`."
    )
    zone: str = Field("UTC", max_length=100, description="IANA name of the time zone in which `cron` is read.")
    seeds: Annotated[list[str], FailFast()] = Field(
        min_length=1, max_length=MOST_SEEDS, description="Where each run begins."
    )
    crawl: CrawlRequest = Field(
        default_factory=lambda: CrawlRequest.model_validate({}), description="What each crawl shall be."
    )
    overlap: Literal["skip", "queue"] = Field(
        "skip", description="What becomes of a run that is due while the last one is still going."
    )
    keep: int | None = Field(None, ge=1, le=1_000_000, description="Crawls of so many runs are kept; null: all.")


class ScheduleInfo(BaseModel):
    """A crawl that is run again and again."""

    id: str
    name: str
    cron: str
    zone: str
    seeds: list[str]
    crawl: dict[str, Any] = Field(description="What each crawl shall be; the secret of a webhook is not shown.")
    overlap: str
    enabled: bool
    next: datetime | None = Field(description="When it is due; null while it is paused, and if it never comes.")
    keep: int | None
    created: datetime


class RunInfo(BaseModel):
    """What came of one planned time."""

    planned: datetime
    state: Literal["planned", "queued", "started", "skipped"]
    crawl: str | None = Field(description="Id of its crawl, once that was made and until it is deleted.")
    note: str = Field(description="Why it was skipped or waits, or how many missed runs it stands for.")


def schedule_of(schedule: Schedule) -> ScheduleInfo:
    return ScheduleInfo.model_validate(
        shown(schedule)
        | {
            "next": when(schedule.next_ms) if schedule.enabled else None,
            "created": when(schedule.created_ms),
        }
    )


def run_of(run: Run) -> RunInfo:
    crawl = run.crawl_id if run.crawl is not None else None
    return RunInfo.model_validate(
        {"planned": when(run.planned_ms), "state": run.state, "crawl": crawl, "note": run.note}
    )
