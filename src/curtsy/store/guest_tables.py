"""Tables of guests: crawlers of another make whose requests are kept here."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Index, Integer, LargeBinary, Table, Text, UniqueConstraint, text

from curtsy.store.tables import Serial, _may, _need, _partial, metadata

# One crawl of a guest; of one name there is one that runs.
guest_runs = Table(
    "guest_runs",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    _need("name", Text),
    _need("state", Text, "'running'"),  # running | finished
    _need("started_ms", BigInteger),
    _may("ended_ms", BigInteger),
    Index("guest_runs_running", "name", unique=True, sqlite_where=text("state = 'running'"),
          info={"where": "state = 'running'"}),
)  # fmt: skip

guest_requests = Table(
    "guest_requests",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    _need("run", BigInteger),
    _need("key", LargeBinary),  # what makes it the same request as another
    _need("host", Text),  # unit of politeness
    _need("url", Text),
    _need("rank", BigInteger),  # smaller goes first
    _need("payload", Text),  # the request as its crawler wrote it
    _need("state", Text, "'open'"),  # open | held | failed | done
    _need("holder", Text, "''"),
    _need("held_until_ms", BigInteger, "0"),
    _need("crashes", Integer, "0"),
    _need("cause", Text, "''"),
    _need("detail", Text, "''"),
    _need("at_ms", BigInteger),
    UniqueConstraint("run", "key", name="guest_requests_key"),
    _partial("guest_requests_open", "run", "host", "rank", "n", where="state = 'open'"),
    _partial("guest_requests_held", "run", "held_until_ms", where="state = 'held'"),
    _partial("guest_requests_failed", "run", "at_ms", "n", where="state = 'failed'"),
)
