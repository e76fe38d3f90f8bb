"""Schemas and rubrics that crawls used, by their hash. They are never deleted, because records may need them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, text

from curtsy.core.model import Definition
from curtsy.store.rows import Insert

_keep = Insert("definitions", "hash", "hash text, kind text, name text, body text")
_GET = text("SELECT hash, kind, name, body FROM definitions WHERE hash = :hash")


def keep(tx: Connection, found: Iterable[Definition]) -> None:
    fresh = {one.hash: one for one in found}
    _keep(tx, [(one.hash, one.kind, one.name, one.body) for _, one in sorted(fresh.items())])


def get(tx: Connection, hash: str) -> Definition | None:
    row = tx.execute(_GET, {"hash": hash}).first()
    return None if row is None else Definition(hash=row[0], kind=row[1], name=row[2], body=row[3])
