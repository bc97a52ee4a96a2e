-- The engine's tables. Times are integer microseconds since 1970, UTC.
-- State codes are those of `engine::job::State`: 1 waiting, 2 scheduled, 3 depends, 4 running,
-- 5 failed, 6 complete.

CREATE TABLE queues (
    id         BIGINT PRIMARY KEY,
    protocol   TEXT COLLATE "C" NOT NULL,
    namespace  TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    first_seen BIGINT  NOT NULL,
    UNIQUE (protocol, namespace, name)
);

CREATE TABLE jobs (
    seq             BIGINT PRIMARY KEY,        -- order of insertion, the last tie-break of every list
    scope           BIGINT  NOT NULL,           -- in what ids are unique: 0 for qless, else the queue
    id              TEXT COLLATE "C" NOT NULL,
    queue           BIGINT  NOT NULL,           -- queues.id; of a complete job, where it was completed
    state           BIGINT NOT NULL,
    priority        DOUBLE PRECISION NOT NULL,  -- lowest first
    ready_at        BIGINT  NOT NULL,           -- when it became, or becomes, available
    since           BIGINT  NOT NULL,           -- when it came into its present state
    worker          TEXT COLLATE "C", -- who holds the lease
    lease_id        TEXT,                       -- new with every claim
    lease_until     BIGINT,
    retries         BIGINT  NOT NULL,           -- tries allowed after the first
    remaining       BIGINT  NOT NULL,           -- of these, how many are left
    klass           TEXT COLLATE "C",
    tags            TEXT COLLATE "C" NOT NULL,           -- JSON array of text, as they were added
    history         TEXT COLLATE "C" NOT NULL,           -- JSON array, see `engine::history`
    failure_group   TEXT COLLATE "C", -- the last failure; kept until the job is completed
    failure_message TEXT,
    failure_worker  TEXT,
    failure_at      BIGINT,
    body            TEXT COLLATE "C" NOT NULL,           -- as it was written
    created_at      BIGINT  NOT NULL,
    version         BIGINT  NOT NULL            -- counts the writes; guards every one of them
) WITH (
    -- A job is written three times and gone: there must be room on its page, and cleaning must keep up.
    fillfactor = 75,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
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
);
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
    kind   BIGINT NOT NULL,
    queue  BIGINT   NOT NULL,
    day    BIGINT   NOT NULL,                   -- number of the UTC day
    slot   BIGINT NOT NULL,
    server BIGINT   NOT NULL,
    n      BIGINT   NOT NULL,
    mean   DOUBLE PRECISION,
    m2     DOUBLE PRECISION,                    -- sum of squared distances from the mean (Welford)
    PRIMARY KEY (kind, queue, day, slot, server)
);

-- Failed jobs by group, apart per queue.
CREATE TABLE failure_counts (
    failure_group TEXT COLLATE "C" NOT NULL,
    queue  BIGINT NOT NULL,
    server BIGINT NOT NULL,
    n      BIGINT NOT NULL,
    PRIMARY KEY (failure_group, queue, server)
);

CREATE TABLE workers (
    protocol  TEXT COLLATE "C" NOT NULL,
    name      TEXT COLLATE "C" NOT NULL,
    last_seen BIGINT NOT NULL,
    PRIMARY KEY (protocol, name)
);
