-- Searches that somebody has saved, for everybody.
CREATE TABLE searches (
    name     TEXT NOT NULL PRIMARY KEY,
    text     TEXT NOT NULL,
    who      TEXT NOT NULL,
    saved_at BIGINT NOT NULL
) WITHOUT ROWID;
