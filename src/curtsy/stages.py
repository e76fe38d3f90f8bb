"""What is made of a page after its commit, stage by stage over the outbox: extract, score, store; and telling others.

    extract    reads the stored page from its segment and makes the facts that the crawl's schema asks for
    score      says how far they can be relied on
    store      writes the records

A stage's result and the next stage's row are written in the transaction that deletes its own row: whoever is second
finds nothing to do, and a retry never repeats an earlier stage. Messages carry a kind and a number; a lost one is sent
again when its lease is over, a late or repeated one does nothing. Failures wait in the outbox until they are tried
again, and end as dead letters of their stage.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from curtsy import webhooks
from curtsy.document import Document, is_html
from curtsy.errors import CurtsyError, Damaged, Unavailable, UnknownCrawl, UsageError
from curtsy.faults import point
from curtsy.model import Crawl, CrawlState, Failure, Page, Record
from curtsy.observe import count, log, request_id
from curtsy.recovery import in_thread, read
from curtsy.services import Services
from curtsy.settings import Settings
from curtsy.stopping import StopFlag
from curtsy.store import crawls, outbox, pages, records
from curtsy.store.engine import Store
from curtsy.store.outbox import Put, Row
from curtsy.store.segments import read_page
from curtsy.urls import host_key

#: fewer words than this are too few to rely on what was made of them
THIN_WORDS = 100
#: a failed stage waits so long before it is tried again, twice as long each time
_BACKOFF_MS = 2_000
_BACKOFF_CAP_MS = 300_000
#: where nobody else waits for its turn, what a killed process had begun is taken up soon
LOCAL_LEASE_MS = 5_000
_HEADINGS = 100
_HEADING_LENGTH = 300


class Source(NamedTuple):
    """What an extractor works on."""

    page: Page
    body: bytes
    content_type: str | None


class Sending(NamedTuple):
    """A message to send: what `run` is to be called with."""

    kind: str
    n: int
    request_id: str


class StageFault(CurtsyError):
    """A stage did not do it: why, and whether another try may help."""

    def __init__(self, cause: str, detail: str, again: bool = True) -> None:
        super().__init__(detail)
        self.cause, self.detail, self.again = cause, detail, again


def _page_facts(source: Source) -> list[dict[str, Any]]:
    """The facts of a page that need no model: what it says of itself."""
    page = source.page
    facts: dict[str, Any] = {"url": page.url, "title": page.title, "description": None, "language": page.language}
    facts |= {"canonical": page.canonical, "headings": [], "structured": [], "words": 0}
    if is_html(source.content_type, source.body):
        document = Document.parse(source.body, source.content_type, page.url)
        structured = _structured(document)
        facts |= {"title": document.title, "language": document.language, "canonical": document.canonical}
        facts |= {"headings": _headings(document), "structured": structured, "words": len(document.text().split())}
        facts["description"] = _description(structured)
    elif (source.content_type or "").startswith("text/"):
        facts["words"] = len(source.body.split())
    return [facts]


def _structured(document: Document) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = _finite(document.structured())
    except RecursionError:  # nobody nests so deeply in earnest
        return []
    return found


def _headings(document: Document) -> list[dict[str, Any]]:
    root = document.tree.root
    nodes = [] if root is None else root.css("h1,h2,h3,h4,h5,h6")[:_HEADINGS]
    found = [(int((node.tag or "h0")[1]), " ".join(node.text().split())[:_HEADING_LENGTH]) for node in nodes]
    return [{"level": level, "text": text} for level, text in found if text]


def _description(structured: list[dict[str, Any]]) -> str | None:
    for kind, name in (("meta", "description"), ("opengraph", "og:description")):
        for one in structured:
            value = one["data"].get(name) if one["kind"] == kind and isinstance(one["data"], dict) else None
            value = value[0] if isinstance(value, list) and value else value
            if isinstance(value, str) and value.strip():
                return value.strip()
    return None


def _finite(value: Any) -> Any:
    """A page's own data may hold numbers that JSON does not know."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list) else value


_TEXT = {"type": ["string", "null"]}
#: the schemas that come with the package; another one needs a function in `extractors`
SCHEMAS: dict[str, dict[str, Any]] = {
    "page": {
        "type": "object",
        "properties": {
            "url": {"type": "string"},
            **dict.fromkeys(("title", "description", "language", "canonical"), _TEXT),
            "headings": {"type": "array", "items": {"type": "object"}},
            "structured": {"type": "array", "items": {"type": "object"}},
            "words": {"type": "integer"},
        },
    }
}
#: schema -> what makes items of it from a page
extractors: dict[str, Callable[[Source], list[dict[str, Any]]]] = {"page": _page_facts}


