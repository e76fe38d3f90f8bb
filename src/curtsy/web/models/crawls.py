"""Crawls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

from curtsy.control.crawl_request import CrawlRequest, Tag, Tags, Title, options_of
from curtsy.control.crawls import Status, usage_document
from curtsy.core.model import INTERRUPTED, MOST_RENDER
from curtsy.core.settings import Settings
from curtsy.web.models.fields import Time, Word, fill
from curtsy.web.paging import Paged
from curtsy.web.problems import Mistake, Problem

if TYPE_CHECKING:
    from curtsy.web.auth import Caller

State = Literal["loading", "running", "interrupted", "paused", "extracting", "finished", "cancelled", "deleting"]


class NewCrawl(CrawlRequest):
    """A crawl to create."""

    seeds: Annotated[list[str], FailFast()] = Field(
        min_length=1, description="The http and https URLs to start from. Send very many as NDJSON."
    )


class Accepted(BaseModel):
    """The crawl is stored; workers start it."""

    id: str = Field(description="UUIDv7.")
    request_id: str


class CrawlCounts(BaseModel):
    """Numbers of URLs by result."""

    pages: int
    done: int
    pending: int
    pending_render: int = Field(
        description=f"Pending pages that wait for a browser; the count stops at {MOST_RENDER:,}."
    )
    skipped: dict[str, int] = Field(description="By reason.")
    failed: dict[str, int] = Field(description="Dead letters of URLs, by cause.")
    failed_stages: dict[str, int] = Field(description="Dead letters of stages after the fetch; their URLs are done.")


class FieldUsageInfo(BaseModel):
    """Use of a language model for one field. Fields of one call share its tokens and cost equally."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    schema_name: str = Field(validation_alias="schema", serialization_alias="schema")
    field: str = Field(description="Path of the value, or question of a rubric.")
    calls: int = Field(description="Calls that asked for it.")
    cached: int
    prompt_tokens: float
    completion_tokens: float
    cost: float


class ModelUsageInfo(BaseModel):
    """Use of a language model, as its limits count it."""

    calls: int
    cached: int = Field(description="Answers from the cache, which cost nothing.")
    prompt_tokens: int
    completion_tokens: int
    cost: float = Field(description="In the currency of the prices in the settings.")
    fields: list[FieldUsageInfo] = Field(description="The most expensive first, at most 200.")


class CrawlDescription(BaseModel):
    """What people call a crawl; an omitted field stays as it is."""

    model_config = ConfigDict(extra="forbid")

    name: Title | None = Field(None, description="A new name; null removes it.")
    tags: Tags = Field(default=[], description="The new tags, instead of the old ones.")


class CrawlSummary(BaseModel):
    """A crawl in a list."""

    id: str
    name: str | None
    tags: list[str]
    owner: str | None = Field(description="Id of the API key that made it; null: a command, or no key was needed.")
    schedule: str | None = Field(description="Name of the schedule whose run it is.")
    state: State = Field(description="`interrupted`: it has not ended, but no process works on it.")
    reason: str | None = Field(description="Why it ended, if it did not simply finish.")
    lane: str
    scope: str
    pages: int
    request_id: str
    created: Time
    started: Time | None
    ended: Time | None


class CrawlStatus(CrawlSummary):
    """Progress of a crawl."""

    counts: CrawlCounts
    pages_per_s: float = Field(description="Stored pages, over the last minute or the last 500 pages.")
    urls_per_s: float = Field(description="Settled URLs (done, skipped or failed), over the last minute.")
    estimated_end: Time | None = Field(
        description="At the current rate, without new links, and not before the slowest host can be done at its delay; "
        "null if there is no basis for an estimate."
    )
    llm: ModelUsageInfo | None = Field(description="Use of a language model; null: none was used.")
    options: dict[str, str | int | float | bool | list[str] | None] = Field(description="The options of the crawl.")
    wishes: dict[str, str | int | float | bool | list[str] | None] = Field(
        description="Old name of `options`; it will be removed in the next version.", deprecated=True
    )


class CrawlsQuery(Paged):
    state: State | None = Field(None, description="Only crawls in this state.")
    q: Word | None = Field(
        None, description="Only crawls with this text in their name or a tag, with an id that begins so, or with this "
        "host or domain in their scope.",
    )  # fmt: skip
    tag: Tag | None = Field(None, description="Only crawls with this tag.")
    owner: Word | None = Field(None, description="Only crawls of the API key with this id.")
    schedule: Word | None = Field(None, description="Only runs of this schedule: its name or id.")
    runs: Literal["all", "newest"] = Field("all", description="`newest`: of each schedule only its newest run.")


def check_offered(options: CrawlRequest, settings: Settings, where: str) -> None:
    """Over HTTP, a crawl can use only the schemas, models and proxies that the settings list."""
    schema = options.schema_name if isinstance(options.schema_name, str) else None
    named = (
        ("schema", schema, settings.api_schemas, "api_schemas"),
        ("rubric", options.rubric, settings.api_rubrics, "api_rubrics"),
        ("llm", options.llm, ("none", settings.llm_kind), "llm"),
        ("judge_model", options.judge_model, ("none", settings.llm_judge_model), "llm_judge_model"),
        ("proxy_pool", options.proxy_pool, tuple(settings.proxies), "proxies"),
    )
    mistakes = [
        Mistake(where=f"{where}.{field}", message=f"this server offers no such {field}: see the setting {setting}")
        for field, name, listed, setting in named
        if name is not None and name not in listed
    ]
    if options.render != "never" and settings.renderer not in settings.api_renderers:
        message = f"this server does not render pages: the setting api_renderers does not list {settings.renderer}"
        mistakes.append(Mistake(where=f"{where}.render", message=message))
    if mistakes:
        details = "; ".join(f"{mistake.where}: {mistake.message}" for mistake in mistakes)
        raise Problem(422, "invalid-request", f"The crawl is invalid: {details}.", errors=mistakes)


def check_polite(options: CrawlRequest, settings: Settings, caller: Caller) -> None:
    """The operator's delay and requests per host are a limit for keys without the scope `fast`."""
    if caller.may("fast"):
        return
    wrong = []
    if options.delay_s is not None and options.delay_s < settings.delay_s:
        wrong.append(f"a delay_s below {settings.delay_s:g}")
    if options.per_host is not None and options.per_host > settings.per_host:
        wrong.append(f"a per_host above {settings.per_host}")
    if wrong:
        raise Problem(403, "scope-missing", f"For {' and '.join(wrong)}, this key needs the scope fast.")


def status_of(status: Status, attended: bool) -> CrawlStatus:
    state = status.shown_state(attended)
    stopped = state == INTERRUPTED
    options = options_of(status.crawl)
    return fill(
        CrawlStatus,
        status.crawl,
        counts=fill(CrawlCounts, status.counts),
        state=state,
        reason=status.shown_reason,
        pages_per_s=0.0 if stopped else round(status.pages_per_s, 3),
        urls_per_s=round(status.urls_per_s, 3),
        estimated_end=None if stopped else status.ends_ms,
        llm=usage_document(status.model),
        schedule=status.schedule,
        options=options,
        wishes=options,
    )
