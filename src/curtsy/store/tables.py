"""The tables, as the newest migration leaves them (a test compares the two).

Kept lean on the hot path: no foreign keys, short rows, few indexes.

    meta            key -> value: epoch and seq counters, clean flag, politeness unit, layout
    crawls          one row per crawl           crawl_members  its hosts or domains
    crawl_counts    ledger: settled rows by state and reason; ('open', '') is the number ever added
    queues          (crawl, host): what the frontier has to load
    urls            every URL of a crawl, settled once
    segments        WARC files and how many of their bytes are committed
    pages, requests, failures, hosts, robots
    schedules       cron + crawl                runs           (schedule, planned time): what came of it
    outbox          what is still to be done    results        of stages, until the record is stored
    definitions     schemas and rubrics as crawls were made with them, by hash
    records         structured items of pages and sites; their versions
    sources         what their evidence stands in        citations      record -> pages it was made from
    reviews         what people decided of records
    llm_cache       answers of language models           llm_usage      what each crawl asked of them
    deletions       what is to be deleted       erasures       records of segments that are to be overwritten
    api_keys        who may ask over HTTP       idempotency    which crawl an Idempotency-Key made
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

#: SQLite's rowid must be spelt INTEGER
Serial = BigInteger().with_variant(Integer, "sqlite")


def _need(name: str, kind: Any, default: str | None = None) -> Column[Any]:
    return Column(name, kind, nullable=False, server_default=None if default is None else text(default))


def _may(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind)


def _partial(name: str, *columns: str, where: str) -> Index:
    return Index(name, *columns, sqlite_where=text(where), info={"where": where})


meta = Table("meta", metadata, Column("key", Text, primary_key=True), _need("value", Text))

crawls = Table(
    "crawls",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    _need("id", Text),
    _need("request_id", Text),
    _need("state", Text),
    _need("lane", Text),
    _need("scope", Text),
    _need("version", Integer, "0"),
    _need("include", Text),  # JSON list, as `exclude`
    _need("exclude", Text),
    _may("max_pages", BigInteger),
    _may("max_depth", Integer),
    _may("delay_s", Float),
    _may("per_host", Integer),
    _need("render", Text),
    _need("sitemaps", Boolean),
    _need("cookies", Boolean),
    _need("created_ms", BigInteger),
    _may("started_ms", BigInteger),
    _may("ended_ms", BigInteger),
    _may("reason", Text),
    _need("pages", BigInteger, "0"),
    _need("settings", Text, "'{}'"),  # JSON: what the command was started with, for --resume and for people
    _may("proxy_pool", Text),
    _may("schema", Text),
    _may("schedule", BigInteger),
    _may("webhook", Text),
    _may("webhook_secret", Text),
    _may("schema_hash", Text),
    _may("per", Text),  # page | site
    _may("rubric", Text),
    _may("rubric_hash", Text),
    _may("llm", Text),
    UniqueConstraint("id", name="crawls_id"),
)

crawl_members = Table(
    "crawl_members",
    metadata,
    _need("crawl", BigInteger),
    _need("member", Text),
    PrimaryKeyConstraint("crawl", "member"),
    sqlite_with_rowid=False,
)

crawl_counts = Table(
    "crawl_counts",
    metadata,
    _need("crawl", BigInteger),
    _need("state", Text),
    _need("reason", Text),
    _need("n", BigInteger),
    PrimaryKeyConstraint("crawl", "state", "reason"),
    sqlite_with_rowid=False,
)

queues = Table(
    "queues",
    metadata,
    _need("crawl", BigInteger),
    _need("host", Text),
    _need("lane", Text),
    _need("next_ms", BigInteger, "0"),
    _need("state", Text),  # open | empty | dead
    _need("reason", Text, "''"),
    _need("added", BigInteger, "0"),  # URLs ever added, for max_urls_per_host
    _may("failing_since_ms", BigInteger),
    PrimaryKeyConstraint("crawl", "host"),
    Index("queues_host", "host"),
    _partial("queues_open", "crawl", "host", where="state = 'open'"),
    _partial("queues_waiting", "crawl", "next_ms", "host", where="state = 'open' AND next_ms > 0"),
    _partial("queues_dead", "crawl", "host", where="state = 'dead'"),
    _partial("queues_failing", "host", "failing_since_ms", where="failing_since_ms IS NOT NULL"),
    sqlite_with_rowid=False,
)

# On SQLite `seq` is the rowid: 35 % less CPU per commit than WITHOUT ROWID on (crawl, fp), because rows are appended
# and only the small unique index is written at random places.
urls = Table(
    "urls",
    metadata,
    Column("seq", Serial, primary_key=True, autoincrement=False),
    _need("crawl", BigInteger),
    _need("fp", LargeBinary),
    _need("host", Text),
    _need("url", Text),
    _need("kind", Text),
    _need("depth", Integer),
    _need("state", Text, "'open'"),
    _need("reason", Text, "''"),
    _need("attempts", Integer, "0"),
    _need("crashes", Integer, "0"),
    _need("solo_crashes", Integer, "0"),
    _may("retry_ms", BigInteger),
    _need("fence", BigInteger, "0"),
    _may("chain", Text),  # JSON
    _need("added_ms", BigInteger),
    _may("settled_ms", BigInteger),
    UniqueConstraint("crawl", "fp", name="urls_key"),
    _partial("urls_open", "crawl", "host", "seq", where="state = 'open'"),
    _partial("urls_render", "crawl", "host", "seq", where="state = 'open' AND kind = 'b'"),
)

segments = Table(
    "segments",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    _need("name", Text),
    _need("bytes", BigInteger),  # committed: what lies beyond is a torn tail once its writer is gone
    UniqueConstraint("name", name="segments_name"),
)

pages = Table(
    "pages",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    _need("fp", LargeBinary),
    _need("crawl", BigInteger),
    _need("fence", BigInteger),
    _need("url", Text),
    _need("host", Text),
    _need("status", Integer),
    _need("fetched_ms", BigInteger),
    _need("depth", Integer),
    _may("content_type", Text),
    _may("charset", Text),
    _may("title", Text),
    _may("sha256", LargeBinary),
    _need("size", BigInteger),
    _may("etag", Text),
    _may("last_modified", Text),
    _may("canonical", Text),
    _may("language", Text),
    _need("unchanged", Boolean),
    _may("segment", BigInteger),
    _may("body_offset", BigInteger),
    _may("body_length", BigInteger),
    _may("same_as", Text),
    _need("request_id", Text),
    # fp first: the same index answers "when was this URL last fetched, in any crawl?"
    UniqueConstraint("fp", "crawl", name="pages_key"),
    Index("pages_crawl", "crawl", "n"),
    Index("pages_place", "segment", "body_offset"),
    Index("pages_host", "host", "crawl", "n"),
    Index("pages_fetched", "crawl", "fetched_ms", "n"),
    # Nearly all pages are 200: those are found without it.
    _partial("pages_odd", "crawl", "status", "n", where="status <> 200"),
    _partial("pages_same", "same_as", where="same_as IS NOT NULL"),
    _partial("pages_sha256", "crawl", "sha256", where="same_as IS NULL AND segment IS NOT NULL"),
)

# start_ms is in the key because PostgreSQL wants the partition key there; a repeated transaction has the same start.
requests = Table(
    "requests",
    metadata,
    _need("fence", BigInteger),
    _need("ordinal", Integer),
    _need("start_ms", BigInteger),
    _need("end_ms", BigInteger),
    _may("crawl", BigInteger),
    _need("host", Text),
    _need("url", Text),
    _need("kind", Text),
    _need("status", Integer),
    _may("fault", Text),
    _need("delay_ms", BigInteger),
    _need("per_host", Integer),
    _need("nature", Text),
    PrimaryKeyConstraint("fence", "ordinal", "start_ms"),
    sqlite_with_rowid=False,
)

failures = Table(
    "failures",
    metadata,
    _need("fence", BigInteger),
    _need("ordinal", Integer, "0"),
    _need("id", Text),
    _need("crawl", BigInteger),
    _need("fp", LargeBinary),
    _need("url", Text),
    _need("host", Text),
    _need("stage", Text),
    _need("cause", Text),
    _need("detail", Text),
    _need("status", Integer),
    _need("attempts", Integer),
    _need("at_ms", BigInteger),
    _may("replayed_ms", BigInteger),
    _need("request_id", Text),
    PrimaryKeyConstraint("fence", "ordinal"),
    UniqueConstraint("id", name="failures_id"),
    Index("failures_crawl", "crawl", "at_ms", "fence", "ordinal"),
    Index("failures_at", "at_ms", "fence", "ordinal"),
    Index("failures_host", "host", "at_ms", "fence", "ordinal"),
    _partial("failures_open", "crawl", "cause", "stage", "host", where="replayed_ms IS NULL"),
)

# A row stays until everything that it names is gone, so a killed deletion goes on.
deletions = Table(
    "deletions",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    _need("id", Text),
    _may("crawl", BigInteger),  # None: of every crawl
    _need("whole", Boolean),  # the crawl itself, with all its rows
    _may("host", Text),
    _may("fp", LargeBinary),
    _may("before_ms", BigInteger),  # only what was fetched before
    _need("created_ms", BigInteger),
    _need("pages", BigInteger, "0"),  # deleted so far
    _need("request_id", Text, "''"),
    UniqueConstraint("id", name="deletions_id"),
)

# Records of segments that no page refers to any more, until they are overwritten.
erasures = Table(
    "erasures",
    metadata,
    _need("segment", Text),
    _need("body_offset", BigInteger),
    _need("body_length", BigInteger),
    _may("start", BigInteger),  # where what belongs to the record begins; known before anything is overwritten
    PrimaryKeyConstraint("segment", "body_offset"),
    sqlite_with_rowid=False,
)

hosts = Table(
    "hosts",
    metadata,
    Column("host", Text, primary_key=True),
    _need("next_ms", BigInteger, "0"),
    _need("blocked_until_ms", BigInteger, "0"),
    _may("operator_delay_ms", BigInteger),
    _may("operator_per_host", Integer),
    _may("robots_delay_ms", BigInteger),
    _may("adaptive_ms", BigInteger),
    _need("failures", Integer, "0"),
    _need("slow", Boolean, "false"),
    _need("denied", Boolean, "false"),
    _may("last_ok_ms", BigInteger),
    _need("render_needed", Integer, "0"),  # pages that had nothing to read without a browser
    _need("render_plain", Integer, "0"),  # pages that had
)

robots = Table(
    "robots",
    metadata,
    Column("origin", Text, primary_key=True),
    _need("host", Text),
    _need("fetched_ms", BigInteger),
    _need("expires_ms", BigInteger),
    _need("status", Integer),
    _need("body", LargeBinary),
    _need("verdict", Text),
    Index("robots_host", "host"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    _need("name", Text),
    _need("digest", Text),  # sha256 of the secret, which is 256 random bits
    _need("scopes", Text),  # words with commas between
    _need("created_ms", BigInteger),
    _may("expires_ms", BigInteger),
    _may("revoked_ms", BigInteger),
    _may("used_ms", BigInteger),  # to the minute
)

idempotency = Table(
    "idempotency",
    metadata,
    _need("caller", Text),
    _need("key", Text),
    _need("crawl", Text),  # id
    _need("wishes", Text),  # digest of what the crawl shall be
    _need("received", BigInteger, "0"),  # bytes whose seeds are stored
    _need("digest", Text, "''"),  # of those bytes
    _need("complete", Boolean, "false"),
    _need("holder", Text),  # the request that receives it
    _need("held_until_ms", BigInteger),
    _need("created_ms", BigInteger),
    PrimaryKeyConstraint("caller", "key"),
    Index("idempotency_created", "created_ms"),
    sqlite_with_rowid=False,
)

schedules = Table(
    "schedules",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    _need("id", Text),
    _need("name", Text),
    _need("cron", Text),
    _need("zone", Text),
    _need("crawl", Text),  # JSON: the wishes of each run
    _need("seeds", Text),  # JSON list
    _need("overlap", Text, "'skip'"),  # skip | queue
    _need("enabled", Boolean, "true"),
    _may("next_ms", BigInteger),
    _may("keep", Integer),
    _need("created_ms", BigInteger),
    _need("request_id", Text, "''"),
    UniqueConstraint("id", name="schedules_id"),
    UniqueConstraint("name", name="schedules_name"),
)

runs = Table(
    "runs",
    metadata,
    _need("schedule", BigInteger),
    _need("planned_ms", BigInteger),
    _need("state", Text),  # planned | queued | started | skipped
    _need("crawl_id", Text),  # allotted before the crawl is made, so that it is made once
    _may("crawl", BigInteger),
    _need("note", Text, "''"),
    _need("at_ms", BigInteger),
    _need("lease_ms", BigInteger, "0"),
    PrimaryKeyConstraint("schedule", "planned_ms"),
    _partial("runs_waiting", "state", "planned_ms", where="state IN ('planned', 'queued')"),
    sqlite_with_rowid=False,
)

outbox = Table(
    "outbox",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    _need("kind", Text),  # extract | score | store | webhook
    _need("crawl", BigInteger),
    _need("subject", Text),
    _need("payload", Text, "'{}'"),  # JSON; ids and words, never bodies
    _need("state", Text, "'open'"),  # open | dead; what is done is deleted
    _need("attempts", Integer, "0"),
    _need("next_ms", BigInteger),
    _may("sent_ms", BigInteger),
    _may("begun_ms", BigInteger),  # since when somebody works at it
    _need("request_id", Text, "''"),
    UniqueConstraint("kind", "crawl", "subject", name="outbox_key"),
    _partial("outbox_due", "crawl", "next_ms", where="state = 'open' AND kind <> 'webhook'"),
    _partial("outbox_sent", "next_ms", where="state = 'open' AND sent_ms IS NOT NULL"),
    _partial("outbox_webhooks", "next_ms", where="state = 'open' AND kind = 'webhook'"),
    # A number is never given to another row: a late message would take it for its own.
    sqlite_autoincrement=True,
)

results = Table(
    "results",
    metadata,
    _need("crawl", BigInteger),
    _need("subject", Text),
    _need("stage", Text),
    _need("result", Text),  # JSON
    _need("at_ms", BigInteger),
    PrimaryKeyConstraint("crawl", "subject", "stage"),
    sqlite_with_rowid=False,
)

records = Table(
    "records",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    _need("crawl", BigInteger),
    _need("subject", Text),
    _need("schema_hash", Text),
    _need("ordinal", Integer, "0"),
    _need("schema", Text),
    _need("url", Text),
    _need("data", Text),  # JSON
    _need("scores", Text),  # JSON
    _need("low_confidence", Boolean),
    _need("created_ms", BigInteger),
    _need("request_id", Text, "''"),
    _need("kind", Text, "'page'"),  # page | site
    _need("version", Integer, "1"),
    _need("status", Text, "'published'"),  # published | held | rejected | superseded
    _need("confidence", Text, "'{}'"),  # JSON, as the next four
    _need("fields", Text, "'[]'"),  # what is published, with its evidence
    _need("withheld", Text, "'[]'"),  # what is not: for reviewers only
    _need("rungs", Text, "'{}'"),
    _need("usage", Text, "'{}'"),
    _need("as_of", BigInteger, "0"),  # number of the newest page of the site when it was made
    _may("reviewed_ms", BigInteger),
    UniqueConstraint("crawl", "subject", "schema_hash", "ordinal", "version", name="records_key"),
    Index("records_crawl", "crawl", "n"),
    Index("records_listed", "crawl", "schema_hash", "status", "n"),
    _partial("records_held", "crawl", "n", where="status = 'held'"),
    _partial("records_queue", "n", where="status = 'held'"),
)

definitions = Table(
    "definitions",
    metadata,
    Column("hash", Text, primary_key=True),
    _need("kind", Text),  # schema | rubric
    _need("name", Text),
    _need("body", Text),
)

# By page, so that what was taken from a page goes with it.
sources = Table(
    "sources",
    metadata,
    _need("crawl", BigInteger),
    _need("page", Text),  # fingerprint as hexadecimal digits
    _need("sha256", Text),
    _need("kind", Text),  # text | structured | attribute
    _need("url", Text),
    _need("text", Text),
    PrimaryKeyConstraint("crawl", "page", "sha256"),
)

citations = Table(
    "citations",
    metadata,
    _need("record", BigInteger),
    _need("page", Text),
    _need("crawl", BigInteger),
    PrimaryKeyConstraint("record", "page"),
    Index("citations_page", "crawl", "page"),
    sqlite_with_rowid=False,
)

reviews = Table(
    "reviews",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    _need("record", BigInteger),
    _need("crawl", BigInteger),
    _need("decision", Text),  # approve | reject | correct
    _need("who", Text),
    _need("at_ms", BigInteger),
    _need("note", Text, "''"),
    _may("correction", Text),  # JSON: pointer -> value
    _need("before", Text, "'{}'"),  # JSON: the data as it was
    _need("golden", Boolean, "false"),
    _need("request_id", Text, "''"),
    Index("reviews_record", "record", "n"),
    Index("reviews_crawl", "crawl", "n"),
)

llm_cache = Table(
    "llm_cache",
    metadata,
    Column("key", Text, primary_key=True),
    _need("crawl", BigInteger),
    _need("subject", Text),
    _need("answer", Text),
    _need("at_ms", BigInteger),
    Index("llm_cache_subject", "crawl", "subject"),
    Index("llm_cache_at", "at_ms"),
)

llm_usage = Table(
    "llm_usage",
    metadata,
    Column("crawl", BigInteger, primary_key=True, autoincrement=False),
    _need("calls", BigInteger, "0"),
    _need("cached", BigInteger, "0"),
    _need("prompt_tokens", BigInteger, "0"),
    _need("completion_tokens", BigInteger, "0"),
    _need("cost", Float, "0"),
)


def with_postgresql() -> MetaData:
    """The same with PostgreSQL's own options. To name them loads its dialect: 30 ms that a start on SQLite saves."""
    from curtsy.store import guest_tables  # noqa: F401  # its tables belong to the same schema

    requests.dialect_options["postgresql"]["partition_by"] = "RANGE (start_ms)"
    for table in metadata.tables.values():
        for index in table.indexes:
            if "where" in index.info:
                index.dialect_options["postgresql"]["where"] = text(index.info["where"])
    return metadata
