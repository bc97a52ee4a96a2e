-- What servers that share a database have to agree on. With SQLite there is one server.

-- One row: what changes with everything that servers keep in memory, and the number of the last event.
CREATE TABLE state (
    id         BIGINT PRIMARY KEY,
    revision   BIGINT NOT NULL,
    last_event BIGINT NOT NULL
) WITHOUT ROWID;
INSERT INTO state (id, revision, last_event)
SELECT 1, 0, coalesce(max(first + n - 1), 0) FROM events;

-- The servers by their number, under which each keeps its counts.
CREATE TABLE servers (
    number BIGINT PRIMARY KEY,
    name   TEXT   NOT NULL,                     -- made up when the server starts
    until  BIGINT NOT NULL                      -- then the number is free again
) WITHOUT ROWID;

-- One row: who does the upkeep, and until when nobody else may.
CREATE TABLE leader (
    id    BIGINT PRIMARY KEY,
    name  TEXT   NOT NULL,
    until BIGINT NOT NULL
) WITHOUT ROWID;
INSERT INTO leader (id, name, until) VALUES (1, '', 0);
