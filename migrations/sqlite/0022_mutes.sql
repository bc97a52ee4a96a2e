-- Failure groups that operators have muted until a time.
CREATE TABLE mutes (
    failure_group TEXT NOT NULL PRIMARY KEY,
    reason        TEXT NOT NULL,
    who           TEXT NOT NULL,
    muted_at      BIGINT NOT NULL,
    until_at      BIGINT NOT NULL
) WITHOUT ROWID;
