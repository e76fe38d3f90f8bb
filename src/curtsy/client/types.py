"""What goes in and out over HTTP. Made from the OpenAPI document by `make client`: do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Accepted(TypedDict):
    """The crawl is stored; workers take it up."""

    #: UUIDv7.
    id: str
    request_id: str


class Alive(TypedDict):
    """The process answers."""

    status: NotRequired[Literal["ok"]]
    version: str


class Block(TypedDict):
    """For how long a host is left alone."""

    seconds: float


class ChangeInfo(TypedDict):
    """What became of one page."""

    kind: Literal["new", "changed", "unchanged", "gone", "moved", "unread"]
    url: str
    #: Of a page that the later crawl lacks: `gone`, `redirect`, ..., or `absent`: no link led there.
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
    #: Give it as `cursor` to get the next page; null: this is the last one.
    next: str | None


class CrawlCounts(TypedDict):
    """URLs by what became of them."""

    pages: int
    done: int
    pending: int
    #: Of the pending ones, pages that wait for a browser; at most 10,000 are counted.
    pending_render: int
    #: By reason.
    skipped: dict[str, int]
    #: Dead letters of URLs by cause.
    failed: dict[str, int]
    #: Dead letters of stages after fetching: their URLs are done.
    failed_stages: dict[str, int]


class CrawlRequest(TypedDict):
    """What a crawl shall be, but for its seeds. Nothing here reaches beyond what the server's settings allow."""

    #: `high` is served at once, whatever else runs.
    lane: NotRequired[Literal["high", "batch"]]
    #: Which links belong to it: those to the seeds' hosts, to their registrable domains, or all.
    scope: NotRequired[Literal["host", "domain", "any"]]
    #: Only URLs that match one of these (RE2).
    include: NotRequired[list[str]]
    #: No URLs that match one of these (RE2).
    exclude: NotRequired[list[str]]
    #: It ends after so many pages.
    max_pages: NotRequired[int | None]
    #: At most so many links from a seed.
    max_depth: NotRequired[int | None]
    #: Seconds between requests to a host.
    delay_s: NotRequired[float | None]
    #: Requests under way at once to a host.
    per_host: NotRequired[int | None]
    #: Use the sitemaps that robots.txt names.
    sitemaps: NotRequired[bool]
    #: Keep a cookie jar per host.
    cookies: NotRequired[bool]
    #: Show pages in a browser: `auto` those that say nothing without one. The server's settings must list its renderer.
    render: NotRequired[Literal["never", "auto", "always"]]
    #: Make records of its pages or sites: the name of a schema that the server's settings list, or a JSON Schema
    #: (docs/reference/schemas.md).
    schema: NotRequired[str | dict[str, Any] | None]
    #: Score its records by a rubric that the settings list.
    rubric: NotRequired[str | None]
    #: `none`: no language model is asked. Left out: as the server's settings say.
    llm: NotRequired[Literal["none", "local", "endpoint"] | None]
    #: Gets a signed POST when the crawl has finished or was cancelled.
    webhook: NotRequired[str | None]
    #: Signs the webhook; left out: the server's. It is not shown.
    webhook_secret: NotRequired[str | None]
    #: A pool of proxies that the server's settings list.
    proxy_pool: NotRequired[str | None]


class CrawlStatus(TypedDict):
    """How far a crawl is."""

    id: str
    state: Literal["loading", "running", "paused", "extracting", "finished", "cancelled", "deleting"]
    #: Why it ended, where that is not plain.
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
    #: At this rate and if no more links are found; null where there is nothing to tell from.
    estimated_end: str | None
    #: What was asked for.
    wishes: dict[str, str | int | float | bool | list[str] | None]


class CrawlSummary(TypedDict):
    """A crawl in a list."""

    id: str
    state: Literal["loading", "running", "paused", "extracting", "finished", "cancelled", "deleting"]
    #: Why it ended, where that is not plain.
    reason: str | None
    lane: str
    scope: str
    pages: int
    request_id: str
    created: str
    started: str | None
    ended: str | None


