"""Overwrites records that no row refers to any more, as `erasures` says; a segment without any such row is deleted.

It overwrites the response with the request and metadata before it. Their start is stored before the first byte is
overwritten: after a kill, the next process overwrites the same bytes without reading them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import Connection, text

from curtsy.core.errors import Damaged
from curtsy.core.failpoints import point
from curtsy.core.model import BodyRef
from curtsy.core.observe import log
from curtsy.store import pages, warc
from curtsy.store.engine import Store
from curtsy.store.objects import ObjectSegments
from curtsy.store.rows import Bulk, Delete
from curtsy.store.segments import SegmentStore

#: bytes overwritten at a time
_AT_ONCE = 64_000_000

_NAMES = text("SELECT DISTINCT segment FROM erasures WHERE segment > :after ORDER BY segment LIMIT 100")
_OF = text("SELECT body_offset, body_length, start FROM erasures WHERE segment = :name ORDER BY body_offset")
_ENDS = text(
    " UNION ".join(
        f"SELECT p.body_offset + p.body_length FROM {table} p JOIN segments s ON s.n = p.segment WHERE s.name = :name"
        for table in pages.IN_SEGMENTS
    )
)
_SEGMENT = text(f"SELECT s.bytes, {pages.referred('s.n')} FROM segments s WHERE s.name = :name")
_begin = Bulk(
    "UPDATE erasures SET start = v.start FROM v WHERE erasures.segment = v.name "
    "AND erasures.body_offset = v.body_offset",
    "name text, body_offset bigint, start bigint",
)
_done = Delete("erasures", "segment text, body_offset bigint")


class _Doomed(NamedTuple):
    offset: int
    length: int
    start: int | None

    @property
    def end(self) -> int:
        return self.offset + self.length


def erase_all(store: Store, segments: SegmentStore) -> int:
    """Carry out every erasure; returns how many segments changed. A failed one does not stop the others."""
    changed, after = 0, ""
    while True:
        with store.read() as tx:
            names = list(tx.execute(_NAMES, {"after": after}).scalars())
        if not names:
            return changed
        for name in names:
            try:
                _erase(store, segments, name)
                changed += 1
            except Damaged as error:
                log("not_erased", level="error", segment=name, error=str(error))
        after = names[-1]


def _erase(store: Store, segments: SegmentStore, name: str) -> None:
    if _delete_whole(store, segments, name):
        return
    with store.read() as tx:
        doomed = _doomed(tx, name)
        ends = sorted({*tx.execute(_ENDS, {"name": name}).scalars(), *(one.end for one in doomed)})
    # Erasures that were already begun come first: their bytes may be incomplete, and no reader can skip over them.
    begun = [one for one in doomed if one.start is not None]
    _overwrite(store, segments, name, begun)
    fresh = [one for one in doomed if one.start is None]
    # An object is requested once, not for every record.
    whole = segments.read_whole(name) if fresh and isinstance(segments, ObjectSegments) else None
    planned = [one._replace(start=_start(segments, name, one, ends, whole)) for one in fresh]
    store.run(_begin, [(name, one.offset, one.start) for one in planned])
    point("delete.planned")
    _overwrite(store, segments, name, planned)


def _doomed(tx: Connection, name: str) -> list[_Doomed]:
    return [_Doomed(*row) for row in tx.execute(_OF, {"name": name})]


def _start(segments: SegmentStore, name: str, one: _Doomed, ends: list[int], whole: bytes | None) -> int:
    """Where the records before the response begin: after the previous known response, or later."""
    place = bisect_right(ends, one.offset)
    known = ends[place - 1] if place else 0
    if known == one.offset:
        return one.offset
    if whole is not None:
        return known + warc.begins(whole[known : one.offset])
    between = segments.read_bytes(BodyRef(segment=name, offset=known, length=one.offset - known))
    return known + warc.begins(between)


def _overwrite(store: Store, segments: SegmentStore, name: str, doomed: list[_Doomed]) -> None:
    for some in _groups(doomed):
        parts = [(one.start, warc.blank(one.end - one.start)) for one in some if one.start is not None]
        segments.overwrite(name, parts)
        point("delete.erased")
        store.run(_done, [(name, one.offset) for one in some])


def _groups(doomed: list[_Doomed]) -> Iterator[list[_Doomed]]:
    """In groups that fit into memory."""
    group: list[_Doomed] = []
    size = 0
    for one in doomed:
        if group and size + one.length > _AT_ONCE:
            yield group
            group, size = [], 0
        group.append(one)
        size += one.length
    if group:
        yield group


def _delete_whole(store: Store, segments: SegmentStore, name: str) -> bool:
    """A segment that no row refers to is deleted as a whole, unless a commit may be about to refer to it."""
    with store.read() as tx:
        row = tx.execute(_SEGMENT, {"name": name}).first()
    if row is not None:
        committed, referred = row
        # Bytes after the committed ones may belong to a running commit.
        if referred or segments.size_at_rest(name) != committed:
            return False
        if name not in store.run(pages.forget_segments, [name]):
            return False
    segments.delete([name])
    store.run(_done.where, "segment = :name", {"name": name})
    log("segments_deleted", segments=1)
    return True
