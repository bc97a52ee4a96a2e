-- What was asked to be done to many jobs at once. A row moves on with each batch of its jobs, in the same transaction.
-- Stages are those of `engine::operations::Stage`: 1 running, 2 done, 3 cancelled, 4 failed, 5 undoing, 6 undone.

CREATE TABLE operations (
    id         BIGINT PRIMARY KEY,              -- its place in the order of insertion: what was put later is not touched
    version    BIGINT NOT NULL,                 -- counts the writes; guards every one of them
    created_at BIGINT NOT NULL,
    who        TEXT COLLATE "C" NOT NULL,
    action     TEXT COLLATE "C" NOT NULL,      -- JSON object
    search     TEXT COLLATE "C",               -- whatever fits this text; NULL if the jobs are listed
    jobs       TEXT COLLATE "C",               -- JSON array of jobs.seq
    stage      BIGINT NOT NULL,
    total      BIGINT NOT NULL,                 -- jobs, as they were counted when it was made
    is_least   BIGINT NOT NULL,               -- 1 if there may have been more
    down_to    BIGINT NOT NULL,                 -- jobs of this number and above have been seen to
    done       BIGINT NOT NULL,
    skipped    BIGINT NOT NULL,
    restored   BIGINT NOT NULL,                 -- by undoing it
    lost       BIGINT NOT NULL,                 -- could not be restored
    keeps      BIGINT NOT NULL,               -- 1 if what it removes is kept for a while
    kept_bytes BIGINT NOT NULL,
    started_at BIGINT,
    ended_at   BIGINT,
    undo_until BIGINT,
    why        TEXT COLLATE "C"                -- it failed
);
CREATE INDEX operations_active ON operations (id) WHERE stage IN (1, 5);

-- Jobs to which an operation did nothing, and why; the first thousand of each.
CREATE TABLE operation_skips (
    operation BIGINT NOT NULL,
    n         BIGINT NOT NULL,
    job       BIGINT NOT NULL,                  -- jobs.seq
    protocol  TEXT COLLATE "C" NOT NULL,        -- empty if nothing is known of the job but its number
    namespace TEXT COLLATE "C" NOT NULL,
    queue     TEXT COLLATE "C" NOT NULL,
    id        TEXT COLLATE "C" NOT NULL,
    why       TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (operation, n)
);

-- What operations have removed, while that can be undone.
CREATE TABLE removed (
    operation BIGINT NOT NULL,
    n         BIGINT NOT NULL,                  -- in this order
    job       TEXT COLLATE "C" NOT NULL,        -- JSON, see `engine::operations::undo`
    PRIMARY KEY (operation, n)
);
