-- A delivery that came before its ship date, or more than a year after it, is no evidence: `shipDate` is what a merchant said.
-- Benchmarks leave it out; `courier_performance` counts it.
ALTER TABLE deliveries ADD COLUMN IF NOT EXISTS
    is_evidence Bool ALIAS ship_date <= delivered_on AND ship_date >= addYears(delivered_on, -1)
