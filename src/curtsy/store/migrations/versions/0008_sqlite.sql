-- Requests of external clients: other crawlers that use our slots and keep their work here.
CREATE TABLE guest_runs (
    n INTEGER NOT NULL,
    name TEXT NOT NULL,
    state TEXT DEFAULT 'running' NOT NULL,
    started_ms BIGINT NOT NULL,
    ended_ms BIGINT,
    PRIMARY KEY (n)
);

CREATE UNIQUE INDEX guest_runs_running ON guest_runs (name) WHERE state = 'running';

CREATE TABLE guest_requests (
    n INTEGER NOT NULL,
    run BIGINT NOT NULL,
    key BLOB NOT NULL,
    host TEXT NOT NULL,
    url TEXT NOT NULL,
    rank BIGINT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT DEFAULT 'open' NOT NULL,
    holder TEXT DEFAULT '' NOT NULL,
    held_until_ms BIGINT DEFAULT 0 NOT NULL,
    crashes INTEGER DEFAULT 0 NOT NULL,
    cause TEXT DEFAULT '' NOT NULL,
    detail TEXT DEFAULT '' NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (n),
    CONSTRAINT guest_requests_key UNIQUE (run, key)
);

CREATE INDEX guest_requests_open ON guest_requests (run, host, rank, n) WHERE state = 'open';

CREATE INDEX guest_requests_held ON guest_requests (run, held_until_ms) WHERE state = 'held';

CREATE INDEX guest_requests_failed ON guest_requests (run, at_ms, n) WHERE state = 'failed';
