-- The cron expression and the time zone of a recurring job that has them instead of an interval. While a recurring job is
-- paused, held_next is when its next child would be due, and next_at is never.
ALTER TABLE recurring ADD COLUMN cron TEXT COLLATE "C";
ALTER TABLE recurring ADD COLUMN zone TEXT COLLATE "C";
ALTER TABLE recurring ADD COLUMN held_next BIGINT;
