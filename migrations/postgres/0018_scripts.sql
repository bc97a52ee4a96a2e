-- Scripts that clients of qless have loaded over Redis' protocol.

CREATE TABLE scripts (
    sha       TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- SHA-1 of the script's text, 40 hex digits
    dialect   TEXT COLLATE "C" NOT NULL,
    loaded_at BIGINT NOT NULL
);
