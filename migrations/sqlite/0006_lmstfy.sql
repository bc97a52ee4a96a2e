-- What lmstfy needs beyond jobs and queues.
-- One more state: 8 dead, in the dead letter.

ALTER TABLE jobs ADD COLUMN expires_at BIGINT;  -- when the job ends, wherever it is; NULL for never
ALTER TABLE jobs ADD COLUMN attributes TEXT;    -- JSON object that came with the body
CREATE INDEX jobs_expiring ON jobs (expires_at, seq) WHERE expires_at IS NOT NULL;
CREATE INDEX jobs_dead     ON jobs (queue, since, seq) WHERE state = 8;
