-- Options that somebody has set; what is not here has its default (`engine::config`).
CREATE TABLE config (
    option TEXT COLLATE "C" PRIMARY KEY,
    value  TEXT COLLATE "C" NOT NULL                        -- JSON
);
