ALTER TABLE reviews ADD COLUMN undo TEXT;
ALTER TABLE reviews ADD COLUMN batch TEXT NOT NULL DEFAULT '';
CREATE INDEX reviews_batch ON reviews (batch, n) WHERE batch <> '';
