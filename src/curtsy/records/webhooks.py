"""Webhooks: a signed POST when a crawl ends, retried for a day.

The body is JSON. `Curtsy-Signature: t=<unix seconds>,v1=<hex>` has the HMAC-SHA256 of "<t>.<body>" with the secret.
During a change of the server's secret there is a second `v1`, with the old one.
The guard that checks the addresses of pages also checks these, when it connects; redirects are not followed.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Iterable
from typing import Any

from curtsy.core.errors import CurtsyError
from curtsy.core.model import Counts, Crawl, Failure
from curtsy.core.outcome import Fault, Outcome
from curtsy.core.settings import Settings
from curtsy.fetch.http import FetchJob, HttpFetcher, boot_clock
from curtsy.rules.urls import host_key
from curtsy.store import crawls
from curtsy.store.engine import Store, read
from curtsy.store.outbox import Row

#: bytes read of an answer; they are not used
_MOST_BYTES = 64 * 1024
_FIRST_PAUSE_MS = 10_000
_LONGEST_PAUSE_MS = 3_600_000
#: no more attempts after this time
PATIENCE_MS = 86_400_000


class DeliveryFailed(CurtsyError):
    """The receiver did not accept the message."""

    def __init__(self, cause: str, detail: str, again: bool = True) -> None:
        super().__init__(detail)
        self.cause, self.again = cause, again


def signature(secrets: Iterable[str], at_s: int, body: bytes) -> str:
    """Return the value of `Curtsy-Signature`: one `v1` for each secret."""
    signed = f"{at_s}.".encode() + body
    digests = (hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in secrets)
    return ",".join([f"t={at_s}", *(f"v1={digest}" for digest in digests)])


def _secrets(crawl: Crawl, settings: Settings) -> list[str]:
    """Return the crawl's secret, or the server's: the current one, and the old one while receivers change."""
    if crawl.webhook_secret:
        return [crawl.webhook_secret]
    return [secret for secret in (settings.webhook_secret, settings.webhook_old_secret) if secret]


def next_try_ms(row: Row, now_ms: int) -> int | None:
    """Return the time of the next attempt, or None after a day."""
    at_ms = now_ms + min(_LONGEST_PAUSE_MS, _FIRST_PAUSE_MS << min(row.attempts - 1, 20))
    return at_ms if at_ms - int(row.payload.get("since_ms", 0)) <= PATIENCE_MS else None


def dead_letter(crawl: Crawl, row: Row, now_ms: int) -> Failure:
    """Return the dead letter of a webhook; its fence never equals that of a page."""
    url = crawl.webhook or ""
    return Failure(
        id="", crawl=crawl.n, fp=row.subject.encode(), url=url, host=host_key(url, "host") if url else "",
        stage="webhook", attempts=row.attempts, fence=-crawl.n, at_ms=now_ms, request_id=row.request_id,
    )  # fmt: skip


async def deliver(store: Store, settings: Settings, row: Row) -> None:
    """Send the message; raise DeliveryFailed unless the receiver answers with 2xx."""
    crawl, counts = await read(store, _facts, row.crawl)
    secrets = _secrets(crawl, settings)
    if crawl.webhook is None or not secrets:
        raise DeliveryFailed("no_secret", "no secret for the signature: set webhook_secret, then replay", False)
    body = json.dumps(_message(crawl, counts, row), ensure_ascii=False).encode()
    headers = (
        ("Content-Type", "application/json"),
        ("Curtsy-Signature", signature(secrets, int(time.time()), body)),
        ("X-Request-Id", row.request_id),
    )
    outcome = await _post(settings, crawl.webhook, body, headers)
    if 200 <= outcome.status < 300:
        return  # the rest of the answer does not matter
    if outcome.status:
        raise DeliveryFailed("not_taken", f"it answered {outcome.status}", outcome.status != 410)
    fault = outcome.fault or Fault.PROTOCOL
    raise DeliveryFailed(fault.value, outcome.detail, fault is not Fault.FORBIDDEN_ADDRESS)


def _facts(tx: Any, n: int) -> tuple[Crawl, Counts]:
    return crawls.by_n(tx, n), crawls.counts(tx, n)


def _message(crawl: Crawl, counts: Counts, row: Row) -> dict[str, Any]:
    """`id` is the same in every attempt for one event, so that a receiver can ignore repetitions."""
    return {
        "id": f"{crawl.id}.{row.subject}.{row.payload.get('since_ms', 0)}",
        "event": f"crawl.{row.subject}",
        "crawl": crawl.id,
        "state": crawl.state.value,
        "reason": crawl.reason,
        "request_id": crawl.request_id,
        "ended_ms": crawl.ended_ms,
        "pages": counts.pages,
        "done": counts.done,
        "skipped": sum(counts.skipped.values()),
        "failed": sum(counts.failed.values()),
    }


async def _post(settings: Settings, url: str, body: bytes, headers: tuple[tuple[str, str], ...]) -> Outcome:
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Outcome] = loop.create_future()
    fetcher = HttpFetcher(settings, loop)
    timeout_s = settings.webhook_timeout_s
    job = FetchJob(
        id=1, url=url, deadline=boot_clock() + timeout_s + 2.0, timeout_s=timeout_s, max_bytes=_MOST_BYTES,
        headers=headers, body=body,
    )  # fmt: skip
    try:
        fetcher.start(job, lambda _id, outcome: None if answered.done() else answered.set_result(outcome))
        return await answered
    finally:
        await fetcher.close()
