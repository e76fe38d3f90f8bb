-- Columns for what a sitemap says about a URL.
ALTER TABLE urls ADD COLUMN lastmod TEXT;
ALTER TABLE urls ADD COLUMN priority FLOAT;
