-- Rules that call a webhook when problems begin and end.
CREATE TABLE alert_rules (
    id         TEXT NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    url        TEXT NOT NULL,
    -- The kinds of problems, separated by commas.
    kinds      TEXT NOT NULL,
    -- Seconds that a problem lasts before it is reported, and that it is gone before its end is reported.
    after_s    BIGINT NOT NULL,
    who        TEXT NOT NULL,
    created_at BIGINT NOT NULL
) WITHOUT ROWID;

-- The problems that have been reported and have not ended.
CREATE TABLE alerts (
    rule      TEXT NOT NULL,
    problem   TEXT NOT NULL,
    -- Also the ID of the delivery that reports the problem.
    id        TEXT NOT NULL,
    raised_at BIGINT NOT NULL,
    -- The problem in JSON.
    content   TEXT NOT NULL,
    PRIMARY KEY (rule, problem)
) WITHOUT ROWID;

-- What is sent to webhooks, and the newest deliveries that have ended (`done_at` is not 0).
CREATE TABLE alert_deliveries (
    id         TEXT NOT NULL PRIMARY KEY,
    -- The delivery that must have ended before this one begins; empty for none.
    follows    TEXT NOT NULL,
    rule       TEXT NOT NULL,
    rule_name  TEXT NOT NULL,
    event      TEXT NOT NULL,
    -- The problem in JSON.
    content    TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    attempts   BIGINT NOT NULL,
    next_at    BIGINT NOT NULL,
    done_at    BIGINT NOT NULL,
    delivered  BIGINT NOT NULL,
    outcome    TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX alert_deliveries_due ON alert_deliveries (next_at) WHERE done_at = 0;
