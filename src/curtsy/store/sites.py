"""Sites of crawls that make one record per site: when they are ready, and which pages they have.

A site is ready when it has no open URL in the crawl. If more pages follow later, it is ready again when they are
done: `as_of`, the number of its newest page, tells whether a record has seen them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, text

from curtsy.core import clock
from curtsy.store import outbox, queues

PREFIX = "site:"

_OPEN = text("SELECT 1 FROM queues WHERE crawl = :crawl AND host = :host AND state = 'open'")
_NEWEST = text("SELECT max(n) FROM pages WHERE host = :host AND crawl = :crawl")
_SEEN = text("SELECT max(as_of) FROM records WHERE crawl = :crawl AND subject = :subject AND schema_hash = :hash")
_UNDER_WAY = text(
    "SELECT 1 FROM outbox WHERE crawl = :crawl AND subject = :subject AND kind IN ('extract', 'score', 'store') LIMIT 1"
)
_PLAN = text("SELECT per, schema_hash, request_id FROM crawls WHERE n = :crawl")
# One statement over all: a query per host would take minutes for a hundred thousand hosts.
_UNSEEN = text(
    "SELECT q.host FROM queues q WHERE q.crawl = :crawl AND q.host > :after "
    "AND EXISTS (SELECT 1 FROM pages p WHERE p.host = q.host AND p.crawl = q.crawl) "
    "AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.kind IN ('extract', 'score', 'store') AND o.crawl = q.crawl "
    "AND o.subject = 'site:' || q.host) "
    "AND NOT EXISTS (SELECT 1 FROM records r WHERE r.crawl = q.crawl AND r.subject = 'site:' || q.host "
    "AND r.schema_hash = :hash "
    "AND r.as_of >= (SELECT max(n) FROM pages p WHERE p.host = q.host AND p.crawl = q.crawl)) "
    "ORDER BY q.host LIMIT :limit"
)
_PAGES = text(
    "SELECT fp, url, title, document IS NOT NULL FROM pages WHERE host = :host AND crawl = :crawl "
    "AND status IN (200, 304) ORDER BY depth, n LIMIT :limit"
)


def subject_of(host: str) -> str:
    return PREFIX + host


def host_of(subject: str) -> str | None:
    """The host of a site; None if the subject is a page."""
    return subject.removeprefix(PREFIX) if subject.startswith(PREFIX) else None


def letter_of(subject: str) -> bytes:
    """The subject as a dead letter names it: the fingerprint of a page, or a site."""
    return subject.encode() if subject.startswith(PREFIX) else bytes.fromhex(subject)


def subject_from(letter: bytes) -> str:
    """The subject from a value of `letter_of`."""
    return letter.decode() if letter.startswith(PREFIX.encode()) else letter.hex()


def newest_page(tx: Connection, crawl: int, host: str) -> int:
    """Number of the newest page of a site in this crawl; 0: it has none."""
    return int(tx.execute(_NEWEST, {"crawl": crawl, "host": host}).scalar() or 0)


def pages_of(tx: Connection, crawl: int, host: str, limit: int = 5000) -> list[tuple[str, str, str | None, bool]]:
    """(fingerprint in hexadecimal digits, URL, title, whether it is a document) of its pages, those near the seeds
    first.
    """
    found = tx.execute(_PAGES, {"crawl": crawl, "host": host, "limit": limit})
    return [(bytes(fp).hex(), url, title, bool(is_file)) for fp, url, title, is_file in found]


def close(tx: Connection, crawl: int, host: str) -> bool:
    """Close the queue if it has no open URL, as `queues.mark_empty_if_none`; then the site's record can be made."""
    closed = queues.mark_empty_if_none(tx, crawl, host)
    if closed:
        put_ready(tx, crawl, [host])
    return closed


def put_again(tx: Connection, subjects: Iterable[tuple[int, str]]) -> None:
    """Start the first stage of these sites (crawl, subject) again: pages of them were deleted while the stages
    ran.
    """
    for crawl, subject in sorted(subjects):
        plan = tx.execute(_PLAN, {"crawl": crawl}).one()
        _put(tx, crawl, [subject.removeprefix(PREFIX)], str(plan.request_id))


def put_ready(tx: Connection, crawl: int, hosts: Iterable[str]) -> int:
    """Queue these sites for extraction, unless the crawl makes no record per site, they are being fetched or extracted,
    or nothing is new.
    """
    plan = tx.execute(_PLAN, {"crawl": crawl}).first()
    if plan is None or plan.per != "site":
        return 0
    ready = [host for host in sorted(set(hosts)) if _is_new(tx, crawl, host, plan.schema_hash or "")]
    _put(tx, crawl, ready, plan.request_id)
    return len(ready)


def put_all(tx: Connection, crawl: int) -> int:
    """Queue every site with pages that no record covers; called when a crawl has finished fetching."""
    plan = tx.execute(_PLAN, {"crawl": crawl}).first()
    if plan is None or plan.per != "site":
        return 0
    return _put_unseen(tx, crawl, plan.schema_hash or "", plan.request_id)


def put_every(tx: Connection, crawl: int, request_id: str) -> int:
    """Queue every site that has pages, even if it has records."""
    return _put_unseen(tx, crawl, "", request_id)


def _put_unseen(tx: Connection, crawl: int, hash: str, request_id: str) -> int:
    put = 0
    given: dict[str, Any] = {"crawl": crawl, "after": "", "limit": 1000, "hash": hash}
    while hosts := list(tx.execute(_UNSEEN, given).scalars()):
        _put(tx, crawl, hosts, request_id)
        put += len(hosts)
        given["after"] = hosts[-1]
    return put


def _put(tx: Connection, crawl: int, hosts: Iterable[str], request_id: str) -> None:
    now_ms = clock.now_ms()
    outbox.put(
        tx, [outbox.Put("extract", crawl, subject_of(host), now_ms, {"host": host}, request_id) for host in hosts]
    )


def _is_new(tx: Connection, crawl: int, host: str, schema_hash: str) -> bool:
    subject = subject_of(host)
    newest = newest_page(tx, crawl, host)
    if tx.execute(_OPEN, {"crawl": crawl, "host": host}).first() is not None:
        return False
    if not newest or tx.execute(_UNDER_WAY, {"crawl": crawl, "subject": subject}).first() is not None:
        return False
    seen = tx.execute(_SEEN, {"crawl": crawl, "subject": subject, "hash": schema_hash}).scalar()
    return seen is None or seen < newest
