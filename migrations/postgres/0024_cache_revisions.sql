-- For each kind of data that servers keep in memory, the revision with which it changed last: a server that knows an
-- earlier revision reads only the kinds that have changed since. Written queues have revisions of their own.
ALTER TABLE state ADD COLUMN deleted_queues_revision BIGINT NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN config_revision BIGINT NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN tracked_revision BIGINT NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN tokens_revision BIGINT NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN recurring_revision BIGINT NOT NULL DEFAULT 0;
UPDATE state SET deleted_queues_revision = revision, config_revision = revision, tracked_revision = revision,
    tokens_revision = revision, recurring_revision = revision;
ALTER TABLE state DROP COLUMN others_revision;

-- The last deleted queues, with the revision of their deletion.
CREATE TABLE deleted_queues (
    id       BIGINT PRIMARY KEY,
    revision BIGINT NOT NULL
);
CREATE INDEX deleted_queues_by_revision ON deleted_queues (revision, id);
