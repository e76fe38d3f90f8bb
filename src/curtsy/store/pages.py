"""Pages: one row per fetched URL of a crawl, with the location of its body in a segment.

A page's id is computed from its key, `<crawl>-<fingerprint>`: a repeated commit gives the same id, and no index is
needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from curtsy.core.document_facts import DocumentFacts
from curtsy.core.errors import UsageError
from curtsy.core.model import BodyRef, Page
from curtsy.store.rows import Bulk, Insert, Lock, Row, is_postgresql, unique_sorted
from curtsy.store.urls import Key

_FIELDS = (
    "p.fp, p.crawl, p.fence, p.url, p.host, p.status, p.fetched_ms, p.depth, p.content_type, p.charset, p.title, "
    "p.sha256, p.size, p.etag, p.last_modified, p.canonical, p.language, p.unchanged, s.name, p.body_offset, "
    "p.body_length, p.same_as, p.request_id, p.truncated, p.document"
)
_NAMES = tuple(name.strip().removeprefix("p.") for name in _FIELDS.split(",")[:18])
_BEFORE, _AFTER = attrgetter(*_NAMES[:11]), attrgetter(*_NAMES[12:])
_FROM = "pages p LEFT JOIN segments s ON s.n = p.segment"
#: the tables whose rows refer to segments
IN_SEGMENTS = ("pages", "responses")
#: larger numbers have no place in the database
_LARGEST = 2**63 - 1


def referred(segment: str) -> str:
    """The condition that a row refers to the segment with this number."""
    found = (f"EXISTS (SELECT 1 FROM {table} p WHERE p.segment = {segment})" for table in IN_SEGMENTS)
    return f"({' OR '.join(found)})"


class Same(NamedTuple):
    """The page whose stored body a revisit record can refer to."""

    id: str
    url: str
    fetched_ms: int
    body: BodyRef


_insert = Insert(
    "pages",
    "fp, crawl",
    "fp bytea, crawl bigint, fence bigint, url text, host text, status int, fetched_ms bigint, "
    "depth int, content_type text, charset text, title text, sha256 bytea, size bigint, etag text, "
    "last_modified text, canonical text, language text, unchanged boolean, segment bigint, "
    "body_offset bigint, body_length bigint, same_as text, request_id text, truncated boolean, document text",
    newer="fence",
    unless="pages.sha256 <> excluded.sha256 "
    "AND EXISTS (SELECT 1 FROM pages o WHERE o.same_as = pages.crawl || '-' || {hex})",
    hex=("encode(pages.fp, 'hex')", "lower(hex(pages.fp))"),
)
_commit_segments = Bulk(
    "INSERT INTO segments (name, bytes) SELECT name, bytes FROM v WHERE true ON CONFLICT (name) DO UPDATE "
    "SET bytes = CASE WHEN excluded.bytes > segments.bytes THEN excluded.bytes ELSE segments.bytes END "
    "RETURNING name, n",
    "name text, bytes bigint",
)
_get = Bulk(
    f"SELECT {_FIELDS} FROM v JOIN pages p ON p.fp = v.fp AND p.crawl = v.crawl "
    "LEFT JOIN segments s ON s.n = p.segment",
    "crawl bigint, fp bytea",
)
_previous = Bulk(
    f"SELECT {_FIELDS} FROM v JOIN pages p ON p.fp = v.fp AND p.crawl <> v.crawl "
    "LEFT JOIN segments s ON s.n = p.segment WHERE p.n = "
    "(SELECT max(b.n) FROM pages b WHERE b.fp = v.fp AND b.crawl <> v.crawl AND b.status IN (200, 304))",
    "fp bytea, crawl bigint",
)
_same = Bulk(
    "SELECT p.sha256, p.crawl, p.fp, p.url, p.fetched_ms, s.name, p.body_offset, p.body_length "
    "FROM v JOIN pages p ON p.crawl = v.crawl AND p.sha256 = v.sha256 AND p.same_as IS NULL AND p.segment IS NOT NULL "
    "JOIN segments s ON s.n = p.segment ORDER BY p.n DESC",
    "crawl bigint, sha256 bytea",
)
_LAST_OF = text(
    "SELECT n, fp FROM (SELECT n, fp FROM pages WHERE crawl = :crawl AND n > :after AND n <= :upto ORDER BY n "
    "LIMIT :most) AS few ORDER BY n DESC LIMIT 1"
)
# Both ends of the index: `crawl <> :crawl` would read every page if there is only one crawl.
_ENDS = text("SELECT (SELECT min(crawl) FROM pages), (SELECT max(crawl) FROM pages)")


def page_id(crawl: int, fp: bytes) -> str:
    return f"{crawl}-{fp.hex()}"


def key_of(id: str) -> Key:
    """The key (fingerprint, crawl) of a page id."""
    crawl, _, fp = id.partition("-")
    try:
        number, found = int(crawl), bytes.fromhex(fp)
        if abs(number) > _LARGEST:
            raise ValueError(id)
    except ValueError as error:
        raise UsageError(f"{id!r} is not a page id. Page ids look like 7-0123456789abcdef0123456789abcdef.") from error
    return number, found


def insert(tx: Connection, rows: Iterable[Page], refers_to: Iterable[Key] = ()) -> None:
    """Write pages, and count their bytes as committed; a page that exists already is not changed.

    `refers_to`: other pages whose bodies these refer to; BodiesGone if one of them is gone. A page whose dead letter
    was replayed is written again, unless other pages refer to its old body.
    """
    fresh = {(page.fp, page.crawl): page for page in rows}
    pages = [fresh[key] for key in sorted(fresh)]
    numbers = commit_bytes(tx, [page.body for page in pages if page.body is not None])
    hold(tx, refers_to, fresh)
    _insert(tx, [_row(page, numbers) for page in pages])


def commit_bytes(tx: Connection, refs: Iterable[BodyRef]) -> dict[str, int]:
    """Count these bytes of their segments as committed; name -> number of each segment."""
    ends: dict[str, int] = {}
    for ref in refs:
        ends[ref.segment] = max(ends.get(ref.segment, 0), ref.offset + ref.length)
    return dict(_commit_segments(tx, sorted(ends.items())))


def _row(page: Page, numbers: Mapping[str, int]) -> Row:
    body = page.body
    place = (None, None, None) if body is None else (numbers[body.segment], body.offset, body.length)
    sha256 = None if page.sha256 is None else bytes.fromhex(page.sha256)
    document = None if page.document is None else page.document.dump()
    return (*_BEFORE(page), sha256, *_AFTER(page), *place, page.same_as, page.request_id, page.truncated, document)


def _page(row: Sequence[Any]) -> Page:
    values = dict(zip(_NAMES, row[:18], strict=True))
    sha256, (segment, offset, length, same_as, request_id, truncated, document) = values["sha256"], row[18:25]
    values |= {"sha256": None if sha256 is None else sha256.hex(), "unchanged": bool(values["unchanged"])}
    values |= {"same_as": same_as, "request_id": request_id, "truncated": bool(truncated)}
    values["document"] = None if document is None else DocumentFacts.load(document)
    body = None if segment is None else BodyRef(segment=segment, offset=offset, length=length)
    return Page(id=page_id(values["crawl"], values["fp"]), body=body, **values)


def get(tx: Connection, crawl: int, fp: bytes) -> Page | None:
    return get_many(tx, [(crawl, fp)]).get((crawl, fp))


def get_many(tx: Connection, keys: Iterable[Key]) -> dict[Key, Page]:
    pages = map(_page, _get(tx, unique_sorted(keys)))
    return {(page.crawl, page.fp): page for page in pages}


def by_id(tx: Connection, id: str) -> Page | None:
    return get(tx, *key_of(id))


def chunk(
    tx: Connection, crawl: int, after: int = 0, limit: int = 500, upto: int | None = None
) -> tuple[list[Page], int]:
    """Pages of a crawl in the order they were committed, after a cursor; and the next cursor."""
    condition, given = "p.crawl = :crawl AND p.n > :after", {"crawl": crawl, "after": after}
    if upto is not None:
        condition, given = f"{condition} AND p.n <= :upto", {**given, "upto": upto}
    found = where(tx, condition, given, "p.n", limit)
    return [page for _, page in found], (found[-1][0] if found else after)


def last_of(tx: Connection, crawl: int, after: int, upto: int, most: int) -> tuple[int, bytes] | None:
    """(number, fingerprint) of the last of the next `most` pages after a cursor; None at the end."""
    found = tx.execute(_LAST_OF, {"crawl": crawl, "after": after, "upto": upto, "most": most}).first()
    return None if found is None else (int(found[0]), bytes(found[1]))


def numbered(tx: Connection, crawl: int, n: int) -> bytes | None:
    """The fingerprint of the crawl's page with that number."""
    found = tx.execute(text("SELECT fp FROM pages WHERE n = :n AND crawl = :crawl"), {"n": n, "crawl": crawl}).first()
    return None if found is None else bytes(found[0])


