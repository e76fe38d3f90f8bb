CREATE INDEX failures_stages ON failures (crawl, stage) WHERE replayed_ms IS NULL AND stage <> 'fetch';
