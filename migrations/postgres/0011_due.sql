-- What is due next, whatever its queue.
CREATE INDEX jobs_due ON jobs (ready_at, seq) WHERE state = 2;
