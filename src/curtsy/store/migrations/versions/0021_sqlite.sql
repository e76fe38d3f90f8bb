-- Requests over the API and the dashboard that changed something, and refused ones.
CREATE TABLE audit_log (
    n INTEGER NOT NULL,
    at_ms BIGINT NOT NULL,
    key_id TEXT,
    address TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    status INTEGER NOT NULL,
    crawl TEXT,
    request_id TEXT NOT NULL,
    PRIMARY KEY (n)
);
CREATE INDEX audit_log_at ON audit_log (at_ms);
