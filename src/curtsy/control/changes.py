"""The changes between two crawls, page by page: counted by the database, listed in chunks, never held in memory.

new         a page now, but not before
changed     a page in both crawls, with different bodies
unchanged   a page in both crawls, with the same body
gone        was a page; now 404 or 410, or no link leads to it
moved       was a page; now a redirect
unread      was a page, but was not read this time: it failed, was skipped, or the crawl ended first
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from curtsy.control.schedules import previous
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, CrawlState
from curtsy.store import changes, crawls, url_queries
from curtsy.store.engine import Store

T = TypeVar("T")
KINDS = changes.KINDS
#: the order of a list of all kinds: most pages of most sites are unchanged
_LISTED = ("changed", "new", "gone", "moved", "unread", "unchanged")
#: earlier crawls whose seeds are compared
_MOST_COMPARED = 50
#: where a list continues: in the pages of the later crawl (`now`) or of the earlier one (`before`), after this number
Cursor = tuple[str, int]
FIRST: Cursor = ("now", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Two crawls to compare."""

    crawl: Crawl
    against: Crawl
    #: the kind of a page to which no link leads: `gone` if the crawl was complete
    absent: str


def report_of(store: Store, crawl: str, against: str | None = None) -> Report:
    """Compare a crawl with another one: by default the previous run of its schedule, or crawl of the same seeds."""
    with store.read() as tx:
        found = crawls.get(tx, crawl)
        if against is not None:
            other: Crawl | None = crawls.get(tx, against)
        else:
            other = previous(tx, found) if found.schedule is not None else _of_same_seeds(tx, found)
    if other is None:
        why = "no earlier crawl has the same seeds" if found.schedule is None else "it is the first run of its schedule"
        raise UsageError(f"Crawl {found.id} cannot be compared: {why}. Name the crawl to compare it with (--against).")
    if other.n == found.n:
        raise UsageError("A crawl cannot be compared with itself. Name another crawl.")
    whole = found.state in (CrawlState.FINISHED, CrawlState.EXTRACTING) and found.reason is None
    return Report(crawl=found, against=other, absent="gone" if whole else "unread")


def _of_same_seeds(tx: Any, crawl: Crawl) -> Crawl | None:
    """The newest earlier crawl with the same seeds."""
    wanted = url_queries.seed_fps(tx, crawl.n)
    for other in crawls.list_all(tx, limit=_MOST_COMPARED, before=crawl.n):
        if other.state is not CrawlState.DELETING and url_queries.seed_fps(tx, other.n) == wanted:
            return crawls.by_n(tx, other.n)
    return None


def counts(store: Store, report: Report) -> dict[str, int]:
    """Return the number of changes of each kind."""
    with store.read() as tx:
        found = changes.counts(tx, report.crawl.n, report.against.n, report.absent)
    return {kind: found.get(kind, 0) for kind in KINDS}


def chunk(
    store: Store, report: Report, kind: str | None = None, after: Cursor = FIRST, limit: int = 100
) -> tuple[list[changes.Change], Cursor | None]:
    """Return changes after a cursor, of one kind or of all, and the next cursor (None at the end)."""
    if kind is not None and kind not in KINDS:
        raise UsageError(f"Unknown kind of change: {kind!r}. Use one of: {', '.join(KINDS)}.")
    side, number = after
    found: list[changes.Change] = []
    with store.read() as tx:
        if side == "now":
            found, number = _side(tx, changes.of_pages_now, report, kind, number, limit)
            if len(found) == limit:
                return found, ("now", number)
            number = 0
        more, number = _side(tx, changes.of_pages_before, report, kind, number, limit - len(found))
    found += more
    return found, ("before", number) if len(found) == limit else None


def listed(some: Callable[[str, int], list[T]], kind: str | None, limit: int) -> list[T]:
    """Up to `limit` changes of one kind, or of all, unchanged pages last. `some` returns those of a kind."""
    found: list[T] = []
    for one in _LISTED if kind is None else (kind,):
        if len(found) < limit:
            found += some(one, limit - len(found))
    return found


def _side(
    tx: Any, of: Any, report: Report, kind: str | None, after: int, limit: int
) -> tuple[list[changes.Change], int]:
    found: list[changes.Change] = of(tx, report.crawl.n, report.against.n, report.absent, kind, after, limit)
    return found, (found[-1].n if found else after)
