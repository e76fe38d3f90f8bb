-- A column for pages that could not be read completely.
ALTER TABLE pages ADD COLUMN truncated BOOLEAN DEFAULT false NOT NULL;
