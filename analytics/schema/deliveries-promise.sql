-- Promises about the day of delivery. A shipment keeps its planned date, and a fact its estimate.
ALTER TABLE deliveries ADD COLUMN IF NOT EXISTS
    planned_on Nullable(Date32)
