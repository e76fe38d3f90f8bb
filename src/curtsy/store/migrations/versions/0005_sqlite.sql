-- Schedules and their runs, the outbox, results of stages, records.
ALTER TABLE crawls ADD COLUMN schema TEXT;

ALTER TABLE crawls ADD COLUMN schedule BIGINT;

ALTER TABLE crawls ADD COLUMN webhook TEXT;

ALTER TABLE crawls ADD COLUMN webhook_secret TEXT;

CREATE TABLE schedules (
    n INTEGER NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    cron TEXT NOT NULL,
    zone TEXT NOT NULL,
    crawl TEXT NOT NULL,
    seeds TEXT NOT NULL,
    overlap TEXT DEFAULT 'skip' NOT NULL,
    enabled BOOLEAN DEFAULT true NOT NULL,
    next_ms BIGINT,
    keep INTEGER,
    created_ms BIGINT NOT NULL,
    request_id TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (n),
    CONSTRAINT schedules_id UNIQUE (id),
    CONSTRAINT schedules_name UNIQUE (name)
);

CREATE TABLE runs (
    schedule BIGINT NOT NULL,
    planned_ms BIGINT NOT NULL,
    state TEXT NOT NULL,
    crawl_id TEXT NOT NULL,
    crawl BIGINT,
    note TEXT DEFAULT '' NOT NULL,
    at_ms BIGINT NOT NULL,
    lease_ms BIGINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (schedule, planned_ms)
)
 WITHOUT ROWID;

CREATE INDEX runs_waiting ON runs (state, planned_ms) WHERE state IN ('planned', 'queued');

CREATE TABLE outbox (
    n INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    crawl BIGINT NOT NULL,
    subject TEXT NOT NULL,
    payload TEXT DEFAULT '{}' NOT NULL,
    state TEXT DEFAULT 'open' NOT NULL,
    attempts INTEGER DEFAULT 0 NOT NULL,
    next_ms BIGINT NOT NULL,
    sent_ms BIGINT,
    begun_ms BIGINT,
    request_id TEXT DEFAULT '' NOT NULL,
    CONSTRAINT outbox_key UNIQUE (kind, crawl, subject)
);

CREATE INDEX outbox_due ON outbox (crawl, next_ms) WHERE state = 'open' AND kind <> 'webhook';

CREATE INDEX outbox_sent ON outbox (next_ms) WHERE state = 'open' AND sent_ms IS NOT NULL;

CREATE INDEX outbox_webhooks ON outbox (next_ms) WHERE state = 'open' AND kind = 'webhook';

CREATE TABLE results (
    crawl BIGINT NOT NULL,
    subject TEXT NOT NULL,
    stage TEXT NOT NULL,
    result TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (crawl, subject, stage)
)
 WITHOUT ROWID;

CREATE TABLE records (
    n INTEGER NOT NULL,
    crawl BIGINT NOT NULL,
    subject TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    ordinal INTEGER DEFAULT 0 NOT NULL,
    schema TEXT NOT NULL,
    url TEXT NOT NULL,
    data TEXT NOT NULL,
    scores TEXT NOT NULL,
    low_confidence BOOLEAN NOT NULL,
    created_ms BIGINT NOT NULL,
    request_id TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (n),
    CONSTRAINT records_key UNIQUE (crawl, subject, schema_hash, ordinal)
);

CREATE INDEX records_crawl ON records (crawl, n);
