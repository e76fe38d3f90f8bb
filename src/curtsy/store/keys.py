"""API keys: the secret is shown once and stored as its digest. It has 256 random bits, so a plain hash is enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, update

from curtsy.store.tables import api_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    id: str
    name: str
    #: sha256 of the secret, hexadecimal
    digest: str
    scopes: tuple[str, ...]
    created_ms: int
    expires_ms: int | None = None
    revoked_ms: int | None = None
    #: to the minute; None: never
    used_ms: int | None = None

    def is_valid(self, now_ms: int) -> bool:
        return self.revoked_ms is None and (self.expires_ms is None or now_ms < self.expires_ms)


def create(tx: Connection, key: ApiKey) -> None:
    values = {column.name: getattr(key, column.name) for column in api_keys.columns}
    tx.execute(api_keys.insert().values(values | {"scopes": ",".join(key.scopes)}))


def get(tx: Connection, id: str) -> ApiKey | None:
    row = tx.execute(select(api_keys).where(api_keys.c.id == id)).first()
    return None if row is None else _key(row)


def list_all(tx: Connection) -> list[ApiKey]:
    """Newest first."""
    return [_key(row) for row in tx.execute(select(api_keys).order_by(api_keys.c.created_ms.desc(), api_keys.c.id))]


def revoke(tx: Connection, id: str, now_ms: int) -> bool:
    """False if there is no such key; a second time changes nothing."""
    changed = update(api_keys).where(api_keys.c.id == id, api_keys.c.revoked_ms.is_(None)).values(revoked_ms=now_ms)
    return tx.execute(changed).rowcount > 0 or get(tx, id) is not None


def mark_used(tx: Connection, id: str, now_ms: int) -> None:
    tx.execute(update(api_keys).where(api_keys.c.id == id).values(used_ms=now_ms))


def _key(row: Any) -> ApiKey:
    return ApiKey(**{**row._mapping, "scopes": tuple(row.scopes.split(","))})
