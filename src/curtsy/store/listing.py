"""Paginated lists for users: pages of a crawl, dead letters, and groups of dead letters.

A list follows one index. The other filters examine at most `WINDOW` rows per call, so that a call is always fast. A
page may then be short or empty although another one follows.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from curtsy.core.model import Failure, Page
from curtsy.store import failures, pages

WINDOW = 20_000
#: maximum number of groups in a reply
MOST_GROUPS = 1000

#: where a list of pages continues: (fetched_ms or 0, n)
Place = tuple[int, int]
#: where a list of dead letters continues: ('f', at_ms, fence, ordinal), then ('d', crawl, host, seq)
Letter = tuple[str, int, str, int]


class PagesWanted(NamedTuple):
    crawl: int
    status: int | None = None
    host: str | None = None
    since_ms: int | None = None
    #: beginning of the URL; `host` is its host
    prefix: str | None = None
    #: words in the URL or the title, in any case
    text: str | None = None


def pages_of(
    tx: Connection, wanted: PagesWanted, after: Place | None, limit: int, window: int = WINDOW
) -> tuple[list[Page], Place | None]:
    """Pages in the order in which they were stored (with `since_ms` alone: fetched), and where the next ones begin."""
    along, others, by_time = _walk(wanted)
    order = "p.fetched_ms, p.n" if by_time else "p.n"
    given: dict[str, Any] = {name: value for name, value in wanted._asdict().items() if value is not None}
    if wanted.text is not None:
        given["text"] = f"%{_literally(wanted.text.lower())}%"
    if after is not None:
        along.append("(p.fetched_ms, p.n) > (:at, :n)" if by_time else "p.n > :n")
        given |= {"at": after[0], "n": after[1]}
        if by_time:
            # The index is entered there, not at the start of the requested range.
            given["since_ms"] = max(after[0], wanted.since_ms or 0)
    end = None
    if others:
        far = text(
            f"SELECT p.fetched_ms, p.n FROM pages p WHERE {' AND '.join(along)} ORDER BY {order} LIMIT 1 OFFSET :window"
        )
        end = tx.execute(far, {**given, "window": window - 1}).first()
        if end is not None:
            along.append("(p.fetched_ms, p.n) <= (:end_at, :end_n)" if by_time else "p.n <= :end_n")
            given |= {"end_at": end[0], "end_n": end[1]}
    found = pages.where(tx, " AND ".join((*along, *others)), given, order, limit + 1)
    if len(found) > limit:
        n, last = found[limit - 1]
        return [page for _, page in found[:limit]], (last.fetched_ms if by_time else 0, n)
    return [page for _, page in found], None if end is None else (end[0] if by_time else 0, end[1])


def _walk(wanted: PagesWanted) -> tuple[list[str], list[str], bool]:
    """(conditions that the index serves, other conditions, whether by time)."""
    others = []
    if wanted.prefix is not None:
        others.append("substr(p.url, 1, length(:prefix)) = :prefix")
    if wanted.text is not None:
        others.append("(lower(p.url) LIKE :text ESCAPE '!' OR lower(p.title) LIKE :text ESCAPE '!')")
    since = "p.fetched_ms >= :since_ms"
    # The condition is repeated, because the small index holds only the other pages.
    status = "p.status = :status" + ("" if wanted.status == 200 else " AND p.status <> 200")
    if wanted.host is not None:
        others += [status] if wanted.status is not None else []
        others += [since] if wanted.since_ms is not None else []
        return ["p.host = :host", "p.crawl = :crawl"], others, False
    if wanted.status is not None and wanted.status != 200:
        others += [since] if wanted.since_ms is not None else []
        return ["p.crawl = :crawl", status], others, False
    others += [status] if wanted.status is not None else []
    if wanted.since_ms is not None:
        return ["p.crawl = :crawl", since], others, True
    return ["p.crawl = :crawl"], others, False


def _literally(text: str) -> str:
    """The text with the special characters of LIKE escaped."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


class LettersWanted(NamedTuple):
    crawl: int | None = None
    host: str | None = None
    stage: str | None = None
    cause: str | None = None
    since_ms: int = 0
    #: also those already replayed
    replayed: bool = False


def letters(
    tx: Connection, wanted: LettersWanted, after: Letter | None, limit: int, window: int = WINDOW
) -> tuple[list[Failure], Letter | None]:
    """Dead letters, oldest first, then the open URLs of hosts that are dead for their crawl; where the next begin."""
    found: list[Failure] = []
    if after is None or after[0] == "f":
        found, position = _written(tx, wanted, after, limit, window)
        if position is not None or len(found) > limit:
            return found[:limit], position
        after = None
    if wanted.stage not in (None, "fetch"):
        return found, None
    waiting, position = _of_dead_hosts(tx, wanted, after, limit - len(found))
    return found + waiting, position


