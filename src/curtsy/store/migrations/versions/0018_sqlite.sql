-- Templates of pages, and the selectors that are learned for them.
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
    seen_ms BIGINT NOT NULL,
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
