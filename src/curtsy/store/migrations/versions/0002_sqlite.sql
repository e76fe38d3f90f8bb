-- Queues that wait in the store, in the order of their next time.
CREATE INDEX queues_waiting ON queues (crawl, next_ms, host) WHERE state = 'open' AND next_ms > 0;
