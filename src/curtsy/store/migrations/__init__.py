"""Bringing the schema up to date. When it already is, Alembic is not even imported: start-up time matters."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from curtsy.errors import SchemaMismatch

#: every revision, oldest first; the last one is what this program needs
REVISIONS = ("0001",)
HEAD = REVISIONS[-1]

Transaction = Callable[[], AbstractContextManager[Connection]]
Lock = Callable[[str], AbstractContextManager[None]]


def version(tx: Connection) -> str | None:
    """The revision of the database, or None if it has no tables of ours."""
    if not inspect(tx).has_table("alembic_version"):
        return None
    found = tx.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def migrate(begin: Transaction, read: Transaction, lock: Lock) -> None:
    """Create or upgrade the tables if needed, one process at a time, all in one transaction."""
    with read() as tx:
        if _is_current(tx):
            return
    with lock("migrate"), begin() as tx:
        if not _is_current(tx):
            _upgrade(tx)


def _is_current(tx: Connection) -> bool:
    found = version(tx)
    if found is not None and found not in REVISIONS:
        raise SchemaMismatch(
            f"The database has schema {found}, this program knows schemas up to {HEAD}: it was made by a newer Curtsy. "
            "Upgrade this program (pip install --upgrade curtsy), or use another database."
        )
    return found == HEAD


def _upgrade(tx: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = tx
    command.upgrade(config, HEAD)
