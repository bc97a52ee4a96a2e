-- What Jobq needs beyond jobs and queues.
-- One more state: 9 record. Its jobs are numbered per queue, and found by what their own state begins with.

ALTER TABLE jobs   ADD COLUMN label       TEXT;    -- see `query::label`; NULL for what is not a record, or has none
ALTER TABLE queues ADD COLUMN last_number BIGINT NOT NULL DEFAULT 0;  -- the last that was given to a record in it

-- The highest number of a queue that went: none is given again.
ALTER TABLE state ADD COLUMN last_gone_queue BIGINT NOT NULL DEFAULT 0;

CREATE INDEX jobs_records  ON jobs (queue, (CAST(id AS BIGINT)))     WHERE state = 9;
CREATE INDEX jobs_touched  ON jobs (queue, updated_at, seq)        WHERE state = 9;
CREATE INDEX jobs_labelled ON jobs (queue, label, updated_at, seq) WHERE state = 9;
