"""Dead letters over HTTP."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field, model_validator

from curtsy.core.model import Failure
from curtsy.web.models.asking import CrawlId, Name, Since, Word
from curtsy.web.models.crawls import when
from curtsy.web.paging import Paged

_STAGE = "`fetch`, `extract`, `score`, `store` or `webhook`."


class DeadLetter(BaseModel):
    """A failure that is not tried again by itself."""

    id: str
    crawl: str
    url: str
    host: str
    stage: str = Field(description=_STAGE)
    cause: str
    detail: str
    status: int = Field(description="HTTP status of the last answer; 0: there was none.")
    attempts: int
    at: datetime | None
    replayed: datetime | None
    request_id: str


class FailuresQuery(Paged):
    host: Name | None = Field(None, description="Only of this host.")
    stage: Word | None = Field(None, description=f"Only of this stage: {_STAGE}")
    cause: Word | None = Field(None, description="Only with this cause, such as `timeout`.")
    since: Since | None = None
    replayed: bool = Field(False, description="Also those that were replayed.")


class AllFailuresQuery(FailuresQuery):
    crawl: CrawlId | None = None


class GroupsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    by: str = Field(
        "cause",
        pattern=r"^(cause|host|stage)(,(cause|host|stage)){0,2}$",
        description="What those of a group have in common: of `cause`, `host` and `stage`, with commas between.",
    )
    crawl: CrawlId | None = None
    host: Name | None = Field(None, description="Only of this host.")
    stage: Word | None = Field(None, description="Only of this stage.")
    cause: Word | None = Field(None, description="Only with this cause.")
    since: Since | None = None


class LetterGroup(BaseModel):
    """Dead letters that have something in common; null: not asked for."""

    cause: str | None
    host: str | None
    stage: str | None
    dead_letters: int


class LetterGroups(BaseModel):
    """Most frequent first; of very many the 1,000 largest."""

    groups: list[LetterGroup]


class ReplayRequest(BaseModel):
    """Which dead letters are to be tried again. What is left out does not restrict."""

    model_config = ConfigDict(extra="forbid")

    crawl: CrawlId | None = None
    host: Name | None = None
    stage: Word | None = Field(None, description=_STAGE)
    cause: Word | None = Field(None, description="Such as `timeout`.")
    error: Word | None = Field(None, description="Another name for `cause`.")
    since: Since | None = None
    # Whoever has chosen none does not mean all.
    ids: list[Word] | None = Field(
        None, min_length=1, max_length=1000, description="Only these dead letters, by their ids: at least one."
    )
    limit: int = Field(10_000, ge=1, le=100_000, description="At most so many, oldest first.")
    dry_run: bool = Field(False, description="Say what would be replayed; change nothing.")

    @model_validator(mode="after")
    def _one_name(self) -> ReplayRequest:
        if self.cause is not None and self.error is not None:
            raise ValueError("cause and error are the same: give one")
        return self


class Replayed(BaseModel):
    """What was opened again, or would be."""

    dead_letters: int
    crawls: list[str] = Field(description="Crawls that go on for it.")
    of_cancelled_crawls: int = Field(description="Left alone because their crawl was cancelled or is being deleted.")
    dry_run: bool


def letter_of(failure: Failure, crawl: str) -> DeadLetter:
    names = set(DeadLetter.model_fields) - {"crawl", "at", "replayed"}
    fields = {name: getattr(failure, name) for name in names}
    at = when(failure.at_ms or None)
    return DeadLetter(crawl=crawl, at=at, replayed=when(failure.replayed_ms), **fields)