def _written(
    tx: Connection, wanted: LettersWanted, after: Letter | None, limit: int, window: int
) -> tuple[list[Failure], Letter | None]:
    along = ["at_ms >= :since_ms"]
    others: list[str] = []
    given: dict[str, Any] = {"since_ms": wanted.since_ms}
    walked = "host" if wanted.host is not None else "crawl" if wanted.crawl is not None else None
    for name in ("crawl", "host", "stage", "cause"):
        value = getattr(wanted, name)
        if value is not None:
            (along if name == walked else others).append(f"{name} = :{name}")
            given[name] = value
    if not wanted.replayed:
        others.append("replayed_ms IS NULL")
    if after is not None:
        along.append("(at_ms, fence, ordinal) > (:at, :fence, :ordinal)")
        given |= {"at": after[1], "fence": int(after[2]), "ordinal": after[3]}
        given["since_ms"] = max(after[1], wanted.since_ms)
    order = "at_ms, fence, ordinal"
    far = text(
        f"SELECT at_ms, fence, ordinal FROM failures WHERE {' AND '.join(along)} ORDER BY {order} "
        "LIMIT 1 OFFSET :window"
    )
    end = tx.execute(far, {**given, "window": window - 1}).first() if others else None
    if end is not None:
        along.append("(at_ms, fence, ordinal) <= (:end_at, :end_fence, :end_ordinal)")
        given |= {"end_at": end[0], "end_fence": end[1], "end_ordinal": end[2]}
    found = failures.where(tx, " AND ".join((*along, *others)), given, order, limit + 1)
    if len(found) > limit:
        last = found[limit - 1]
        return found[:limit], ("f", last.at_ms, str(last.fence), last.ordinal)
    return found, None if end is None else ("f", end[0], str(end[1]), end[2])


# The order of the small index of dead queues, then of the index of open rows: nothing is sorted.
_DEAD = (
    "SELECT u.seq, u.crawl, u.fp, u.url, u.host, q.reason, u.attempts, u.fence, q.failing_since_ms, q.detail "
    "FROM queues q CROSS JOIN urls u WHERE u.crawl = q.crawl AND u.host = q.host AND u.state = 'open' "
    "AND q.state = 'dead' AND coalesce(q.failing_since_ms, 0) >= :since_ms {} ORDER BY q.crawl, q.host, u.seq "
    "LIMIT :limit"
)
_BEHIND = (
    "AND (q.crawl > :at_crawl OR (q.crawl = :at_crawl AND (q.host > :at_host OR (q.host = :at_host AND u.seq > :at))))"
)


def _of_dead_hosts(
    tx: Connection, wanted: LettersWanted, after: Letter | None, limit: int
) -> tuple[list[Failure], Letter | None]:
    given: dict[str, Any] = {"since_ms": wanted.since_ms, "limit": limit + 1}
    more = _dead_filters(wanted, given)
    if after is not None:
        more += _BEHIND
        given |= {"at_crawl": after[1], "at_host": after[2], "at": after[3]}
    rows = tx.execute(text(_DEAD.format(more)), given).all()
    found = [failures.of_dead_row(row[1:]) for row in rows[:limit]]
    if len(rows) <= limit:
        return found, None
    # None of them was returned yet: the next page begins before the first.
    seq, crawl, host = (rows[limit - 1][0], rows[limit - 1][1], rows[limit - 1][4]) if limit else (0, 0, "")
    return found, ("d", crawl, host, seq)


def _dead_filters(wanted: LettersWanted, given: dict[str, Any]) -> str:
    conditions = ""
    for column, value in (("crawl", wanted.crawl), ("host", wanted.host), ("reason", wanted.cause)):
        if value is not None:
            conditions += f"AND q.{column} = :{column} "
            given[column] = value
    return conditions


class Group(NamedTuple):
    """The number of dead letters with these values; None for a field that was not grouped by."""

    cause: str | None
    host: str | None
    stage: str | None
    letters: int


def groups(tx: Connection, by: Collection[str], wanted: LettersWanted) -> list[Group]:
    """Open dead letters by cause, host or stage, most frequent first; of very many groups the largest."""
    names = [name for name in ("cause", "host", "stage") if name in by]
    given: dict[str, Any] = {}
    where = "replayed_ms IS NULL"
    for name in ("crawl", "host", "stage", "cause"):
        if (value := getattr(wanted, name)) is not None:
            where += f" AND {name} = :{name}"
            given[name] = value
    if wanted.since_ms:
        where += " AND at_ms >= :since_ms"
        given["since_ms"] = wanted.since_ms
    columns = ", ".join(names)
    query = text(
        f"SELECT {columns}, count(*) AS letters FROM failures WHERE {where} GROUP BY {columns} "
        f"ORDER BY letters DESC, {columns} LIMIT {MOST_GROUPS}"
    )
    found: dict[tuple[str | None, str | None, str | None], int] = {}
    for row in tx.execute(query, given).mappings():
        found[row.get("cause"), row.get("host"), row.get("stage")] = int(row["letters"])
    if wanted.stage in (None, "fetch"):
        for cause, host, n in _dead_groups(tx, wanted):
            key = (cause if "cause" in by else None, host if "host" in by else None, "fetch" if "stage" in by else None)
            found[key] = found.get(key, 0) + n
    ordered = sorted(found.items(), key=lambda item: (-item[1], [part or "" for part in item[0]]))
    return [Group(*key, n) for key, n in ordered[:MOST_GROUPS]]


def _dead_groups(tx: Connection, wanted: LettersWanted) -> list[tuple[str, str, int]]:
    given: dict[str, Any] = {"since_ms": wanted.since_ms}
    more = _dead_filters(wanted, given)
    query = text(
        "SELECT q.reason, q.host, count(*) FROM queues q CROSS JOIN urls u WHERE u.crawl = q.crawl "
        "AND u.host = q.host AND u.state = 'open' AND q.state = 'dead' "
        f"AND coalesce(q.failing_since_ms, 0) >= :since_ms {more} GROUP BY q.reason, q.host"
    )
    return [(reason, host, int(n)) for reason, host, n in tx.execute(query, given)]
