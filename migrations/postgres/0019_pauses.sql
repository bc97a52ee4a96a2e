-- Why, by whom and until when a queue is paused. All are NULL for a queue that is not paused, and those that are not known
-- for one that is.
ALTER TABLE queues ADD COLUMN paused_since BIGINT;
ALTER TABLE queues ADD COLUMN paused_until BIGINT;
ALTER TABLE queues ADD COLUMN pause_reason TEXT COLLATE "C";
ALTER TABLE queues ADD COLUMN paused_by TEXT COLLATE "C";
