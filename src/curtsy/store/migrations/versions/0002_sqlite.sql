CREATE INDEX queues_waiting ON queues (crawl, next_ms, host) WHERE state = 'open' AND next_ms > 0;
