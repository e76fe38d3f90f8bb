-- Responses of redirects and errors, with their places in segments.
CREATE TABLE responses (
    n INTEGER NOT NULL,
    fence BIGINT NOT NULL,
    crawl BIGINT NOT NULL,
    fp BLOB NOT NULL,
    host TEXT NOT NULL,
    status INTEGER NOT NULL,
    fetched_ms BIGINT NOT NULL,
    segment BIGINT NOT NULL,
    body_offset BIGINT NOT NULL,
    body_length BIGINT NOT NULL,
    PRIMARY KEY (n),
    CONSTRAINT responses_fence UNIQUE (fence)
);
CREATE INDEX responses_crawl ON responses (crawl, n);
CREATE INDEX responses_fp ON responses (fp, crawl, fence);
CREATE INDEX responses_host ON responses (host, n);
CREATE INDEX responses_fetched ON responses (crawl, fetched_ms);
CREATE INDEX responses_place ON responses (segment, body_offset);
