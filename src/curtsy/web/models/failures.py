"""Dead letters."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from curtsy.core.model import Failure, Kind, Request
from curtsy.web.models.fields import CrawlId, Name, Since, Time, Word, fill
from curtsy.web.paging import Paged

_STAGE = "`fetch`, `extract`, `score`, `store` or `webhook`."


class DeadLetter(BaseModel):
    """A failure that is not retried automatically."""

    id: str
    crawl: str
    url: str
    host: str
    stage: str = Field(description=_STAGE)
    cause: str
    detail: str
    status: int = Field(description="HTTP status of the last response; 0: there was no response.")
    attempts: int
    at: Time | None
    replayed: Time | None
    request_id: str


class Attempt(BaseModel):
    """A request for the URL of a dead letter."""

    started: Time
    duration_s: float
    kind: str = Field(description="`page`, `browser`, `sitemap` or `robots`.")
    status: int = Field(description="HTTP status; 0: there was no response.")
    fault: str | None = Field(description="Why there was no response, such as `timeout`.")
    presumed: bool = Field(description="The process died: it is unknown whether the request was sent.")
    response: str | None = Field(description="Id of the stored response, for `/v1/responses/{id}/content`.")


class DeadLetterDetails(DeadLetter):
    """A dead letter with the requests that were sent for it."""

    requests: list[Attempt] = Field(
        description="Requests of this crawl for the URL that the log still has, oldest first, at most 50."
    )
    page: str | None = Field(description="Id of the page with the stored response, if there is one.")
    response: str | None = Field(
        description="Id of the last stored redirect or error. `/v1/show` has its headers and text."
    )


class FailureFilter(BaseModel):
    """Which dead letters. Each omitted field matches all."""

    model_config = ConfigDict(extra="forbid")

    host: Name | None = Field(None, description="Only of this host.")
    stage: Word | None = Field(None, description=f"Only of this stage: {_STAGE}")
    cause: Word | None = Field(None, description="Only with this cause, such as `timeout`.")
    since: Since | None = None


class FailuresQuery(FailureFilter, Paged):
    replayed: bool = Field(False, description="Include those that were replayed.")


class AllFailuresQuery(FailuresQuery):
    crawl: CrawlId | None = None


class GroupsQuery(FailureFilter):
    by: str = Field(
        "cause",
        pattern=r"^(cause|host|stage)(,(cause|host|stage)){0,2}$",
        description="What to group by: `cause`, `host` and `stage`, separated by commas.",
    )
    crawl: CrawlId | None = None


class LetterGroup(BaseModel):
    """Dead letters with a common cause, host or stage; null: not grouped by it."""

    cause: str | None
    host: str | None
    stage: str | None
    dead_letters: int


class LetterGroups(BaseModel):
    """Largest first, at most 1,000."""

    groups: list[LetterGroup]


class ReplayRequest(FailureFilter):
    """Which dead letters to retry. Each omitted field matches all."""

    crawl: CrawlId | None = None
    error: Word | None = Field(None, description="Another name for `cause`.")
    # An empty list must not mean all.
    ids: list[Word] | None = Field(
        None, min_length=1, max_length=1000, description="Only these dead letters, by id: at least one."
    )
    limit: int = Field(10_000, ge=1, le=100_000, description="At most this many, oldest first.")
    dry_run: bool = Field(False, description="Report what would be replayed; change nothing.")

    @model_validator(mode="after")
    def _one_name(self) -> ReplayRequest:
        if self.cause is not None and self.error is not None:
            raise ValueError("cause and error are the same: give one")
        return self


class Replayed(BaseModel):
    """What was reopened, or would be."""

    dead_letters: int
    crawls: list[str] = Field(description="Crawls that continue because of it.")
    of_cancelled_crawls: int = Field(description="Not replayed because their crawl was canceled or is being deleted.")
    dry_run: bool


def request_kind(kind: str) -> str:
    """The purpose of a request: `p` -> `page`."""
    return next((one.name.lower() for one in Kind if one.value == kind), kind)


def attempt_of(sent: Request, *, is_stored: bool) -> Attempt:
    return Attempt.model_validate({
        "started": sent.start_ms, "duration_s": max(0, sent.end_ms - sent.start_ms) / 1000,
        "kind": request_kind(sent.kind), "status": sent.status, "fault": sent.fault,
        "presumed": sent.nature == "presumed", "response": f"{sent.fence:x}" if is_stored else None,
    })  # fmt: skip


def letter_of(failure: Failure, crawl: str) -> DeadLetter:
    return fill(DeadLetter, failure, crawl=crawl, at=failure.at_ms or None)
