-- Who is signed in to the dashboard: the SHA-256 of each session's secret, in hexadecimal, and whose key opened it.
CREATE TABLE sessions (
    hash       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL,
    proof      TEXT COLLATE "C" NOT NULL,             -- of the key, which may be one no longer; see `doors::Keys::proof`
    created_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL
);
CREATE INDEX sessions_seen ON sessions (seen_at);

-- What people did in the dashboard.
CREATE TABLE audit (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at         BIGINT NOT NULL,
    who        TEXT COLLATE "C" NOT NULL,
    role       TEXT COLLATE "C" NOT NULL,
    action     TEXT COLLATE "C" NOT NULL,
    target     TEXT COLLATE "C" NOT NULL,             -- in words
    link       TEXT COLLATE "C" NOT NULL,             -- where it is shown; may be empty
    before     TEXT COLLATE "C" NOT NULL,             -- a JSON array of what was changed, as it was; null for what was not there
    after      TEXT COLLATE "C" NOT NULL,             -- the same things as they became, in the same order
    items      BIGINT NOT NULL,             -- how many were changed
    done       BIGINT NOT NULL,             -- 0 if it was refused
    said       TEXT COLLATE "C" NOT NULL,             -- what became of it, as it was told
    request_id TEXT COLLATE "C" NOT NULL,
    source     TEXT COLLATE "C" NOT NULL              -- the address from which it was asked for
);
CREATE INDEX audit_at ON audit (at, id);
