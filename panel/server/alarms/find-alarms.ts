/** Every alarm at the moment, and its owner. */
import type { Benchmarks } from "#analytics/benchmarks.ts";
import type { Insights } from "#analytics/insights.ts";
import { OPERATORS } from "#core/accounts/store/audit-log.ts";
import { ALARMS, type AlarmKind } from "#core/alarms/rules/alarm.ts";
import type { OwnedFinding } from "#core/alarms/rules/incident.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import { areRunning } from "#core/platform/log/running-time.ts";
import { romeDateTime } from "#core/platform/time/rome-time.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { readFailing } from "#core/webhooks/store/endpoints.ts";
import { alarmsOf, silentCourier } from "#panel/server/operations/alarms.ts";
import { readNow } from "#panel/server/operations/overview.ts";

export interface Found {
  readonly findings: readonly OwnedFinding[];
  /** Whether what it is found by could not be read. */
  readonly isUnknown: (kind: AlarmKind) => boolean;
}

/** Found by what ClickHouse answers. */
const OF_ANALYTICS: readonly AlarmKind[] = ["COURIER_SILENT"];
/** About Redis and ClickHouse themselves: a shard that is unavailable leaves them standing. */
const OF_STORES: readonly AlarmKind[] = [
  "CLICKHOUSE_UNAVAILABLE",
  "REDIS_PART_AWAY",
  "REPLICAS_MISSING",
];
/** While nothing is sent, an endpoint cannot recover. */
const OF_SENDING: readonly AlarmKind[] = ["ENDPOINT_FAILING", "ENDPOINTS_FAILING"];

export async function findAlarms(
  runtime: Pick<Runtime, "redis" | "live">,
  benchmarks: Benchmarks,
  insights: Pick<Insights, "silence"> | undefined,
): Promise<Found> {
  const { redis, live } = runtime;
  const configuration = await live.refresh();
  const nowMs = live.now();
  const missing = new Set<string>();
  const [reading, silence, failing, isSending] = await Promise.all([
    readNow(runtime, benchmarks),
    insights ? insights.silence(nowMs).catch(() => null) : null,
    readFailing(redis, nowMs, missing),
    areRunning(redis, nowMs),
  ]);
  const silent = (silence ?? []).filter((one) => one.silent).map(({ courier }) => courier);
  const open = silent.filter((code) => configuration.couriers.get(code)?.acceptingEvents);
  const ofOperators = alarmsOf({ ...reading, silentCouriers: open });
  const isIncomplete = reading.missing.length + missing.size > 0;
  return {
    findings: [
      ...ofOperators.map((one) => ({ ...one, owner: OPERATORS })),
      ...open.map((code) => ({ ...silentCourier(code), owner: `courier ${code}` })),
      ...failingEndpoints(configuration, failing),
    ],
    isUnknown: (kind) =>
      (silence === null && OF_ANALYTICS.includes(kind)) ||
      (!isSending && OF_SENDING.includes(kind)) ||
      (isIncomplete && !OF_STORES.includes(kind)),
  };
}

/** Those that fail, and those that failing has disabled, of companies that are open. Test mode is left out. */
function failingEndpoints(
  { endpoints, channels, companies }: Configuration,
  failing: readonly { readonly endpointId: string; readonly sinceMs: number }[],
): OwnedFinding[] {
  const since = new Map(failing.map(({ endpointId, sinceMs }) => [endpointId, sinceMs]));
  return [...endpoints.values()].flatMap((endpoint): OwnedFinding[] => {
    const { id, code, channelId, active, disabled } = endpoint;
    const channel = channels.get(channelId);
    const company = channel && companies.get(channel.companyId);
    if (!channel || !company || channel.closedAtMs > 0 || channel.testOf !== null) return [];
    const ofDisabled = disabled?.reason === "failing" ? disabled.failingSinceMs : null;
    const sinceMs = active ? since.get(id) : ofDisabled;
    if (sinceMs === undefined || sinceMs === null) return [];
    return [
      {
        owner: `company ${company.code}`,
        kind: "ENDPOINT_FAILING",
        subject: id,
        severity: active ? ALARMS.ENDPOINT_FAILING.severity : "critical",
        facts: { endpoint: code, channel: channel.name, since: romeDateTime(sinceMs) },
        page: `/webhooks/${id}`,
      },
    ];
  });
}
