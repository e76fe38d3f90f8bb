"""Queries of the dashboard. Their cost does not grow with a crawl.

Counts are those that the commit keeps. Other figures come from a bounded number of rows: the newest ones, or the
numbers that pages get as they are stored. A number grows by one with every page of any crawl, so the
difference between the first pages of two minutes is how many were stored in between: two steps into an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from curtsy.core.model import Failure, Request
from curtsy.store import failures, queues, url_queries, urls
from curtsy.store.records import NEEDS
from curtsy.store.requests import request_of
from curtsy.store.rows import Bulk

#: rows of the request log that one chart reads
LOOKED_AT = 5_000
#: the same for the timeline of a host, whose requests may be between many of other hosts
AROUND = 20_000
#: bits of a fence below its epoch
_COUNTER_BITS = 40

_REQUEST = "fence, ordinal, crawl, host, url, start_ms, end_ms, kind, status, fault, delay_ms, per_host, nature"
_first_numbers = Bulk(
    "SELECT v.at, (SELECT p.n FROM pages p WHERE p.crawl = v.crawl AND p.fetched_ms >= v.at "
    "ORDER BY p.fetched_ms, p.n LIMIT 1) FROM v",
    "crawl bigint, at bigint",
)
_pages_between = Bulk(
    "SELECT v.at, (SELECT count(*) FROM pages p WHERE p.crawl = v.crawl AND p.fetched_ms >= v.at "
    "AND p.fetched_ms < v.until) FROM v",
    "crawl bigint, at bigint, until bigint",
)
_failures_between = Bulk(
    "SELECT v.at, (SELECT count(*) FROM (SELECT 1 AS one FROM failures f WHERE f.crawl = v.crawl AND f.at_ms >= v.at "
    "AND f.at_ms < v.until LIMIT 1000) AS f) FROM v",
    "crawl bigint, at bigint, until bigint",
)


def moments(since_ms: int, until_ms: int, parts: int) -> list[int]:
    """The boundaries of `parts` equal parts of a time span: `parts + 1` times."""
    step = max(1, -(-(until_ms - since_ms) // parts))
    return [since_ms + step * k for k in range(parts + 1)]


def stored_between(tx: Connection, crawls: Sequence[int], ends_ms: Sequence[int]) -> list[int]:
    """How many pages were stored in each part of a time span in which only these crawls ran."""
    newest = int(tx.execute(text("SELECT max(n) FROM pages")).scalar() or 0) + 1
    first: dict[int, int] = {}
    for at, n in _first_numbers(tx, [(crawl, at) for crawl in crawls for at in ends_ms]):
        if n is not None:
            first[at] = min(n, first.get(at, n))
    numbers = [first.get(at, newest) for at in ends_ms]
    # A page may be stored later than one that was fetched after it, so numbers are made monotonic from the end.
    for k in range(len(numbers) - 2, -1, -1):
        numbers[k] = min(numbers[k], numbers[k + 1])
    return [after - before for before, after in pairwise(numbers)]


def pages_between(tx: Connection, crawl: int, ends_ms: Sequence[int]) -> list[int]:
    """How many pages of a crawl were fetched in each part: counted, so only for crawls of a bounded size."""
    parts = [(crawl, *pair) for pair in pairwise(ends_ms)]
    return [int(row[1]) for row in sorted(_pages_between(tx, parts))]


def failures_between(tx: Connection, crawl: int, ends_ms: Sequence[int]) -> list[int]:
    """How many dead letters in each part, at most 1,000 each."""
    parts = [(crawl, *pair) for pair in pairwise(ends_ms)]
    return [int(row[1]) for row in sorted(_failures_between(tx, parts))]


_names = Bulk(
    "SELECT v.id, c.name, (SELECT min(m.member) FROM crawl_members m WHERE m.crawl = c.n), "
    "(SELECT max(m.member) FROM crawl_members m WHERE m.crawl = c.n), "
    "(SELECT p.host FROM pages p WHERE p.crawl = c.n ORDER BY p.n LIMIT 1), "
    "(SELECT min(q.host) FROM queues q WHERE q.crawl = c.n), "
    "(SELECT max(q.host) FROM queues q WHERE q.crawl = c.n) FROM v JOIN crawls c ON c.id = v.id",
    "id text",
)


class CrawlName(NamedTuple):
    """What a crawl is called on a page."""

    text: str
    #: `text` is a website that it is about, and there are others
    others: bool = False
    #: people gave it this name
    given: bool = False


def names(tx: Connection, ids: Iterable[str]) -> dict[str, CrawlName]:
    """crawl id -> its name, or one of its websites: readable, unlike the id."""
    found: dict[str, CrawlName] = {}
    for id, given, first, last, began, lowest, highest in _names(tx, [(id,) for id in sorted(set(ids))]):
        if given is not None:
            found[id] = CrawlName(given, given=True)
        elif (name := first or began or lowest) is not None:
            found[id] = CrawlName(name, first != last if first is not None else lowest != highest)
    return found


def last_page_ms(tx: Connection, crawl: int) -> int | None:
    query = text("SELECT fetched_ms FROM pages WHERE crawl = :crawl ORDER BY fetched_ms DESC, n DESC LIMIT 1")
    found = tx.execute(query, {"crawl": crawl}).scalar()
    return None if found is None else int(found)


def ledgers(tx: Connection, crawls: Iterable[int]) -> dict[int, dict[str, dict[str, int]]]:
    """crawl -> state -> reason -> URLs, as the commit keeps them."""
    query = text("SELECT state, reason, n FROM crawl_counts WHERE crawl = :crawl AND n <> 0")
    found: dict[int, dict[str, dict[str, int]]] = {}
    for crawl in crawls:
        states: dict[str, dict[str, int]] = {"open": {}, "done": {}, "skipped": {}, "failed": {}}
        for state, reason, n in tx.execute(query, {"crawl": crawl}):
            states.setdefault(state, {})[reason] = int(n)
        found[crawl] = states
    return found


_FAILED = text("SELECT reason, sum(n) FROM crawl_counts WHERE state = 'failed' GROUP BY reason")
# CROSS JOIN: SQLite begins with the dead queues, which are few, and not with all open URLs.
_DEAD = text(
    "SELECT q.reason, count(*) FROM queues q CROSS JOIN urls u WHERE u.crawl = q.crawl AND u.host = q.host "
    "AND u.state = 'open' AND q.state = 'dead' GROUP BY q.reason"
)


def dead_letters(tx: Connection) -> dict[str, int]:
    """cause -> URLs of all crawls that failed, or whose host is dead for their crawl: as `crawls.counts` of each."""
    found: dict[str, int] = {}
    for query in (_FAILED, _DEAD):
        for reason, n in tx.execute(query):
            found[reason] = found.get(reason, 0) + int(n)
    return {reason: n for reason, n in found.items() if n}


def depths(tx: Connection, crawl: int, most: int = 10_000) -> list[tuple[int, int]]:
    """(links from a seed, pages) of the newest pages of a crawl."""
    query = text(
        "SELECT depth, count(*) FROM (SELECT depth FROM pages WHERE crawl = :crawl ORDER BY n DESC LIMIT :most) "
        "AS newest GROUP BY depth ORDER BY depth"
    )
    return [(int(depth), int(n)) for depth, n in tx.execute(query, {"crawl": crawl, "most": most})]


class HostShare(NamedTuple):
    """A host in a crawl."""

    host: str
    urls: int
    state: str
    reason: str
    failures: int
    blocked_until_ms: int
    slow: bool
    denied: bool
    #: responses 429 and 503 to this crawl
    refused: int
    #: requests of this crawl without a response
    silent: int


_HOSTS = (
    "SELECT q.host, q.added, q.state, q.reason, coalesce(h.failures, 0), coalesce(h.blocked_until_ms, 0), "
    "coalesce(h.slow, false), coalesce(h.denied, false), q.refused, q.silent "
    "FROM (SELECT host, added, state, reason, refused, silent FROM queues WHERE crawl = :crawl ORDER BY host "
    "LIMIT :most) AS q LEFT JOIN hosts h ON h.host = q.host {} LIMIT :limit"
)
_LARGEST = text(_HOSTS.format("ORDER BY q.added DESC, q.host"))
_BLOCKED = text(
    _HOSTS.format(
        "WHERE h.failures > 0 OR h.blocked_until_ms > :now OR h.denied OR q.state = 'dead' "
        "ORDER BY coalesce(h.failures, 0) DESC, h.blocked_until_ms DESC, q.host"
    )
)


def largest_hosts(tx: Connection, crawl: int, limit: int, most: int = AROUND) -> list[HostShare]:
    """The hosts of a crawl with most URLs, among the first `most` by name."""
    return _shares(tx.execute(_LARGEST, {"crawl": crawl, "most": most, "limit": limit}))


def troubled_hosts(tx: Connection, crawl: int, now_ms: int, limit: int, most: int = AROUND) -> list[HostShare]:
    """Those that failed, block us, are dead for the crawl or on the deny list."""
    return _shares(tx.execute(_BLOCKED, {"crawl": crawl, "most": most, "limit": limit, "now": now_ms}))


_UNANSWERED = text(_HOSTS.format("WHERE q.refused > 0 OR q.silent > 0 ORDER BY q.refused DESC, q.silent DESC, q.host"))


def unanswered_hosts(tx: Connection, crawl: int, limit: int, most: int = AROUND) -> list[HostShare]:
    """Those that refused requests of the crawl, or did not answer."""
    return _shares(tx.execute(_UNANSWERED, {"crawl": crawl, "most": most, "limit": limit}))


def _shares(rows: Iterable[Any]) -> list[HostShare]:
    return [HostShare(*row)._replace(slow=bool(row[6]), denied=bool(row[7])) for row in rows]


# The request log is kept by fence, which grows with time within an epoch.


def requests_of_crawl(tx: Connection, crawl: int, most: int = LOOKED_AT) -> list[Request]:
    """The newest requests of a crawl, by start, from a limited number of rows around its newest pages."""
    fences = tx.execute(
        text("SELECT fence FROM pages WHERE crawl = :crawl ORDER BY n DESC LIMIT 200"), {"crawl": crawl}
    ).scalars()
    newest: dict[int, int] = {}
    for fence in fences:
        epoch = fence >> _COUNTER_BITS
        newest[epoch] = max(newest.get(epoch, 0), fence)
    found: dict[tuple[int, int, int], Request] = {}
    for fence in newest.values():
        some = _around(tx, fence, most // len(newest) // 2, "crawl = :crawl", {"crawl": crawl})
        found |= {(one.fence, one.ordinal, one.start_ms): one for one in some}
    return sorted(found.values(), key=lambda one: one.start_ms)


_ANCHORS = (
    text("SELECT fence FROM pages WHERE host = :host ORDER BY crawl DESC, n DESC LIMIT 1"),
    text("SELECT fence FROM failures WHERE host = :host ORDER BY at_ms DESC, fence DESC, ordinal DESC LIMIT 1"),
)


def requests_of_host(tx: Connection, host: str, limit: int) -> list[Request]:
    """The newest requests to a host, by start: of the rows around its newest page or dead letter."""
    anchors = [tx.execute(query, {"host": host}).scalar() for query in _ANCHORS]
    known = [int(fence) for fence in anchors if fence is not None]
    if not known:  # the host has no page or dead letter yet: its requests are among the newest of all
        known = [int(tx.execute(text("SELECT max(fence) FROM requests")).scalar() or 0)]
    found: dict[tuple[int, int, int], Request] = {}
    for fence in known:
        some = _around(tx, fence, AROUND // 2, "host = :host", {"host": host})
        found |= {(one.fence, one.ordinal, one.start_ms): one for one in some}
    sent = {one.fence for one in found.values() if one.nature == "sent"}
    kept = [one for one in found.values() if one.nature != "presumed" or one.fence not in sent]
    return sorted(kept, key=lambda one: (one.start_ms, one.fence))[-limit:]


# Rows that have a fence of the URL. Only the newest dead letters of its host are read: an earlier one was replayed.
_TRACES = (
    text("SELECT fence FROM pages WHERE fp = :fp ORDER BY crawl DESC LIMIT 20"),
    text(
        "SELECT fence FROM (SELECT fence, fp FROM failures WHERE host = :host "
        "ORDER BY at_ms DESC, fence DESC, ordinal DESC LIMIT 1000) AS f WHERE fp = :fp LIMIT 20"
    ),
)


def requests_of_url(tx: Connection, host: str, url: str, fp: bytes, limit: int = 20) -> list[Request]:
    """The latest requests for a URL, newest first: those with the fences of its rows, pages and dead letters,
    and earlier attempts among the rows of the log before the newest of them.
    """
    fences = {fence for _, fence in url_queries.known_to(tx, fp)}
    for query in _TRACES:
        fences.update(int(fence) for fence in tx.execute(query, {"fp": fp, "host": host}).scalars())
    fences = {fence for fence in fences if fence > 0}
    if not fences:  # not yet answered, or a robots.txt: it may be among the newest of its host
        return [one for one in reversed(requests_of_host(tx, host, AROUND)) if one.url == url][:limit]
    some = [one for fence in sorted(fences) for one in requests_under(tx, fence)]
    some += _beside(tx, max(fences), AROUND, _BEFORE, "host = :host AND url = :url", {"host": host, "url": url})
    found = {(one.fence, one.ordinal, one.start_ms): one for one in some if one.url == url}
    return sorted(found.values(), key=lambda one: (one.start_ms, one.fence), reverse=True)[:limit]


_BEFORE, _BEHIND = "fence <= :fence ORDER BY fence DESC", "fence > :fence ORDER BY fence"


def _around(tx: Connection, fence: int, most: int, condition: str, given: dict[str, Any]) -> list[Request]:
    return [one for side in (_BEFORE, _BEHIND) for one in _beside(tx, fence, most, side, condition, given)]


def _beside(tx: Connection, fence: int, most: int, side: str, condition: str, given: dict[str, Any]) -> list[Request]:
    query = f"SELECT {_REQUEST} FROM (SELECT {_REQUEST} FROM requests WHERE {side} LIMIT :most) AS r WHERE {condition}"
    return [request_of(row) for row in tx.execute(text(query), {**given, "fence": fence, "most": most})]


def requests_under(tx: Connection, fence: int) -> list[Request]:
    """The requests of one lease: one, or the chain of its redirects."""
    query = text(f"SELECT {_REQUEST} FROM requests WHERE fence = :fence ORDER BY start_ms, ordinal LIMIT 50")
    return [request_of(row) for row in tx.execute(query, {"fence": fence})]


_DEAD_ID = re.compile(r"([1-9][0-9]{0,17})-([0-9a-f]{32})")


def letter(tx: Connection, id: str) -> Failure | None:
    """A dead letter by its id. An open URL whose host is dead for its crawl has one, too."""
    found = failures.where(tx, "id = :id", {"id": id}, "at_ms DESC", 1)
    if found:
        return found[0]
    key = _DEAD_ID.fullmatch(id)
    if key is None:
        return None
    row = urls.get(tx, int(key[1]), bytes.fromhex(key[2]))
    queue = queues.get(tx, [(row.crawl, row.host)]).get((row.crawl, row.host)) if row is not None else None
    if row is None or queue is None or queue.state != "dead":
        return None
    return failures.of_dead_row(
        (row.crawl, row.fp, row.url, row.host, queue.reason, row.attempts, row.fence, queue.failing_since_ms,
         queue.detail)
    )  # fmt: skip


# The review queue


def review_queue(tx: Connection, crawl: int | None, most: int = 100_000) -> tuple[int, int]:
    """(records that wait for review, decisions made so far); both counts stop at a limit."""
    which = "" if crawl is None else "AND crawl = :crawl"
    given = {"most": most} | ({} if crawl is None else {"crawl": crawl})
    conditions = [f"records WHERE {condition}" for condition in NEEDS.values()] + ["reviews WHERE 1 = 1"]
    queries = [f"SELECT count(*) FROM (SELECT 1 AS one FROM {one} {which} LIMIT :most) AS w" for one in conditions]
    held, contradicted, decided = (int(tx.execute(text(query), given).scalar_one()) for query in queries)
    return min(held + contradicted, most), decided
