"""What goes in and out over HTTP. Made from the OpenAPI document by `make client`: do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Accepted(TypedDict):
    """The crawl is stored; workers start it."""

    #: UUIDv7.
    id: str
    request_id: str


class Alive(TypedDict):
    """The process answers."""

    status: NotRequired[Literal["ok"]]
    version: str


class Block(TypedDict):
    """How long a host gets no requests."""

    seconds: float


class ChangeInfo(TypedDict):
    """The change of one page."""

    kind: Literal["new", "changed", "unchanged", "gone", "moved", "unread"]
    url: str
    #: Why the later crawl lacks the page: `gone`, `redirect`, ..., or `absent`: no link led to it.
    why: str | None
    sha256_before: str | None
    sha256: str | None
    #: When the earlier crawl fetched it.
    before: str | None
    #: When the later crawl fetched or settled it.
    at: str | None


class Changes(TypedDict):
    """What changed between two crawls."""

    crawl: str
    against: str
    #: By kind; on the first page only.
    counts: dict[str, int] | None
    items: list[ChangeInfo]
    #: Send it as `cursor` to get the next page; null: this is the last page.
    next: str | None


class CrawlCounts(TypedDict):
    """Numbers of URLs by result."""

    pages: int
    done: int
    pending: int
    #: Pending pages that wait for a browser; the count stops at 10,000.
    pending_render: int
    #: By reason.
    skipped: dict[str, int]
    #: Dead letters of URLs, by cause.
    failed: dict[str, int]
    #: Dead letters of stages after the fetch; their URLs are done.
    failed_stages: dict[str, int]


class CrawlRequest(TypedDict):
    """The options of a crawl, without its seeds. No option exceeds what the server's settings allow."""

    #: `high` is served before all other lanes, `slow` after them.
    lane: NotRequired[Literal["high", "batch", "slow"]]
    #: Which links to follow: to the seeds' hosts, to their registrable domains, or all.
    scope: NotRequired[Literal["host", "domain", "any"]]
    #: Only URLs that match one of these (RE2).
    include: NotRequired[list[str]]
    #: No URLs that match one of these (RE2).
    exclude: NotRequired[list[str]]
    #: Maximum number of pages.
    max_pages: NotRequired[int | None]
    #: Maximum number of links from a seed.
    max_depth: NotRequired[int | None]
    #: Seconds between requests to a host.
    delay_s: NotRequired[float | None]
    #: Concurrent requests to a host.
    per_host: NotRequired[int | None]
    #: Use the sitemaps that robots.txt names.
    sitemaps: NotRequired[bool]
    #: Keep a cookie jar per host.
    cookies: NotRequired[bool]
    #: Render pages in a browser: `auto` renders those that are empty without one. The server's settings must list its
    #: renderer.
    render: NotRequired[Literal["never", "auto", "always"]]
    #: Extract records from its pages or sites: the name of a schema that the server's settings list, or a JSON Schema
    #: (docs/reference/schemas.md).
    schema: NotRequired[str | dict[str, Any] | None]
    #: Score its records with a rubric that the settings list.
    rubric: NotRequired[str | None]
    #: `none` uses no language model. The default is the server's setting.
    llm: NotRequired[Literal["none", "local", "endpoint"] | None]
    #: Receives a signed POST when the crawl has finished or was canceled.
    webhook: NotRequired[str | None]
    #: Signs the webhook. The default is the server's. Never returned.
    webhook_secret: NotRequired[str | None]
    #: A proxy pool that the server's settings list.
    proxy_pool: NotRequired[str | None]


class CrawlStatus(TypedDict):
    """Progress of a crawl."""

    id: str
    state: Literal["loading", "running", "paused", "extracting", "finished", "cancelled", "deleting"]
    #: Why it ended, if it did not simply finish.
    reason: str | None
    lane: str
    scope: str
    pages: int
    request_id: str
    created: str
    started: str | None
    ended: str | None
    counts: CrawlCounts
    #: Over the last minute, or the last 500 pages.
    pages_per_s: float
    #: At the current rate and without new links; null if there is no basis for an estimate.
    estimated_end: str | None
    #: The options of the crawl.
    wishes: dict[str, str | int | float | bool | list[str] | None]


class CrawlSummary(TypedDict):
    """A crawl in a list."""

    id: str
    state: Literal["loading", "running", "paused", "extracting", "finished", "cancelled", "deleting"]
    #: Why it ended, if it did not simply finish.
    reason: str | None
    lane: str
    scope: str
    pages: int
    request_id: str
    created: str
    started: str | None
    ended: str | None


