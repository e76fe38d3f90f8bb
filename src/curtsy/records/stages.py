"""What is made of a page or a site after its commit, stage by stage over the outbox: extract, score, store; and
telling others. What the stages do is in extraction.py; here is when, by whom, and what happens if they fail.

A stage's result and the next stage's row are written in the transaction that deletes its own row: whoever is second
finds nothing to do, and a retry never repeats an earlier stage. Messages carry a kind and a number; a lost one is sent
again when its lease is over, a late or repeated one does nothing. Failures wait in the outbox until they are tried
again, and end as dead letters of their stage.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple

from curtsy.core import clock
from curtsy.core.errors import Unavailable, UnknownCrawl
from curtsy.core.failpoints import point
from curtsy.core.model import Crawl, CrawlState, Failure
from curtsy.core.observe import count, log, request_id
from curtsy.core.settings import Settings
from curtsy.core.shutdown import StopFlag
from curtsy.core.threads import in_thread
from curtsy.records import extraction, webhooks
from curtsy.records.extraction import Parts, StageFault
from curtsy.rules.urls import host_key, origin
from curtsy.services.backends import Services
from curtsy.store import crawls, outbox, pages, records, sites
from curtsy.store.engine import Store, read
from curtsy.store.outbox import Put, Row

#: a failed stage waits so long before it is tried again, twice as long each time
_BACKOFF_MS = 2_000
_BACKOFF_CAP_MS = 300_000
#: where nobody else waits for its turn, what a killed process had begun is taken up soon
LOCAL_LEASE_MS = 5_000


class Sending(NamedTuple):
    """A message to send: what `run` is to be called with."""

    kind: str
    n: int
    request_id: str


#: what makes the result of a stage; `store` only writes
_WORK = {"extract": extraction.extract, "score": extraction.score_items}


# Doing one stage


async def run(parts: Services | Parts, kind: str, n: int, now_ms: int | None = None) -> list[Sending]:
    """Do what row `n` asks for; what may be sent next. Nothing happens if it is done, or not due yet."""
    return await _run(parts, kind, n, now_ms or clock.now_ms(), int(parts.settings.stage_lease_s * 1000))


async def _run(parts: Services | Parts, kind: str, n: int, now: int, lease_ms: int) -> list[Sending]:
    row = await in_thread(parts.store.run, outbox.begin, kind, n, now, lease_ms)
    if row is None:
        return []
    token = request_id.set(row.request_id or request_id.get())
    try:
        point("stage.begin")
        if kind == "webhook":
            await _tell(parts, row, now)
            return []
        return await _held(parts, row, now, lease_ms)
    finally:
        request_id.reset(token)


async def _held(parts: Services | Parts, row: Row, now: int, lease_ms: int) -> list[Sending]:
    """A model may take its time: while somebody works at a row, nobody else begins it."""
    work = asyncio.ensure_future(in_thread(_do, parts, row, now, lease_ms))
    while not (await asyncio.wait({work}, timeout=lease_ms / 3000))[0]:
        try:
            await in_thread(parts.store.run, outbox.renew, row.n, clock.now_ms() + lease_ms)
        except Unavailable as error:
            log("lease_not_renewed", level="warning", stage=row.kind, error=str(error))
    return work.result()


async def _tell(parts: Services | Parts, row: Row, now_ms: int) -> None:
    try:
        await webhooks.deliver(parts.store, parts.settings, row)
        await in_thread(parts.store.run, outbox.done, row.n)
        point("stage.stored")
    except UnknownCrawl:
        await in_thread(parts.store.run, outbox.done, row.n)  # it was deleted: there is nothing to tell of
    except webhooks.NotTaken as error:
        retry_ms = webhooks.next_try_ms(row, now_ms) if error.again else None
        letter = webhooks.letter(await read(parts.store, crawls.by_n, row.crawl), row, now_ms)
        await in_thread(parts.store.run, outbox.failed, row.n, error.cause, str(error), retry_ms, letter)
        log("webhook_failed", level="warning", crawl=row.crawl, cause=error.cause, again=retry_ms is not None)


def _do(given: Services | Parts, row: Row, now_ms: int, lease_ms: int) -> list[Sending]:
    parts = Parts(given.settings, given.store, given.segments)
    store, settings = parts.store, parts.settings
    began = time.monotonic()
    try:
        if row.attempts > settings.stage_attempts:
            raise StageFault("kills_worker", f"its worker died in each of {settings.stage_attempts} tries", False)
        with store.read() as tx:
            crawl, found = crawls.by_n(tx, row.crawl), records.results(tx, row.crawl, row.subject)
        hash = crawl.schema_hash or extraction.plan_of(parts, crawl).schema.hash
        if row.kind in _WORK and row.kind not in found:
            found[row.kind] = _WORK[row.kind](parts, crawl, row, found)
        following = store.run(_finish, crawl, hash, row, found, now_ms, lease_ms)
    except Unavailable:
        raise  # the row stays as it is, and is due again after its lease
    except Exception as error:
        # A server that asks for a pause means from now on, not since it was asked.
        _failed(store, settings, row, error, now_ms + int((time.monotonic() - began) * 1000))
        following = []
    point("stage.stored")
    count(f"stage_{row.kind}")
    if not following:
        with store.read() as tx:
            last = _is_extracted(tx, row.crawl)
        if last:
            store.run(finish_if_extracted, row.crawl, now_ms)
    return following


def _is_extracted(tx: Any, n: int) -> bool:
    return crawls.state_of(tx, n) is CrawlState.EXTRACTING and not outbox.has_open(tx, n)


def _finish(
    tx: Any, crawl: Crawl, hash: str, row: Row, found: dict[str, Any], now_ms: int, lease_ms: int
) -> list[Sending]:
    """The row goes, its result and the next row come. Whoever is second changes nothing."""
    if not outbox.done(tx, row.n):
        return []
    if row.kind == "store":
        _store(tx, crawl, hash, row, found, now_ms)
        return []
    records.save_result(tx, row.crawl, row.subject, row.kind, found[row.kind], now_ms)
    following = "score" if row.kind == "extract" else "store"
    outbox.put(tx, [Put(following, row.crawl, row.subject, now_ms, row.payload, row.request_id)])
    put = outbox.find(tx, following, row.crawl, row.subject)
    if put is None or put.state != "open":
        return []
    outbox.sent(tx, [put.n], now_ms, lease_ms)
    return [Sending(following, put.n, row.request_id)]


def _store(tx: Any, crawl: Crawl, hash: str, row: Row, found: dict[str, Any], now_ms: int) -> None:
    """Of a page the first record stays. A site that got pages meanwhile, and what is extracted again on purpose, may
    say something else now: that is the next version."""
    host = sites.host_of(row.subject)
    again = host is not None or bool(row.payload.get("again"))
    for record, cited in extraction.records_of(crawl, hash, row, found, now_ms):
        records.add(tx, record, cited, again)
    records.forget_results(tx, row.crawl, row.subject)
    if host is not None and found["extract"]:
        sites.put_ready(tx, row.crawl, [host])


def _failed(store: Store, settings: Settings, row: Row, error: Exception, now_ms: int) -> None:
    fault = error if isinstance(error, StageFault) else StageFault("error", f"{type(error).__name__}: {error}"[:500])
    again = fault.again and row.attempts < settings.stage_attempts
    pause_ms = max(min(_BACKOFF_CAP_MS, _BACKOFF_MS << (row.attempts - 1)), int(fault.after_s * 1000))
    retry_ms = now_ms + pause_ms if again else None
    with store.read() as tx:
        letter = _letter(tx, row, settings, now_ms)
    detail = _writable(fault.detail)
    store.run(outbox.failed, row.n, fault.cause, detail, retry_ms, letter)
    log("stage_failed", level="warning", stage=row.kind, url=letter.url, cause=fault.cause, detail=detail)


def _writable(text: str) -> str:
    """What an error quotes may be anything: no database takes half of a surrogate pair, PostgreSQL no zero."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def _letter(tx: Any, row: Row, settings: Settings, now_ms: int) -> Failure:
    site = sites.host_of(row.subject)
    page = None if site is not None else pages.get(tx, row.crawl, bytes.fromhex(row.subject))
    url = str(row.payload.get("url", "")) if page is None else page.url
    if site is not None:
        known = [origin(url) for _, url, _ in sites.pages_of(tx, row.crawl, site, 1)]
        url = f"{known[0] if known else f'https://{site}'}/"
    # A site, and a page that was deleted, has no fence: its letters are told apart by the crawl and the row.
    fence = page.fence if page is not None else -(row.crawl << 40) - row.n
    host = site or (page.host if page is not None else host_key(url, settings.politeness_unit) if url else "")
    return Failure(
        id="", crawl=row.crawl, fp=sites.letter_of(row.subject), url=url, host=host, stage=row.kind,
        attempts=row.attempts, fence=fence, at_ms=now_ms, request_id=row.request_id,
    )  # fmt: skip


