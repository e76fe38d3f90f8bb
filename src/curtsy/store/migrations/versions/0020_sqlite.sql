-- Questions that wait for a batch of a model's server, and its batches.
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
