"""Show, pause, resume and cancel a crawl, by command or over HTTP."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from curtsy.core import clock
from curtsy.core.claims import Usage
from curtsy.core.errors import WrongState
from curtsy.core.model import INTERRUPTED, Counts, Crawl, CrawlState
from curtsy.core.settings import Settings
from curtsy.core.threads import in_thread
from curtsy.services import crawl_lock
from curtsy.services.backends import Services
from curtsy.store import crawls, llm_cache, pages, queues, rates, remaining, schedules
from curtsy.store.engine import Store, read

#: new state -> the states from which a crawl may enter it
CHANGES = {
    CrawlState.PAUSED: (CrawlState.RUNNING,),
    CrawlState.RUNNING: (CrawlState.PAUSED,),
    CrawlState.CANCELLED: (CrawlState.RUNNING, CrawlState.PAUSED, CrawlState.LOADING, CrawlState.EXTRACTING),
}
#: the page rate covers the last seconds, or the newest pages if there are more
_RATE_S = 60
_RATE_PAGES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """What a crawl has asked a language model, and what it cost."""

    total: Usage
    fields: tuple[llm_cache.FieldUsage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The current state of a crawl."""

    crawl: Crawl
    counts: Counts
    #: stored pages per second, lately
    pages_per_s: float
    #: settled URLs per second in the last minute: done, skipped and failed ones
    urls_per_s: float
    #: estimated end if no more links are found; None: unknown
    ends_ms: int | None
    #: use of a language model, in total and by field; None: none was used
    model: ModelUsage | None = None
    #: name of the schedule whose run it is
    schedule: str | None = None

    @property
    def has_begun(self) -> bool:
        """A URL is settled. A crawl that was only submitted waits for its first process."""
        return bool(self.counts.done or self.counts.skipped or self.counts.failed)

    def shown_state(self, attended: bool) -> str:
        return shown_state(self.crawl, self.has_begun, attended)

    @property
    def shown_reason(self) -> str | None:
        """Why it ended; None for an interrupted crawl, whose state says it."""
        return None if self.crawl.reason == INTERRUPTED else self.crawl.reason


def shown_state(crawl: Crawl, has_begun: bool, attended: bool) -> str:
    """Its state, or `interrupted` if it has begun and no process works on it."""
    unfinished = crawl.state in (CrawlState.RUNNING, CrawlState.EXTRACTING)
    begun = has_begun or crawl.reason == INTERRUPTED
    return INTERRUPTED if unfinished and begun and not attended else crawl.state.value


def attended(settings: Settings) -> bool:
    """Whether a process may be working on crawls. Of a fleet on several machines, this is not known: it is assumed."""
    return settings.frontier_url is not None or crawl_lock.is_held(settings.data_dir)


def status(store: Store, id: str, now_ms: int | None = None) -> Status:
    """Find a crawl by its id, the beginning of its id, or `last`."""
    with store.read() as tx:
        return status_in(tx, crawls.get(tx, id, members=False), now_ms or clock.now_ms())


def status_in(tx: Any, crawl: Crawl, now_ms: int) -> Status:
    counts = crawls.counts(tx, crawl.n)
    rate, urls_rate, ends_ms = 0.0, 0.0, None
    if crawl.state is CrawlState.RUNNING:
        n, since_ms = pages.count_recent(tx, crawl.n, now_ms - _RATE_S * 1000, _RATE_PAGES)
        rate = rate_of(crawl, n, since_ms, now_ms)
        urls_rate = rates.urls_per_s(tx, crawl.n, crawl.started_ms or crawl.created_ms, now_ms)
        ends_ms = estimated_end_ms(tx, crawl, counts.pending, max(rate, urls_rate), now_ms)
    return Status(
        crawl=crawl, counts=counts, pages_per_s=rate, urls_per_s=urls_rate, ends_ms=ends_ms,
        model=_model_usage(tx, crawl), schedule=schedules.names(tx, [crawl.schedule]).get(crawl.schedule or 0),
    )  # fmt: skip


def estimated_end_ms(tx: Any, crawl: Crawl, pending: int, per_s: float, now_ms: int) -> int | None:
    """The end at this rate, but not before the slowest host can be done at its delay; None while nothing is done."""
    if not per_s:
        return None
    most = pending if crawl.max_pages is None else min(pending, max(0, crawl.max_pages - crawl.pages))
    slowest_ms = remaining.slowest_host_ms(tx, crawl.n, _delay_ms(tx, crawl), most, now_ms)
    return now_ms + max(slowest_ms, int(most / per_s * 1000))


