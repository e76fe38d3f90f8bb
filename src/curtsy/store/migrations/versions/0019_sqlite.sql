-- A column for the last check of a template by the model.
ALTER TABLE templates ADD COLUMN checked BIGINT NOT NULL DEFAULT 0;
