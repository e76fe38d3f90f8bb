"""The options of a crawl: one type for the command line, HTTP API, Python API, MCP, Airflow and schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, Lane, new_id
from curtsy.core.settings import Settings
from curtsy.fetch.guard import address_allowed, check_url, is_address, networks
from curtsy.rules.urls import MAX_PATTERN_LENGTH, Scope, has_credentials, hide_credentials, normalise

SchemaName = Annotated[str, Field(min_length=1, max_length=200)]
#: text on one line; a lone surrogate cannot be stored
Title = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$")]
Tag = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._:/-]{0,49}$")]
Tags = Annotated[list[Tag], Field(max_length=20), AfterValidator(lambda given: sorted(set(given)))]


class CrawlRequest(BaseModel):
    """The options of a crawl, without its seeds. No option exceeds what the server's settings allow."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lane: Literal["high", "batch", "slow"] = Field(
        "batch", description="`high` is served before all other lanes, `slow` after them."
    )
    scope: Literal["host", "domain", "any"] = Field(
        "host", description="Which links to follow: to the seeds' hosts, to their registrable domains, or all."
    )
    include: list[str] = Field(default=[], max_length=100, description="Only URLs that match one of these (RE2).")
    exclude: list[str] = Field(default=[], max_length=100, description="No URLs that match one of these (RE2).")
    max_pages: int | None = Field(None, ge=1, le=10**12, description="Maximum number of pages.")
    max_depth: int | None = Field(None, ge=0, le=10**6, description="Maximum number of links from a seed.")
    delay_s: float | None = Field(
        None, ge=0, le=86400, allow_inf_nan=False, description="Seconds between requests to a host."
    )
    per_host: int | None = Field(None, ge=1, le=64, description="Concurrent requests to a host.")
    sitemaps: bool = Field(True, description="Use the sitemaps that robots.txt names, or `/sitemap.xml`.")
    cookies: bool = Field(False, description="Keep a cookie jar per host.")
    render: Literal["never", "auto", "always"] = Field(
        "never",
        description="Render pages in a browser: `auto` renders those that are empty without one. The server's settings "
        "must list its renderer.",
    )
    schema_name: SchemaName | dict[str, Any] | None = Field(
        None,
        alias="schema",
        description="Extract records from its pages or sites: the name of a schema that the server's settings list, or "
        "a JSON Schema (docs/reference/schemas.md).",
    )
    rubric: str | None = Field(
        None, min_length=1, max_length=100, description="Score its records with a rubric that the settings list."
    )
    llm: Literal["none", "local", "endpoint"] | None = Field(
        None, description="`none` uses no language model. The default is the server's setting."
    )
    verify: bool | None = Field(
        None, description="The model verifies values that patterns found. The default is the server's setting."
    )
    judge_model: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="A second model that checks whom values are about, or `none`. The default is the server's setting.",
    )
    webhook: str | None = Field(
        None, max_length=2000, description="Receives a signed POST when the crawl has finished or was canceled."
    )
    webhook_secret: str | None = Field(
        None, pattern=r"^[ -~]{16,200}$", description="Signs the webhook. The default is the server's. Never returned."
    )
    proxy_pool: str | None = Field(
        None, min_length=1, max_length=100, description="A proxy pool that the server's settings list."
    )

    name: Title | None = Field(None, description="Name of the crawl; it need not be unique.")
    tags: Tags = Field(
        default=[],
        description="Tags for searching: lower-case letters, digits and `. _ : / -`, up to 50 characters each.",
    )

    @field_validator("include", "exclude")
    @classmethod
    def _patterns(cls, value: list[str]) -> list[str]:
        if any(not 0 < len(pattern) <= MAX_PATTERN_LENGTH for pattern in value):
            raise ValueError(f"a pattern must have 1 to {MAX_PATTERN_LENGTH} characters")
        return value


#: the fields as they are written, with `schema`
FIELDS = tuple(field.alias or name for name, field in CrawlRequest.model_fields.items())


def options_of(crawl: Crawl) -> dict[str, Any]:
    """The options of a crawl as they are shown: without the secret of its webhook."""
    values = {name: getattr(crawl, name) for name in FIELDS if name != "webhook_secret" and hasattr(crawl, name)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def request_from(fields: Mapping[str, Any], named: str = "{}", **names: str) -> CrawlRequest:
    """A request of these fields; an error names invalid ones as `named` or `names` say, such as `--{}`."""
    try:
        return CrawlRequest.model_validate(fields)
    except ValidationError as error:
        wrong = dict.fromkeys(_invalid(one, named, names) for one in error.errors(include_url=False))
        raise UsageError(f"{'. '.join(wrong)}.") from None


def _invalid(error: Any, named: str, names: Mapping[str, str]) -> str:
    first, *rest = error["loc"] or ("request",)
    field = names.get(first) or ".".join([named.format(first), *map(str, rest)])
    if error["type"] == "extra_forbidden":
        return f"There is no option {field}"
    message = error["msg"].removeprefix("Input ").removeprefix("Value error, ")
    value = "" if "webhook" in str(first) else f" {error['input']!r:.60}"
    return f"Invalid value{value} for {field}: {message}"


def crawl_of(
    request: CrawlRequest, settings: Settings, request_id: str, id: str | None = None, owner: str | None = None
) -> Crawl:
    """Return the crawl for a request; raise UsageError if the settings do not allow it."""
    if request.proxy_pool is not None and request.proxy_pool not in settings.proxies:
        raise UsageError(f"Unknown proxy pool: {request.proxy_pool!r}. Use one that the settings list.")
    fields = request.model_dump(by_alias=True)
    fields |= _record_fields(request)
    fields["webhook"] = checked_webhook(request.webhook, request.webhook_secret, settings)
    fields |= {"include": tuple(request.include), "exclude": tuple(request.exclude), "lane": Lane(request.lane)}
    fields |= {"tags": tuple(request.tags), "owner": owner}
    crawl = Crawl(id=id or new_id(), request_id=request_id, created_ms=clock.now_ms(), **fields)
    Scope.of(crawl)  # raises for an invalid pattern before anything is written
    return crawl


def _record_fields(request: CrawlRequest) -> dict[str, Any]:
    """The fields of a Crawl that say what to make of its pages."""
    if request.schema_name is None and request.rubric is None and request.llm is None:
        return {"llm": None}
    from curtsy.records import plan  # start-up: most crawls make no records

    return plan.crawl_fields(request.schema_name, request.rubric, request.llm)


def checked_webhook(url: str | None, secret: str | None, settings: Settings) -> str | None:
    """Return the normalized URL of a webhook, to be stored with a crawl; raise UsageError if it is invalid.

    An address that is not public is refused here; a name that resolves to one is refused by the guard later.
    """
    if url is None:
        return None
    normal = normalise(url)
    if normal is None:
        raise UsageError(
            f"{hide_credentials(url)!r} is not an http or https URL. Use one such as https://example.com/hook"
        )
    if has_credentials(url):
        raise UsageError("A webhook URL must not contain a user name or password. Its signature authenticates it.")
    target = check_url(normal)
    if target is None or (
        is_address(target.host) and not address_allowed(target.host, networks(settings.allow_private))
    ):
        raise UsageError("The webhook's address is not public. Use a public address.")
    if not (secret or settings.webhook_secret):
        raise UsageError("A webhook needs a secret for its signature. Give one, or set webhook_secret.")
    return normal
