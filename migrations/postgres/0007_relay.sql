-- What Relay needs beyond jobs and queues.

ALTER TABLE jobs ADD COLUMN timeout_s  BIGINT;  -- for how many seconds a lease of this job is given
ALTER TABLE jobs ADD COLUMN work_state TEXT;    -- JSON that workers keep with the job, as it was written
ALTER TABLE jobs ADD COLUMN updated_at BIGINT;  -- when it was enqueued, handed out or heartbeat last