class DeadLetter(TypedDict):
    """A failure that is not retried automatically."""

    id: str
    crawl: str
    url: str
    host: str
    #: `fetch`, `extract`, `score`, `store` or `webhook`.
    stage: str
    cause: str
    detail: str
    #: HTTP status of the last response; 0: there was no response.
    status: int
    attempts: int
    at: str | None
    replayed: str | None
    request_id: str


class Delay(TypedDict):
    """Seconds from the start of a request to the start of the next one, and their source."""

    in_force_s: float
    #: Which value is the longest; `crawls`: that of the crawls of the host, or of the settings.
    source: Literal["operator", "robots", "adaptive", "crawls"]
    operator_s: float | None
    robots_s: float | None
    adaptive_s: float | None


class Deleting(TypedDict):
    """The deletion is stored and runs in the background."""

    #: Of the deletion; `GET /v1/deletions` lists unfinished ones.
    id: str
    request_id: str


class EvidenceInfo(TypedDict):
    """A place in a page that supports a value."""

    #: Id of the page.
    page: str
    url: str
    source: Literal["text", "structured", "attribute"]
    #: JSON pointer into structured data, or a selector; empty for text.
    locator: str
    #: Of the source text that `start` and `end` refer to.
    sha256: str
    start: int
    end: int
    quote: str


class Explanation(TypedDict):
    """The state of a URL or host, and why it is not done."""

    #: For people; the most important reason first.
    why: list[str]
    url: str | None
    host: str
    #: The crawl that was examined.
    crawl: str | None
    #: Of the URL: `open`, `done`, `skipped`, `failed`; null: the crawl does not contain it.
    state: str | None
    reason: str | None
    #: The URL is open and waits for a browser.
    waits_for_rendering: NotRequired[bool]
    attempts: int | None
    retry_at: str | None
    #: Id of the resulting page.
    page: str | None
    #: Whether parts of that page could not be read; null: no page.
    truncated: NotRequired[bool | None]
    #: Id; `POST /v1/failures/replay` retries it.
    dead_letter: str | None
    #: Of a URL: `allowed` and the `rule` that decides; of a host: its origins.
    robots: dict[str, Any] | list[dict[str, Any]]
    #: State in the frontier: `queued_behind`, `leased_since`, `owner`, `host_due`, `host_blocked_until`, ...; null: it
    #: is not in the frontier, or the frontier is unavailable.
    frontier: dict[str, Any] | None
    #: Of a host: its crawls.
    queues: list[dict[str, Any]]


class FieldInfo(TypedDict):
    """One value of a record, and its evidence."""

    #: JSON pointer into `data`.
    path: str
    value: Any
    #: What found it: `structured`, `selector`, `llm`, `function` or `person`.
    rung: str
    #: `supported`, `derived`, `judged`; of withheld values also `unsupported`.
    verdict: str
    #: The rule that derives the value from its quote, if the quote differs.
    note: str
    evidence: list[EvidenceInfo]


class HostStatus(TypedDict):
    """The full state of a host, from the store and the frontier."""

    host: str
    #: No request before this time; null: requests are allowed now.
    next_allowed: str | None
    #: The host asked us to wait, failed, or was blocked; null: it is not blocked.
    blocked_until: str | None
    #: On the deny list: it gets no requests.
    denied: bool
    #: Failed requests since the last response.
    failures: int
    #: Served in the lane `slow`.
    slow: bool
    last_answer: str | None
    #: For people: whether the host gets requests, and why not.
    why: list[str]
    delay: Delay
    #: Concurrent requests that the operator allows; null: not set.
    per_host: int | None
    #: Requests in flight; null: the frontier is unavailable.
    under_way: int | None
    robots: list[RobotsOf]
    #: Of the host's newest 100 crawls.
    queues: list[QueueOf]


class HostSummary(TypedDict):
    """A host in a list, as stored."""

    host: str
    #: No request before this time; null: requests are allowed now.
    next_allowed: str | None
    #: The host asked us to wait, failed, or was blocked; null: it is not blocked.
    blocked_until: str | None
    #: On the deny list: it gets no requests.
    denied: bool
    #: Failed requests since the last response.
    failures: int
    #: Served in the lane `slow`.
    slow: bool
    last_answer: str | None


class LetterGroup(TypedDict):
    """Dead letters with a common cause, host or stage; null: not grouped by it."""

    cause: str | None
    host: str | None
    stage: str | None
    dead_letters: int


