-- Tables for records: definitions, sources, confidence, versions, reviews, answers of models.
ALTER TABLE crawls ADD COLUMN schema_hash TEXT;

ALTER TABLE crawls ADD COLUMN per TEXT;

ALTER TABLE crawls ADD COLUMN rubric TEXT;

ALTER TABLE crawls ADD COLUMN rubric_hash TEXT;

ALTER TABLE crawls ADD COLUMN llm TEXT;

CREATE TABLE definitions (
    hash TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (hash)
);

ALTER TABLE records RENAME TO records_before;

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
    kind TEXT DEFAULT 'page' NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    status TEXT DEFAULT 'published' NOT NULL,
    confidence TEXT DEFAULT '{}' NOT NULL,
    fields TEXT DEFAULT '[]' NOT NULL,
    withheld TEXT DEFAULT '[]' NOT NULL,
    rungs TEXT DEFAULT '{}' NOT NULL,
    usage TEXT DEFAULT '{}' NOT NULL,
    as_of BIGINT DEFAULT 0 NOT NULL,
    reviewed_ms BIGINT,
    PRIMARY KEY (n),
    CONSTRAINT records_key UNIQUE (crawl, subject, schema_hash, ordinal, version)
);

INSERT INTO records (n, crawl, subject, schema_hash, ordinal, schema, url, data, scores, low_confidence, created_ms, request_id, status)
    SELECT n, crawl, subject, schema_hash, ordinal, schema, url, data, scores, low_confidence, created_ms, request_id,
    CASE WHEN low_confidence THEN 'held' ELSE 'published' END FROM records_before;

DROP TABLE records_before;

CREATE INDEX records_crawl ON records (crawl, n);

CREATE INDEX records_listed ON records (crawl, schema_hash, status, n);

CREATE INDEX records_held ON records (crawl, n) WHERE status = 'held';

CREATE INDEX records_queue ON records (n) WHERE status = 'held';

CREATE TABLE sources (
    crawl BIGINT NOT NULL,
    page TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    kind TEXT NOT NULL,
    url TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (crawl, page, sha256)
);

CREATE TABLE citations (
    record BIGINT NOT NULL,
    page TEXT NOT NULL,
    crawl BIGINT NOT NULL,
    PRIMARY KEY (record, page)
)
 WITHOUT ROWID;

CREATE INDEX citations_page ON citations (crawl, page);

CREATE TABLE reviews (
    n INTEGER NOT NULL,
    record BIGINT NOT NULL,
    crawl BIGINT NOT NULL,
    decision TEXT NOT NULL,
    who TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    note TEXT DEFAULT '' NOT NULL,
    correction TEXT,
    before TEXT DEFAULT '{}' NOT NULL,
    golden BOOLEAN DEFAULT false NOT NULL,
    request_id TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (n)
);

CREATE INDEX reviews_record ON reviews (record, n);

CREATE INDEX reviews_crawl ON reviews (crawl, n);

CREATE TABLE llm_cache (
    key TEXT NOT NULL,
    crawl BIGINT NOT NULL,
    subject TEXT NOT NULL,
    answer TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (key)
);

CREATE INDEX llm_cache_subject ON llm_cache (crawl, subject);

CREATE INDEX llm_cache_at ON llm_cache (at_ms);

CREATE TABLE llm_usage (
    crawl BIGINT NOT NULL,
    calls BIGINT DEFAULT 0 NOT NULL,
    cached BIGINT DEFAULT 0 NOT NULL,
    prompt_tokens BIGINT DEFAULT 0 NOT NULL,
    completion_tokens BIGINT DEFAULT 0 NOT NULL,
    cost FLOAT DEFAULT 0 NOT NULL,
    PRIMARY KEY (crawl)
);
