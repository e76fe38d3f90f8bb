-- Name, tags and owner of a crawl; owner of a schedule; the runs of a schedule by an index.
ALTER TABLE crawls ADD COLUMN name TEXT;
ALTER TABLE crawls ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE crawls ADD COLUMN owner TEXT;
ALTER TABLE schedules ADD COLUMN owner TEXT;
CREATE INDEX crawls_schedule ON crawls (schedule, n) WHERE schedule IS NOT NULL;
