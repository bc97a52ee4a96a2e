-- The list of the recurring jobs of all queues, by due time.
CREATE INDEX recurring_due ON recurring (next_at, seq);
