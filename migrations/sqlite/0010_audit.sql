-- Who is signed in to the dashboard: the SHA-256 of each session's secret, in hexadecimal, and whose key opened it.
CREATE TABLE sessions (
    hash       TEXT NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    proof      TEXT NOT NULL,             -- of the key, which may be one no longer; see `doors::Keys::proof`
    created_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_seen ON sessions (seen_at);

-- What people did in the dashboard.
CREATE TABLE audit (
    id         TEXT NOT NULL PRIMARY KEY,
    at         BIGINT NOT NULL,
    who        TEXT NOT NULL,
    role       TEXT NOT NULL,
    action     TEXT NOT NULL,
    target     TEXT NOT NULL,             -- in words
    link       TEXT NOT NULL,             -- where it is shown; may be empty
    before     TEXT NOT NULL,             -- a JSON array of what was changed, as it was; null for what was not there
    after      TEXT NOT NULL,             -- the same things as they became, in the same order
    items      BIGINT NOT NULL,             -- how many were changed
    done       BIGINT NOT NULL,             -- 0 if it was refused
    said       TEXT NOT NULL,             -- what became of it, as it was told
    request_id TEXT NOT NULL,
    source     TEXT NOT NULL              -- the address from which it was asked for
) WITHOUT ROWID;
CREATE INDEX audit_at ON audit (at, id);
