"""The values of the crawler: frozen, created where data enters, changed with `replace`.

Times ending in `_ms` are milliseconds since 1970 by the frontier server's clock, unless a field says otherwise.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar, dataclass_transform

from curtsy.core.document_facts import DocumentFacts

T = TypeVar("T")


def new_id() -> str:
    """UUIDv7 (RFC 9562): 48 bits of time, then random ones."""
    value = (int(time.time() * 1000) << 80) | int.from_bytes(os.urandom(10))
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    return str(uuid.UUID(int=(value & ~(0x3 << 62)) | (0x2 << 62)))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def hot_value(*, kw_only: bool = True, eq: bool = True) -> Callable[[type[T]], type[T]]:
    """A frozen value: only the type checker prevents changes.

    A frozen dataclass sets each field through `object.__setattr__`, which makes creating it three times as expensive.
    Python also compiles its methods at every start: for 8 fields that takes 0.7 ms, and 0.3 ms for a value.
    """

    def made(kind: type[T]) -> type[T]:
        new = dataclass(slots=True, kw_only=kw_only, repr=False, eq=eq, unsafe_hash=eq)(kind)
        new.__repr__ = _repr  # type: ignore[method-assign]
        return new

    return made


def _repr(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({shown})"


class Kind(StrEnum):
    """What a frontier entry requests; the value is its letter in the frontier."""

    PAGE = "p"  # a page of the crawl
    BROWSER = "b"  # a page of the crawl that waits for a browser, in the lane `render`
    SITEMAP = "s"  # a sitemap or sitemap index: its URLs are added, its body is not a page
    ROBOTS = "r"  # robots.txt of an origin: belongs to the host, has no row in `urls`


#: shown instead of the states `running` and `extracting` if no process works on the crawl
INTERRUPTED = "interrupted"


class Lane(StrEnum):
    """Classes of work, so that none starves another."""

    HIGH = "high"  # served at once
    BATCH = "batch"  # the ordinary lane
    SLOW = "slow"  # hosts that are slow or failing
    RENDER = "render"  # pages that wait for a browser


class CrawlState(StrEnum):
    LOADING = "loading"  # seeds are still arriving: cannot become finished directly
    RUNNING = "running"  # URLs are being fetched
    PAUSED = "paused"  # nothing of it is leased until it is resumed
    EXTRACTING = "extracting"  # every URL is settled, stages still run
    FINISHED = "finished"  # every URL is settled
    CANCELLED = "cancelled"  # ended by a person; open rows count as skipped
    DELETING = "deleting"  # ended, and all of its data is being deleted


class UrlState(StrEnum):
    OPEN = "open"  # still to be fetched, or to be tried again
    DONE = "done"  # fetched, or known to need no request
    SKIPPED = "skipped"  # will not be fetched, for the reason given
    FAILED = "failed"  # a dead letter: not retried automatically


@hot_value()
class Definition:
    """The full text of a schema or a rubric, so that other workers and later replays use exactly the same one."""

    hash: str
    #: `schema` | `rubric`
    kind: str
    name: str
    body: str


@hot_value()
class Crawl:
    """One request for work."""

    #: number in the store; 0 before it is stored
    n: int = 0
    #: UUIDv7
    id: str
    request_id: str
    state: CrawlState = CrawlState.LOADING
    lane: Lane = Lane.BATCH
    #: `host`: the hosts of the seeds; `domain`: their registrable domains; `any`: everywhere
    scope: str = "host"
    #: hosts (scope=host) or registrable domains (scope=domain) that belong to the crawl: the seeds' and the
    #: final hosts of redirect chains that began at a seed
    members: frozenset[str] = frozenset()
    #: grows whenever `members` grows; a lease carries it, so every process knows when to read again
    version: int = 0
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_pages: int | None = None
    max_depth: int | None = None
    #: at least this pause between two requests to a host; None: the deployment's
    delay_s: float | None = None
    per_host: int | None = None
    #: `never` | `auto` | `always`
    render: str = "never"
    sitemaps: bool = True
    #: keep a cookie jar per (crawl, host)
    cookies: bool = False
    #: a pool of the settings that its requests go through; None: the deployment's
    proxy_pool: str | None = None
    created_ms: int = 0
    started_ms: int | None = None
    ended_ms: int | None = None
    #: why it ended, unless it is complete: `upload_incomplete`, `cancelled`, `budget`
    reason: str | None = None
    #: pages counted against max_pages
    pages: int = 0
    #: schema of the records made from its pages; None: the crawl ends when they are stored
    schema: str | None = None
    #: hash of the schema and the rubric when the crawl was created; their definitions are stored under it
    schema_hash: str | None = None
    #: `page`: records of each page; `site`: one record of each host
    per: str | None = None
    rubric: str | None = None
    rubric_hash: str | None = None
    #: `none` | `local` | `endpoint`; None: as the deployment's settings say
    llm: str | None = None
    #: the model verifies values of patterns; None: as the settings say
    verify: bool | None = None
    #: second model, which judges whose values they are; `none`: none; None: that of the settings
    judge_model: str | None = None
    #: schema and rubric, written with a new crawl and not read back with it
    definitions: tuple[Definition, ...] = field(default=(), repr=False)
    #: number of the schedule whose run it is
    schedule: int | None = None
    #: notified when the crawl has ended, signed with the secret (None: the deployment's)
    webhook: str | None = None
    webhook_secret: str | None = field(default=None, repr=False)
    #: for people
    name: str | None = None
    tags: tuple[str, ...] = ()
    #: id of the API key that made it; None: made without a key
    owner: str | None = None

    @property
    def page_kind(self) -> Kind:
        """How to fetch a page of the crawl that is not known yet."""
        return Kind.BROWSER if self.render == "always" else Kind.PAGE

    def elapsed_s(self, now_ms: int) -> float:
        """From start to end, or until now."""
        return max(0, (self.ended_ms or now_ms) - (self.started_ms or self.created_ms)) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What an entry inherits from the redirects that led to it."""

    #: 64-bit fingerprints of the URLs requested so far, first to last
    trail: tuple[int, ...] = ()
    #: the chain began at a seed, so its final host joins the scope
    seed: bool = False
    #: "name=value" pairs set along the chain, sent to `cookie_host` only
    cookies: tuple[str, ...] = ()
    cookie_host: str | None = None
    #: for robots.txt that was redirected: the origin whose rules are being fetched
    robots_of: str | None = None
    #: a sitemap that robots.txt does not declare: its usual URL is tried
    guess: bool = False