class DeadLetter(TypedDict):
    """A failure that is not tried again by itself."""

    id: str
    crawl: str
    url: str
    host: str
    #: `fetch`, `extract`, `score`, `store` or `webhook`.
    stage: str
    cause: str
    detail: str
    #: HTTP status of the last answer; 0: there was none.
    status: int
    attempts: int
    at: str | None
    replayed: str | None
    request_id: str


class Delay(TypedDict):
    """Seconds from the start of a request to the next one, and where they come from."""

    in_force_s: float
    #: Whose wish is the longest; `crawls`: of the crawls there, or the settings.
    source: Literal["operator", "robots", "adaptive", "crawls"]
    operator_s: float | None
    robots_s: float | None
    adaptive_s: float | None


class Deleting(TypedDict):
    """It is noted, and carried out in the background."""

    #: Of the deletion; `GET /v1/deletions` lists those that are not done.
    id: str
    request_id: str


class DossierInfo(TypedDict):
    """All that is known of a record: its sources and every decision."""

    id: str
    url: str
    #: Id of the page it was made from; null: it was made from a site.
    page: str | None
    #: The page's fingerprint, or `site:<host>`.
    subject: str
    kind: Literal["page", "site"]
    schema: str
    #: Of the schema as it was then.
    schema_hash: str
    #: Of several records of one page.
    ordinal: int
    #: Later extractions of the same by the same schema count on.
    version: int
    status: Literal["published", "held", "rejected", "superseded"]
    data: dict[str, Any]
    #: The values of `data` with their evidence.
    fields: list[FieldInfo]
    scores: dict[str, Any]
    #: `share` of supported values, `words` of source, `low`, `reasons`, `problems`.
    confidence: dict[str, Any]
    #: Not to be relied on before a person has looked at it.
    low_confidence: bool
    #: How many values came from which rung.
    rungs: dict[str, int]
    #: What a language model was asked for it.
    usage: dict[str, Any]
    created: str
    request_id: str
    crawl: str
    withheld: list[WithheldInfo]
    sources: list[SourceInfo]
    reviews: list[ReviewInfo]


class EvidenceInfo(TypedDict):
    """A place in a page that supports a value."""

    #: Id of the page.
    page: str
    url: str
    source: Literal["text", "structured", "attribute"]
    #: JSON pointer into structured data, or a selector; empty for text.
    locator: str
    #: Of the source's text, in which `start` and `end` count.
    sha256: str
    start: int
    end: int
    quote: str


class Explanation(TypedDict):
    """Where a URL or a host is, and why it is not done."""

    #: For people, most telling first.
    why: list[str]
    url: str | None
    host: str
    #: The crawl that was looked at.
    crawl: str | None
    #: Of the URL: `open`, `done`, `skipped`, `failed`; null: not of the crawl.
    state: str | None
    reason: str | None
    #: Of a URL: it is open and waits for a browser.
    waits_for_rendering: NotRequired[bool]
    attempts: int | None
    retry_at: str | None
    #: Id of the page that came of it.
    page: str | None
    #: Id; `POST /v1/failures/replay` tries it again.
    dead_letter: str | None
    #: Of a URL: `allowed` and the `rule` that decides; of a host: its origins.
    robots: dict[str, Any] | list[dict[str, Any]]
    #: Where it stands in the frontier: `queued_behind`, `leased_since`, `owner`, `host_due`, `host_blocked_until`, ...;
    #: null: it does not stand there, or the frontier is away.
    frontier: dict[str, Any] | None
    #: Of a host: its crawls.
    queues: list[dict[str, Any]]


class FieldInfo(TypedDict):
    """One value of a record, and what it rests on."""

    #: JSON pointer into `data`.
    path: str
    value: Any
    #: Who found it: `structured`, `selector`, `llm`, `function` or `person`.
    rung: str
    #: `supported`, `derived`, `judged`; of withheld values also `unsupported`.
    verdict: str
    #: By which rule it follows from its quote, where it does not stand there as it is.
    note: str
    evidence: list[EvidenceInfo]


