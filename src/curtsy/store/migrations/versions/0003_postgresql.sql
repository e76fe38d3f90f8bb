-- API keys, and which crawl an Idempotency-Key made.
ALTER TABLE crawls ADD COLUMN proxy_pool TEXT;

CREATE TABLE api_keys (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT,
    revoked_ms BIGINT,
    used_ms BIGINT,
    PRIMARY KEY (id)
);

CREATE TABLE idempotency (
    caller TEXT NOT NULL,
    key TEXT NOT NULL,
    crawl TEXT NOT NULL,
    wishes TEXT NOT NULL,
    received BIGINT DEFAULT 0 NOT NULL,
    digest TEXT DEFAULT '' NOT NULL,
    complete BOOLEAN DEFAULT false NOT NULL,
    holder TEXT NOT NULL,
    held_until_ms BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (caller, key)
);

CREATE INDEX idempotency_created ON idempotency (created_ms);
