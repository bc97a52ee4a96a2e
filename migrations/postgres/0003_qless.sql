-- What all of qless-core needs beyond jobs, queues and options.
-- One more state: 7 stalled, taken from its worker by `/timeout`, first in line.

ALTER TABLE jobs ADD COLUMN warned BIGINT NOT NULL DEFAULT 0;     -- 1 while a lost lease has its grace period
ALTER TABLE jobs ADD COLUMN spawned_from TEXT;                      -- id of the recurring job that made it
CREATE INDEX jobs_stalled ON jobs (queue, since, seq) WHERE state = 7;
DROP INDEX jobs_leased;
CREATE INDEX jobs_leased ON jobs (queue, lease_until, seq, worker, warned) WHERE state = 4;

ALTER TABLE queues ADD COLUMN paused BIGINT NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN forgotten BIGINT NOT NULL DEFAULT 0; -- 1 until something is put into it again

-- Which jobs have a tag, by when they were tagged. `jobs.tags` has the same, in the order of tagging.
CREATE TABLE tags (
    job       BIGINT NOT NULL,                  -- jobs.seq
    tag       TEXT COLLATE "C" NOT NULL,
    tagged_at BIGINT NOT NULL,
    id        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (job, tag)
);
CREATE INDEX tags_by_tag ON tags (tag, tagged_at, id);

-- Jobs by tag; folded in as the other counts are.
CREATE TABLE tag_counts (
    tag    TEXT COLLATE "C" NOT NULL,
    server BIGINT NOT NULL,
    n      BIGINT NOT NULL,
    PRIMARY KEY (tag, server)
);

INSERT INTO tags (job, tag, tagged_at, id)
SELECT j.seq, t.value, j.created_at, j.id FROM jobs AS j, jsonb_array_elements_text(j.tags::jsonb) AS t;
INSERT INTO tag_counts (tag, server, n) SELECT tag, 0, count(*) FROM tags GROUP BY tag;

-- Ids of qless jobs whose events are public; they stay when the job is gone.
CREATE TABLE tracked (
    id    TEXT COLLATE "C" PRIMARY KEY,
    since BIGINT NOT NULL
);

-- Jobs that are made again and again.
CREATE TABLE recurring (
    id       TEXT COLLATE "C" PRIMARY KEY,
    seq      BIGINT NOT NULL,                   -- order of insertion
    queue    BIGINT NOT NULL,                   -- queues.id
    next_at  BIGINT NOT NULL,                   -- when the next child is due
    interval BIGINT NOT NULL,                   -- microseconds
    made     BIGINT NOT NULL,                   -- children so far; the next one is `<id>-<made + 1>`
    backlog  BIGINT NOT NULL,                   -- missed children that are made up for; 0: all
    priority DOUBLE PRECISION NOT NULL,
    retries  BIGINT NOT NULL,
    klass    TEXT COLLATE "C",
    tags     TEXT COLLATE "C" NOT NULL,                   -- JSON array of text
    body     TEXT COLLATE "C" NOT NULL,
    version  BIGINT NOT NULL
);
CREATE INDEX recurring_by_time ON recurring (queue, next_at, seq);

-- What has been made public, one row for each group commit.
CREATE TABLE events (
    first   BIGINT PRIMARY KEY,                 -- number of its first event; they are numbered from 1
    n       BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    entries TEXT COLLATE "C" NOT NULL                     -- JSON array of [channel, JSON text of data]
);
