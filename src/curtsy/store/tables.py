"""The tables, as the newest migration leaves them (a test compares the two).

Kept lean on the hot path: no foreign keys, short rows, few indexes.

    meta            key -> value: epoch and seq counters, clean flag, politeness unit, layout
    crawls          one row per crawl           crawl_members  its hosts or domains
    crawl_counts    ledger: settled rows by state and reason; ('open', '') is the number ever added
    queues          (crawl, host): what the frontier has to load
    urls            every URL of a crawl, settled once
    segments        WARC files and how many of their bytes are committed
    pages, requests, failures, hosts, robots
    schedules       cron + crawl                runs           (schedule, planned time) and its result
    outbox          pending work                results        of stages, until the record is stored
    definitions     schemas and rubrics that crawls used, by hash
    records         structured items of pages and sites; their versions
    sources         texts that their evidence cites      citations      record -> pages it was made from
    reviews         decisions of people about records
    llm_cache       answers of language models           llm_usage      usage of each crawl
    llm_field_usage usage by schema and field
    templates       pages of one kind; template_pages: which ones        selectors      learned for them
    llm_questions   questions that wait for a batch      llm_batches    batches of model servers
    deletions       pending deletions           erasures       records of segments to overwrite
    api_keys        keys of the HTTP API        idempotency    which crawl an Idempotency-Key made
    guest_runs, guest_requests                  requests of Scrapy spiders

Stages and records are in record_tables, templates in template_tables, schedules in schedule_tables, external clients in
external_tables.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

#: SQLite's rowid must be declared INTEGER
Serial = BigInteger().with_variant(Integer, "sqlite")


def need(name: str, kind: Any, default: str | None = None) -> Column[Any]:
    return Column(name, kind, nullable=False, server_default=None if default is None else text(default))


def may(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind)


def partial(name: str, *columns: str, where: str) -> Index:
    return Index(name, *columns, sqlite_where=text(where), info={"where": where})


meta = Table("meta", metadata, Column("key", Text, primary_key=True), need("value", Text))

crawls = Table(
    "crawls",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("id", Text),
    need("request_id", Text),
    need("state", Text),
    need("lane", Text),
    need("scope", Text),
    need("version", Integer, "0"),
    need("include", Text),  # JSON list, as `exclude`
    need("exclude", Text),
    may("max_pages", BigInteger),
    may("max_depth", Integer),
    may("delay_s", Float),
    may("per_host", Integer),
    need("render", Text),
    need("sitemaps", Boolean),
    need("cookies", Boolean),
    need("created_ms", BigInteger),
    may("started_ms", BigInteger),
    may("ended_ms", BigInteger),
    may("reason", Text),
    need("pages", BigInteger, "0"),
    need("settings", Text, "'{}'"),  # JSON: the settings of the command, for --resume and for display
    may("proxy_pool", Text),
    may("schema", Text),
    may("schedule", BigInteger),
    may("webhook", Text),
    may("webhook_secret", Text),
    may("schema_hash", Text),
    may("per", Text),  # page | site
    may("rubric", Text),
    may("rubric_hash", Text),
    may("llm", Text),
    may("verify", Boolean),
    may("judge_model", Text),
    may("name", Text),
    need("tags", Text, "'[]'"),  # JSON list
    may("owner", Text),  # id of the API key that made it
    UniqueConstraint("id", name="crawls_id"),
    partial("crawls_schedule", "schedule", "n", where="schedule IS NOT NULL"),
)

crawl_members = Table(
    "crawl_members",
    metadata,
    need("crawl", BigInteger),
    need("member", Text),
    PrimaryKeyConstraint("crawl", "member"),
    sqlite_with_rowid=False,
)

crawl_counts = Table(
    "crawl_counts",
    metadata,
    need("crawl", BigInteger),
    need("state", Text),
    need("reason", Text),
    need("n", BigInteger),
    PrimaryKeyConstraint("crawl", "state", "reason"),
    sqlite_with_rowid=False,
)

# The last hours, in parts of some seconds: `rates.py`.
crawl_rates = Table(
    "crawl_rates",
    metadata,
    need("crawl", BigInteger),
    need("at_s", BigInteger),
    need("pages", BigInteger),
    need("urls", BigInteger),
    PrimaryKeyConstraint("crawl", "at_s"),
    Index("crawl_rates_at", "at_s"),
    sqlite_with_rowid=False,
)

queues = Table(
    "queues",
    metadata,
    need("crawl", BigInteger),
    need("host", Text),
    need("lane", Text),
    need("next_ms", BigInteger, "0"),
    need("state", Text),  # open | empty | dead
    need("reason", Text, "''"),
    need("added", BigInteger, "0"),  # URLs ever added, for max_urls_per_host
    may("failing_since_ms", BigInteger),
    need("detail", Text, "''"),  # what the first of its failures said
    need("refused", BigInteger, "0"),  # responses 429 and 503 to this crawl
    need("silent", BigInteger, "0"),  # requests of this crawl without a response
    PrimaryKeyConstraint("crawl", "host"),
    Index("queues_host", "host"),
    partial("queues_open", "crawl", "host", where="state = 'open'"),
    partial("queues_waiting", "crawl", "next_ms", "host", where="state = 'open' AND next_ms > 0"),
    partial("queues_dead", "crawl", "host", where="state = 'dead'"),
    partial("queues_failing", "host", "failing_since_ms", where="failing_since_ms IS NOT NULL"),
    sqlite_with_rowid=False,
)

# On SQLite `seq` is the rowid: 35 % less CPU per commit than WITHOUT ROWID on (crawl, fp), because rows are appended
# and only the small unique index is written at random places.
urls = Table(
    "urls",
    metadata,
    Column("seq", Serial, primary_key=True, autoincrement=False),
    need("crawl", BigInteger),
    need("fp", LargeBinary),
    need("host", Text),
    need("url", Text),
    need("kind", Text),
    need("depth", Integer),
    need("state", Text, "'open'"),
    need("reason", Text, "''"),
    need("attempts", Integer, "0"),
    need("crashes", Integer, "0"),
    need("solo_crashes", Integer, "0"),
    may("retry_ms", BigInteger),
    need("fence", BigInteger, "0"),
    may("chain", Text),  # JSON
    need("added_ms", BigInteger),
    may("settled_ms", BigInteger),
    may("lastmod", Text),  # by a sitemap, as `priority`
    may("priority", Float),
    may("found_on", LargeBinary),  # fingerprint of the URL that named it first; None: a seed
    may("target", Text),  # where it redirects to, also out of the scope
    UniqueConstraint("crawl", "fp", name="urls_key"),
    partial("urls_open", "crawl", "host", "seq", where="state = 'open'"),
    partial("urls_render", "crawl", "host", "seq", where="state = 'open' AND kind = 'b'"),
)

segments = Table(
    "segments",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("name", Text),
    need("bytes", BigInteger),  # committed bytes: after them follows a torn tail if the writer is gone
    UniqueConstraint("name", name="segments_name"),
)

pages = Table(
    "pages",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("fp", LargeBinary),
    need("crawl", BigInteger),
    need("fence", BigInteger),
    need("url", Text),
    need("host", Text),
    need("status", Integer),
    need("fetched_ms", BigInteger),
    need("depth", Integer),
    may("content_type", Text),
    may("charset", Text),
    may("title", Text),
    may("sha256", LargeBinary),
    need("size", BigInteger),
    may("etag", Text),
    may("last_modified", Text),
    may("canonical", Text),
    may("language", Text),
    need("unchanged", Boolean),
    may("segment", BigInteger),
    may("body_offset", BigInteger),
    may("body_length", BigInteger),
    may("same_as", Text),
    need("request_id", Text),
    need("truncated", Boolean, "false"),
    may("document", Text),  # JSON: DocumentFacts
    # fp first: the same index answers "when was this URL last fetched, in any crawl?"
    UniqueConstraint("fp", "crawl", name="pages_key"),
    Index("pages_crawl", "crawl", "n"),
    Index("pages_place", "segment", "body_offset"),
    Index("pages_host", "host", "crawl", "n"),
    Index("pages_fetched", "crawl", "fetched_ms", "n"),
    # Nearly all pages are 200: those are found without it.
    partial("pages_odd", "crawl", "status", "n", where="status <> 200"),
    partial("pages_same", "same_as", where="same_as IS NOT NULL"),
    partial("pages_sha256", "crawl", "sha256", where="same_as IS NULL AND segment IS NOT NULL"),
)

# Redirects and errors: stored responses that are not pages.
responses = Table(
    "responses",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("fence", BigInteger),
    need("crawl", BigInteger),
    need("fp", LargeBinary),
    need("host", Text),
    need("status", Integer),
    need("fetched_ms", BigInteger),
    need("segment", BigInteger),
    need("body_offset", BigInteger),
    need("body_length", BigInteger),
    UniqueConstraint("fence", name="responses_fence"),
    Index("responses_crawl", "crawl", "n"),
    Index("responses_fp", "fp", "crawl", "fence"),
    Index("responses_host", "host", "n"),
    Index("responses_fetched", "crawl", "fetched_ms"),
    Index("responses_place", "segment", "body_offset"),
)

# start_ms is in the key because PostgreSQL requires the partition key there; a repeated transaction has the same start.
requests = Table(
    "requests",
    metadata,
    need("fence", BigInteger),
    need("ordinal", Integer),
    need("start_ms", BigInteger),
    need("end_ms", BigInteger),
    may("crawl", BigInteger),
    need("host", Text),
    need("url", Text),
    need("kind", Text),
    need("status", Integer),
    may("fault", Text),
    need("delay_ms", BigInteger),
    need("per_host", Integer),
    need("nature", Text),
    PrimaryKeyConstraint("fence", "ordinal", "start_ms"),
    sqlite_with_rowid=False,
)

failures = Table(
    "failures",
    metadata,
    need("fence", BigInteger),
    need("ordinal", Integer, "0"),
    need("id", Text),
    need("crawl", BigInteger),
    need("fp", LargeBinary),
    need("url", Text),
    need("host", Text),
    need("stage", Text),
    need("cause", Text),
    need("detail", Text),
    need("status", Integer),
    need("attempts", Integer),
    need("at_ms", BigInteger),
    may("replayed_ms", BigInteger),
    need("request_id", Text),
    PrimaryKeyConstraint("fence", "ordinal"),
    UniqueConstraint("id", name="failures_id"),
    Index("failures_crawl", "crawl", "at_ms", "fence", "ordinal"),
    Index("failures_at", "at_ms", "fence", "ordinal"),
    Index("failures_host", "host", "at_ms", "fence", "ordinal"),
    partial("failures_open", "crawl", "cause", "stage", "host", where="replayed_ms IS NULL"),
    partial("failures_stages", "crawl", "stage", where="replayed_ms IS NULL AND stage <> 'fetch'"),
)

# A row stays until everything that it names is gone, so a killed deletion can continue.
deletions = Table(
    "deletions",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("id", Text),
    may("crawl", BigInteger),  # None: of every crawl
    need("whole", Boolean),  # the crawl itself, with all its rows
    may("host", Text),
    may("fp", LargeBinary),
    may("before_ms", BigInteger),  # only what was fetched before
    need("created_ms", BigInteger),
    need("pages", BigInteger, "0"),  # deleted so far
    need("request_id", Text, "''"),
    UniqueConstraint("id", name="deletions_id"),
)

# Records of segments that no page refers to any more, until they are overwritten.
erasures = Table(
    "erasures",
    metadata,
    need("segment", Text),
    need("body_offset", BigInteger),
    need("body_length", BigInteger),
    may("start", BigInteger),  # start of the records to overwrite; stored before anything is overwritten
    PrimaryKeyConstraint("segment", "body_offset"),
    sqlite_with_rowid=False,
)

hosts = Table(
    "hosts",
    metadata,
    Column("host", Text, primary_key=True),
    need("next_ms", BigInteger, "0"),
    need("blocked_until_ms", BigInteger, "0"),
    may("operator_delay_ms", BigInteger),
    may("operator_per_host", Integer),
    may("robots_delay_ms", BigInteger),
    may("adaptive_ms", BigInteger),
    need("failures", Integer, "0"),
    need("slow", Boolean, "false"),
    need("denied", Boolean, "false"),
    may("last_ok_ms", BigInteger),
    need("render_needed", Integer, "0"),  # pages that had no content without a browser
    need("render_plain", Integer, "0"),  # pages that had content without a browser
)

robots = Table(
    "robots",
    metadata,
    Column("origin", Text, primary_key=True),
    need("host", Text),
    need("fetched_ms", BigInteger),
    need("expires_ms", BigInteger),
    need("status", Integer),
    need("body", LargeBinary),
    need("verdict", Text),
    Index("robots_host", "host"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    need("name", Text),
    need("digest", Text),  # sha256 of the secret, which is 256 random bits
    need("scopes", Text),  # words separated by commas
    need("created_ms", BigInteger),
    may("expires_ms", BigInteger),
    may("revoked_ms", BigInteger),
    may("used_ms", BigInteger),  # to the minute
)

idempotency = Table(
    "idempotency",
    metadata,
    need("caller", Text),
    need("key", Text),
    need("crawl", Text),  # id
    need("wishes", Text),  # digest of the crawl's options
    need("received", BigInteger, "0"),  # bytes whose seeds are stored
    need("digest", Text, "''"),  # of those bytes
    need("complete", Boolean, "false"),
    need("holder", Text),  # the request that receives it
    need("held_until_ms", BigInteger),
    need("created_ms", BigInteger),
    PrimaryKeyConstraint("caller", "key"),
    Index("idempotency_created", "created_ms"),
    sqlite_with_rowid=False,
)

audit_log = Table(
    "audit_log",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("at_ms", BigInteger),
    may("key_id", Text),  # None: this machine without a key, or an unknown caller
    need("address", Text),
    need("method", Text),
    need("path", Text),
    need("status", Integer),
    may("crawl", Text),  # id
    need("request_id", Text),
    Index("audit_log_at", "at_ms"),
)