class LetterGroups(TypedDict):
    """Largest first, at most 1,000."""

    groups: list[LetterGroup]


class Mistake(TypedDict):
    """One error in a request."""

    #: Path of the field, such as `body.seeds.3` or `query.limit`; in an NDJSON body `line 7`.
    where: str
    message: str


class NewCrawl(TypedDict):
    """A crawl to create."""

    #: `high` is served before all other lanes, `slow` after them.
    lane: NotRequired[Literal["high", "batch", "slow"]]
    #: Which links to follow: to the seeds' hosts, to their registrable domains, or all.
    scope: NotRequired[Literal["host", "domain", "any"]]
    #: Only URLs that match one of these (RE2).
    include: NotRequired[list[str]]
    #: No URLs that match one of these (RE2).
    exclude: NotRequired[list[str]]
    #: Maximum number of pages.
    max_pages: NotRequired[int | None]
    #: Maximum number of links from a seed.
    max_depth: NotRequired[int | None]
    #: Seconds between requests to a host.
    delay_s: NotRequired[float | None]
    #: Concurrent requests to a host.
    per_host: NotRequired[int | None]
    #: Use the sitemaps that robots.txt names.
    sitemaps: NotRequired[bool]
    #: Keep a cookie jar per host.
    cookies: NotRequired[bool]
    #: Render pages in a browser: `auto` renders those that are empty without one. The server's settings must list its
    #: renderer.
    render: NotRequired[Literal["never", "auto", "always"]]
    #: Extract records from its pages or sites: the name of a schema that the server's settings list, or a JSON Schema
    #: (docs/reference/schemas.md).
    schema: NotRequired[str | dict[str, Any] | None]
    #: Score its records with a rubric that the settings list.
    rubric: NotRequired[str | None]
    #: `none` uses no language model. The default is the server's setting.
    llm: NotRequired[Literal["none", "local", "endpoint"] | None]
    #: Receives a signed POST when the crawl has finished or was canceled.
    webhook: NotRequired[str | None]
    #: Signs the webhook. The default is the server's. Never returned.
    webhook_secret: NotRequired[str | None]
    #: A proxy pool that the server's settings list.
    proxy_pool: NotRequired[str | None]
    #: The http and https URLs to start from. Send very many as NDJSON.
    seeds: list[str]


class NewSchedule(TypedDict):
    """A schedule to create."""

    #: A unique name without `/`.
    name: str
    #: Five fields, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
    cron: str
    #: IANA name of the time zone of `cron`.
    zone: NotRequired[str]
    #: The URLs that each run starts from.
    seeds: list[str]
    #: The options of each crawl.
    crawl: NotRequired[CrawlRequest]
    #: What happens to a run that is due while the previous one is still running.
    overlap: NotRequired[Literal["skip", "queue"]]
    #: Keep the crawls of this many runs; null: keep all.
    keep: NotRequired[int | None]


class OwnDelay(TypedDict):
    """The operator's values for a host; a null or omitted field removes the value."""

    delay_s: NotRequired[float | None]
    per_host: NotRequired[int | None]


class PageOf(TypedDict):
    """A fetched URL of a crawl."""

    id: str
    crawl: str
    url: str
    host: str
    status: int
    fetched: str
    depth: int
    content_type: str | None
    charset: str | None
    title: str | None
    language: str | None
    canonical: str | None
    #: Of the body.
    sha256: str | None
    #: Bytes of the body.
    size: int
    etag: str | None
    last_modified: str | None
    #: Since an earlier crawl.
    unchanged: bool
    #: Id of the page whose identical body is stored for both.
    same_as: str | None
    #: Parts of the page could not be read; the stored body is complete.
    truncated: bool
    #: Whether `/v1/pages/{id}/content` has a body.
    has_content: bool
    request_id: str


class PageOfCrawlSummary(TypedDict):
    items: list[CrawlSummary]
    #: Send it as `cursor` to get the next page; null: this is the last page.
    next: str | None


class PageOfDeadLetter(TypedDict):
    items: list[DeadLetter]
    #: Send it as `cursor` to get the next page; null: this is the last page.
    next: str | None


class PageOfHostSummary(TypedDict):
    items: list[HostSummary]
    #: Send it as `cursor` to get the next page; null: this is the last page.
    next: str | None


class PageOfPageOf(TypedDict):
    items: list[PageOf]
    #: Send it as `cursor` to get the next page; null: this is the last page.
    next: str | None


class PageOfRecordInfo(TypedDict):
    items: list[RecordInfo]
    #: Send it as `cursor` to get the next page; null: this is the last page.
    next: str | None


