"""What people do to a crawl, by command or over HTTP: ask for it, look at it, pause, resume, cancel."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from curtsy.core.errors import EpochLost, FrontierUnavailable, UsageError, WrongState
from curtsy.core.model import Counts, Crawl, CrawlState, Lane, new_id
from curtsy.core.observe import log
from curtsy.core.settings import Settings
from curtsy.crawl import run
from curtsy.records import plan, webhooks
from curtsy.rules.urls import MAX_PATTERN_LENGTH, Scope
from curtsy.services.backends import Services
from curtsy.services.epochs import in_thread, open_epoch, put_open_back, read
from curtsy.store import crawls, pages, queues
from curtsy.store.engine import Store

#: from which states a crawl may come into one
CHANGES = {
    CrawlState.PAUSED: (CrawlState.RUNNING,),
    CrawlState.RUNNING: (CrawlState.PAUSED,),
    CrawlState.CANCELLED: (CrawlState.RUNNING, CrawlState.PAUSED, CrawlState.LOADING, CrawlState.EXTRACTING),
}
#: a rate is that of so many seconds, or of as many pages
_RATE_S = 60
_RATE_PAGES = 500


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
        "JSON Schema (docs/schemas.md).",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A crawl as it stands."""

    crawl: Crawl
    counts: Counts
    #: lately, per second
    pages_per_s: float
    #: if it goes on like this and no more links are found; None: nothing to tell from
    ends_ms: int | None


def crawl_of(wish: CrawlRequest, settings: Settings, request_id: str, id: str | None = None) -> Crawl:
    """The crawl that is wished for; an error says what the settings do not allow."""
    if wish.proxy_pool is not None and wish.proxy_pool not in settings.proxies:
        raise UsageError(f"There is no proxy pool {wish.proxy_pool!r} here: the settings name those there are.")
    fields = wish.model_dump(by_alias=True)
    fields |= plan.wished(wish.schema_name, wish.rubric, wish.llm)
    fields["webhook"] = webhooks.checked(wish.webhook, wish.webhook_secret, settings)
    fields |= {"include": tuple(wish.include), "exclude": tuple(wish.exclude), "lane": Lane(wish.lane)}
    crawl = Crawl(id=id or new_id(), request_id=request_id, created_ms=_now_ms(), **fields)
    Scope.of(crawl)  # a bad pattern is told before anything is written
    return crawl


async def submit(
    services: Services, wish: CrawlRequest, seeds: Iterable[str], request_id: str, id: str | None = None
) -> Crawl:
    """For seeds that are all at hand; with `id` it may be repeated, and makes one crawl."""
    return await run.submit(services, crawl_of(wish, services.settings, request_id, id), seeds)


def status(store: Store, id: str, now_ms: int | None = None) -> Status:
    """By id, the beginning of one, or `last`."""
    with store.read() as tx:
        return status_in(tx, crawls.get(tx, id, members=False), now_ms or _now_ms())


def status_in(tx: Any, crawl: Crawl, now_ms: int) -> Status:
    counts = crawls.counts(tx, crawl.n)
    rate, ends_ms = 0.0, None
    if crawl.state is CrawlState.RUNNING:
        n, since_ms = pages.lately(tx, crawl.n, now_ms - _RATE_S * 1000, _RATE_PAGES)
        rate = rate_of(crawl, n, since_ms, now_ms)
        ends_ms = now_ms + int(_to_go(crawl, counts) / rate * 1000) if rate else None
    return Status(crawl=crawl, counts=counts, pages_per_s=rate, ends_ms=ends_ms)


def rate_of(crawl: Crawl, n: int, since_ms: int | None, now_ms: int, most: int = _RATE_PAGES) -> float:
    """Pages per second, from how many of its newest `most` pages are of the last minute, and the first of them."""
    begun_ms = max(crawl.started_ms or crawl.created_ms, now_ms - _RATE_S * 1000)
    window_ms = now_ms - (since_ms if n >= most and since_ms is not None else begun_ms)
    return n * 1000 / max(1000, window_ms)


def _to_go(crawl: Crawl, counts: Counts) -> int:
    return counts.pending if crawl.max_pages is None else min(counts.pending, max(0, crawl.max_pages - crawl.pages))


async def pause(services: Services | None, store: Store, id: str) -> Crawl:
    """No request of it leaves later than 2 s from now; what is under way may end."""
    return await _change(services, store, id, CrawlState.PAUSED, None)


async def resume(services: Services | None, store: Store, id: str) -> Crawl:
    return await _change(services, store, id, CrawlState.RUNNING, None)


async def cancel(services: Services | None, store: Store, id: str) -> Crawl:
    """As `pause`, and for good: its open URLs count as skipped."""
    return await _change(services, store, id, CrawlState.CANCELLED, "cancelled")


def cannot(crawl: Crawl, state: CrawlState) -> str:
    wish = "resumed" if state is CrawlState.RUNNING else state.value
    *most, last = CHANGES[state]
    allowed = f"{', '.join(most)} or {last}" if most else last
    return f"Crawl {crawl.id} is {crawl.state}: only a crawl that is {allowed} can be {wish}."


async def _change(services: Services | None, store: Store, id: str, state: CrawlState, reason: str | None) -> Crawl:
    """In the store first, which is the truth, then in the frontier, which stops the next lease.

    Asked for a second time it changes nothing, but tells the frontier again.
    """
    crawl = await read(store, crawls.get, id)
    allowed = CHANGES[state]
    changed = await in_thread(store.run, _set_state, crawl.n, state, reason, allowed)
    crawl = await read(store, crawls.by_n, crawl.n)
    if not changed and crawl.state is not state:
        raise WrongState(cannot(crawl, state))
    if services is not None:
        await with_frontier(services, lambda: _tell(services, crawl))
    return crawl


def _set_state(tx: Any, n: int, state: CrawlState, reason: str | None, allowed: tuple[CrawlState, ...]) -> bool:
    changed = crawls.set_state(tx, n, state, reason, _now_ms(), only_from=allowed)
    if changed and state is CrawlState.RUNNING:
        queues.forgive(tx, n)
    return changed


async def _tell(services: Services, crawl: Crawl) -> None:
    await services.frontier.set_crawl(crawl)
    if crawl.state is CrawlState.RUNNING:
        services.scans += await put_open_back(services.frontier, services.store, crawl.n)
        return
    after = (0, "")
    while found := await read(services.store, queues.open_of, crawl.n, after, 1000):
        after = (found[-1].crawl, found[-1].host)
        await services.frontier.drop([(queue.crawl, queue.host) for queue in found])


async def with_frontier(services: Services, step: Callable[[], Coroutine[Any, Any, None]]) -> bool:
    """Does a step that the store has recorded already.

    A frontier that was lost is adopted or rebuilt first; one that is away (False) learns it from the store later.
    """
    for _ in range(2):
        try:
            await step()
            return True
        except EpochLost:
            try:
                await recover(services)
            except (EpochLost, FrontierUnavailable) as error:
                log("frontier_not_told", level="warning", error=str(error))
                return False
        except FrontierUnavailable as error:
            log("frontier_not_told", level="warning", error=str(error))
            return False
    return False


async def recover(services: Services) -> None:
    """Adopts the epoch that rules now, or begins one; what the store has is put back."""
    await services.revive()
    services.scans += await open_epoch(services.frontier, services.store)
    services.scans += await put_open_back(services.frontier, services.store)
    services.unlisted = False


def _now_ms() -> int:
    return int(time.time() * 1000)