def where(tx: Connection, condition: str, given: Mapping[str, Any], order: str, limit: int) -> list[tuple[int, Page]]:
    """(number, page) of the pages `p` that meet a condition."""
    query = text(f"SELECT {_FIELDS}, p.n FROM {_FROM} WHERE {condition} ORDER BY {order} LIMIT :limit")
    return [(row[25], _page(row)) for row in tx.execute(query, {**given, "limit": limit})]


def ordered(
    tx: Connection, crawl: int, column: str, after: tuple[Any, int] | None, limit: int
) -> list[tuple[int, Page]]:
    """(number, page) of a crawl by `host` or `fetched_ms`, then by number, after the values of the last one."""
    condition, given = "p.crawl = :crawl", {"crawl": crawl}
    if after is not None:
        condition += f" AND (p.{column}, p.n) > (:value, :n)"
        given |= {"value": after[0], "n": after[1]}
    return where(tx, condition, given, f"p.{column}, p.n", limit)


def versions(tx: Connection, fp: bytes, limit: int) -> list[Page]:
    """The pages of a URL in all crawls, newest first."""
    return [page for _, page in where(tx, "p.fp = :fp", {"fp": fp}, "p.crawl DESC", limit)]


def how_many(tx: Connection, crawl: int | None = None) -> int:
    """Pages of a crawl, or of all."""
    condition, given = ("", {}) if crawl is None else ("WHERE crawl = :crawl", {"crawl": crawl})
    return int(tx.execute(text(f"SELECT count(*) FROM pages {condition}"), given).scalar_one())


