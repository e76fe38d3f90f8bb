-- What all revisions make together, for new databases. Made by tools/sqlite_schema.py.
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
    settings TEXT DEFAULT '{}' NOT NULL, proxy_pool TEXT, schema TEXT, schedule BIGINT, webhook TEXT, webhook_secret TEXT, schema_hash TEXT, per TEXT, rubric TEXT, rubric_hash TEXT, llm TEXT, name TEXT, tags TEXT NOT NULL DEFAULT '[]', owner TEXT, verify BOOLEAN, judge_model TEXT,
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
    failing_since_ms BIGINT, detail TEXT NOT NULL DEFAULT '', refused BIGINT NOT NULL DEFAULT 0, silent BIGINT NOT NULL DEFAULT 0,
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
    settled_ms BIGINT, lastmod TEXT, priority FLOAT, found_on BLOB, target TEXT,
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
    request_id TEXT NOT NULL, truncated BOOLEAN DEFAULT false NOT NULL, document TEXT,
    PRIMARY KEY (n),
    CONSTRAINT pages_key UNIQUE (fp, crawl)
);
CREATE INDEX pages_crawl ON pages (crawl, n);
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
    last_ok_ms BIGINT, render_needed INTEGER DEFAULT 0 NOT NULL, render_plain INTEGER DEFAULT 0 NOT NULL,
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
CREATE INDEX queues_waiting ON queues (crawl, next_ms, host) WHERE state = 'open' AND next_ms > 0;
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
)
 WITHOUT ROWID;
CREATE INDEX idempotency_created ON idempotency (created_ms);
CREATE INDEX pages_place ON pages (segment, body_offset);
CREATE INDEX pages_host ON pages (host, crawl, n);
CREATE INDEX pages_fetched ON pages (crawl, fetched_ms, n);
CREATE INDEX pages_odd ON pages (crawl, status, n) WHERE status <> 200;
CREATE INDEX pages_same ON pages (same_as) WHERE same_as IS NOT NULL;
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
    request_id TEXT DEFAULT '' NOT NULL, owner TEXT,
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
CREATE TABLE definitions (
    hash TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (hash)
);
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
    reviewed_ms BIGINT, failure TEXT DEFAULT 'null' NOT NULL, contradicted TEXT DEFAULT '[]' NOT NULL,
    PRIMARY KEY (n),
    CONSTRAINT records_key UNIQUE (crawl, subject, schema_hash, ordinal, version)
);
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
    text TEXT NOT NULL, parts TEXT,
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
    request_id TEXT DEFAULT '' NOT NULL, undo TEXT, batch TEXT NOT NULL DEFAULT '',
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
CREATE INDEX urls_render ON urls (crawl, host, seq) WHERE state = 'open' AND kind = 'b';
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
CREATE INDEX failures_stages ON failures (crawl, stage) WHERE replayed_ms IS NULL AND stage <> 'fetch';
CREATE TABLE crawl_rates (
    crawl BIGINT NOT NULL,
    at_s BIGINT NOT NULL,
    pages BIGINT NOT NULL,
    urls BIGINT NOT NULL,
    PRIMARY KEY (crawl, at_s)
)
 WITHOUT ROWID;
CREATE INDEX crawl_rates_at ON crawl_rates (at_s);
CREATE TABLE llm_field_usage (
    crawl BIGINT NOT NULL,
    schema TEXT NOT NULL,
    field TEXT NOT NULL,
    calls BIGINT DEFAULT 0 NOT NULL,
    cached BIGINT DEFAULT 0 NOT NULL,
    prompt_tokens FLOAT DEFAULT 0 NOT NULL,
    completion_tokens FLOAT DEFAULT 0 NOT NULL,
    cost FLOAT DEFAULT 0 NOT NULL,
    PRIMARY KEY (crawl, schema, field)
) WITHOUT ROWID;
CREATE TABLE templates (
    n INTEGER NOT NULL,
    schema_hash TEXT NOT NULL,
    schema TEXT NOT NULL,
    host TEXT NOT NULL,
    shape TEXT NOT NULL,
    skeleton_key TEXT NOT NULL,
    skeleton TEXT NOT NULL,
    known TEXT DEFAULT '{}' NOT NULL,
    absent TEXT DEFAULT '{}' NOT NULL,
    pages BIGINT DEFAULT 0 NOT NULL,
    asked BIGINT DEFAULT 0 NOT NULL,
    next_try BIGINT DEFAULT 3 NOT NULL,
    revision BIGINT DEFAULT 0 NOT NULL,
    behind INTEGER DEFAULT 0 NOT NULL,
    created_ms BIGINT NOT NULL,
    seen_ms BIGINT NOT NULL, checked BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (n),
    CONSTRAINT templates_key UNIQUE (schema_hash, host, shape, skeleton_key)
);
CREATE TABLE template_pages (
    crawl BIGINT NOT NULL,
    page TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    template BIGINT NOT NULL,
    teaches BOOLEAN DEFAULT false NOT NULL,
    absent TEXT DEFAULT '[]' NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (crawl, page, schema_hash)
)
 WITHOUT ROWID;
CREATE TABLE selectors (
    n INTEGER NOT NULL,
    template BIGINT NOT NULL,
    leaf TEXT NOT NULL,
    place TEXT NOT NULL,
    state TEXT DEFAULT 'active' NOT NULL,
    examples INTEGER NOT NULL,
    tested INTEGER NOT NULL,
    found INTEGER NOT NULL,
    used BIGINT DEFAULT 0 NOT NULL,
    missed INTEGER DEFAULT 0 NOT NULL,
    learned_ms BIGINT NOT NULL,
    ended_ms BIGINT,
    why TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (n)
);
CREATE INDEX template_pages_template ON template_pages (template, at_ms);
CREATE INDEX selectors_template ON selectors (template, n);
CREATE TABLE llm_questions (
    "key" TEXT NOT NULL,
    crawl BIGINT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT DEFAULT 'queued' NOT NULL,
    batch BIGINT,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY ("key")
);
CREATE INDEX llm_questions_batch ON llm_questions (batch);
CREATE INDEX llm_questions_subject ON llm_questions (crawl, subject);
CREATE TABLE llm_batches (
    n INTEGER NOT NULL,
    token TEXT NOT NULL,
    state TEXT NOT NULL,
    file TEXT,
    batch TEXT,
    at_ms BIGINT NOT NULL,
    made_ms BIGINT NOT NULL,
    looked_ms BIGINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (n)
);
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
CREATE INDEX crawls_schedule ON crawls (schedule, n) WHERE schedule IS NOT NULL;
CREATE INDEX reviews_batch ON reviews (batch, n) WHERE batch <> '';
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
CREATE INDEX records_contradicted ON records (crawl, n) WHERE status = 'published' AND contradicted <> '[]';
CREATE INDEX records_fields_queue ON records (n) WHERE status = 'published' AND contradicted <> '[]';
