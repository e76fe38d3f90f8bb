-- Whether a crawl verifies values, and its second model.
ALTER TABLE crawls ADD COLUMN verify BOOLEAN;
ALTER TABLE crawls ADD COLUMN judge_model TEXT;