def schema_hash(name: str) -> str:
    """Records made by another form of a schema are records beside each other."""
    return hashlib.sha256(json.dumps([name, SCHEMAS.get(name)], sort_keys=True).encode()).hexdigest()[:16]


# Doing one stage


async def run(services: Services, kind: str, n: int, now_ms: int | None = None) -> list[Sending]:
    """Do what row `n` asks for; what may be sent next. Nothing happens if it is done, or not due yet."""
    return await _run(services, kind, n, now_ms or _now_ms(), int(services.settings.stage_lease_s * 1000))


async def _run(services: Services, kind: str, n: int, now: int, lease_ms: int) -> list[Sending]:
    row = await in_thread(services.store.run, outbox.begin, kind, n, now, lease_ms)
    if row is None:
        return []
    token = request_id.set(row.request_id or request_id.get())
    try:
        point("stage.begin")
        if kind == "webhook":
            await _tell(services, row, now)
            return []
        return await in_thread(_do, services, row, now, lease_ms)
    finally:
        request_id.reset(token)


async def _tell(services: Services, row: Row, now_ms: int) -> None:
    try:
        await webhooks.deliver(services.store, services.settings, row)
        await in_thread(services.store.run, outbox.done, row.n)
        point("stage.stored")
    except UnknownCrawl:
        await in_thread(services.store.run, outbox.done, row.n)  # it was deleted: there is nothing to tell of
    except webhooks.NotTaken as error:
        retry_ms = webhooks.next_try_ms(row, now_ms) if error.again else None
        letter = webhooks.letter(await read(services.store, crawls.by_n, row.crawl), row, now_ms)
        await in_thread(services.store.run, outbox.failed, row.n, error.cause, str(error), retry_ms, letter)
        log("webhook_failed", level="warning", crawl=row.crawl, cause=error.cause, again=retry_ms is not None)


def _do(services: Services, row: Row, now_ms: int, lease_ms: int) -> list[Sending]:
    store, settings = services.store, services.settings
    try:
        if row.attempts > settings.stage_attempts:
            raise StageFault("kills_worker", f"its worker died in each of {settings.stage_attempts} tries", False)
        with store.read() as tx:
            crawl, found = crawls.by_n(tx, row.crawl), records.results(tx, row.crawl, row.subject)
        result = found.get(row.kind)
        if result is None:
            result = {"extract": _extract, "score": _score, "store": _records}[row.kind](services, crawl, row, found)
        following = store.run(_finish, crawl, row, result, now_ms, lease_ms)
    except Unavailable:
        raise  # the row stays as it is, and is due again after its lease
    except Exception as error:
        _failed(store, settings, row, error, now_ms)
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


def _extract(services: Services, crawl: Crawl, row: Row, _found: dict[str, Any]) -> list[dict[str, Any]]:
    extractor = extractors.get(crawl.schema or "")
    if extractor is None:
        raise StageFault("no_such_schema", f"there is no schema {crawl.schema!r} in this process", False)
    with services.store.read() as tx:
        page = pages.get(tx, row.crawl, bytes.fromhex(row.subject))
        if page is None:
            return []  # it was deleted meanwhile
        try:
            record = read_page(tx, services.segments, page)
        except Damaged as error:
            raise StageFault("damaged", str(error), False) from error
    if record is None:
        return []
    return extractor(Source(page, record.body, page.content_type))


def _score(_services: Services, _crawl: Crawl, _row: Row, found: dict[str, Any]) -> list[dict[str, Any]]:
    return [_scores(facts) for facts in found["extract"]]


def _scores(facts: dict[str, Any]) -> dict[str, Any]:
    words = int(facts.get("words") or 0)
    return {"words": words, "thin": words < THIN_WORDS, "low_confidence": words < THIN_WORDS}


def _records(_services: Services, _crawl: Crawl, _row: Row, found: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"data": data, "scores": scores} for data, scores in zip(found["extract"], found["score"], strict=True)]


def _finish(tx: Any, crawl: Crawl, row: Row, result: list[dict[str, Any]], now_ms: int, lease_ms: int) -> list[Sending]:
    """The row goes, its result and the next row come. Whoever is second changes nothing."""
    if not outbox.done(tx, row.n):
        return []
    if row.kind == "store":
        records.insert(tx, [_record(crawl, row, i, item, now_ms) for i, item in enumerate(result)])
        records.forget_results(tx, row.crawl, row.subject)
        return []
    records.save_result(tx, row.crawl, row.subject, row.kind, result, now_ms)
    following = "score" if row.kind == "extract" else "store"
    outbox.put(tx, [Put(following, row.crawl, row.subject, now_ms, row.payload, row.request_id)])
    put = outbox.find(tx, following, row.crawl, row.subject)
    if put is None or put.state != "open":
        return []
    outbox.sent(tx, [put.n], now_ms, lease_ms)
    return [Sending(following, put.n, row.request_id)]


