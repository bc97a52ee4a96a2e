-- Searches that somebody has saved, for everybody.
CREATE TABLE searches (
    name     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    text     TEXT COLLATE "C" NOT NULL,
    who      TEXT COLLATE "C" NOT NULL,
    saved_at BIGINT NOT NULL
);
