-- For SQLite only. Postgres stores long texts apart from their rows.
SELECT 1;
