"""All tables of the database, for migrations and their tests."""

from __future__ import annotations

from sqlalchemy import MetaData, text

from curtsy.store import external_tables, record_tables, schedule_tables, template_tables  # noqa: F401 - tables
from curtsy.store.tables import metadata, requests


def with_postgresql() -> MetaData:
    """The tables with PostgreSQL's options. Naming them loads its dialect, which takes 30 ms and is not needed on
    SQLite.
    """
    requests.dialect_options["postgresql"]["partition_by"] = "RANGE (start_ms)"
    for table in metadata.tables.values():
        for index in table.indexes:
            if "where" in index.info:
                index.dialect_options["postgresql"]["where"] = text(index.info["where"])
    return metadata
