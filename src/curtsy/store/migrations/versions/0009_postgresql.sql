-- An index that counts the dead letters of stages for the progress of a crawl.
CREATE INDEX failures_stages ON failures (crawl, stage) WHERE replayed_ms IS NULL AND stage <> 'fetch';
