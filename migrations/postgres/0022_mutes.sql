-- Failure groups that operators have muted until a time.
CREATE TABLE mutes (
    failure_group TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    reason        TEXT COLLATE "C" NOT NULL,
    who           TEXT COLLATE "C" NOT NULL,
    muted_at      BIGINT NOT NULL,
    until_at      BIGINT NOT NULL
);
