-- When a token expires, if it does; and the hour in which it was last used, in microseconds since 1970 (0: not yet).
ALTER TABLE tokens ADD COLUMN expires_at BIGINT;
ALTER TABLE tokens ADD COLUMN used_at BIGINT NOT NULL DEFAULT 0;
