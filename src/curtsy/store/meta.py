"""Small values of the deployment: the epoch counter, the clean flag, the unit of politeness, the layout."""

from __future__ import annotations

from sqlalchemy import Connection, text

from curtsy.core.errors import StoreUnavailable

#: a fence is 23 bits of epoch and 40 bits of counter
MAX_EPOCH = 2**23 - 1

_GET = text("SELECT value FROM meta WHERE key = :key")
_SET = text(
    "INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_KEEP = text("INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO NOTHING")
_CLEAR = text("DELETE FROM meta WHERE key = :key")
_ADD = text(
    "INSERT INTO meta (key, value) VALUES (:key, :by) ON CONFLICT (key) DO UPDATE "
    "SET value = CAST(CAST(meta.value AS BIGINT) + CAST(excluded.value AS BIGINT) AS TEXT) RETURNING value"
)


def get(tx: Connection, key: str) -> str | None:
    found = tx.execute(_GET, {"key": key}).scalar()
    return None if found is None else str(found)


def put(tx: Connection, key: str, value: str) -> None:
    tx.execute(_SET, {"key": key, "value": value})


def keep(tx: Connection, key: str, value: str) -> str:
    """Set the value unless the key exists; returns the stored value."""
    tx.execute(_KEEP, {"key": key, "value": value})
    return get(tx, key) or value


def clear(tx: Connection, key: str) -> bool:
    """Remove the key; True if it existed."""
    return tx.execute(_CLEAR, {"key": key}).rowcount > 0


def add(tx: Connection, key: str, by: int) -> int:
    """Add to a counter, under its row lock; the new value."""
    return int(tx.execute(_ADD, {"key": key, "by": str(by)}).scalar_one())


def next_epoch(tx: Connection) -> int:
    """A number that was never used before: one sequence over all shards, so that fences are unique and increase."""
    epoch = add(tx, "epoch", 1)
    if epoch > MAX_EPOCH:
        raise StoreUnavailable(f"All {MAX_EPOCH} epochs of this database are used up: start with a new database.")
    return epoch


def current_epoch(tx: Connection) -> int:
    """The current epoch; 0 before the first."""
    return int(get(tx, "epoch") or 0)
