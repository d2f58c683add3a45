-- The estimate that a fact brings.
ALTER TABLE events ADD COLUMN IF NOT EXISTS
    estimated_on Nullable(Date32)