# Sending, and the end of a crawl


def sweep(store: Store, settings: Settings, now_ms: int | None = None) -> list[Sending]:
    """What is to be sent now. It counts as sent from here on: if the sender dies, it comes again after its lease.

    No more are under way at a time than `stages_in_flight`: what waits, waits in the store and not in the broker.
    """
    now = now_ms or clock.now_ms()
    with store.read() as tx:
        ending = crawls.list_all(tx, limit=1000, states=(CrawlState.EXTRACTING,))
        ending = [crawl for crawl in ending if not outbox.has_open(tx, crawl.n)]
        idle = not outbox.due(tx, now, 1, lock=False)
    for crawl in ending:
        store.run(finish_if_extracted, crawl.n, now)
    if idle:
        return []  # nobody's write is held up by looking
    return store.run(_take, settings.stages_in_flight, now, int(settings.stage_lease_s * 1000))


def _take(tx: Any, most: int, now_ms: int, lease_ms: int) -> list[Sending]:
    room = most - outbox.under_way(tx, now_ms)
    rows = outbox.due(tx, now_ms, room) if room > 0 else []
    outbox.sent(tx, [row.n for row in rows], now_ms, lease_ms)
    return [Sending(row.kind, row.n, row.request_id) for row in rows]


def take_back(store: Store, sendings: list[Sending]) -> None:
    """What could not be sent is due again, without waiting for its lease."""
    store.run(outbox.unsent, [sending.n for sending in sendings], clock.now_ms())


