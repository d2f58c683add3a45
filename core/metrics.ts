/** Prometheus metrics of this process, one registry for all of its roles. Labels never carry personal data. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export const registry = new Registry();
collectDefaultMetrics({ register: registry, prefix: "waybill_" });

const registers = [registry];

export const eventsReceived = new Counter({
  name: "waybill_events_total",
  help: "Courier events by outcome.",
  labelNames: ["courier", "outcome"],
  registers,
});

export const ambiguousEvents = new Counter({
  name: "waybill_events_ambiguous_total",
  help: "UNKNOWN_TRACKING because of a mismatch or of more than one matching shipment.",
  labelNames: ["courier"],
  registers,
});

export const requestSeconds = new Histogram({
  name: "waybill_http_request_seconds",
  help: "Answer time by role and status class.",
  labelNames: ["role", "status"],
  buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
  registers,
});

export const factsApplied = new Counter({
  name: "waybill_facts_applied_total",
  help: "Facts applied to shipments.",
  registers,
});

export const deliveryAttempts = new Counter({
  name: "waybill_webhook_attempts_total",
  help: "Webhook attempts by outcome.",
  labelNames: ["outcome"],
  registers,
});

export const groupLag = new Gauge({
  name: "waybill_group_lag_entries",
  help: "Entries of a log that a consumer group has not acknowledged.",
  labelNames: ["log", "group"],
  registers,
});

export const deadLetters = new Counter({
  name: "waybill_dead_letters_total",
  help: "Entries our own code could not process.",
  labelNames: ["group"],
  registers,
});

export const benchmarkRows = new Counter({
  name: "waybill_benchmark_rows_total",
  help: "Rows written to ClickHouse.",
  registers,
});
