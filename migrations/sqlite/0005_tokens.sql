-- Who may use a namespace: the SHA-256 of each secret, in hexadecimal. The secret itself is kept nowhere.
CREATE TABLE tokens (
    namespace   TEXT   NOT NULL,
    hash        TEXT   NOT NULL,
    description TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (namespace, hash)
) WITHOUT ROWID;

-- The last revision that a server took over which somebody else had written: `switchyard token` waits for it.
ALTER TABLE state ADD COLUMN noticed BIGINT NOT NULL DEFAULT 0;
