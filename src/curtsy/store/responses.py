"""Responses that are not pages: redirects and errors, one row per answered request, with its place in a segment.

A response's id is its fence in hexadecimal digits, as that of a dead letter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from curtsy.core.model import BodyRef
from curtsy.store import pages
from curtsy.store.rows import Bulk, Delete, Insert, unique_sorted

_FIELDS = "p.fence, p.crawl, p.fp, p.host, p.status, p.fetched_ms, s.name, p.body_offset, p.body_length, p.n"
_FROM = "responses p JOIN segments s ON s.n = p.segment"
_insert = Insert(
    "responses",
    "fence",
    "fence bigint, crawl bigint, fp bytea, host text, status int, fetched_ms bigint, segment bigint, "
    "body_offset bigint, body_length bigint",
)
_stored = Bulk("SELECT p.fence FROM v JOIN responses p ON p.fence = v.fence", "fence bigint")
delete = Delete("responses", "n bigint")


class Response(NamedTuple):
    """A stored response that is not a page."""

    fence: int
    crawl: int
    fp: bytes
    host: str
    status: int
    fetched_ms: int
    body: BodyRef

    @property
    def id(self) -> str:
        return f"{self.fence:x}"


def insert(tx: Connection, rows: Iterable[Response]) -> None:
    """Write responses, and count their bytes as committed; a repeated transaction changes nothing."""
    fresh = sorted(rows)
    if not fresh:
        return
    numbers = pages.commit_bytes(tx, [row.body for row in fresh])
    _insert(tx, [(*row[:6], numbers[row.body.segment], row.body.offset, row.body.length) for row in fresh])


def where(
    tx: Connection, condition: str, given: Mapping[str, Any], order: str, limit: int
) -> list[tuple[int, Response]]:
    """(number, response) of the responses `p` that meet a condition."""
    query = text(f"SELECT {_FIELDS} FROM {_FROM} WHERE {condition} ORDER BY {order} LIMIT :limit")
    return [(row[9], _response(row)) for row in tx.execute(query, {**given, "limit": limit})]


def _response(row: Sequence[Any]) -> Response:
    fence, crawl, fp, host, status, fetched_ms, segment, offset, length, _ = row
    place = BodyRef(segment=segment, offset=offset, length=length)
    return Response(fence, crawl, bytes(fp), host, status, fetched_ms, place)


def chunk(
    tx: Connection, crawl: int, after: int = 0, limit: int = 500, upto: int | None = None
) -> tuple[list[Response], int]:
    """Responses of a crawl in the order they were committed, after a cursor; and the next cursor."""
    condition, given = "p.crawl = :crawl AND p.n > :after", {"crawl": crawl, "after": after}
    if upto is not None:
        condition, given = f"{condition} AND p.n <= :upto", {**given, "upto": upto}
    found = where(tx, condition, given, "p.n", limit)
    return [response for _, response in found], (found[-1][0] if found else after)


def any_of(tx: Connection, crawl: int) -> bool:
    """Whether the crawl has a response."""
    query = text("SELECT EXISTS (SELECT 1 FROM responses WHERE crawl = :crawl)")
    return bool(tx.execute(query, {"crawl": crawl}).scalar())


def how_many(tx: Connection, crawl: int) -> int:
    return int(tx.execute(text("SELECT count(*) FROM responses WHERE crawl = :crawl"), {"crawl": crawl}).scalar_one())


def numbered(tx: Connection, crawl: int, n: int) -> bytes | None:
    """The fingerprint of the crawl's response with that number."""
    found = where(tx, "p.n = :n AND p.crawl = :crawl", {"n": n, "crawl": crawl}, "p.n", 1)
    return found[0][1].fp if found else None


def by_id(tx: Connection, id: str) -> Response | None:
    """The response with an id of at most 16 hexadecimal digits."""
    found = where(tx, "p.fence = :fence", {"fence": int(id, 16)}, "p.n", 1)
    return found[0][1] if found else None


def newest(tx: Connection, fp: bytes, crawl: int | None = None) -> Response | None:
    """The newest response of a URL, in a crawl or in the newest crawl that has one."""
    condition = "p.fp = :fp AND (p.crawl = :crawl OR :crawl = 0)"
    found = where(tx, condition, {"fp": fp, "crawl": crawl or 0}, "p.crawl DESC, p.fence DESC", 1)
    return found[0][1] if found else None


def stored(tx: Connection, fences: Iterable[int]) -> set[int]:
    """The leases among these whose response is stored."""
    return {int(row[0]) for row in _stored(tx, [(fence,) for fence in unique_sorted(fences)])}
