-- Who may use a namespace: the SHA-256 of each secret, in hexadecimal. The secret itself is kept nowhere.
CREATE TABLE tokens (
    namespace   TEXT COLLATE "C" NOT NULL,
    hash        TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (namespace, hash)
);

-- The last revision that a server took over which somebody else had written. Only with SQLite it is needed: here
-- every group asks for the revision.
ALTER TABLE state ADD COLUMN noticed BIGINT NOT NULL DEFAULT 0;
