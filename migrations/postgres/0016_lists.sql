-- With the queue: the complete jobs of a queue are found without reading those of the others.
DROP INDEX jobs_complete;
CREATE INDEX jobs_complete ON jobs (since, seq, queue) WHERE state = 6;
-- The jobs of a class, newest first.
CREATE INDEX jobs_by_class ON jobs (klass, seq) WHERE klass IS NOT NULL;
