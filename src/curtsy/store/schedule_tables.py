"""Tables of scheduled crawls."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Identity,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from curtsy.store.tables import Serial, may, metadata, need, partial

schedules = Table(
    "schedules",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("id", Text),
    need("name", Text),
    need("cron", Text),
    need("zone", Text),
    need("crawl", Text),  # JSON: the options of each run
    need("seeds", Text),  # JSON list
    need("overlap", Text, "'skip'"),  # skip | queue
    need("enabled", Boolean, "true"),
    may("next_ms", BigInteger),
    may("keep", Integer),
    need("created_ms", BigInteger),
    need("request_id", Text, "''"),
    may("owner", Text),
    UniqueConstraint("id", name="schedules_id"),
    UniqueConstraint("name", name="schedules_name"),
)

runs = Table(
    "runs",
    metadata,
    need("schedule", BigInteger),
    need("planned_ms", BigInteger),
    need("state", Text),  # planned | queued | started | skipped
    need("crawl_id", Text),  # assigned before the crawl is created, so that it is created once
    may("crawl", BigInteger),
    need("note", Text, "''"),
    need("at_ms", BigInteger),
    need("lease_ms", BigInteger, "0"),
    PrimaryKeyConstraint("schedule", "planned_ms"),
    partial("runs_waiting", "state", "planned_ms", where="state IN ('planned', 'queued')"),
    sqlite_with_rowid=False,
)
