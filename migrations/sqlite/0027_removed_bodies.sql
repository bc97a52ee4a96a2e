-- The long bodies of removed jobs have a column of their own, so that they are not written as part of JSON; and removed
-- jobs are rows with a number, because a row without one is found by comparing whole rows.

ALTER TABLE removed RENAME TO removed_before;

CREATE TABLE removed (
    operation BIGINT NOT NULL,
    n         BIGINT NOT NULL,                  -- in this order
    job       TEXT   NOT NULL,                  -- JSON, see `engine::operations::undo`
    body      TEXT,                             -- its body, if that is long; in the JSON, it is empty then
    PRIMARY KEY (operation, n)
);

INSERT INTO removed (operation, n, job) SELECT operation, n, job FROM removed_before;

DROP TABLE removed_before;
