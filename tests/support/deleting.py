"""Carries out every deletion that a store has recorded. As a program it takes a store URL and a segment folder."""

from __future__ import annotations

import sys

import stored

from curtsy.store import deletion
from curtsy.store.engine import Store
from curtsy.store.erasure import erase_all
from curtsy.store.segment_places import open_segments
from curtsy.store.segments import SegmentStore

NOW_MS = stored.BEGUN_MS + 86_400_000


def finish(store: Store, segments: SegmentStore) -> None:
    with store.read() as tx:
        noted = deletion.pending(tx)
    for one in noted:
        assert deletion.carry_out(store, segments, one, NOW_MS, lambda: False)
    erase_all(store, segments)
    with store.read() as tx:
        assert deletion.pending(tx) == []
        assert tx.exec_driver_sql("SELECT count(*) FROM erasures").scalar() == 0


if __name__ == "__main__":
    with Store.open(sys.argv[1]) as store:
        finish(store, open_segments(sys.argv[2], 10**9))