def _record(crawl: Crawl, row: Row, ordinal: int, item: dict[str, Any], now_ms: int) -> Record:
    schema, data = crawl.schema or "", item["data"]
    return Record(
        crawl=row.crawl, subject=row.subject, schema=schema, schema_hash=schema_hash(schema), ordinal=ordinal,
        url=str(data.get("url") or row.payload.get("url") or ""), data=data, scores=item["scores"],
        low_confidence=bool(item["scores"].get("low_confidence")), created_ms=now_ms, request_id=row.request_id,
    )  # fmt: skip


def _failed(store: Store, settings: Settings, row: Row, error: Exception, now_ms: int) -> None:
    fault = error if isinstance(error, StageFault) else StageFault("error", f"{type(error).__name__}: {error}"[:500])
    again = fault.again and row.attempts < settings.stage_attempts
    retry_ms = now_ms + min(_BACKOFF_CAP_MS, _BACKOFF_MS << (row.attempts - 1)) if again else None
    with store.read() as tx:
        page = pages.get(tx, row.crawl, bytes.fromhex(row.subject))
    letter = _letter(row, page, settings, now_ms)
    store.run(outbox.failed, row.n, fault.cause, fault.detail, retry_ms, letter)
    log("stage_failed", level="warning", stage=row.kind, url=letter.url, cause=fault.cause, detail=fault.detail)


def _letter(row: Row, page: Page | None, settings: Settings, now_ms: int) -> Failure:
    url = page.url if page is not None else str(row.payload.get("url", ""))
    # A page that was deleted has no fence: its letters are told apart by the crawl and the row.
    fence = page.fence if page is not None else -(row.crawl << 40) - row.n
    return Failure(
        id="", crawl=row.crawl, fp=bytes.fromhex(row.subject), url=url,
        host=page.host if page is not None else host_key(url, settings.politeness_unit) if url else "",
        stage=row.kind, attempts=row.attempts, fence=fence, at_ms=now_ms, request_id=row.request_id,
    )  # fmt: skip


# Sending, and the end of a crawl


def sweep(store: Store, settings: Settings, now_ms: int | None = None) -> list[Sending]:
    """What is to be sent now. It counts as sent from here on: if the sender dies, it comes again after its lease.

    No more are under way at a time than `stages_in_flight`: what waits, waits in the store and not in the broker.
    """
    now = now_ms or _now_ms()
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
    store.run(outbox.unsent, [sending.n for sending in sendings], _now_ms())


def finish_if_extracted(tx: Any, n: int, now_ms: int) -> bool:
    """A crawl that only waited for its stages has finished."""
    if crawls.state_of(tx, n) is not CrawlState.EXTRACTING:
        return False
    crawl = crawls.by_n(tx, n)
    crawls.lock_budgets(tx, [n])  # a replay puts rows under the same lock
    if outbox.has_open(tx, n):
        return False
    return crawls.set_state(tx, n, CrawlState.FINISHED, crawl.reason, now_ms, only_from=(CrawlState.EXTRACTING,))


async def run_all(services: Services, n: int, stop: StopFlag) -> None:
    """All stages of a crawl in this process. Retries are waited for; those of webhooks are left to whoever comes."""
    lease_ms = min(LOCAL_LEASE_MS, int(services.settings.stage_lease_s * 1000))
    while not stop.drain:
        sendings = await in_thread(services.store.run, _take_of, n, _now_ms(), lease_ms)
        while sendings and not stop.drain:
            sending = sendings.pop()
            sendings += await _run(services, sending.kind, sending.n, _now_ms(), lease_ms)
            point("stage.sent")
        if await in_thread(services.store.run, finish_if_extracted, n, _now_ms()):
            continue  # there may be somebody to tell
        next_ms = await read(services.store, outbox.next_of, n)
        if next_ms is None:
            return
        await asyncio.sleep(min(0.5, max(0.0, (next_ms - _now_ms()) / 1000)))


def _take_of(tx: Any, n: int, now_ms: int, lease_ms: int) -> list[Sending]:
    rows = outbox.due_of(tx, n, now_ms, 100)
    outbox.sent(tx, [row.n for row in rows], now_ms, lease_ms)
    return [Sending(row.kind, row.n, row.request_id) for row in rows]


def check_schema(name: str | None) -> None:
    """A schema that is not there is told before a crawl begins."""
    if name is not None and name not in extractors:
        raise UsageError(f"There is no schema {name!r}. Use one of: {', '.join(sorted(extractors))}.")


def _now_ms() -> int:
    return int(time.time() * 1000)
