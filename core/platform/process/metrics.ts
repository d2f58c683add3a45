/** Prometheus metrics of this process, one registry for all of its roles. Labels never carry personal data. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** How often the delay of the event loop is sampled: ten times as often would wake a process at rest a hundred times a second. */
const LOOP_SAMPLE_MS = 100;

export const registry = new Registry();
collectDefaultMetrics({
  register: registry,
  prefix: "waybill_",
  eventLoopMonitoringPrecision: LOOP_SAMPLE_MS,
});

/**
 * The metrics of the process under the names that Prometheus's own libraries give them too, such as `process_cpu_seconds_total`,
 * beside those with our prefix, which dashboards and alarms ask for.
 */
export function withPlainNames(text: string): string {
  const lines = text.split("\n").filter((line) => OF_PROCESS.test(line));
  const plain = lines.map((line) => line.replace("waybill_process_", "process_"));
  return plain.length === 0 ? text : `${text.trimEnd()}\n${plain.join("\n")}\n`;
}

const OF_PROCESS = /^(# (HELP|TYPE) )?waybill_process_/;

const registers = [registry];

/** 1 for each role of this process. */
export const buildInfo = new Gauge({
  name: "waybill_build_info",
  help: "Always 1: what runs here, by role.",
  labelNames: ["version", "commit", "role", "bun"],
  registers,
});

export const eventsReceived = new Counter({
  name: "waybill_events_total",
  help: "Courier events by outcome.",
  labelNames: ["courier", "outcome"],
  registers,
});

export const ambiguousEvents = new Counter({
  name: "waybill_events_ambiguous_total",
  help: "UNKNOWN_TRACKING because of a mismatch, or of an externalId that several shipments have.",
  labelNames: ["courier"],
  registers,
});

export const outcomesNotKept = new Counter({
  name: "waybill_event_outcomes_not_kept_total",
  help: "Lines on what became of events that were not ACCEPTED, two for each event, that a limit or the store kept out.",
  labelNames: ["courier"],
  registers,
});

export const eventsNotParked = new Counter({
  name: "waybill_events_not_set_aside_total",
  help: "UNKNOWN_TRACKING events that were not kept, or displaced an older one, at a limit of the store of parked events.",
  labelNames: ["courier"],
  registers,
});

export const referencesLeftOut = new Counter({
  name: "waybill_references_left_out_total",
  help: "Shipments that a tracking number or externalId no longer finds, or never did, because of its limit.",
  registers,
});

export const numberConflicts = new Counter({
  name: "waybill_number_conflicts_total",
  help: "Tracking number changes that point to the number of another live shipment.",
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

export const webhookDecisions = new Counter({
  name: "waybill_webhook_decisions_total",
  help: "Webhook decisions by verdict, one for every change and endpoint.",
  labelNames: ["verdict"],
  registers,
});

export const attemptSeconds = new Histogram({
  name: "waybill_webhook_attempt_seconds",
  help: "Time a webhook request took.",
  buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  registers,
});

export const webhookAlerts = new Counter({
  name: "waybill_webhook_alerts_total",
  help: "Alerts about failing endpoints put into the outbox.",
  registers,
});

export const webhookAlertMails = new Counter({
  name: "waybill_webhook_alert_mails_total",
  help: "Mails about failing endpoints by outcome.",
  labelNames: ["outcome"],
  registers,
});

export const alarmNotifications = new Counter({
  name: "waybill_alarm_notifications_total",
  help: "Attempts to notify receivers of alarms, by outcome.",
  labelNames: ["outcome"],
  registers,
});

export const recipientMessages = new Counter({
  name: "waybill_recipient_messages_total",
  help: "Messages to recipients that have ended, by type (email, sms) and result (OK, KO).",
  labelNames: ["type", "result"],
  registers,
});

export const groupLag = new Gauge({
  name: "waybill_group_lag_entries",
  help: "Entries of a log that a consumer group has not acknowledged.",
  labelNames: ["log", "group"],
  registers,
});

export const groupLagSeconds = new Gauge({
  name: "waybill_group_lag_seconds",
  help: "Age of the oldest entry that a consumer group has not acknowledged.",
  labelNames: ["log", "group"],
  registers,
});

export const ledgerEntries = new Gauge({
  name: "waybill_ledger",
  help: "Ledger counters, over all processes.",
  labelNames: ["entry"],
  registers,
});

export const replicasMissing = new Gauge({
  name: "waybill_replicas_missing",
  help: "Replicas that the masters of Redis lack of those that writes wait for (REDIS_WAIT_REPLICAS).",
  registers,
});

export const attemptLog = new Gauge({
  name: "waybill_attempt_log",
  help: "Webhook attempts for the analytics: logged so far, waiting for ClickHouse, dropped at the mark so far.",
  labelNames: ["entry"],
  registers,
});

export const deadLetters = new Counter({
  name: "waybill_dead_letters_total",
  help: "Entries our own code could not process.",
  labelNames: ["group"],
  registers,
});

export const deadLettersAtLimit = new Counter({
  name: "waybill_dead_letters_at_limit_total",
  help: "Entries that failed for the last time while their log held the maximum of dead letters: they stay in retry.",
  labelNames: ["group"],
  registers,
});

export const storeFailures = new Counter({
  name: "waybill_store_failures_total",
  help: "Steps that failed because a store was unavailable and are retried, by the part that waits and the store, and requests that were refused for it.",
  labelNames: ["part", "store"],
  registers,
});
/** What a step can wait for; "none" is a limit or a conflict of our own, such as a full queue. */
export const STORES = ["redis", "clickhouse", "export", "none"] as const;
export type Store = (typeof STORES)[number];

/** The part of `storeFailures` that counts requests. */
export const REQUESTS = "requests";

/** Alarms compare counters over time: one that does not exist before its first incident hides that incident. */
export function countFailuresFromZero(part: string): void {
  for (const store of STORES) storeFailures.inc({ part, store }, 0);
}
countFailuresFromZero(REQUESTS);

export const internalErrors = new Counter({
  name: "waybill_internal_errors_total",
  help: "Unexpected internal errors, by the part that retries after a wait.",
  labelNames: ["part"],
  registers,
});

export const exportedFiles = new Counter({
  name: "waybill_exported_files_total",
  help: "Parquet files written by the scheduled export, by table.",
  labelNames: ["table"],
  registers,
});

/** @returns sets a moment, under its name by Prometheus' conventions and under the earlier one, `…_seconds` */
function timestamp(name: string, help: string) {
  const gauges = ["_timestamp_seconds", "_seconds"].map(
    (unit) => new Gauge({ name: `${name}${unit}`, help, registers }),
  );
  return {
    set(seconds: number) {
      for (const gauge of gauges) gauge.set(seconds);
    },
  };
}

export const exportFinished = timestamp(
  "waybill_export_finished",
  "When the latest complete export ended, Unix time; 0 = none has, or none is configured.",
);

export const archivedShipments = new Gauge({
  name: "waybill_archived_shipments",
  help: "Shipments in the archive, as of the latest complete round of this process' archiver.",
  registers,
});

export const archiveQuiet = new Gauge({
  name: "waybill_archive_quiet_shipments",
  help: "Shipments in Redis without a new status for ARCHIVE_AFTER_DAYS, after that round: not ended, or something is kept for them.",
  registers,
});

export const archiveDamaged = new Gauge({
  name: "waybill_archive_damaged_rows",
  help: "Rows of the archive that were found damaged and still are, as of the latest round of this process' archiver; 100 at most.",
  registers,
});

export const archiveFinished = timestamp(
  "waybill_archive_finished",
  "When this process' archiver last completed a round, Unix time; 0 = it has not, or nothing is archived.",
);

export const benchmarkRows = new Counter({
  name: "waybill_benchmark_rows_total",
  help: "Rows written to ClickHouse.",
  registers,
});

export const benchmarkFailures = new Counter({
  name: "waybill_benchmark_failures_total",
  help: "Benchmark queries that ClickHouse did not answer, by its kind of error.",
  labelNames: ["reason"],
  registers,
});
