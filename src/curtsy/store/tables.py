"""Tables that queries name as Python objects, with the types of their columns.

The migrations define all tables, with keys and indexes; docs/reference/database.md lists them.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Float, Integer, TableClause, Text, column, table

_TYPES = {"bigint": BigInteger, "boolean": Boolean, "float": Float, "int": Integer, "text": Text}


def _table(name: str, columns: str) -> TableClause:
    """`columns` as in `rows.Bulk`: `n bigint, id text`."""
    pairs = (one.split() for one in columns.split(", "))
    return table(name, *(column(word, _TYPES[kind]()) for word, kind in pairs))


crawls = _table(
    "crawls",
    "n bigint, id text, request_id text, state text, lane text, scope text, version int, include text, exclude text, "
    "max_pages bigint, max_depth int, delay_s float, per_host int, render text, sitemaps boolean, cookies boolean, "
    "created_ms bigint, started_ms bigint, ended_ms bigint, reason text, pages bigint, settings text, proxy_pool text, "
    "schema text, schedule bigint, webhook text, webhook_secret text, schema_hash text, per text, rubric text, "
    "rubric_hash text, llm text, verify boolean, judge_model text, name text, tags text, owner text",
)
crawl_members = _table("crawl_members", "crawl bigint, member text")
crawl_counts = _table("crawl_counts", "crawl bigint, state text, reason text, n bigint")
api_keys = _table(
    "api_keys",
    "id text, name text, digest text, scopes text, created_ms bigint, expires_ms bigint, revoked_ms bigint, "
    "used_ms bigint",
)
idempotency = _table(
    "idempotency",
    "caller text, key text, crawl text, received bigint, digest text, complete boolean, holder text, "
    "held_until_ms bigint, created_ms bigint",
)
audit_log = _table(
    "audit_log",
    "n bigint, at_ms bigint, key_id text, address text, method text, path text, status int, crawl text, "
    "request_id text",
)
records = _table(
    "records",
    "n bigint, crawl bigint, subject text, schema_hash text, ordinal int, schema text, url text, data text, "
    "scores text, low_confidence boolean, created_ms bigint, request_id text, kind text, version int, status text, "
    "confidence text, fields text, withheld text, rungs text, usage text, failure text, as_of bigint, "
    "reviewed_ms bigint, contradicted text",
)
reviews = _table(
    "reviews",
    "n bigint, record bigint, crawl bigint, decision text, who text, at_ms bigint, note text, correction text, "
    "before text, golden boolean, request_id text, undo text, batch text",
)
schedules = _table(
    "schedules",
    "n bigint, id text, name text, cron text, zone text, crawl text, seeds text, overlap text, enabled boolean, "
    "next_ms bigint, keep int, created_ms bigint, request_id text, owner text",
)
runs = _table(
    "runs",
    "schedule bigint, planned_ms bigint, state text, crawl_id text, crawl bigint, note text, at_ms bigint, "
    "lease_ms bigint",
)
