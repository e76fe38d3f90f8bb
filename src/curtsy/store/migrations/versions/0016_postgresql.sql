-- The rates of each crawl in the last hours; how often a host refused or did not answer a crawl.
CREATE TABLE crawl_rates (
    crawl BIGINT NOT NULL,
    at_s BIGINT NOT NULL,
    pages BIGINT NOT NULL,
    urls BIGINT NOT NULL,
    PRIMARY KEY (crawl, at_s)
);
CREATE INDEX crawl_rates_at ON crawl_rates (at_s);
ALTER TABLE queues ADD COLUMN refused BIGINT NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN silent BIGINT NOT NULL DEFAULT 0;
