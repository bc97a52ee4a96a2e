-- How much of the audit and of the sessions belongs to one name is limited.
CREATE INDEX audit_by_who ON audit (who, at);
CREATE INDEX sessions_by_name ON sessions (name, seen_at);
