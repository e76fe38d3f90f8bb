"""Undo a decision about a record.

A decision stores what it replaces. Undoing it restores that and adds an entry `undo` to the list of decisions. No entry
is changed or deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from curtsy.core.errors import UnknownRecord, UsageError, WrongState
from curtsy.core.observe import log
from curtsy.core.record import Record, Review
from curtsy.store import records, reviews
from curtsy.store.engine import Store

#: fields of a record that a decision changes
_CHANGED = (
    "status", "data", "fields", "withheld", "contradicted", "scores", "rungs", "low_confidence", "reviewed_ms"
)  # fmt: skip
_LISTS = ("fields", "withheld", "contradicted")


def snapshot(record: Record, replaced: Sequence[tuple[int, str]]) -> dict[str, Any]:
    """What a decision replaces: the record, and (number, status) of the older versions that it replaces."""
    return {name: getattr(record, name) for name in _CHANGED} | {"replaced": [list(one) for one in replaced]}


def last_decision(history: Sequence[Review]) -> Review | None:
    """The valid decision: the newest one that was not undone."""
    undone = 0
    for one in reversed(history):
        if one.decision == "undo":
            undone += 1
        elif undone:
            undone -= 1
        else:
            return one
    return None


def undo(
    store: Store, n: int, who: str, now_ms: int, *, note: str = "", request_id: str = "", batch: str = ""
) -> Record:
    """The record as it was before its last decision. With `batch`, only if that decision belongs to the batch."""
    if not who.strip():
        raise UsageError("To undo a decision needs the name of the reviewer.")
    made: Record = store.run(_undo, n, who.strip(), now_ms, note, request_id, batch)
    log("review_undone", level="info", record=n, who=who)
    return made


def _undo(tx: Any, n: int, who: str, now_ms: int, note: str, request_id: str, batch: str) -> Record:
    record = records.get(tx, n, lock=True)
    if record is None:
        raise UnknownRecord(f"Unknown record: {n}. `curtsy review list` lists the records that wait for a review.")
    last = last_decision(reviews.of(tx, n))
    if last is None or (batch and last.batch != batch):
        raise WrongState(f"Record {n} has no decision to undo{' in this batch' if batch else ''}.")
    if last.undo is None:
        raise WrongState(f"The decision about record {n} is older than this function and cannot be undone.")
    if record.status == "superseded":
        raise WrongState(f"Record {n} was superseded by a later version. Review that version.")
    kept = {"contradicted": (), **last.undo}  # decisions of earlier versions do not have it
    before: dict[str, Any] = {name: tuple(kept[name]) if name in _LISTS else kept[name] for name in _CHANGED}
    restored = replace(record, **before)
    records.restored(tx, restored, [(int(number), str(status)) for number, status in last.undo["replaced"]])
    reviews.add(
        tx,
        Review(
            record=n, crawl=record.crawl, decision="undo", who=who, at_ms=now_ms, note=note, before=record.data,
            request_id=request_id, batch=batch,
        ),
    )  # fmt: skip
    return restored
