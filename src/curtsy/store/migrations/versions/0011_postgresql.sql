-- Columns for the kind of a document and the pages of its sources.
ALTER TABLE pages ADD COLUMN document TEXT;
ALTER TABLE sources ADD COLUMN parts TEXT;