@hot_value()
class Entry:
    """One URL in the frontier."""

    url: str
    kind: Kind = Kind.PAGE
    depth: int = 0
    #: requests that were answered or failed, not counting crashes
    attempts: int = 0
    #: leases lost because the worker disappeared
    crashes: int = 0
    #: leases lost while nothing else was in flight
    solo_crashes: int = 0
    chain: Chain | None = None


@hot_value()
class Lease:
    """A host's slot plus the URL to use it for."""

    #: (epoch << 40) | counter: unique and increasing, also after losses of Valkey
    fence: int
    shard: int
    #: the unit of politeness that holds the slot
    host: str
    crawl: int
    #: the crawl's version when it was leased
    crawl_version: int
    lane: Lane
    entry: Entry
    #: in force for this request
    delay_ms: int
    per_host: int
    #: fetched_ms of the robots rules of the entry's origin; 0 for a robots entry
    robots_ms: int
    #: the worker's boot-time clock (seconds) after which nothing may be sent
    valid_until: float
    #: when the worker requested it (worker clock) and the server granted it (server clock); 0: unknown
    asked_at: float = 0.0
    granted_ms: int = 0
    solo: bool = False
    #: the host's consecutive failures, and its adaptive delay, before this request
    failures: int = 0
    adaptive_ms: int = 0
    #: the fence of the URL before it in its run, whose slot passes to it; 0: it has the slot
    follows: int = 0


@hot_value()
class BodyRef:
    """The location of a body: a gzip member of a segment."""

    segment: str
    offset: int
    length: int


@hot_value(eq=False)
class NewUrl:
    """A link that may become a row of `urls`. All pages with the link share one object, so identity is enough."""

    crawl: int
    #: xxh3_128 of `url`
    fp: bytes
    url: str
    host: str
    kind: Kind = Kind.PAGE
    depth: int = 0
    chain: Chain | None = None


@hot_value()
class HostState:
    """A host as stored. `None` means unknown."""

    host: str
    #: no request before this time
    next_ms: int = 0
    blocked_until_ms: int = 0
    #: set by the operator for this host
    operator_delay_ms: int | None = None
    operator_per_host: int | None = None
    robots_delay_ms: int | None = None
    adaptive_ms: int | None = None
    failures: int = 0
    slow: bool = False
    #: denied by the operator: checked at add and at lease
    denied: bool = False
    last_ok_ms: int | None = None


