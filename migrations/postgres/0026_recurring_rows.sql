-- For SQLite only. Postgres finds a row by its place, and stores long texts apart.
SELECT 1;
