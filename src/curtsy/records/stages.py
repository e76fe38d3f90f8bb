"""The stages of a page or a site after its commit, over the outbox: extract, score, store; and webhooks. extraction.py
has the work of each stage; this module has its scheduling and its failures.

The transaction that deletes a stage's row also writes its result and the row of the next stage. So a second worker
finds nothing to do, and a retry never repeats an earlier stage. Messages carry a kind and a number. A lost message is
sent again after its lease; a late or repeated one has no effect. Failed rows wait in the outbox for their next attempt,
and end as dead letters of their stage.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, NamedTuple

from curtsy.core import clock, tracing
from curtsy.core.errors import Unavailable, UnknownCrawl
from curtsy.core.failpoints import point
from curtsy.core.model import Crawl, CrawlState, Failure
from curtsy.core.observe import count, log, log_crawl, request_id
from curtsy.core.settings import Settings
from curtsy.core.shutdown import StopFlag
from curtsy.core.threads import in_thread
from curtsy.records import batch_lane, bulk_stages, extraction, webhooks
from curtsy.records.extraction import Parts, StageFault
from curtsy.rules.urls import host_key, origin
from curtsy.services.backends import Services
from curtsy.store import crawl_events, crawls, outbox, pages, records, sites
from curtsy.store.engine import Store, read
from curtsy.store.outbox import Put, Row

#: delay before the first retry of a failed stage; it doubles with each attempt
_BACKOFF_MS = 2_000
_BACKOFF_CAP_MS = 300_000
#: a stage that waits for a batch is woken by its answer; it looks by itself after this long
_BATCH_LOOK_MS = 600_000
#: a short lease for crawls in one process: what a killed process had begun is retried soon
LOCAL_LEASE_MS = 5_000
#: in the payload of a row: a replay of the row completes a record that was stored without the model's values
_COMPLETES = "completes"


class StageMessage(NamedTuple):
    """A message to send: the arguments of `run`."""

    kind: str
    n: int
    request_id: str


#: the functions that produce a stage's result; `store` only writes
_WORK = {"extract": extraction.extract, "score": extraction.score_items}


# Running one stage


async def run(parts: Services | Parts, kind: str, n: int, now_ms: int | None = None) -> list[StageMessage]:
    """Process row `n` and return the messages to send next. Does nothing if the row is done or not due."""
    return await _run(parts, kind, n, now_ms or clock.now_ms(), int(parts.settings.stage_lease_s * 1000))


async def _run(
    parts: Services | Parts, kind: str, n: int, now: int, lease_ms: int, pool: Executor | None = None
) -> list[StageMessage]:
    row = await in_thread(parts.store.run, outbox.begin, kind, n, now, lease_ms)
    if row is None:
        return []
    token = request_id.set(row.request_id or request_id.get())
    try:
        point("stage.begin")
        if kind == "webhook":
            await _deliver(parts, row, now)
            return []
        return await _run_renewing(parts, row, now, lease_ms, pool)
    finally:
        request_id.reset(token)


async def _run_renewing(
    parts: Services | Parts, row: Row, now: int, lease_ms: int, pool: Executor | None
) -> list[StageMessage]:
    """A model may be slow: renew the lease while a row is processed, so that no other worker begins it.

    Stages that wait for a model have threads of their own (`pool`): a renewal never waits for one of them.
    """
    work = asyncio.get_running_loop().run_in_executor(pool, copy_context().run, _do, parts, row, now, lease_ms)
    while not (await asyncio.wait({work}, timeout=lease_ms / 3000))[0]:
        try:
            await in_thread(parts.store.run, outbox.renew, row.n, clock.now_ms() + lease_ms)
        except Unavailable as error:
            log("lease_not_renewed", level="warning", stage=row.kind, crawl_n=row.crawl, error=str(error))
    return work.result()


async def _deliver(parts: Services | Parts, row: Row, now_ms: int) -> None:
    try:
        await webhooks.deliver(parts.store, parts.settings, row)
        await in_thread(parts.store.run, outbox.done, row.n)
        point("stage.stored")
    except UnknownCrawl:
        await in_thread(parts.store.run, outbox.done, row.n)  # the crawl was deleted
    except webhooks.DeliveryFailed as error:
        retry_ms = webhooks.next_try_ms(row, now_ms) if error.again else None
        crawl = await read(parts.store, crawls.by_n, row.crawl)
        failure = webhooks.dead_letter(crawl, row, now_ms)
        await in_thread(parts.store.run, outbox.failed, row.n, error.cause, str(error), retry_ms, failure)
        log_crawl(crawl, "webhook_failed", level="warning", cause=error.cause, again=retry_ms is not None)


def _do(given: Services | Parts, row: Row, now_ms: int, lease_ms: int) -> list[StageMessage]:
    parts = Parts(given.settings, given.store, given.segments)
    store, settings = parts.store, parts.settings
    began, cpu_s = time.monotonic(), time.thread_time()
    cause: str | None = None
    try:
        if row.attempts > settings.stage_attempts:
            raise StageFault("kills_worker", f"its worker crashed in each of {settings.stage_attempts} attempts", False)
        with store.read() as tx:
            crawl, found = crawls.by_n(tx, row.crawl), records.results(tx, row.crawl, row.subject)
        schema_hash = crawl.schema_hash or extraction.plan_of(parts, crawl).schema.hash
        if row.kind in _WORK:
            found[row.kind] = _WORK[row.kind](parts, crawl, row, found)
        following = store.run(_finish, settings, crawl, schema_hash, row, found, now_ms, lease_ms)
    except Unavailable:
        raise  # the row stays unchanged, and is due again after its lease
    except Exception as error:
        # The pause that a server requests counts from now.
        cause = _failed(store, settings, row, error, now_ms + int((time.monotonic() - began) * 1000))
        following = []
    point("stage.stored")
    if tracing.active is not None:
        tracing.active.stage(row.request_id, row.kind, row.subject, began, cause)
    count(f"stage_{row.kind}")
    count(f"stage_{row.kind}_cpu_us", int((time.thread_time() - cpu_s) * 1_000_000))
    if not following:
        with store.read() as tx:
            last = _is_extracted(tx, row.crawl)
        if last:
            store.run(finish_if_extracted, row.crawl, now_ms)
    return following


def _is_extracted(tx: Any, n: int) -> bool:
    return crawls.state_of(tx, n) is CrawlState.EXTRACTING and not outbox.has_open(tx, n)


def _finish(
    tx: Any, settings: Settings, crawl: Crawl, schema_hash: str, row: Row, found: dict[str, Any], now_ms: int,
    lease_ms: int,
) -> list[StageMessage]:  # fmt: skip
    """Delete the row, write its result and the next row. A second worker changes nothing.

    If the result notes that the model failed, the row stays as dead along with its dead letter, and the next row is
    written too: the record is stored without the model's values, and a replay completes it.
    """
    failure = None if row.kind == "store" else extraction.failure_in(found[row.kind])
    if not (outbox.done(tx, row.n) if failure is None else _give_up(tx, settings, row, failure, now_ms)):
        return []
    if row.kind == "store":
        _store(tx, crawl, schema_hash, row, found, now_ms)
        return []
    if _COMPLETES in row.payload or sites.host_of(row.subject) is not None:
        _begin_again(tx, row)
    records.save_result(tx, row.crawl, row.subject, row.kind, found[row.kind], now_ms)
    following = "score" if row.kind == "extract" else "store"
    payload = {name: value for name, value in row.payload.items() if name != _COMPLETES}
    outbox.put(tx, [Put(following, row.crawl, row.subject, now_ms, payload, row.request_id)])
    put = outbox.find(tx, following, row.crawl, row.subject)
    if put is None or put.state != "open":
        return []
    outbox.sent(tx, [put.n], now_ms, lease_ms)
    return [StageMessage(following, put.n, row.request_id)]


def _give_up(tx: Any, settings: Settings, row: Row, failure: dict[str, Any], now_ms: int) -> bool:
    letter = _dead_letter(tx, row, settings, now_ms)
    crawl_events.note(
        tx, crawl_events.identity(tx, row.crawl), "stage_failed", level="warning", stage=row.kind, url=letter.url,
        cause=failure["cause"], published=True,
    )  # fmt: skip
    payload = {**row.payload, _COMPLETES: True}
    return outbox.failed(tx, row.n, failure["cause"], failure["detail"], None, letter, payload)


def _begin_again(tx: Any, row: Row) -> None:
    """Delete what followed from an earlier result of this stage: it must not be mixed with the new one."""
    kinds = ("extract", "score", "store")
    later = kinds[kinds.index(row.kind) :]
    records.forget_results(tx, row.crawl, row.subject, later)
    outbox.drop_of(tx, row.crawl, row.subject, later[1:])


def _store(tx: Any, crawl: Crawl, schema_hash: str, row: Row, found: dict[str, Any], now_ms: int) -> None:
    """The first complete record of a page stays. A site that got new pages, and a repeated extraction, may create the
    next version. A replay of scores needs the result of the extraction.
    """
    host = sites.host_of(row.subject)
    again = host is not None or bool(row.payload.get("again"))
    for record, cited in extraction.records_of(crawl, schema_hash, row, found, now_ms):
        records.add(tx, record, cited, again)
    unscored = extraction.failure_in(found["score"]) is not None
    records.forget_results(tx, row.crawl, row.subject, ("score",) if unscored else ("extract", "score"))
    if host is not None and found["extract"]:
        sites.put_ready(tx, row.crawl, [host])


def _failed(store: Store, settings: Settings, row: Row, error: Exception, now_ms: int) -> str | None:
    """The cause of the failure; None if the row only waits."""
    fault = error if isinstance(error, StageFault) else StageFault("error", f"{type(error).__name__}: {error}"[:500])
    if fault.cause == extraction.WAITS_FOR_BATCH:
        store.run(outbox.wait, row.n, now_ms + _BATCH_LOOK_MS)
        return None
    again = fault.again and row.attempts < settings.stage_attempts
    pause_ms = max(min(_BACKOFF_CAP_MS, _BACKOFF_MS << (row.attempts - 1)), int(fault.after_s * 1000))
    retry_ms = now_ms + pause_ms if again else None
    with store.read() as tx:
        failure = _dead_letter(tx, row, settings, now_ms)
        crawl = crawl_events.identity(tx, row.crawl)
    detail = extraction.writable(fault.detail)
    store.run(outbox.failed, row.n, fault.cause, detail, retry_ms, failure)
    log_crawl(
        crawl, "stage_failed", level="warning", stage=row.kind, url=failure.url, cause=fault.cause, detail=detail,
        again=again,
    )  # fmt: skip
    return fault.cause


def _dead_letter(tx: Any, row: Row, settings: Settings, now_ms: int) -> Failure:
    site = sites.host_of(row.subject)
    page = None if site is not None else pages.get(tx, row.crawl, bytes.fromhex(row.subject))
    url = str(row.payload.get("url", "")) if page is None else page.url
    if site is not None:
        known = [origin(url) for _, url, *_ in sites.pages_of(tx, row.crawl, site, 1)]
        url = f"{known[0] if known else f'https://{site}'}/"
    # A site or a deleted page has no fence: the crawl and the row identify its dead letters.
    fence = page.fence if page is not None else -(row.crawl << 40) - row.n
    host = site or (page.host if page is not None else host_key(url, settings.politeness_unit) if url else "")
    return Failure(
        id="", crawl=row.crawl, fp=sites.letter_of(row.subject), url=url, host=host, stage=row.kind,
        attempts=row.attempts, fence=fence, at_ms=now_ms, request_id=row.request_id,
    )  # fmt: skip


# Messages, and the end of a crawl


def sweep(store: Store, settings: Settings, now_ms: int | None = None) -> list[StageMessage]:
    """Return the messages to send now. They count as sent: if the sender crashes, they are due again after the lease.

    At most `stages_in_flight` are in flight; the others wait in the store and not in the broker.
    """
    now = now_ms or clock.now_ms()
    with store.read() as tx:
        ending = crawls.list_all(tx, limit=1000, states=(CrawlState.EXTRACTING,))
        ending = [crawl for crawl in ending if not outbox.has_open(tx, crawl.n)]
        idle = not outbox.due(tx, now, 1, lock=False)
    for crawl in ending:
        store.run(finish_if_extracted, crawl.n, now)
    if idle:
        return []  # do not block other writers only to look
    return store.run(_take, settings.stages_in_flight, now, int(settings.stage_lease_s * 1000))


def _take(tx: Any, most: int, now_ms: int, lease_ms: int) -> list[StageMessage]:
    room = most - outbox.under_way(tx, now_ms)
    rows = outbox.due(tx, now_ms, room) if room > 0 else []
    outbox.sent(tx, [row.n for row in rows], now_ms, lease_ms)
    return [StageMessage(row.kind, row.n, row.request_id) for row in rows]


def take_back(store: Store, messages: list[StageMessage]) -> None:
    """Make messages that could not be sent due at once, before their lease ends."""
    store.run(outbox.unsent, [message.n for message in messages], clock.now_ms())


def finish_if_extracted(tx: Any, n: int, now_ms: int) -> bool:
    """Finish a crawl that only waited for its stages."""
    if crawls.state_of(tx, n) is not CrawlState.EXTRACTING:
        return False
    crawl = crawls.by_n(tx, n)
    crawls.lock_budgets(tx, [n])  # a replay adds rows under the same lock
    if outbox.has_open(tx, n):
        return False
    return crawls.set_state(tx, n, CrawlState.FINISHED, crawl.reason, now_ms, only_from=(CrawlState.EXTRACTING,))


async def run_all(parts: Services | Parts, n: int, stop: StopFlag) -> None:
    """Run all stages of a crawl in this process. Waits for retries, except those of webhooks.

    With a language model, up to `llm_concurrency` pages or sites are in progress, because most of the time is waiting.
    """
    lease_ms = min(LOCAL_LEASE_MS, int(parts.settings.stage_lease_s * 1000))
    crawl = await read(parts.store, crawls.by_n, n)
    at_once = parts.settings.llm_concurrency if (crawl.llm or parts.settings.llm_kind) == "endpoint" else 1
    with ThreadPoolExecutor(at_once, thread_name_prefix="stage") as pool:
        await _run_with(parts, n, stop, lease_ms, at_once, pool)


async def _run_with(
    parts: Services | Parts, n: int, stop: StopFlag, lease_ms: int, at_once: int, pool: Executor
) -> None:
    room = asyncio.Semaphore(at_once)

    async def subject(message: StageMessage) -> None:
        """All stages of a page or site, one after the other."""
        async with room:
            following = [message]
            while following and not stop.drain:
                one = following.pop()
                following += await _run(parts, one.kind, one.n, clock.now_ms(), lease_ms, pool)
                point("stage.sent")

    bulk = await in_thread(bulk_stages.suits, parts, await read(parts.store, crawls.by_n, n))
    while not stop.drain:
        if bulk and await asyncio.get_running_loop().run_in_executor(pool, _in_bulk, parts, n, lease_ms):
            continue
        messages = await in_thread(parts.store.run, _take_of, n, clock.now_ms(), lease_ms)
        ended = await asyncio.gather(*map(subject, reversed(messages)), return_exceptions=True)
        for error in ended:
            if error is not None:
                raise error
        await in_thread(batch_lane.step, parts.store, parts.settings)
        if await in_thread(parts.store.run, finish_if_extracted, n, clock.now_ms()):
            continue  # there may be a webhook to send
        next_ms = await read(parts.store, outbox.next_of, n)
        if next_ms is None:
            return
        await asyncio.sleep(min(0.5, max(0.0, (next_ms - clock.now_ms()) / 1000)))


def _in_bulk(given: Services | Parts, n: int, lease_ms: int) -> bool:
    """Make the records of some pages in one pass; return whether there were any."""
    parts = Parts(given.settings, given.store, given.segments)
    done = bulk_stages.run_some(parts, n, clock.now_ms(), lease_ms, _store)
    for row, error in done.failed:
        _failed(parts.store, parts.settings, row, error, clock.now_ms())
    return done.begun > 0


def _take_of(tx: Any, n: int, now_ms: int, lease_ms: int) -> list[StageMessage]:
    rows = outbox.due_of(tx, n, now_ms, 100)
    outbox.sent(tx, [row.n for row in rows], now_ms, lease_ms)
    return [StageMessage(row.kind, row.n, row.request_id) for row in rows]
