-- A column for the message of the first failure of a host that does not answer.
ALTER TABLE queues ADD COLUMN detail TEXT NOT NULL DEFAULT '';
