-- Fields with contradicting values, in records that are published without them.
ALTER TABLE records ADD COLUMN contradicted TEXT DEFAULT '[]' NOT NULL;
CREATE INDEX records_contradicted ON records (crawl, n) WHERE status = 'published' AND contradicted <> '[]';
CREATE INDEX records_fields_queue ON records (n) WHERE status = 'published' AND contradicted <> '[]';
