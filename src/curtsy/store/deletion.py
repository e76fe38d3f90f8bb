"""Deletion: rows of `deletions` name what to delete. It is deleted in small transactions until nothing is left.

A page is deleted in one transaction with everything that refers to it. A body that other pages refer to is moved to the
oldest of them first. In the same transaction the locations of bodies that no page refers to any more are written to
`erasures`; then they are overwritten (erasure.py), and only then these rows are deleted. So a killed deletion continues
where it stopped, and no page ever refers to a deleted body. Only one process deletes at a time (the lock `sweep`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, text

from curtsy.core.failpoints import point
from curtsy.core.model import BodyRef, Page
from curtsy.store import llm_cache, meta, outbox, pages, records, requests, responses, sites, templates
from curtsy.store.engine import Store
from curtsy.store.rows import Bulk, Delete, is_postgresql
from curtsy.store.segments import SegmentStore
from curtsy.store.warc import WarcItem

#: pages, or rows of another table, deleted in one transaction
BATCH = 200
ROWS = 5000


class Deletion(NamedTuple):
    """What is to be deleted: a whole crawl, or pages by crawl, host, URL and age."""

    n: int
    id: str
    crawl: int | None
    whole: bool
    host: str | None
    fp: bytes | None
    #: of pages: only those fetched before; of a whole crawl: its row stays until then
    before_ms: int | None
    created_ms: int
    #: pages deleted so far
    pages: int
    request_id: str


_COLUMNS = ", ".join(Deletion._fields)
_ADD = text(
    "INSERT INTO deletions (id, crawl, whole, host, fp, before_ms, created_ms, request_id) "
    "VALUES (:id, :crawl, :whole, :host, :fp, :before_ms, :created_ms, :request_id)"
)
_PENDING = text(f"SELECT {_COLUMNS} FROM deletions ORDER BY n LIMIT :limit")
_OF_CRAWL = text("SELECT id FROM deletions WHERE crawl = :crawl AND whole = :whole ORDER BY n LIMIT 1")
_DONE = text("DELETE FROM deletions WHERE n = :n")
_COUNT = text("UPDATE deletions SET pages = pages + :by WHERE n = :n")

_NS: BindParameter[Any] = bindparam("ns", expanding=True)
_LOCK = text("SELECT n FROM pages WHERE n IN :ns ORDER BY fp, crawl FOR UPDATE").bindparams(_NS)
_REFERRERS = text(
    "SELECT same_as, min(n) FROM pages WHERE same_as IN :ids AND n NOT IN :ns GROUP BY same_as"
).bindparams(bindparam("ids", expanding=True), _NS)
_SHARER = text(
    "SELECT p.n FROM pages p JOIN segments s ON s.n = p.segment WHERE s.name = :segment AND p.body_offset = :offset "
    "AND p.same_as IS NULL AND p.n NOT IN :ns ORDER BY p.n LIMIT 1"
).bindparams(_NS)
_PLACE = text(
    "UPDATE pages SET segment = :segment, body_offset = :offset, body_length = :length, same_as = NULL WHERE n = :n"
)
_REFER = text("UPDATE pages SET same_as = :successor WHERE same_as = :id AND n NOT IN :ns").bindparams(_NS)
_DELETE = text("DELETE FROM pages WHERE n IN :ns").bindparams(_NS)
_note = Bulk(
    "INSERT INTO erasures (segment, body_offset, body_length) SELECT v.name, v.body_offset, v.body_length FROM v "
    "WHERE NOT EXISTS (SELECT 1 FROM pages p JOIN segments s ON s.n = p.segment WHERE s.name = v.name "
    "AND p.body_offset = v.body_offset) ON CONFLICT (segment, body_offset) DO NOTHING",
    "name text, body_offset bigint, body_length bigint",
)


class _Changed(Exception):
    """Another page began to refer to a page that is being deleted: plan again."""


class _Successor(NamedTuple):
    """The page that gets the body of a deleted page."""

    n: int
    ref: BodyRef


def add(
    tx: Connection,
    id: str,
    now_ms: int,
    *,
    crawl: int | None = None,
    whole: bool = False,
    host: str | None = None,
    fp: bytes | None = None,
    before_ms: int | None = None,
    request_id: str = "",
) -> str:
    """Store what to delete; returns its id. A crawl has at most one such row for itself and one for its old pages."""
    if whole or (crawl is not None and before_ms is not None):
        known = tx.execute(_OF_CRAWL, {"crawl": crawl, "whole": whole}).scalar()
        if known is not None:
            return str(known)
    given = {"id": id, "crawl": crawl, "whole": whole, "host": host, "fp": fp, "before_ms": before_ms}
    tx.execute(_ADD, {**given, "created_ms": now_ms, "request_id": request_id})
    return id


def pending(tx: Connection, limit: int = 100) -> list[Deletion]:
    """Oldest first."""
    rows = (Deletion(*row) for row in tx.execute(_PENDING, {"limit": limit}))
    return [row._replace(whole=bool(row.whole)) for row in rows]


def erasing(tx: Connection) -> bool:
    """Whether bodies of deleted pages must still be overwritten."""
    return tx.execute(text("SELECT 1 FROM erasures LIMIT 1")).first() is not None


def crawls_with_pages_before(tx: Connection, before_ms: int) -> list[int]:
    """Crawls with pages or other responses that were fetched before `before_ms`."""
    old = (
        f"EXISTS (SELECT 1 FROM {table} p WHERE p.crawl = c.n AND p.fetched_ms < :before_ms)"
        for table in pages.IN_SEGMENTS
    )
    query = text(f"SELECT c.n FROM crawls c WHERE {' OR '.join(old)} ORDER BY c.n")
    return [int(n) for n in tx.execute(query, {"before_ms": before_ms}).scalars()]


def carry_out(store: Store, segments: SegmentStore, one: Deletion, now_ms: int, stop: Callable[[], bool]) -> bool:
    """Delete until nothing is left (True), or until `stop()`; a later call continues."""
    if one.whole and not _empty(store, one, _BEFORE_PAGES, stop):
        return False
    # Pages that refer to others come first, the pages that they refer to afterwards.
    for refers in (True, False):
        if not _delete_all(store, segments, one, refers, stop):
            return False
    if not _delete_responses(store, one, stop):
        return False
    if one.whole:
        if not _empty(store, one, _AFTER_PAGES, stop) or not _empty_log(store, one, stop):
            return False
        point("delete.emptied")
        if one.before_ms is not None and now_ms < one.before_ms:
            return False
    store.run(_finish, one)
    return True


def _delete_all(store: Store, segments: SegmentStore, one: Deletion, refers: bool, stop: Callable[[], bool]) -> bool:
    conditions, given = _named(one)
    conditions += ["p.same_as IS NOT NULL"] if refers else []
    condition = " AND ".join((*conditions, "p.n > :after"))
    after = 0
    while not stop():
        with store.read() as tx:
            found = pages.where(tx, condition, {**given, "after": after}, "p.n", BATCH)
        if not found:
            return True
        _delete(store, segments, one, [n for n, _ in found])
        after = found[-1][0]
    return False


def _delete_responses(store: Store, one: Deletion, stop: Callable[[], bool]) -> bool:
    conditions, given = _named(one)
    while not stop():
        if not store.run(_delete_some_responses, " AND ".join(conditions), given):
            return True
    return False


def _delete_some_responses(tx: Connection, condition: str, given: dict[str, Any]) -> int:
    found = responses.where(tx, condition, given, "p.n", BATCH)
    responses.delete(tx, [(n,) for n, _ in found])
    _note(tx, sorted({(one.body.segment, one.body.offset, one.body.length) for _, one in found}))
    return len(found)


def _named(one: Deletion) -> tuple[list[str], dict[str, Any]]:
    conditions, given = [], {}
    for name in ("crawl", "host", "fp"):
        if (value := getattr(one, name)) is not None:
            conditions.append(f"p.{name} = :{name}")
            given[name] = value
    if one.before_ms is not None and not one.whole:
        # +: SQLite must read pages by number, not by the index of times.
        conditions.append("+p.fetched_ms < :before_ms")
        given["before_ms"] = one.before_ms
    return conditions, given


def _delete(store: Store, segments: SegmentStore, one: Deletion, ns: Sequence[int]) -> None:
    while True:
        moved = _move(store, segments, ns)
        point("delete.moved")
        try:
            store.run(_delete_rows, one, ns, moved)
            point("delete.rows")
            return
        except _Changed:
            continue


# Bodies that others refer to


def _move(store: Store, segments: SegmentStore, ns: Sequence[int]) -> dict[str, _Successor]:
    """Write the bodies that other pages still need again; deleted page -> page that gets its body, and the location."""
    with store.read() as tx:
        going = dict(pages.where(tx, f"p.n IN ({_listed(ns)})", {}, "p.n", len(ns)))
        wanted = _needed(tx, going)
        successors = (
            dict(pages.where(tx, f"p.n IN ({_listed(wanted.values())})", {}, "p.n", len(wanted))) if wanted else {}
        )
    items = []
    for id, n in wanted.items():
        page = next(page for page in going.values() if page.id == id)
        assert page.body is not None
        items.append(_item(segments, page.body, successors[n]))
    refs = segments.append(items)
    return {id: _Successor(n, ref) for (id, n), ref in zip(wanted.items(), refs, strict=True)}


def _needed(tx: Connection, going: dict[int, Page]) -> dict[str, int]:
    """Pages to delete that alone hold a body others refer to -> number of the oldest page that refers to it."""
    found = {}
    for id, n in _referrers(tx, going).items():
        page = next(page for page in going.values() if page.id == id)
        if page.body is not None and page.same_as is None and _sharer(tx, page.body, going) is None:
            found[id] = n
    return found


def _referrers(tx: Connection, going: dict[int, Page]) -> dict[str, int]:
    if not going:
        return {}
    rows = tx.execute(_REFERRERS, {"ids": [page.id for page in going.values()], "ns": list(going)})
    return {same_as: n for same_as, n in rows}  # noqa: C416


def _sharer(tx: Connection, place: BodyRef, going: dict[int, Page]) -> int | None:
    """The oldest remaining page whose body is at the same place."""
    given = {"segment": place.segment, "offset": place.offset, "ns": list(going)}
    found = tx.execute(_SHARER, given).scalar()
    return None if found is None else int(found)


def _item(segments: SegmentStore, place: BodyRef, successor: Page) -> WarcItem:
    """The body at that location as the response of the successor."""
    original = segments.read(place)
    own = segments.read(successor.body) if successor.body is not None else original
    answer = original if own.status == 304 else own
    return WarcItem(
        url=successor.url,
        fetched_ms=successor.fetched_ms,
        status=answer.status,
        headers=answer.headers,
        body=original.body,
        sha256=successor.sha256 or "",
        address=own.fields.get("warc-ip-address"),
        facts=(("depth", str(successor.depth)),),
    )


# One transaction


def _delete_rows(tx: Connection, one: Deletion, ns: Sequence[int], moved: dict[str, _Successor]) -> None:
    numbers = pages.commit_bytes(tx, [successor.ref for successor in moved.values()])
    if is_postgresql(tx):
        tx.execute(_LOCK, {"ns": list(ns)})
    going = dict(pages.where(tx, f"p.n IN ({_listed(ns)})", {}, "p.n", len(ns)))
    if not going:
        return
    left = _hand_over(tx, going, moved, numbers)
    left += [page.body for page in going.values() if page.body is not None]
    tx.execute(_DELETE, {"ns": list(going)})
    subjects = sorted({(page.crawl, page.fp.hex()) for page in going.values()})
    of_sites = sorted({(page.crawl, sites.subject_of(page.host)) for page in going.values()})
    again = outbox.delete_stages(tx, subjects, of_sites)
    for crawl in sorted({crawl for crawl, _ in subjects}):
        records.forget(tx, crawl, [subject for of, subject in subjects if of == crawl])
    llm_cache.forget_subjects(tx, [*subjects, *of_sites])
    templates.forget_pages(tx, subjects)
    sites.put_again(tx, again)
    _note(tx, sorted({(ref.segment, ref.offset, ref.length) for ref in left}))
    tx.execute(_COUNT, {"by": len(going), "n": one.n})


def _hand_over(
    tx: Connection, going: dict[int, Page], moved: dict[str, _Successor], numbers: dict[str, int]
) -> list[BodyRef]:
    """Let pages that refer to a deleted page refer to its successor; returns the old locations of the successors."""
    left: list[BodyRef] = []
    for id, oldest in _referrers(tx, going).items():
        page = next(page for page in going.values() if page.id == id)
        successor = None if page.body is None else _sharer(tx, page.body, going)
        if successor is None:
            planned = moved.get(id)
            if planned is None or planned.n != oldest:
                raise _Changed
            successor = planned.n
            left += _place(tx, planned, numbers[planned.ref.segment])
        ((_, named),) = pages.where(tx, f"p.n = {successor:d}", {}, "p.n", 1)
        tx.execute(_REFER, {"successor": named.id, "id": id, "ns": list(going)})
    return left


def _place(tx: Connection, successor: _Successor, segment: int) -> list[BodyRef]:
    ((_, before),) = pages.where(tx, f"p.n = {successor.n:d}", {}, "p.n", 1)
    place = {"segment": segment, "offset": successor.ref.offset, "length": successor.ref.length}
    tx.execute(_PLACE, {**place, "n": successor.n})
    return [] if before.body is None else [before.body]


def _listed(ns: Iterable[int]) -> str:
    return ", ".join(str(int(n)) for n in ns)


# Everything else of a crawl

#: URLs go before pages: a result that arrives late finds no open URL, so it adds no page
_BEFORE_PAGES = (outbox.delete_rows, outbox.delete_results, Delete("urls", "crawl bigint, fp bytea"))
_AFTER_PAGES = (
    *records.DELETES,
    llm_cache.delete_rows,
    Delete("llm_usage", "crawl bigint"),
    Delete("llm_questions", "key text"),
    Delete("llm_field_usage", "crawl bigint, schema text, field text"),
    Delete("queues", "crawl bigint, host text"),
    Delete("failures", "fence bigint, ordinal int"),
    Delete("crawl_counts", "crawl bigint, state text, reason text"),
    Delete("crawl_members", "crawl bigint, member text"),
    Delete("crawl_rates", "crawl bigint, at_s bigint"),
)


def _empty(store: Store, one: Deletion, tables: Sequence[Delete], stop: Callable[[], bool]) -> bool:
    for rows in tables:
        while store.run(rows.where, "crawl = :crawl", {"crawl": one.crawl}, ROWS):
            if stop():
                return False
    return True


_WINDOW = text("SELECT fence FROM requests WHERE fence > :after ORDER BY fence LIMIT 1 OFFSET :rows")


def _empty_log(store: Store, one: Deletion, stop: Callable[[], bool]) -> bool:
    """The log has no index by crawl, so it is read once, in parts."""
    after: int | None = -1
    while after is not None:
        if stop():
            return False
        with store.read() as tx:
            end = tx.execute(_WINDOW, {"after": after, "rows": 2 * ROWS}).scalar()
        store.run(requests.forget_crawl, one.crawl or 0, after, (1 << 63) - 1 if end is None else end)
        after = end
    return True


def _finish(tx: Connection, one: Deletion) -> None:
    """Nothing is left: delete the deletion and, for a whole crawl, its row. Its number is not used again."""
    if one.whole:
        crawl = {"crawl": one.crawl}
        last = max(one.crawl or 0, int(meta.get(tx, "last_deleted_crawl") or 0))
        meta.put(tx, "last_deleted_crawl", str(last))
        tx.execute(text("UPDATE runs SET crawl = NULL WHERE crawl = :crawl"), crawl)
        tx.execute(text("DELETE FROM idempotency WHERE crawl = (SELECT id FROM crawls WHERE n = :crawl)"), crawl)
        tx.execute(text("DELETE FROM crawls WHERE n = :crawl"), crawl)
    tx.execute(_DONE, {"n": one.n})