class HostStatus(TypedDict):
    """Everything known of a host, from the store and the frontier."""

    host: str
    #: Not asked before; null: it may be asked.
    next_allowed: str | None
    #: It told us to wait, failed, or was blocked; null: it is not.
    blocked_until: str | None
    #: On the deny list: never asked.
    denied: bool
    #: Requests that failed since the last answer.
    failures: int
    #: Served in the lane `slow`.
    slow: bool
    last_answer: str | None
    #: For people: whether it is asked, and why not.
    why: list[str]
    delay: Delay
    #: What the operator allows under way at once; null: not said.
    per_host: int | None
    #: Requests under way; null: the frontier is away.
    under_way: int | None
    robots: list[RobotsOf]
    #: Of the newest 100 crawls there.
    queues: list[QueueOf]


class HostSummary(TypedDict):
    """A host in a list: what the store remembers of it."""

    host: str
    #: Not asked before; null: it may be asked.
    next_allowed: str | None
    #: It told us to wait, failed, or was blocked; null: it is not.
    blocked_until: str | None
    #: On the deny list: never asked.
    denied: bool
    #: Requests that failed since the last answer.
    failures: int
    #: Served in the lane `slow`.
    slow: bool
    last_answer: str | None


class LetterGroup(TypedDict):
    """Dead letters that have something in common; null: not asked for."""

    cause: str | None
    host: str | None
    stage: str | None
    dead_letters: int


class LetterGroups(TypedDict):
    """Most frequent first; of very many the 1,000 largest."""

    groups: list[LetterGroup]


class Mistake(TypedDict):
    """One thing that is wrong with a request."""

    #: The field, as a path: `body.seeds.3`, `query.limit`; a line of an NDJSON body: `line 7`.
    where: str
    message: str


class NewCrawl(TypedDict):
    """A crawl to be made."""

    #: `high` is served at once, whatever else runs.
    lane: NotRequired[Literal["high", "batch"]]
    #: Which links belong to it: those to the seeds' hosts, to their registrable domains, or all.
    scope: NotRequired[Literal["host", "domain", "any"]]
    #: Only URLs that match one of these (RE2).
    include: NotRequired[list[str]]
    #: No URLs that match one of these (RE2).
    exclude: NotRequired[list[str]]
    #: It ends after so many pages.
    max_pages: NotRequired[int | None]
    #: At most so many links from a seed.
    max_depth: NotRequired[int | None]
    #: Seconds between requests to a host.
    delay_s: NotRequired[float | None]
    #: Requests under way at once to a host.
    per_host: NotRequired[int | None]
    #: Use the sitemaps that robots.txt names.
    sitemaps: NotRequired[bool]
    #: Keep a cookie jar per host.
    cookies: NotRequired[bool]
    #: Show pages in a browser: `auto` those that say nothing without one. The server's settings must list its renderer.
    render: NotRequired[Literal["never", "auto", "always"]]
    #: Make records of its pages or sites: the name of a schema that the server's settings list, or a JSON Schema
    #: (docs/reference/schemas.md).
    schema: NotRequired[str | dict[str, Any] | None]
    #: Score its records by a rubric that the settings list.
    rubric: NotRequired[str | None]
    #: `none`: no language model is asked. Left out: as the server's settings say.
    llm: NotRequired[Literal["none", "local", "endpoint"] | None]
    #: Gets a signed POST when the crawl has finished or was cancelled.
    webhook: NotRequired[str | None]
    #: Signs the webhook; left out: the server's. It is not shown.
    webhook_secret: NotRequired[str | None]
    #: A pool of proxies that the server's settings list.
    proxy_pool: NotRequired[str | None]
    #: Where it begins: http and https URLs. Very many are better sent as NDJSON.
    seeds: list[str]


class NewSchedule(TypedDict):
    """A schedule to be made."""

    #: Yours to choose, without `/`; no two share one.
    name: str
    #: Five fields, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
    cron: str
    #: IANA name of the time zone in which `cron` is read.
    zone: NotRequired[str]
    #: Where each run begins.
    seeds: list[str]
    #: What each crawl shall be.
    crawl: NotRequired[CrawlRequest]
    #: What becomes of a run that is due while the last one is still going.
    overlap: NotRequired[Literal["skip", "queue"]]
    #: Crawls of so many runs are kept; null: all.
    keep: NotRequired[int | None]