@hot_value()
class RobotsState:
    """The rules of one origin as fetched."""

    origin: str
    host: str
    fetched_ms: int
    expires_ms: int
    status: int
    #: at most 500 KiB; empty where the status allows everything
    body: bytes = b""
    #: `rules` (parse body) | `allow` (4xx) | `forbid` (unreachable: only while it is being retried) |
    #: `forbidden_address`, `denied` (nothing was requested; its URLs are skipped for this reason)
    verdict: str = "rules"


#: kind of the requests for subresources of a browser visit
SUBRESOURCE = "subresource"


@hot_value()
class Request:
    """A row of the request log, which `audit` checks. Times as the `release` script computed them."""

    fence: int
    ordinal: int = 0
    crawl: int | None
    #: unit of politeness
    host: str
    url: str
    start_ms: int
    end_ms: int
    kind: str
    status: int
    fault: str | None = None
    delay_ms: int = 0
    per_host: int = 1
    #: `sent` | `presumed` (a slot expired; whether anything was sent is not known) | `gap` (Valkey was lost)
    nature: str = "sent"


@hot_value()
class Page:
    """One fetched URL's row."""

    id: str
    crawl: int
    fp: bytes
    url: str
    host: str
    status: int
    fetched_ms: int
    depth: int
    content_type: str | None = None
    charset: str | None = None
    title: str | None = None
    sha256: str | None = None
    size: int = 0
    etag: str | None = None
    last_modified: str | None = None
    canonical: str | None = None
    language: str | None = None
    #: parts of it could not be read: it exceeds the limits of the HTML parser
    truncated: bool = False
    #: None: it is not a document
    document: DocumentFacts | None = None
    #: 304 or same digest as before
    unchanged: bool = False
    body: BodyRef | None = None
    #: a revisit record refers to this page
    same_as: str | None = None
    request_id: str = ""
    #: fence of the lease under which it was fetched
    fence: int = 0
    #: what a sitemap says about its URL; only for exports
    lastmod: str | None = None
    priority: float | None = None


@hot_value()
class Failure:
    """A dead letter."""

    id: str
    crawl: int
    fp: bytes
    url: str
    host: str
    #: `fetch`, or a stage of the outbox: `extract`, `score`, `store`, `webhook`
    stage: str = "fetch"
    cause: str = ""
    detail: str = ""
    status: int = 0
    attempts: int = 0
    fence: int = 0
    at_ms: int = 0
    replayed_ms: int | None = None
    request_id: str = ""
    #: 0 for the fetch itself; stages of its page have numbers of their own
    ordinal: int = 0


@hot_value()
class Schedule:
    """A recurring crawl."""

    #: number in the store; 0 before it is stored
    n: int = 0
    #: UUIDv7
    id: str
    name: str
    cron: str
    #: IANA name of the time zone in which `cron` is read
    zone: str = "UTC"
    #: the options of each run, as fields of Crawl
    crawl: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[str, ...] = ()
    #: what happens to a run that is due while the previous one still runs: `skip` | `queue`
    overlap: str = "skip"
    enabled: bool = True
    #: when it is due; None: never again
    next_ms: int | None = None
    #: number of runs whose crawls are kept; None: all
    keep: int | None = None
    created_ms: int = 0
    request_id: str = ""
    #: id of the API key that made it, and so the owner of its crawls
    owner: str | None = None


@hot_value()
class Run:
    """The result of one planned time of a schedule."""

    schedule: int
    planned_ms: int
    #: `planned` (its crawl is about to be made) | `queued` (waits for the last one) | `started` | `skipped`
    state: str
    crawl_id: str
    crawl: int | None = None
    note: str = ""
    at_ms: int = 0


#: pages that wait for a browser are counted up to this number, so the cost does not grow with the crawl
MOST_RENDER = 10_000


class WaitingHost(NamedTuple):
    """A host that gets no request for a while, because it failed or asked for a pause."""

    host: str
    #: a fault, or `status 503`
    cause: str
    #: seconds until it is tried again
    in_s: float
    #: a failure after this time gives it up; None if that is not known
    until_ms: int | None = None


@hot_value(kw_only=False)
class Counts:
    """A crawl's ledger, kept by the commit."""

    pages: int = 0
    done: int = 0
    pending: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    #: what the process waits for while it is idle; not stored
    waiting: str = ""
    #: of the pending ones, pages that wait for a browser; at most MOST_RENDER are counted
    pending_render: int = 0
    #: dead letters by stage after fetching; their URLs are done
    failed_stages: dict[str, int] = field(default_factory=dict)
    #: hosts to which this process sends requests, and hosts that wait, soonest first; not kept
    active_hosts: int = 0
    waiting_hosts: tuple[WaitingHost, ...] = ()
