"""Tables for the work after fetching: the outbox, results of stages, records with their evidence, reviews, models."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from curtsy.store.tables import Serial, may, metadata, need, partial

outbox = Table(
    "outbox",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("kind", Text),  # extract | score | store | webhook
    need("crawl", BigInteger),
    need("subject", Text),
    need("payload", Text, "'{}'"),  # JSON; ids and short texts, never bodies
    need("state", Text, "'open'"),  # open | dead; what is done is deleted
    need("attempts", Integer, "0"),
    need("next_ms", BigInteger),
    may("sent_ms", BigInteger),
    may("begun_ms", BigInteger),  # when a process started it
    need("request_id", Text, "''"),
    UniqueConstraint("kind", "crawl", "subject", name="outbox_key"),
    partial("outbox_due", "crawl", "next_ms", where="state = 'open' AND kind <> 'webhook'"),
    partial("outbox_sent", "next_ms", where="state = 'open' AND sent_ms IS NOT NULL"),
    partial("outbox_webhooks", "next_ms", where="state = 'open' AND kind = 'webhook'"),
    # Numbers are never reused: a late message would refer to the wrong row.
    sqlite_autoincrement=True,
)

results = Table(
    "results",
    metadata,
    need("crawl", BigInteger),
    need("subject", Text),
    need("stage", Text),
    need("result", Text),  # JSON
    need("at_ms", BigInteger),
    PrimaryKeyConstraint("crawl", "subject", "stage"),
    sqlite_with_rowid=False,
)

records = Table(
    "records",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("crawl", BigInteger),
    need("subject", Text),
    need("schema_hash", Text),
    need("ordinal", Integer, "0"),
    need("schema", Text),
    need("url", Text),
    need("data", Text),  # JSON
    need("scores", Text),  # JSON
    need("low_confidence", Boolean),
    need("created_ms", BigInteger),
    need("request_id", Text, "''"),
    need("kind", Text, "'page'"),  # page | site
    need("version", Integer, "1"),
    need("status", Text, "'published'"),  # published | held | rejected | superseded
    need("confidence", Text, "'{}'"),  # JSON, as the next four
    need("fields", Text, "'[]'"),  # what is published, with its evidence
    need("withheld", Text, "'[]'"),  # what is not: for reviewers only
    need("rungs", Text, "'{}'"),
    need("usage", Text, "'{}'"),
    need("failure", Text, "'null'"),  # why the language model gave no answer
    need("as_of", BigInteger, "0"),  # number of the newest page of the site when it was made
    may("reviewed_ms", BigInteger),
    UniqueConstraint("crawl", "subject", "schema_hash", "ordinal", "version", name="records_key"),
    Index("records_crawl", "crawl", "n"),
    Index("records_listed", "crawl", "schema_hash", "status", "n"),
    partial("records_held", "crawl", "n", where="status = 'held'"),
    partial("records_queue", "n", where="status = 'held'"),
)

definitions = Table(
    "definitions",
    metadata,
    Column("hash", Text, primary_key=True),
    need("kind", Text),  # schema | rubric
    need("name", Text),
    need("body", Text),
)

# By page, so that deleting a page finds its sources.
sources = Table(
    "sources",
    metadata,
    need("crawl", BigInteger),
    need("page", Text),  # fingerprint as hexadecimal digits
    need("sha256", Text),
    need("kind", Text),  # text | structured | attribute
    need("url", Text),
    need("text", Text),
    may("parts", Text),  # JSON: pages, sheets or slides of a document
    PrimaryKeyConstraint("crawl", "page", "sha256"),
)

citations = Table(
    "citations",
    metadata,
    need("record", BigInteger),
    need("page", Text),
    need("crawl", BigInteger),
    PrimaryKeyConstraint("record", "page"),
    Index("citations_page", "crawl", "page"),
    sqlite_with_rowid=False,
)

reviews = Table(
    "reviews",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("record", BigInteger),
    need("crawl", BigInteger),
    need("decision", Text),  # approve | reject | correct | undo
    need("who", Text),
    need("at_ms", BigInteger),
    need("note", Text, "''"),
    may("correction", Text),  # JSON: pointer -> value
    need("before", Text, "'{}'"),  # JSON: the data before the review
    need("golden", Boolean, "false"),
    need("request_id", Text, "''"),
    may("undo", Text),  # JSON: what it replaced
    need("batch", Text, "''"),  # id of a decision about many records
    Index("reviews_record", "record", "n"),
    Index("reviews_crawl", "crawl", "n"),
    partial("reviews_batch", "batch", "n", where="batch <> ''"),
)

llm_cache = Table(
    "llm_cache",
    metadata,
    Column("key", Text, primary_key=True),
    need("crawl", BigInteger),
    need("subject", Text),
    need("answer", Text),
    need("at_ms", BigInteger),
    Index("llm_cache_subject", "crawl", "subject"),
    Index("llm_cache_at", "at_ms"),
)

llm_field_usage = Table(
    "llm_field_usage",
    metadata,
    need("crawl", BigInteger),
    need("schema", Text),  # name of the schema or rubric
    need("field", Text),  # path of a leaf, or question of a rubric
    need("calls", BigInteger, "0"),  # calls that asked for it
    need("cached", BigInteger, "0"),
    need("prompt_tokens", Float, "0"),  # its share of them: fields of one call share equally
    need("completion_tokens", Float, "0"),
    need("cost", Float, "0"),
    PrimaryKeyConstraint("crawl", "schema", "field"),
    sqlite_with_rowid=False,
)

# Questions that wait for a batch; an answered one is deleted.
llm_questions = Table(
    "llm_questions",
    metadata,
    Column("key", Text, primary_key=True),  # as in llm_cache
    need("crawl", BigInteger),
    need("subject", Text),
    need("body", Text),  # JSON: messages, form, maximum usage, schema, fields
    need("state", Text, "'queued'"),  # queued | sent | failed: ask directly
    may("batch", BigInteger),
    need("at_ms", BigInteger),
    Index("llm_questions_batch", "batch"),
    Index("llm_questions_subject", "crawl", "subject"),
)

llm_batches = Table(
    "llm_batches",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("token", Text),  # in the metadata of the batch on the server
    need("state", Text),  # new | creating | running
    may("file", Text),
    may("batch", Text),  # id on the server
    need("at_ms", BigInteger),  # time of the last change of state
    need("made_ms", BigInteger),
    need("looked_ms", BigInteger, "0"),
)

llm_usage = Table(
    "llm_usage",
    metadata,
    Column("crawl", BigInteger, primary_key=True, autoincrement=False),
    need("calls", BigInteger, "0"),
    need("cached", BigInteger, "0"),
    need("prompt_tokens", BigInteger, "0"),
    need("completion_tokens", BigInteger, "0"),
    need("cost", Float, "0"),
)
