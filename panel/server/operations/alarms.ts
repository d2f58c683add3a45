/** What in an overview somebody should look at, and since when. The alarms themselves: `core/alarms/rules/alarm.ts`. */
import {
  ALARMS,
  type AlarmKind,
  alarmText,
  codeOf,
  type Facts,
  type Finding,
} from "#core/alarms/rules/alarm.ts";
import type { Overview } from "./overview-view.ts";

type Alarm = Overview["alarms"][number];

const LATE_SECONDS = 60;
const VERY_LATE_SECONDS = 600;
/** Webhooks that wait beyond their time. */
const OVERDUE_SECONDS = 300;
/** A difference of the ledger that stays for so long is none of what is under way. */
const LEDGER_MS = 60_000;

interface Particulars {
  readonly subject?: string;
  readonly facts?: Facts;
  readonly isCritical?: boolean;
}

function finding(kind: AlarmKind, page: string, particulars: Particulars = {}): Finding {
  const { subject = "", facts = {}, isCritical = false } = particulars;
  const severity = isCritical ? "critical" : ALARMS[kind].severity;
  return { kind, subject, severity, facts, page };
}

/** The gravest first. */
export function alarmsOf(overview: Omit<Overview, "alarms">): Finding[] {
  const { stores, lag, queues, webhooks, ledger, silentCouriers } = overview;
  const found = storeAlarms(stores);
  if (Object.values(ledger.difference ?? {}).some((difference) => difference !== 0)) {
    found.push(finding("LEDGER_DIFFERENCE", "/overview"));
  }
  for (const { group, entries, seconds } of lag.filter((one) => one.seconds > LATE_SECONDS)) {
    const facts = { group, seconds: String(Math.round(seconds)), entries: String(entries) };
    const isCritical = seconds > VERY_LATE_SECONDS;
    found.push(finding("LAG", "/overview", { subject: group.toUpperCase(), facts, isCritical }));
  }
  if (queues.deadLetters > 0) {
    const facts = { count: String(queues.deadLetters) };
    found.push(finding("DEAD_LETTERS", "/dead-letters", { facts }));
  }
  if (webhooks.oldestWaitingSeconds > OVERDUE_SECONDS) {
    const facts = { seconds: String(Math.round(webhooks.oldestWaitingSeconds)) };
    found.push(finding("WEBHOOKS_LATE", "/webhooks", { facts }));
  }
  if (webhooks.failingEndpoints > 0) {
    const facts = { count: String(webhooks.failingEndpoints) };
    found.push(finding("ENDPOINTS_FAILING", "/webhooks", { facts }));
  }
  for (const courier of silentCouriers) found.push(silentCourier(courier));
  const rank = ({ severity }: Finding) => (severity === "critical" ? 0 : 1);
  return found.sort((one, other) => rank(one) - rank(other));
}

export function silentCourier(courier: string): Finding {
  const page = `/carriers/${courier}?tab=quality`;
  return finding("COURIER_SILENT", page, { subject: courier, facts: { courier } });
}

function storeAlarms({ redis, clickhouse }: Overview["stores"]): Finding[] {
  const found: Finding[] = [];
  if (!clickhouse.ready) found.push(finding("CLICKHOUSE_UNAVAILABLE", "/doctor"));
  const { away, replicasMissing } = redis;
  if (away.length > 0) {
    found.push(finding("REDIS_PART_AWAY", "/doctor", { facts: { nodes: away.join(", ") } }));
  }
  if (replicasMissing.length > 0) {
    const nodes = replicasMissing.map((one) => `${one.node} ${one.replicas}/${one.wanted}`);
    found.push(finding("REPLICAS_MISSING", "/doctor", { facts: { nodes: nodes.join(", ") } }));
  }
  return found;
}

/** Remembers since when each finding stands without a break. */
export function rememberAlarms(): (findings: readonly Finding[], nowMs: number) => Alarm[] {
  let known = new Map<string, number>();
  return (findings, nowMs) => {
    known = new Map(findings.map(codeOf).map((code) => [code, known.get(code) ?? nowMs]));
    const sinceOf = (one: Finding) => known.get(codeOf(one)) ?? nowMs;
    return findings
      .filter((one) => one.kind !== "LEDGER_DIFFERENCE" || nowMs - sinceOf(one) >= LEDGER_MS)
      .map((one) => ({
        code: codeOf(one),
        severity: one.severity,
        text: alarmText(one, "en"),
        docs: ALARMS[one.kind].docs,
        page: one.page,
        since: new Date(sinceOf(one)).toISOString(),
      }));
  };
}