def finish_if_extracted(tx: Any, n: int, now_ms: int) -> bool:
    """A crawl that only waited for its stages has finished."""
    if crawls.state_of(tx, n) is not CrawlState.EXTRACTING:
        return False
    crawl = crawls.by_n(tx, n)
    crawls.lock_budgets(tx, [n])  # a replay puts rows under the same lock
    if outbox.has_open(tx, n):
        return False
    return crawls.set_state(tx, n, CrawlState.FINISHED, crawl.reason, now_ms, only_from=(CrawlState.EXTRACTING,))


async def run_all(parts: Services | Parts, n: int, stop: StopFlag) -> None:
    """All stages of a crawl in this process. Retries are waited for; those of webhooks are left to whoever comes."""
    lease_ms = min(LOCAL_LEASE_MS, int(parts.settings.stage_lease_s * 1000))
    while not stop.drain:
        sendings = await in_thread(parts.store.run, _take_of, n, clock.now_ms(), lease_ms)
        while sendings and not stop.drain:
            sending = sendings.pop()
            sendings += await _run(parts, sending.kind, sending.n, clock.now_ms(), lease_ms)
            point("stage.sent")
        if await in_thread(parts.store.run, finish_if_extracted, n, clock.now_ms()):
            continue  # there may be somebody to tell
        next_ms = await read(parts.store, outbox.next_of, n)
        if next_ms is None:
            return
        await asyncio.sleep(min(0.5, max(0.0, (next_ms - clock.now_ms()) / 1000)))


def _take_of(tx: Any, n: int, now_ms: int, lease_ms: int) -> list[Sending]:
    rows = outbox.due_of(tx, n, now_ms, 100)
    outbox.sent(tx, [row.n for row in rows], now_ms, lease_ms)
    return [Sending(row.kind, row.n, row.request_id) for row in rows]
