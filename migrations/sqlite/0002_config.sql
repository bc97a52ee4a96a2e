-- Options that somebody has set; what is not here has its default (`engine::config`).
CREATE TABLE config (
    option TEXT PRIMARY KEY,
    value  TEXT NOT NULL                        -- JSON
) WITHOUT ROWID;