def _delay_ms(tx: Any, crawl: Crawl) -> int:
    """The delay of the crawl: its own, or that of the settings that it was started with."""
    if crawl.delay_s is not None:
        return int(crawl.delay_s * 1000)
    kept = crawls.settings_of(tx, crawl.n).get("settings") or {}
    return int(float(kept.get("delay_s", Settings.model_fields["delay_s"].default)) * 1000)


def _model_usage(tx: Any, crawl: Crawl) -> ModelUsage | None:
    if crawl.schema is None:
        return None
    total = llm_cache.spent(tx, crawl.n)
    return None if total == Usage() else ModelUsage(total=total, fields=tuple(llm_cache.by_field(tx, crawl.n)))


def usage_document(model: ModelUsage | None) -> dict[str, Any] | None:
    """The usage of a model as it is shown: `llm` of a status."""
    if model is None:
        return None
    return {**asdict(model.total), "cost": round(model.total.cost, 6), "fields": list(map(_field_usage, model.fields))}


def _field_usage(one: llm_cache.FieldUsage) -> dict[str, Any]:
    shares = {"prompt_tokens": round(one.prompt_tokens, 1), "completion_tokens": round(one.completion_tokens, 1)}
    counts = {"schema": one.schema, "field": one.field, "calls": one.calls, "cached": one.cached}
    return {**counts, **shares, "cost": round(one.cost, 6)}


def rate_of(crawl: Crawl, n: int, since_ms: int | None, now_ms: int, most: int = _RATE_PAGES) -> float:
    """Pages per second, from the number of its newest `most` pages of the last minute and the time of the first one."""
    begun_ms = max(crawl.started_ms or crawl.created_ms, now_ms - _RATE_S * 1000)
    window_ms = now_ms - (since_ms if n >= most and since_ms is not None else begun_ms)
    return n * 1000 / max(1000, window_ms)


async def pause(services: Services | None, store: Store, id: str) -> Crawl:
    """No request of the crawl leaves later than 2 s from now; requests in flight may complete."""
    return await _change(services, store, id, CrawlState.PAUSED, None)


async def resume(services: Services | None, store: Store, id: str) -> Crawl:
    return await _change(services, store, id, CrawlState.RUNNING, None)


async def cancel(services: Services | None, store: Store, id: str) -> Crawl:
    """Like `pause`, but final: open URLs count as skipped."""
    return await _change(services, store, id, CrawlState.CANCELLED, "cancelled")


def cannot(crawl: Crawl, state: CrawlState) -> str:
    action = "resumed" if state is CrawlState.RUNNING else state.value
    *most, last = CHANGES[state]
    allowed = f"{', '.join(most)} or {last}" if most else last
    return f"Crawl {crawl.id} is {crawl.state}. Only a crawl that is {allowed} can be {action}."


async def _change(services: Services | None, store: Store, id: str, state: CrawlState, reason: str | None) -> Crawl:
    """Change the store first, which is authoritative, then the frontier, which stops the next lease.

    A second call changes nothing in the store, but updates the frontier again.
    """
    crawl = await read(store, crawls.get, id)
    allowed = CHANGES[state]
    changed = await in_thread(store.run, _set_state, crawl.n, state, reason, allowed)
    crawl = await read(store, crawls.by_n, crawl.n)
    if not changed and crawl.state is not state:
        raise WrongState(cannot(crawl, state))
    if services is not None:
        await services.tell_frontier(lambda: _tell(services, crawl))
    return crawl


def _set_state(tx: Any, n: int, state: CrawlState, reason: str | None, allowed: tuple[CrawlState, ...]) -> bool:
    crawls.lock_limited(tx, [n])
    if state is CrawlState.RUNNING and crawls.state_of(tx, n) in allowed:
        queues.reset_patience(tx, n)
    return crawls.set_state(tx, n, state, reason, clock.now_ms(), only_from=allowed)


async def _tell(services: Services, crawl: Crawl) -> None:
    await services.frontier.set_crawl(crawl)
    if crawl.state is CrawlState.RUNNING:
        await services.scans.put_back(crawl.n)
        return
    after = (0, "")
    while found := await read(services.store, queues.open_of, crawl.n, after, 1000):
        after = (found[-1].crawl, found[-1].host)
        await services.frontier.drop([(queue.crawl, queue.host) for queue in found])
