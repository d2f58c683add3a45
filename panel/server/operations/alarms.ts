/** What in an overview somebody should look at, and since when. */
import type { Overview } from "./overview-view.ts";

type Alarm = Overview["alarms"][number];
type Finding = Omit<Alarm, "since">;

const LATE_SECONDS = 60;
const VERY_LATE_SECONDS = 600;
/** Webhooks that wait beyond their time. */
const OVERDUE_SECONDS = 300;
/** A difference of the ledger that stays for so long is none of what is under way. */
const LEDGER_MS = 60_000;
const UNAVAILABLE_DOCS = "operations/incidents.md#when-the-store-is-unavailable";
const WEBHOOK_DOCS = "webhooks.md#for-operators";

/** Before the courier's code. */
const SILENT = "COURIER_SILENT_";

/** The gravest first. */
export function alarmsOf(overview: Omit<Overview, "alarms">): Finding[] {
  const { stores, lag, queues, webhooks, ledger, silentCouriers } = overview;
  const found = storeAlarms(stores);
  if (Object.values(ledger.difference ?? {}).some((difference) => difference !== 0)) {
    const text = "The ledger does not balance.";
    found.push({
      code: "LEDGER_DIFFERENCE",
      severity: "critical",
      text,
      docs: "operations/incidents.md#the-ledger",
      page: "/overview",
    });
  }
  for (const { group, entries, seconds } of lag.filter((one) => one.seconds > LATE_SECONDS)) {
    const text = `${group} is ${Math.round(seconds)} s behind, with ${entries} entries.`;
    const severity = seconds > VERY_LATE_SECONDS ? "critical" : "warning";
    found.push({
      code: `LAG_${group.toUpperCase()}`,
      severity,
      text,
      docs: "operations/monitoring.md#alarms",
      page: "/overview",
    });
  }
  if (queues.deadLetters > 0) {
    const text = `Dead letters: ${queues.deadLetters}.`;
    found.push({
      code: "DEAD_LETTERS",
      severity: "warning",
      text,
      docs: "operations/incidents.md#dead-letters",
      page: "/dead-letters",
    });
  }
  if (webhooks.oldestWaitingSeconds > OVERDUE_SECONDS) {
    const text = `A webhook has been waiting for ${Math.round(webhooks.oldestWaitingSeconds)} s.`;
    found.push({
      code: "WEBHOOKS_LATE",
      severity: "warning",
      text,
      docs: WEBHOOK_DOCS,
      page: "/webhooks",
    });
  }
  if (webhooks.failingEndpoints > 0) {
    const text = `Webhook endpoints that fail: ${webhooks.failingEndpoints}.`;
    found.push({
      code: "ENDPOINTS_FAILING",
      severity: "warning",
      text,
      docs: WEBHOOK_DOCS,
      page: "/webhooks",
    });
  }
  for (const courier of silentCouriers) {
    found.push({
      code: `${SILENT}${courier}`,
      severity: "warning",
      text: `${courier} has sent far fewer events than in the same hours of the weeks before.`,
      docs: "operations/couriers.md#a-silent-courier",
      page: `/carriers/${courier}?tab=quality`,
    });
  }
  const rank = ({ severity }: Finding) => (severity === "critical" ? 0 : 1);
  return found.sort((one, other) => rank(one) - rank(other));
}

function storeAlarms(stores: Overview["stores"]): Finding[] {
  const found: Finding[] = [];
  if (!stores.clickhouse.ready) {
    const text = "The analytics do not answer: benchmarks are unavailable, and changes wait.";
    found.push({
      code: "CLICKHOUSE_UNAVAILABLE",
      severity: "critical",
      text,
      docs: UNAVAILABLE_DOCS,
      page: "/doctor",
    });
  }
  const { away, replicasMissing } = stores.redis;
  if (away.length > 0) {
    const text = `A shard of Redis is unavailable: ${away.join(", ")}. What needs it is refused, and its figures are missing here.`;
    found.push({
      code: "REDIS_PART_AWAY",
      severity: "critical",
      text,
      docs: UNAVAILABLE_DOCS,
      page: "/doctor",
    });
  }
  if (replicasMissing.length > 0) {
    const nodes = replicasMissing.map((one) => `${one.node} ${one.replicas}/${one.wanted}`);
    const text = `Masters of Redis without their replicas: ${nodes.join(", ")}.`;
    found.push({
      code: "REPLICAS_MISSING",
      severity: "critical",
      text,
      docs: "operations/redis.md#replicas",
      page: "/doctor",
    });
  }
  return found;
}

/** Remembers since when each finding stands without a break. */
export function rememberAlarms(): (findings: readonly Finding[], nowMs: number) => Alarm[] {
  let known = new Map<string, number>();
  return (findings, nowMs) => {
    known = new Map(findings.map(({ code }) => [code, known.get(code) ?? nowMs]));
    const sinceOf = (code: string) => known.get(code) ?? nowMs;
    return findings
      .filter(({ code }) => code !== "LEDGER_DIFFERENCE" || nowMs - sinceOf(code) >= LEDGER_MS)
      .map((finding) => ({ ...finding, since: new Date(sinceOf(finding.code)).toISOString() }));
  };
}
