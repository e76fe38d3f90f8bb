-- The first schema: everything a crawl needs, from its row to its pages. Frozen, as every revision: later changes need a revision of their own.
CREATE TABLE meta (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY ("key")
);

CREATE TABLE crawls (
    n INTEGER NOT NULL,
    id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    state TEXT NOT NULL,
    lane TEXT NOT NULL,
    scope TEXT NOT NULL,
    version INTEGER DEFAULT 0 NOT NULL,
    include TEXT NOT NULL,
    exclude TEXT NOT NULL,
    max_pages BIGINT,
    max_depth INTEGER,
    delay_s FLOAT,
    per_host INTEGER,
    render TEXT NOT NULL,
    sitemaps BOOLEAN NOT NULL,
    cookies BOOLEAN NOT NULL,
    created_ms BIGINT NOT NULL,
    started_ms BIGINT,
    ended_ms BIGINT,
    reason TEXT,
    pages BIGINT DEFAULT 0 NOT NULL,
    settings TEXT DEFAULT '{}' NOT NULL,
    PRIMARY KEY (n),
    CONSTRAINT crawls_id UNIQUE (id)
);

CREATE TABLE crawl_members (
    crawl BIGINT NOT NULL,
    member TEXT NOT NULL,
    PRIMARY KEY (crawl, member)
)
 WITHOUT ROWID;

CREATE TABLE crawl_counts (
    crawl BIGINT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    n BIGINT NOT NULL,
    PRIMARY KEY (crawl, state, reason)
)
 WITHOUT ROWID;

CREATE TABLE queues (
    crawl BIGINT NOT NULL,
    host TEXT NOT NULL,
    lane TEXT NOT NULL,
    next_ms BIGINT DEFAULT 0 NOT NULL,
    state TEXT NOT NULL,
    reason TEXT DEFAULT '' NOT NULL,
    added BIGINT DEFAULT 0 NOT NULL,
    failing_since_ms BIGINT,
    PRIMARY KEY (crawl, host)
)
 WITHOUT ROWID;

CREATE INDEX queues_dead ON queues (crawl, host) WHERE state = 'dead';

CREATE INDEX queues_failing ON queues (host, failing_since_ms) WHERE failing_since_ms IS NOT NULL;

CREATE INDEX queues_host ON queues (host);

CREATE INDEX queues_open ON queues (crawl, host) WHERE state = 'open';

CREATE TABLE urls (
    seq INTEGER NOT NULL,
    crawl BIGINT NOT NULL,
    fp BLOB NOT NULL,
    host TEXT NOT NULL,
    url TEXT NOT NULL,
    kind TEXT NOT NULL,
    depth INTEGER NOT NULL,
    state TEXT DEFAULT 'open' NOT NULL,
    reason TEXT DEFAULT '' NOT NULL,
    attempts INTEGER DEFAULT 0 NOT NULL,
    crashes INTEGER DEFAULT 0 NOT NULL,
    solo_crashes INTEGER DEFAULT 0 NOT NULL,
    retry_ms BIGINT,
    fence BIGINT DEFAULT 0 NOT NULL,
    chain TEXT,
    added_ms BIGINT NOT NULL,
    settled_ms BIGINT,
    PRIMARY KEY (seq),
    CONSTRAINT urls_key UNIQUE (crawl, fp)
);

CREATE INDEX urls_open ON urls (crawl, host, seq) WHERE state = 'open';

CREATE TABLE segments (
    n INTEGER NOT NULL,
    name TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (n),
    CONSTRAINT segments_name UNIQUE (name)
);

CREATE TABLE pages (
    n INTEGER NOT NULL,
    fp BLOB NOT NULL,
    crawl BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    url TEXT NOT NULL,
    host TEXT NOT NULL,
    status INTEGER NOT NULL,
    fetched_ms BIGINT NOT NULL,
    depth INTEGER NOT NULL,
    content_type TEXT,
    charset TEXT,
    title TEXT,
    sha256 BLOB,
    size BIGINT NOT NULL,
    etag TEXT,
    last_modified TEXT,
    canonical TEXT,
    language TEXT,
    unchanged BOOLEAN NOT NULL,
    segment BIGINT,
    body_offset BIGINT,
    body_length BIGINT,
    same_as TEXT,
    request_id TEXT NOT NULL,
    PRIMARY KEY (n),
    CONSTRAINT pages_key UNIQUE (fp, crawl)
);

CREATE INDEX pages_crawl ON pages (crawl, n);

CREATE INDEX pages_segment ON pages (segment);

CREATE INDEX pages_sha256 ON pages (crawl, sha256) WHERE same_as IS NULL AND segment IS NOT NULL;

CREATE TABLE requests (
    fence BIGINT NOT NULL,
    ordinal INTEGER NOT NULL,
    start_ms BIGINT NOT NULL,
    end_ms BIGINT NOT NULL,
    crawl BIGINT,
    host TEXT NOT NULL,
    url TEXT NOT NULL,
    kind TEXT NOT NULL,
    status INTEGER NOT NULL,
    fault TEXT,
    delay_ms BIGINT NOT NULL,
    per_host INTEGER NOT NULL,
    nature TEXT NOT NULL,
    PRIMARY KEY (fence, ordinal, start_ms)
)
 WITHOUT ROWID;

CREATE TABLE failures (
    fence BIGINT NOT NULL,
    ordinal INTEGER DEFAULT 0 NOT NULL,
    id TEXT NOT NULL,
    crawl BIGINT NOT NULL,
    fp BLOB NOT NULL,
    url TEXT NOT NULL,
    host TEXT NOT NULL,
    stage TEXT NOT NULL,
    cause TEXT NOT NULL,
    detail TEXT NOT NULL,
    status INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    at_ms BIGINT NOT NULL,
    replayed_ms BIGINT,
    request_id TEXT NOT NULL,
    PRIMARY KEY (fence, ordinal),
    CONSTRAINT failures_id UNIQUE (id)
);

CREATE INDEX failures_crawl ON failures (crawl, at_ms);

CREATE TABLE hosts (
    host TEXT NOT NULL,
    next_ms BIGINT DEFAULT 0 NOT NULL,
    blocked_until_ms BIGINT DEFAULT 0 NOT NULL,
    operator_delay_ms BIGINT,
    operator_per_host INTEGER,
    robots_delay_ms BIGINT,
    adaptive_ms BIGINT,
    failures INTEGER DEFAULT 0 NOT NULL,
    slow BOOLEAN DEFAULT false NOT NULL,
    denied BOOLEAN DEFAULT false NOT NULL,
    last_ok_ms BIGINT,
    PRIMARY KEY (host)
);

CREATE TABLE robots (
    origin TEXT NOT NULL,
    host TEXT NOT NULL,
    fetched_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL,
    status INTEGER NOT NULL,
    body BLOB NOT NULL,
    verdict TEXT NOT NULL,
    PRIMARY KEY (origin)
);

CREATE INDEX robots_host ON robots (host);
