"""What a crawl is asked to be: one type for the command line, HTTP API, Python API, MCP, Airflow and schedules."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, Lane, new_id
from curtsy.core.settings import Settings
from curtsy.fetch.guard import address_allowed, check_url, is_address, networks
from curtsy.records import plan
from curtsy.rules.urls import MAX_PATTERN_LENGTH, Scope, has_credentials, normalise, veiled

SchemaName = Annotated[str, Field(min_length=1, max_length=200)]


class CrawlRequest(BaseModel):
    """What a crawl shall be, but for its seeds. Nothing here reaches beyond what the server's settings allow."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lane: Literal["high", "batch"] = Field("batch", description="`high` is served at once, whatever else runs.")
    scope: Literal["host", "domain", "any"] = Field(
        "host", description="Which links belong to it: those to the seeds' hosts, to their registrable domains, or all."
    )
    include: list[str] = Field(default=[], max_length=100, description="Only URLs that match one of these (RE2).")
    exclude: list[str] = Field(default=[], max_length=100, description="No URLs that match one of these (RE2).")
    max_pages: int | None = Field(None, ge=1, le=10**12, description="It ends after so many pages.")
    max_depth: int | None = Field(None, ge=0, le=10**6, description="At most so many links from a seed.")
    delay_s: float | None = Field(
        None, ge=0, le=86400, allow_inf_nan=False, description="Seconds between requests to a host."
    )
    per_host: int | None = Field(None, ge=1, le=64, description="Requests under way at once to a host.")
    sitemaps: bool = Field(True, description="Use the sitemaps that robots.txt names.")
    cookies: bool = Field(False, description="Keep a cookie jar per host.")
    render: Literal["never", "auto", "always"] = Field(
        "never",
        description="Show pages in a browser: `auto` those that say nothing without one. The server's settings must "
        "list its renderer.",
    )
    schema_name: SchemaName | dict[str, Any] | None = Field(
        None,
        alias="schema",
        description="Make records of its pages or sites: the name of a schema that the server's settings list, or a "
        "JSON Schema (docs/reference/schemas.md).",
    )
    rubric: str | None = Field(
        None, min_length=1, max_length=100, description="Score its records by a rubric that the settings list."
    )
    llm: Literal["none", "local", "endpoint"] | None = Field(
        None, description="`none`: no language model is asked. Left out: as the server's settings say."
    )
    webhook: str | None = Field(
        None, max_length=2000, description="Gets a signed POST when the crawl has finished or was cancelled."
    )
    webhook_secret: str | None = Field(
        None, pattern=r"^[ -~]{16,200}$", description="Signs the webhook; left out: the server's. It is not shown."
    )
    proxy_pool: str | None = Field(
        None, min_length=1, max_length=100, description="A pool of proxies that the server's settings list."
    )

    @field_validator("include", "exclude")
    @classmethod
    def _patterns(cls, value: list[str]) -> list[str]:
        if any(not 0 < len(pattern) <= MAX_PATTERN_LENGTH for pattern in value):
            raise ValueError(f"a pattern has 1 to {MAX_PATTERN_LENGTH} characters")
        return value


def crawl_of(wish: CrawlRequest, settings: Settings, request_id: str, id: str | None = None) -> Crawl:
    """The crawl that is wished for; an error says what the settings do not allow."""
    if wish.proxy_pool is not None and wish.proxy_pool not in settings.proxies:
        raise UsageError(f"There is no proxy pool {wish.proxy_pool!r} here: the settings name those there are.")
    fields = wish.model_dump(by_alias=True)
    fields |= plan.wished(wish.schema_name, wish.rubric, wish.llm)
    fields["webhook"] = checked_webhook(wish.webhook, wish.webhook_secret, settings)
    fields |= {"include": tuple(wish.include), "exclude": tuple(wish.exclude), "lane": Lane(wish.lane)}
    crawl = Crawl(id=id or new_id(), request_id=request_id, created_ms=clock.now_ms(), **fields)
    Scope.of(crawl)  # a bad pattern is told before anything is written
    return crawl


def checked_webhook(url: str | None, secret: str | None, settings: Settings) -> str | None:
    """A webhook as it may be kept with a crawl, in normal form; an error says what is wrong with it.

    An address that is not public is told here; a name that leads to one is found out by the guard.
    """
    if url is None:
        return None
    normal = normalise(url)
    if normal is None:
        raise UsageError(f"{veiled(url)!r} is no http or https URL: a webhook looks like https://example.com/told")
    if has_credentials(url):
        raise UsageError("A webhook names no user and no password: its signature says who sends it.")
    target = check_url(normal)
    if target is None or (
        is_address(target.host) and not address_allowed(target.host, networks(settings.allow_private))
    ):
        raise UsageError("The webhook's address is not public: name a receiver that anybody can reach.")
    if not (secret or settings.webhook_secret):
        raise UsageError("A webhook needs a secret to be signed with: give one, or set webhook_secret.")
    return normal