def previous(tx: Connection, crawl: int, fps: Iterable[bytes]) -> dict[bytes, Page]:
    """The newest good page of each URL in any other crawl: what a conditional request can name."""
    pages = map(_page, _previous(tx, [(fp, crawl) for fp in unique_sorted(fps)]))
    return {page.fp: page for page in pages}


def any_other(tx: Connection, crawl: int) -> bool:
    """Are there pages of other crawls?"""
    return any(n not in (None, crawl) for n in tx.execute(_ENDS).one())


def find_same(tx: Connection, crawl: int, sha256s: Iterable[str]) -> dict[str, Same]:
    """For each digest the oldest page of the crawl that holds such a body."""
    rows = _same(tx, [(crawl, bytes.fromhex(digest)) for digest in unique_sorted(sha256s)])
    return {
        sha256.hex(): Same(page_id(n, fp), url, fetched_ms, BodyRef(segment=name, offset=offset, length=length))
        for sha256, n, fp, url, fetched_ms, name, offset, length in rows
    }


class BodiesGone(Exception):
    """Pages whose bodies other pages refer to were deleted: write the bodies again."""

    def __init__(self, keys: set[Key]) -> None:
        super().__init__(f"{len(keys)} pages were deleted")
        self.keys = keys


def hold(tx: Connection, keys: Iterable[Key], replaced: Iterable[tuple[bytes, int]] = ()) -> None:
    """Lock these pages until the transaction ends, so that others may refer to their bodies. BodiesGone if one is gone.

    `replaced` (fp, crawl): pages that may be written next. They are locked in the same order.
    """
    wanted = unique_sorted((fp, crawl) for crawl, fp in keys)
    if not wanted:
        return
    locked = _hold(tx, unique_sorted((*wanted, *replaced))) if is_postgresql(tx) else _held(tx, wanted)
    gone = {(crawl, fp) for fp, crawl in wanted} - {(row[1], row[0]) for row in locked}
    if gone:
        raise BodiesGone(gone)


def committed(tx: Connection) -> dict[str, int]:
    """Committed bytes of every segment. Call it only when their writers are known to be gone."""
    if is_postgresql(tx):
        # The last commit of a killed process may still be running: wait for its transaction.
        tx.exec_driver_sql("LOCK TABLE segments IN SHARE MODE")
    return committed_so_far(tx)


