-- A column that says why the language model gave no answer for a record.
ALTER TABLE records ADD COLUMN failure TEXT DEFAULT 'null' NOT NULL;
