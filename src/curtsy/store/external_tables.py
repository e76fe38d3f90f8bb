"""Tables of external clients: other crawlers, such as Scrapy spiders, that keep their requests here."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Index, Integer, LargeBinary, Table, Text, UniqueConstraint, text

from curtsy.store.tables import Serial, may, metadata, need, partial

# One run of an external client; at most one per name is running.
external_runs = Table(
    "guest_runs",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("name", Text),
    need("state", Text, "'running'"),  # running | finished
    need("started_ms", BigInteger),
    may("ended_ms", BigInteger),
    Index("guest_runs_running", "name", unique=True, sqlite_where=text("state = 'running'"),
          info={"where": "state = 'running'"}),
)  # fmt: skip

external_requests = Table(
    "guest_requests",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("run", BigInteger),
    need("key", LargeBinary),  # what makes it the same request as another
    need("host", Text),  # unit of politeness
    need("url", Text),
    need("rank", BigInteger),  # smaller goes first
    need("payload", Text),  # the request as its crawler wrote it
    need("state", Text, "'open'"),  # open | held | failed | done
    need("holder", Text, "''"),
    need("held_until_ms", BigInteger, "0"),
    need("crashes", Integer, "0"),
    need("cause", Text, "''"),
    need("detail", Text, "''"),
    need("at_ms", BigInteger),
    UniqueConstraint("run", "key", name="guest_requests_key"),
    partial("guest_requests_open", "run", "host", "rank", "n", where="state = 'open'"),
    partial("guest_requests_held", "run", "held_until_ms", where="state = 'held'"),
    partial("guest_requests_failed", "run", "at_ms", "n", where="state = 'failed'"),
)
