-- Tables and indexes for lists, deletion and retention.
DROP INDEX pages_segment;

CREATE INDEX pages_place ON pages (segment, body_offset);

CREATE INDEX pages_host ON pages (host, crawl, n);

CREATE INDEX pages_fetched ON pages (crawl, fetched_ms, n);

CREATE INDEX pages_odd ON pages (crawl, status, n) WHERE status <> 200;

CREATE INDEX pages_same ON pages (same_as) WHERE same_as IS NOT NULL;

DROP INDEX failures_crawl;

CREATE INDEX failures_crawl ON failures (crawl, at_ms, fence, ordinal);

CREATE INDEX failures_at ON failures (at_ms, fence, ordinal);

CREATE INDEX failures_host ON failures (host, at_ms, fence, ordinal);

CREATE INDEX failures_open ON failures (crawl, cause, stage, host) WHERE replayed_ms IS NULL;

CREATE TABLE deletions (
    n INTEGER NOT NULL,
    id TEXT NOT NULL,
    crawl BIGINT,
    whole BOOLEAN NOT NULL,
    host TEXT,
    fp BLOB,
    before_ms BIGINT,
    created_ms BIGINT NOT NULL,
    pages BIGINT DEFAULT 0 NOT NULL,
    request_id TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (n),
    CONSTRAINT deletions_id UNIQUE (id)
);

CREATE TABLE erasures (
    segment TEXT NOT NULL,
    body_offset BIGINT NOT NULL,
    body_length BIGINT NOT NULL,
    start BIGINT,
    PRIMARY KEY (segment, body_offset)
)
 WITHOUT ROWID;
