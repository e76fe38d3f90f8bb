"""Creates and upgrades the database schema.

A revision is the SQL of `versions/<revision>_<database>.sql`. A new SQLite database is created from
`versions/sqlite.sql`, which `make schema` makes from all revisions: most crawls begin with a new database. The table
`alembic_version` has the revision of the database; its name is that of the library that older versions used.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from curtsy.core.errors import SchemaMismatch

#: every revision, oldest first; the last one is what this program needs
REVISIONS = tuple(f"{number:04}" for number in range(1, 27))
HEAD = REVISIONS[-1]
_VERSIONS = Path(__file__).parent / "versions"
#: what all revisions make together on SQLite
WHOLE = _VERSIONS / "sqlite.sql"

Transaction = Callable[[], AbstractContextManager[Connection]]
Lock = Callable[[str], AbstractContextManager[None]]


def version(tx: Connection) -> str | None:
    """The revision of the database, or None if it has no tables of Curtsy."""
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
    for statement in _lacking(version(tx), tx.dialect.name):
        tx.exec_driver_sql(statement)
    tx.exec_driver_sql(
        "CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL, "
        "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    tx.exec_driver_sql("DELETE FROM alembic_version")
    tx.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


def _lacking(found: str | None, database: str) -> list[str]:
    """The statements that bring a database of this revision up to date."""
    if found is None and database == "sqlite":
        return _statements(WHOLE)
    return [one for revision in REVISIONS if revision > (found or "") for one in statements(revision, database)]


def statements(revision: str, database: str) -> list[str]:
    """The frozen statements of a revision for `sqlite` or `postgresql`."""
    return _statements(_VERSIONS / f"{revision}_{database}.sql")


def _statements(script: Path) -> list[str]:
    return [statement for statement in script.read_text("utf-8").split(";\n") if statement.strip()]
