-- Long bodies of jobs, apart from their rows, so that an update of a row does not write them again. The row has a stub:
-- `<`, the size in bytes with 10 digits, and the first 1,000 characters (`engine/model/body.rs`).

CREATE TABLE long_bodies (
    job  BIGINT PRIMARY KEY,                    -- jobs.seq
    body TEXT   NOT NULL
);

INSERT INTO long_bodies (job, body)
SELECT seq, body FROM jobs WHERE octet_length(body) > 16384 OR substr(body, 1, 1) = '<';
UPDATE jobs SET body = '<' || lpad(CAST(octet_length(body) AS TEXT), 10, '0') || substr(body, 1, 1000)
WHERE octet_length(body) > 16384 OR substr(body, 1, 1) = '<';