def committed_so_far(tx: Connection) -> dict[str, int]:
    """Committed bytes of every segment, which grow while others write. Never more than the segment has on disk."""
    return {row[0]: row[1] for row in tx.exec_driver_sql("SELECT name, bytes FROM segments")}


def refs_in(tx: Connection, names: Iterable[str], table: str = "pages") -> Iterator[tuple[int, BodyRef]]:
    """(number, place) of every row of `pages` or `responses` whose body is in these segments, by segment and offset."""
    for row in _refs[table](tx, [(name,) for name in unique_sorted(names)]):
        yield row[0], BodyRef(segment=row[1], offset=row[2], length=row[3])


def move(tx: Connection, moves: Iterable[tuple[int, BodyRef, BodyRef]], table: str = "pages") -> int:
    """Let rows (number, old place, new place) refer to copies of their bodies; returns how many changed.

    A row whose body has moved since is not changed.
    """
    listed = sorted(moves, key=lambda move: move[0])
    _lock_segments(tx, [(old.segment,) for _, old, _ in listed])
    numbers = commit_bytes(tx, [new for _, _, new in listed])
    _lock_numbered[table](tx, [(n,) for n, _, _ in listed])
    rows = [(n, old.segment, old.offset, numbers[new.segment], new.offset, new.length) for n, old, new in listed]
    return len(_move[table](tx, rows))


def forget_segments(tx: Connection, names: Iterable[str]) -> list[str]:
    """Delete the rows of segments that no page or response refers to; returns their names."""
    names = unique_sorted(names)
    _lock_segments(tx, [(name,) for name in names])
    return [row[0] for row in _forget(tx, [(name,) for name in names])]


_held = Bulk("SELECT p.fp, p.crawl FROM v JOIN pages p ON p.fp = v.fp AND p.crawl = v.crawl", "fp bytea, crawl bigint")
# A deletion locks the page's row, so one of the two waits for the other.
_hold = Bulk(
    "SELECT p.fp, p.crawl FROM v JOIN pages p ON p.fp = v.fp AND p.crawl = v.crawl ORDER BY p.fp, p.crawl "
    "FOR KEY SHARE OF p",
    "fp bytea, crawl bigint",
)
_lock_segments = Lock("segments", "name text")
# By number: the sweeper moves, deletions wait for its lock, and `hold` does not conflict with moving.
_lock_numbered = {table: Lock(table, "n bigint") for table in IN_SEGMENTS}
_refs = {
    table: Bulk(
        "SELECT p.n, s.name, p.body_offset, p.body_length FROM v JOIN segments s ON s.name = v.name "
        f"JOIN {table} p ON p.segment = s.n ORDER BY s.name, p.body_offset",
        "name text",
    )
    for table in IN_SEGMENTS
}
_move = {
    table: Bulk(
        f"UPDATE {table} SET segment = v.segment, body_offset = v.body_offset, body_length = v.body_length "
        f"FROM v JOIN segments s ON s.name = v.old WHERE {table}.n = v.n AND {table}.segment = s.n "
        f"AND {table}.body_offset = v.old_offset RETURNING {table}.n",
        "n bigint, old text, old_offset bigint, segment bigint, body_offset bigint, body_length bigint",
    )
    for table in IN_SEGMENTS
}
_forget = Bulk(
    f"DELETE FROM segments WHERE name IN (SELECT name FROM v) AND NOT {referred('segments.n')} RETURNING name",
    "name text",
)


_RECENT = text(
    "SELECT count(*), min(fetched_ms) FROM "
    "(SELECT fetched_ms FROM pages WHERE crawl = :crawl ORDER BY n DESC LIMIT :most) AS newest "
    "WHERE fetched_ms >= :since_ms"
)


def count_recent(tx: Connection, crawl: int, since_ms: int, most: int) -> tuple[int, int | None]:
    """How many of the newest pages, at most `most`, were fetched since then; and when the first of them was."""
    n, first_ms = tx.execute(_RECENT, {"crawl": crawl, "since_ms": since_ms, "most": most}).one()
    return int(n), None if first_ms is None else int(first_ms)
