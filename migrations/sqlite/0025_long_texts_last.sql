-- The texts of a job that can be long are its last columns, the longest last: SQLite reads through a text to reach the
-- columns after it, so to read the version of a job with a history of 1 MiB meant to read that history.

ALTER TABLE jobs RENAME TO jobs_before;

CREATE TABLE jobs (
    seq             INTEGER PRIMARY KEY,        -- order of insertion, the last tie-break of every list
    version         BIGINT  NOT NULL,           -- counts the writes; guards every one of them
    scope           BIGINT  NOT NULL,           -- in what IDs are unique: 0 for qless, else the queue
    id              TEXT    NOT NULL,
    queue           BIGINT  NOT NULL,           -- queues.id; of a complete job, where it was completed
    state           SMALLINT NOT NULL,
    priority        DOUBLE PRECISION NOT NULL,  -- lowest first
    ready_at        BIGINT  NOT NULL,           -- when it became, or becomes, available
    since           BIGINT  NOT NULL,           -- when it entered its state
    worker          TEXT,                       -- has the lease
    lease_id        TEXT,                       -- new with every claim
    lease_until     BIGINT,
    warned          SMALLINT NOT NULL DEFAULT 0, -- 1 while a lost lease has its grace period
    retries         BIGINT  NOT NULL,           -- tries allowed after the first
    remaining       BIGINT  NOT NULL,           -- of these, how many are left
    created_at      BIGINT  NOT NULL,
    updated_at      BIGINT,                     -- when it was enqueued, claimed or last changed by its worker
    expires_at      BIGINT,                     -- when the job ends, in any state; NULL for never
    timeout_s       BIGINT,                     -- seconds of a lease of this job
    spawned_from    TEXT,                       -- ID of the recurring job that created it
    failure_group   TEXT,                       -- the last failure; kept until the job is completed
    failure_worker  TEXT,
    failure_at      BIGINT,
    label           TEXT,                       -- see `query::label`; NULL for what is not a record, or has none
    klass           TEXT,
    attributes      TEXT,                       -- JSON object that came with the body
    body            TEXT    NOT NULL,           -- as it was written, or the stub of a long one
    tags            TEXT    NOT NULL,           -- JSON array of text, as they were added
    failure_message TEXT,
    work_state      TEXT,                       -- JSON that workers keep with the job, as it was written
    history         TEXT    NOT NULL            -- JSON array, see `engine/model/history.rs`
);

INSERT INTO jobs (seq, version, scope, id, queue, state, priority, ready_at, since, worker, lease_id, lease_until, warned,
    retries, remaining, created_at, updated_at, expires_at, timeout_s, spawned_from, failure_group, failure_worker,
    failure_at, label, klass, attributes, body, tags, failure_message, work_state, history)
SELECT seq, version, scope, id, queue, state, priority, ready_at, since, worker, lease_id, lease_until, warned,
    retries, remaining, created_at, updated_at, expires_at, timeout_s, spawned_from, failure_group, failure_worker,
    failure_at, label, klass, attributes, body, tags, failure_message, work_state, history
FROM jobs_before ORDER BY seq;

DROP INDEX jobs_by_id;
DROP INDEX jobs_waiting;
DROP INDEX jobs_scheduled;
DROP INDEX jobs_depending;
DROP INDEX jobs_leased;
DROP INDEX jobs_failed;
DROP INDEX jobs_failed_in;
DROP INDEX jobs_complete;
DROP INDEX jobs_stalled;
DROP INDEX jobs_expiring;
DROP INDEX jobs_dead;
DROP INDEX jobs_records;
DROP INDEX jobs_touched;
DROP INDEX jobs_labelled;
DROP INDEX jobs_due;
DROP INDEX jobs_by_class;
DROP TABLE jobs_before;

CREATE UNIQUE INDEX jobs_by_id ON jobs (scope, id);
CREATE INDEX jobs_waiting ON jobs (queue, priority, ready_at, seq, expires_at) WHERE state = 1;
CREATE INDEX jobs_scheduled ON jobs (queue, ready_at, seq) WHERE state = 2;
CREATE INDEX jobs_depending ON jobs (queue, since, seq) WHERE state = 3;
CREATE INDEX jobs_leased ON jobs (queue, lease_until, seq, worker, warned) WHERE state = 4;
CREATE INDEX jobs_failed ON jobs (failure_group, since, seq) WHERE state = 5;
CREATE INDEX jobs_failed_in ON jobs (queue, since, seq) WHERE state = 5;
CREATE INDEX jobs_complete ON jobs (since, seq, queue) WHERE state = 6;
CREATE INDEX jobs_stalled ON jobs (queue, since, seq) WHERE state = 7;
CREATE INDEX jobs_expiring ON jobs (expires_at, seq) WHERE expires_at IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (queue, since, seq) WHERE state = 8;
CREATE INDEX jobs_records ON jobs (queue, CAST(id AS BIGINT)) WHERE state = 9;
CREATE INDEX jobs_touched ON jobs (queue, updated_at, seq) WHERE state = 9;
CREATE INDEX jobs_labelled ON jobs (queue, label, updated_at, seq) WHERE state = 9;
CREATE INDEX jobs_due ON jobs (ready_at, seq) WHERE state = 2;
CREATE INDEX jobs_by_class ON jobs (klass, seq) WHERE klass IS NOT NULL;
