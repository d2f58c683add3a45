/** Statements to begin with. */
export const EXAMPLES = {
  couriers: `SELECT courier, count() AS deliveries, round(avg(lead_days), 1) AS mean_days,
       quantileExact(0.9)(lead_days) AS p90_days
FROM deliveries FINAL
GROUP BY courier
ORDER BY mean_days`,
  slow: `SELECT substring(dest_cap, 1, 2) AS cap_prefix, courier, count() AS deliveries,
       round(avg(lead_days), 1) AS mean_days
FROM deliveries FINAL
GROUP BY cap_prefix, courier
HAVING deliveries >= 20
ORDER BY mean_days DESC
LIMIT 20`,
  months: `SELECT toStartOfMonth(delivered_on) AS month, count() AS deliveries,
       round(avg(lead_days), 2) AS mean_days
FROM deliveries FINAL
GROUP BY month
ORDER BY month`,
  attempts: `SELECT toStartOfHour(at) AS hour, outcome, count() AS attempts,
       quantileExact(0.95)(latency_ms) AS p95_ms
FROM attempts FINAL
GROUP BY hour, outcome
ORDER BY hour DESC
LIMIT 50`,
};

export type ExampleName = keyof typeof EXAMPLES;
