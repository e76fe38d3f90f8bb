"""The sweeper: merges small objects, deletes segments that no page or response refers to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection

from curtsy.core.errors import Damaged
from curtsy.core.model import BodyRef
from curtsy.core.observe import log
from curtsy.store import pages
from curtsy.store.engine import Store
from curtsy.store.objects import ObjectSegments
from curtsy.store.rows import Bulk
from curtsy.store.segments import SegmentStore

DAY_S = 86_400.0

_unreferenced = Bulk(
    "SELECT v.name FROM v WHERE NOT EXISTS "
    f"(SELECT 1 FROM segments s WHERE s.name = v.name AND {pages.referred('s.n')})",
    "name text",
)


def delete_unreferenced(
    store: Store, segments: SegmentStore, owner: str = "", older_than_s: float = DAY_S
) -> list[str]:
    """Delete old segments of `owner` that no row refers to; their names. A young one may belong to a running commit.

    Segments of another store in the same place have the name of another owner, and stay.
    """
    names = [name for name, _ in segments.older_than(older_than_s) if f"-{owner}" in name]

    def forget(tx: Connection) -> list[str]:
        found = [row[0] for row in _unreferenced(tx, [(name,) for name in names])]
        pages.forget_segments(tx, found)
        return found

    doomed = store.run(forget)
    segments.delete(doomed)
    if doomed:
        log("segments_deleted", segments=len(doomed))
    return doomed


def tidy(store: Store, segments: SegmentStore, owner: str) -> None:
    """Periodic work, by one process at a time."""
    with store.lock("sweep"):
        if isinstance(segments, ObjectSegments):
            merge_small(store, segments)
        delete_unreferenced(store, segments, owner)


def merge_small(
    store: Store,
    segments: ObjectSegments,
    older_than_s: float = 60.0,
    small_bytes: int = 16_000_000,
    merged_bytes: int = 64_000_000,
) -> int:
    """Copy small objects into larger ones and move the references to them, each in one transaction; how many objects.

    The old objects stay for readers that still have a reference; `delete_unreferenced` deletes them a day later.
    """
    with store.read() as tx:
        # Records that will be overwritten are not copied: the copy would not be overwritten.
        unspoilt = "SELECT name FROM segments WHERE name NOT IN (SELECT segment FROM erasures)"
        known = set(tx.exec_driver_sql(unspoilt).scalars())
    small = [(name, size) for name, size in segments.older_than(older_than_s) if size < small_bytes and name in known]
    merged = 0
    for group in _groups(small, merged_bytes):
        merged += _merge(store, segments, group)
    return merged


def _groups(small: Sequence[tuple[str, int]], merged_bytes: int) -> Iterator[list[str]]:
    group: list[str] = []
    total = 0
    for name, size in small:
        if group and total + size > merged_bytes:
            yield group
            group, total = [], 0
        group.append(name)
        total += size
    if len(group) > 1:
        yield group


def _merge(store: Store, segments: ObjectSegments, names: Sequence[str]) -> int:
    target = segments.merged_name()
    starts: dict[str, int] = {}
    parts: list[bytes] = []
    length = 0
    for name in names:
        try:
            data = segments.read_whole(name)
        except Damaged:
            continue
        starts[name] = length
        parts.append(data)
        length += len(data)
    # Gzip members one after the other are one WARC file.
    segments.put(target, b"".join(parts))

    def move(tx: Connection) -> int:
        moved = 0
        for table in pages.IN_SEGMENTS:
            moves = [
                (n, old, BodyRef(segment=target, offset=old.offset + starts[old.segment], length=old.length))
                for n, old in pages.refs_in(tx, starts, table)
            ]
            moved += pages.move(tx, moves, table)
        pages.forget_segments(tx, starts)  # `move` has locked their rows
        return moved

    moved = store.run(move)
    log("segments_merged", segments=len(starts), bodies=moved, into=target)
    return len(starts)