class OwnDelay(TypedDict):
    """What the operator wants for a host; null or left out takes it back."""

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
    #: Id of the page whose equal body is kept for both.
    same_as: str | None
    #: Whether `/v1/pages/{id}/content` has a body.
    has_content: bool
    request_id: str


class PageOfCrawlSummary(TypedDict):
    items: list[CrawlSummary]
    #: Give it as `cursor` to get the next page; null: this is the last one.
    next: str | None


class PageOfDeadLetter(TypedDict):
    items: list[DeadLetter]
    #: Give it as `cursor` to get the next page; null: this is the last one.
    next: str | None


class PageOfHostSummary(TypedDict):
    items: list[HostSummary]
    #: Give it as `cursor` to get the next page; null: this is the last one.
    next: str | None


class PageOfPageOf(TypedDict):
    items: list[PageOf]
    #: Give it as `cursor` to get the next page; null: this is the last one.
    next: str | None


class PageOfRecordInfo(TypedDict):
    items: list[RecordInfo]
    #: Give it as `cursor` to get the next page; null: this is the last one.
    next: str | None


class PageOfReviewItem(TypedDict):
    items: list[ReviewItem]
    #: Give it as `cursor` to get the next page; null: this is the last one.
    next: str | None


class PageOfRunInfo(TypedDict):
    items: list[RunInfo]
    #: Give it as `cursor` to get the next page; null: this is the last one.
    next: str | None


class PageOfScheduleInfo(TypedDict):
    items: list[ScheduleInfo]
    #: Give it as `cursor` to get the next page; null: this is the last one.
    next: str | None


class Paged(TypedDict):
    """The query of every list. Subclass it to add filters."""

    #: `next` of the page before; leave it out for the first.
    cursor: NotRequired[str | None]
    #: Items on a page.
    limit: NotRequired[int]


class PagesNamed(TypedDict):
    #: Pages of this URL; give it or `host`.
    url: NotRequired[str | None]
    #: All pages of this host.
    host: NotRequired[str | None]
    #: Only of this crawl; left out: of every crawl.
    crawl: NotRequired[str | None]


class PendingDeletion(TypedDict):
    """Something that is being deleted."""

    id: str
    #: `crawl` (all of it), or `pages`.
    what: str
    #: Id; null: of every crawl.
    crawl: str | None
    host: str | None
    created: str | None
    #: Deleted so far.
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
    #: What is wrong with the request, the first 20.
    errors: NotRequired[list[Mistake] | None]


class QueueOf(TypedDict):
    """A crawl's work on the host."""

    crawl: str
    #: `open`, `empty`, or `dead` for this crawl.
    state: str
    reason: str | None
    #: Ever added.
    urls: int


class Ready(TypedDict):
    """Whether the parts that are needed answer."""

    ready: bool
    #: `ok`, or what is wrong with it, for store, frontier and broker.
    parts: dict[str, str]


class RecordInfo(TypedDict):
    """One structured item made from a page or a site. What is not supported is not in it."""

    id: str
    url: str
    #: Id of the page it was made from; null: it was made from a site.
    page: str | None
    #: The page's fingerprint, or `site:<host>`.
    subject: str
    kind: Literal["page", "site"]
    schema: str
    #: Of the schema as it was then.
    schema_hash: str
    #: Of several records of one page.
    ordinal: int
    #: Later extractions of the same by the same schema count on.
    version: int
    status: Literal["published", "held", "rejected", "superseded"]
    data: dict[str, Any]
    #: The values of `data` with their evidence.
    fields: list[FieldInfo]
    scores: dict[str, Any]
    #: `share` of supported values, `words` of source, `low`, `reasons`, `problems`.
    confidence: dict[str, Any]
    #: Not to be relied on before a person has looked at it.
    low_confidence: bool
    #: How many values came from which rung.
    rungs: dict[str, int]
    #: What a language model was asked for it.
    usage: dict[str, Any]
    created: str
    request_id: str


