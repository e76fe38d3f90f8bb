"""Browser sessions that were signed out, until they would have expired. Other sessions are not stored."""

from __future__ import annotations

from sqlalchemy import Connection, text

from curtsy.store import meta

_PREFIX = "signout:"
_EXPIRED = text(f"DELETE FROM meta WHERE key LIKE '{_PREFIX}%' AND CAST(value AS BIGINT) <= :now")


def end(tx: Connection, nonce: str, expires_s: int, now_s: int) -> None:
    """End a session, and forget those that have expired."""
    tx.execute(_EXPIRED, {"now": now_s})
    meta.put(tx, _PREFIX + nonce, str(expires_s))


def has_ended(tx: Connection, nonce: str) -> bool:
    return meta.get(tx, _PREFIX + nonce) is not None
