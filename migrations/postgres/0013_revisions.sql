-- The revision with which each queue was written last, and the last one with which anything else changed that servers
-- keep in memory: a server that knows an earlier revision than the database reads the queues written since, and all
-- the rest only if it has changed.
ALTER TABLE queues ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
CREATE INDEX queues_by_revision ON queues (revision);
ALTER TABLE state ADD COLUMN others_revision BIGINT NOT NULL DEFAULT 0;
UPDATE state SET others_revision = revision;
