-- The usage of language models, by schema and field.
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
);