class PageOfReviewItem(TypedDict):
    items: list[ReviewItem]
    #: Send it as `cursor` to get the next page; null: this is the last page.
    next: str | None


class PageOfRunInfo(TypedDict):
    items: list[RunInfo]
    #: Send it as `cursor` to get the next page; null: this is the last page.
    next: str | None


class PageOfScheduleInfo(TypedDict):
    items: list[ScheduleInfo]
    #: Send it as `cursor` to get the next page; null: this is the last page.
    next: str | None


class Paged(TypedDict):
    """The query of every list. Subclass it to add filters."""

    #: `next` of the previous page; omit it for the first page.
    cursor: NotRequired[str | None]
    #: Items per page.
    limit: NotRequired[int]


class PagesNamed(TypedDict):
    #: Pages of this URL; give either `url` or `host`.
    url: NotRequired[str | None]
    #: All pages of this host.
    host: NotRequired[str | None]
    #: Only in this crawl; default: in every crawl.
    crawl: NotRequired[str | None]


class PendingDeletion(TypedDict):
    """A deletion in progress."""

    id: str
    #: `crawl` (all of it), or `pages`.
    what: str
    #: Id of the crawl; null: every crawl.
    crawl: str | None
    host: str | None
    created: str | None
    #: Pages deleted so far.
    pages: int
    request_id: str


class PendingDeletions(TypedDict):
    """Oldest first, at most 1,000."""

    deletions: list[PendingDeletion]


class ProblemDocument(TypedDict):
    """RFC 9457: what went wrong, and what the caller can do."""

    #: `urn:curtsy:problem:<name>`: stable, for programs.
    type: str
    title: str
    status: int
    #: For people: what happened, and what to do.
    detail: str
    request_id: str
    #: The first 20 errors in the request.
    errors: NotRequired[list[Mistake] | None]


class QueueOf(TypedDict):
    """The queue of one crawl on the host."""

    crawl: str
    #: `open`, `empty`, or `dead` for this crawl.
    state: str
    reason: str | None
    #: URLs ever added.
    urls: int


class Ready(TypedDict):
    """Whether the required services answer."""

    ready: bool
    #: `ok`, or what is wrong, for store, frontier and broker.
    parts: dict[str, str]


class RecordInfo(TypedDict):
    """One structured item extracted from a page or a site. It contains supported values only."""

    id: str
    url: str
    #: Id of its page; null: it describes a whole site.
    page: str | None
    #: The fingerprint of the page, or `site:<host>`.
    subject: str
    kind: Literal["page", "site"]
    schema: str
    #: Of the schema at that time.
    schema_hash: str
    #: Position among the records of one page.
    ordinal: int
    #: Increases with each new extraction by the same schema.
    version: int
    status: Literal["published", "held", "rejected", "superseded"]
    data: dict[str, Any]
    #: The values of `data` with their evidence.
    fields: list[FieldInfo]
    scores: dict[str, Any]
    #: `share` of supported values, `words` of source, `low`, `reasons`, `problems`.
    confidence: dict[str, Any]
    #: Do not rely on it before a person has reviewed it.
    low_confidence: bool
    #: Number of values by rung.
    rungs: dict[str, int]
    #: Language model requests and tokens used for it.
    usage: dict[str, Any]
    created: str
    request_id: str


class RecordReview(TypedDict):
    """A record with its sources and all decisions."""

    id: str
    url: str
    #: Id of its page; null: it describes a whole site.
    page: str | None
    #: The fingerprint of the page, or `site:<host>`.
    subject: str
    kind: Literal["page", "site"]
    schema: str
    #: Of the schema at that time.
    schema_hash: str
    #: Position among the records of one page.
    ordinal: int
    #: Increases with each new extraction by the same schema.
    version: int
    status: Literal["published", "held", "rejected", "superseded"]
    data: dict[str, Any]
    #: The values of `data` with their evidence.
    fields: list[FieldInfo]
    scores: dict[str, Any]
    #: `share` of supported values, `words` of source, `low`, `reasons`, `problems`.
    confidence: dict[str, Any]
    #: Do not rely on it before a person has reviewed it.
    low_confidence: bool
    #: Number of values by rung.
    rungs: dict[str, int]
    #: Language model requests and tokens used for it.
    usage: dict[str, Any]
    created: str
    request_id: str
    crawl: str
    withheld: list[WithheldInfo]
    sources: list[SourceInfo]
    reviews: list[ReviewInfo]


