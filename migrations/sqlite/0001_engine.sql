-- The engine's tables. Times are integer microseconds since 1970, UTC.
-- State codes are those of `engine::job::State`: 1 waiting, 2 scheduled, 3 depends, 4 running,
-- 5 failed, 6 complete.

CREATE TABLE queues (
    id         INTEGER PRIMARY KEY,
    protocol   TEXT    NOT NULL,
    namespace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    first_seen BIGINT  NOT NULL,
    UNIQUE (protocol, namespace, name)
);

CREATE TABLE jobs (
    seq             INTEGER PRIMARY KEY,        -- order of insertion, the last tie-break of every list
    scope           BIGINT  NOT NULL,           -- in what ids are unique: 0 for qless, else the queue
    id              TEXT    NOT NULL,
    queue           BIGINT  NOT NULL,           -- queues.id; of a complete job, where it was completed
    state           SMALLINT NOT NULL,
    priority        DOUBLE PRECISION NOT NULL,  -- lowest first
    ready_at        BIGINT  NOT NULL,           -- when it became, or becomes, available
    since           BIGINT  NOT NULL,           -- when it came into its present state
    worker          TEXT,                       -- who holds the lease
    lease_id        TEXT,                       -- new with every claim
    lease_until     BIGINT,
    retries         BIGINT  NOT NULL,           -- tries allowed after the first
    remaining       BIGINT  NOT NULL,           -- of these, how many are left
    klass           TEXT,
    tags            TEXT    NOT NULL,           -- JSON array of text, as they were added
    history         TEXT    NOT NULL,           -- JSON array, see `engine::history`
    failure_group   TEXT,                       -- the last failure; kept until the job is completed
    failure_message TEXT,
    failure_worker  TEXT,
    failure_at      BIGINT,
    body            TEXT    NOT NULL,           -- as it was written
    created_at      BIGINT  NOT NULL,
    version         BIGINT  NOT NULL            -- counts the writes; guards every one of them
);

CREATE UNIQUE INDEX jobs_by_id ON jobs (scope, id);
CREATE INDEX jobs_waiting   ON jobs (queue, priority, ready_at, seq) WHERE state = 1;
CREATE INDEX jobs_scheduled ON jobs (queue, ready_at, seq)           WHERE state = 2;
CREATE INDEX jobs_depending ON jobs (queue, since, seq)              WHERE state = 3;
CREATE INDEX jobs_leased    ON jobs (queue, lease_until, seq, worker) WHERE state = 4;
CREATE INDEX jobs_failed    ON jobs (failure_group, since, seq)      WHERE state = 5;
CREATE INDEX jobs_failed_in ON jobs (queue, since, seq)              WHERE state = 5;
CREATE INDEX jobs_complete  ON jobs (since, seq)                     WHERE state = 6;

-- One row while `job` waits for the completion of `needs` (both are jobs.seq).
CREATE TABLE dependencies (
    job   BIGINT NOT NULL,
    needs BIGINT NOT NULL,
    PRIMARY KEY (job, needs)
) WITHOUT ROWID;
CREATE INDEX dependencies_by_need ON dependencies (needs, job);

-- Counts and statistics are folded in as deltas, once per group commit. A server adds to rows of its
-- own number only, and readers add the servers up, so that servers never wait for each other here.

-- All that is counted per queue, by `kind` (`engine::tally::Kind`):
--   0 jobs by state        slot is the state, day is 0
--   1 waits, 2 runs        slot 0..=147 is the histogram (60 seconds, 59 minutes, 23 hours, 6 days);
--                          slot -1 has mean and m2, in seconds
--   3 outcomes             slot 0 how many times a job failed on that day, 1 how many of these are
--                          failed still, 2 how many leases were lost and handed on
CREATE TABLE tallies (
    kind   SMALLINT NOT NULL,
    queue  BIGINT   NOT NULL,
    day    BIGINT   NOT NULL,                   -- number of the UTC day
    slot   SMALLINT NOT NULL,
    server BIGINT   NOT NULL,
    n      BIGINT   NOT NULL,
    mean   DOUBLE PRECISION,
    m2     DOUBLE PRECISION,                    -- sum of squared distances from the mean (Welford)
    PRIMARY KEY (kind, queue, day, slot, server)
) WITHOUT ROWID;

-- Failed jobs by group, apart per queue.
CREATE TABLE failure_counts (
    failure_group TEXT NOT NULL,
    queue  BIGINT NOT NULL,
    server BIGINT NOT NULL,
    n      BIGINT NOT NULL,
    PRIMARY KEY (failure_group, queue, server)
) WITHOUT ROWID;

CREATE TABLE workers (
    protocol  TEXT   NOT NULL,
    name      TEXT   NOT NULL,
    last_seen BIGINT NOT NULL,
    PRIMARY KEY (protocol, name)
) WITHOUT ROWID;
