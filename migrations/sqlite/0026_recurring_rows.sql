-- Recurring jobs are rows with a number, and their texts the last columns. Without a number, a row is found by comparing
-- whole rows: to look up the due ones among 250 with bodies of 1 MiB, SQLite read and copied gigabytes.

ALTER TABLE recurring RENAME TO recurring_before;

CREATE TABLE recurring (
    id        TEXT   NOT NULL PRIMARY KEY,
    seq       BIGINT NOT NULL,                  -- order of insertion
    queue     BIGINT NOT NULL,                  -- queues.id
    next_at   BIGINT NOT NULL,                  -- when the next child is due; never while it is paused
    interval  BIGINT NOT NULL,                  -- microseconds; not used with a cron expression
    made      BIGINT NOT NULL,                  -- children so far; the next one is `<id>-<made + 1>`
    backlog   BIGINT NOT NULL,                  -- missed children that are still created; 0: all
    priority  DOUBLE PRECISION NOT NULL,
    retries   BIGINT NOT NULL,
    version   BIGINT NOT NULL,
    cron      TEXT,
    zone      TEXT,
    held_next BIGINT,                           -- while it is paused: when the next child would be due
    klass     TEXT,
    tags      TEXT   NOT NULL,                  -- JSON array of text
    body      TEXT   NOT NULL
);

INSERT INTO recurring (id, seq, queue, next_at, interval, made, backlog, priority, retries, version, cron, zone, held_next,
    klass, tags, body)
SELECT id, seq, queue, next_at, interval, made, backlog, priority, retries, version, cron, zone, held_next, klass, tags,
    body
FROM recurring_before ORDER BY seq;

DROP INDEX recurring_by_time;
DROP INDEX recurring_due;
DROP TABLE recurring_before;

CREATE INDEX recurring_by_time ON recurring (queue, next_at, seq);
CREATE INDEX recurring_due ON recurring (next_at, seq);