class ReplayRequest(TypedDict):
    """Which dead letters to retry. Each omitted field matches all."""

    #: Only of this host.
    host: NotRequired[str | None]
    #: Only of this stage: `fetch`, `extract`, `score`, `store` or `webhook`.
    stage: NotRequired[str | None]
    #: Only with this cause, such as `timeout`.
    cause: NotRequired[str | None]
    since: NotRequired[str | None]
    crawl: NotRequired[str | None]
    #: Another name for `cause`.
    error: NotRequired[str | None]
    #: Only these dead letters, by id: at least one.
    ids: NotRequired[list[str] | None]
    #: At most this many, oldest first.
    limit: NotRequired[int]
    #: Report what would be replayed; change nothing.
    dry_run: NotRequired[bool]


class Replayed(TypedDict):
    """What was reopened, or would be."""

    dead_letters: int
    #: Crawls that continue because of it.
    crawls: list[str]
    #: Not replayed because their crawl was cancelled or is being deleted.
    of_cancelled_crawls: int
    dry_run: bool


class ReviewInfo(TypedDict):
    """One decision."""

    decision: Literal["approve", "reject", "correct"]
    who: str
    at: str
    note: str
    correction: dict[str, Any] | None
    #: The data of the record before the decision.
    before: dict[str, Any]
    golden: bool


class ReviewItem(TypedDict):
    """A record that needs a decision, with its withheld values."""

    id: str
    url: str
    #: Id of its page; null: it describes a whole site.
    page: str | None
    #: The fingerprint of the page, or `site:<host>`.
    subject: str
    kind: Literal["page", "site"]
    schema: str
    #: Of the schema at that time.
    schema_hash: str
    #: Position among the records of one page.
    ordinal: int
    #: Increases with each new extraction by the same schema.
    version: int
    status: Literal["published", "held", "rejected", "superseded"]
    data: dict[str, Any]
    #: The values of `data` with their evidence.
    fields: list[FieldInfo]
    scores: dict[str, Any]
    #: `share` of supported values, `words` of source, `low`, `reasons`, `problems`.
    confidence: dict[str, Any]
    #: Do not rely on it before a person has reviewed it.
    low_confidence: bool
    #: Number of values by rung.
    rungs: dict[str, int]
    #: Language model requests and tokens used for it.
    usage: dict[str, Any]
    created: str
    request_id: str
    crawl: str
    withheld: list[WithheldInfo]


class ReviewRequest(TypedDict):
    """A decision."""

    decision: Literal["approve", "reject", "correct"]
    #: Who decides; default: the API key.
    by: NotRequired[str | None]
    note: NotRequired[str]
    #: JSON pointer -> the right value, null to remove it; only with `correct`.
    correction: NotRequired[dict[str, Any] | None]
    #: Make the record a golden case: `curtsy review export-golden` writes them.
    golden: NotRequired[bool]


class RobotsOf(TypedDict):
    """The robots.txt rules of one origin."""

    origin: str
    #: `rules`, `allow`, `forbid` (unreachable), or why it is not requested.
    verdict: str
    fetched: str | None
    expires: str | None


class RunInfo(TypedDict):
    """The result of one planned time."""

    planned: str
    state: Literal["planned", "queued", "started", "skipped"]
    #: Id of its crawl, from its creation until its deletion.
    crawl: str | None
    #: Why it was skipped or waits, or how many missed runs it replaces.
    note: str


class ScheduleInfo(TypedDict):
    """A crawl that runs repeatedly."""

    id: str
    name: str
    cron: str
    zone: str
    seeds: list[str]
    #: The options of each crawl, without the webhook secret.
    crawl: dict[str, Any]
    overlap: str
    enabled: bool
    #: Next planned time; null if it is paused or has no next time.
    next: str | None
    keep: int | None
    created: str


class SourceInfo(TypedDict):
    """A text that contains evidence: `text[start:end]` is the quote."""

    #: Id of the page.
    page: str
    url: str
    kind: Literal["text", "structured", "attribute"]
    sha256: str
    text: str


class WithheldInfo(TypedDict):
    """A value that is not published, for the reviewer."""

    #: JSON pointer into `data`.
    path: str
    value: Any
    #: What found it: `structured`, `selector`, `llm`, `function` or `person`.
    rung: str
    #: `supported`, `derived`, `judged`; of withheld values also `unsupported`.
    verdict: str
    #: Why: a short stable word such as `quote_not_found`.
    note: str
    evidence: list[EvidenceInfo]
    #: The quote given for it, which the page does not contain.
    claimed_quote: str | None
