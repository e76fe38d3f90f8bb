-- What a decision about a record replaced, to undo it; decisions about many records.
ALTER TABLE reviews ADD COLUMN undo TEXT;
ALTER TABLE reviews ADD COLUMN batch TEXT NOT NULL DEFAULT '';
CREATE INDEX reviews_batch ON reviews (batch, n) WHERE batch <> '';
