-- Columns for the page that first linked to a URL, and for the target of its redirect.
ALTER TABLE urls ADD COLUMN found_on BLOB;
ALTER TABLE urls ADD COLUMN target TEXT;
