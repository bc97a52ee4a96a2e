-- Scripts that clients of qless have loaded over Redis' protocol.

CREATE TABLE scripts (
    sha       TEXT    PRIMARY KEY,              -- SHA-1 of the script's text, 40 hex digits
    dialect   TEXT    NOT NULL,
    loaded_at INTEGER NOT NULL
) WITHOUT ROWID;