class ReplayRequest(TypedDict):
    """Which dead letters are to be tried again. What is left out does not restrict."""

    crawl: NotRequired[str | None]
    host: NotRequired[str | None]
    #: `fetch`, `extract`, `score`, `store` or `webhook`.
    stage: NotRequired[str | None]
    #: Such as `timeout`.
    cause: NotRequired[str | None]
    #: Another name for `cause`.
    error: NotRequired[str | None]
    since: NotRequired[str | None]
    #: Only these dead letters, by their ids: at least one.
    ids: NotRequired[list[str] | None]
    #: At most so many, oldest first.
    limit: NotRequired[int]
    #: Say what would be replayed; change nothing.
    dry_run: NotRequired[bool]


class Replayed(TypedDict):
    """What was opened again, or would be."""

    dead_letters: int
    #: Crawls that go on for it.
    crawls: list[str]
    #: Left alone because their crawl was cancelled or is being deleted.
    of_cancelled_crawls: int
    dry_run: bool


class ReviewInfo(TypedDict):
    """What somebody decided."""

    decision: Literal["approve", "reject", "correct"]
    who: str
    at: str
    note: str
    correction: dict[str, Any] | None
    #: The record's data before.
    before: dict[str, Any]
    golden: bool


class ReviewItem(TypedDict):
    """A record that waits for a person, with what is withheld of it."""

    id: str
    url: str
    #: Id of the page it was made from; null: it was made from a site.
    page: str | None
    #: The page's fingerprint, or `site:<host>`.
    subject: str
    kind: Literal["page", "site"]
    schema: str
    #: Of the schema as it was then.
    schema_hash: str
    #: Of several records of one page.
    ordinal: int
    #: Later extractions of the same by the same schema count on.
    version: int
    status: Literal["published", "held", "rejected", "superseded"]
    data: dict[str, Any]
    #: The values of `data` with their evidence.
    fields: list[FieldInfo]
    scores: dict[str, Any]
    #: `share` of supported values, `words` of source, `low`, `reasons`, `problems`.
    confidence: dict[str, Any]
    #: Not to be relied on before a person has looked at it.
    low_confidence: bool
    #: How many values came from which rung.
    rungs: dict[str, int]
    #: What a language model was asked for it.
    usage: dict[str, Any]
    created: str
    request_id: str
    crawl: str
    withheld: list[WithheldInfo]


class ReviewRequest(TypedDict):
    """A decision."""

    decision: Literal["approve", "reject", "correct"]
    #: Who decides; left out: the key that asks.
    by: NotRequired[str | None]
    note: NotRequired[str]
    #: JSON pointer -> the right value, null if there is none; only of `correct`.
    correction: NotRequired[dict[str, Any] | None]
    #: It shall become a golden case: `curtsy review export-golden` writes them.
    golden: NotRequired[bool]


class RobotsOf(TypedDict):
    """The rules of one origin."""

    origin: str
    #: `rules`, `allow`, `forbid` (unreachable), or why it is not asked for.
    verdict: str
    fetched: str | None
    expires: str | None


class RunInfo(TypedDict):
    """What came of one planned time."""

    planned: str
    state: Literal["planned", "queued", "started", "skipped"]
    #: Id of its crawl, once that was made and until it is deleted.
    crawl: str | None
    #: Why it was skipped or waits, or how many missed runs it stands for.
    note: str


class ScheduleInfo(TypedDict):
    """A crawl that is run again and again."""

    id: str
    name: str
    cron: str
    zone: str
    seeds: list[str]
    #: What each crawl shall be; the secret of a webhook is not shown.
    crawl: dict[str, Any]
    overlap: str
    enabled: bool
    #: When it is due; null while it is paused, and if it never comes.
    next: str | None
    keep: int | None
    created: str


class SourceInfo(TypedDict):
    """A text that evidence stands in: `text[start:end]` is the quote."""

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
    #: Who found it: `structured`, `selector`, `llm`, `function` or `person`.
    rung: str
    #: `supported`, `derived`, `judged`; of withheld values also `unsupported`.
    verdict: str
    #: Why: a short stable word such as `quote_not_found`.
    note: str
    evidence: list[EvidenceInfo]
    #: Words that were given for it and do not stand in the page.
    claimed_quote: str | None
