"""Which crawl an Idempotency-Key created, and how much of its body is stored.

A body arrives in parts. After each part the row says how many bytes are stored and what their digest is, so a broken
upload continues where it broke, and a different body under the same key is detected. One request holds the row.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, select, text, tuple_, update

from curtsy.store.tables import idempotency

#: keys are remembered this long
KEPT_MS = 24 * 3_600_000
#: a request that stores nothing for this long loses its hold
HELD_MS = 15_000

#: the column with the digest of the crawl's options
_OPTIONS = "wishes"
# The holder's row is locked by the update, so of two requests one sees the other's hold.
_TAKE = text(
    f"INSERT INTO idempotency (caller, key, crawl, {_OPTIONS}, holder, held_until_ms, created_ms) "
    f"VALUES (:caller, :key, :crawl, :{_OPTIONS}, :holder, :until_ms, :now_ms) ON CONFLICT (caller, key) DO UPDATE SET "
    "holder = CASE WHEN idempotency.held_until_ms <= :now_ms THEN excluded.holder ELSE idempotency.holder END, "
    "held_until_ms = CASE WHEN idempotency.held_until_ms <= :now_ms THEN excluded.held_until_ms "
    "ELSE idempotency.held_until_ms END "
    f"RETURNING crawl, {_OPTIONS}, received, digest, complete, holder"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """The state of the request with a key."""

    #: id of its crawl
    crawl: str
    #: digest of the crawl's options
    wishes: str
    #: bytes of the body whose seeds are stored, and their digest
    received: int
    digest: str
    complete: bool
    holder: str


def take(tx: Connection, caller: str, key: str, *, crawl: str, wishes: str, holder: str, now_ms: int) -> Submission:
    """The row of this key, created if it does not exist. It is ours if its holder is `holder`."""
    old = idempotency.c.created_ms < now_ms - KEPT_MS
    tx.execute(delete(idempotency).where(old, idempotency.c.caller == caller, idempotency.c.key == key))
    values = {"caller": caller, "key": key, "crawl": crawl, "wishes": wishes, "holder": holder}
    row = tx.execute(_TAKE, values | {"now_ms": now_ms, "until_ms": now_ms + HELD_MS}).one()
    # Rows of other keys come after our own, and without waiting for processes that delete or take them.
    others = select(idempotency.c.caller, idempotency.c.key).where(old).with_for_update(skip_locked=True)
    tx.execute(delete(idempotency).where(tuple_(idempotency.c.caller, idempotency.c.key).in_(others)))
    return Submission(
        crawl=row.crawl, wishes=row.wishes, received=int(row.received), digest=row.digest,
        complete=bool(row.complete), holder=row.holder,
    )  # fmt: skip


def stored(
    tx: Connection, caller: str, key: str, holder: str, *, received: int, digest: str, complete: bool, now_ms: int
) -> bool:
    """Store how much of the body is stored. False if another request holds the row now: this one must end."""
    values = {"received": received, "digest": digest, "complete": complete, "held_until_ms": now_ms + HELD_MS}
    return tx.execute(update(idempotency).where(*_held(caller, key, holder)).values(values)).rowcount > 0


def release(tx: Connection, caller: str, key: str, holder: str) -> None:
    """The request has ended; the next one may continue at once."""
    tx.execute(update(idempotency).where(*_held(caller, key, holder)).values(held_until_ms=0))


def forget(tx: Connection, caller: str, key: str, holder: str) -> None:
    """The request created nothing: the key is free again."""
    tx.execute(delete(idempotency).where(*_held(caller, key, holder)))


def _held(caller: str, key: str, holder: str) -> tuple[ColumnElement[bool], ...]:
    c = idempotency.c
    return c.caller == caller, c.key == key, c.holder == holder
