/** `GET /panel/api/overview`: rates, lag, queue depths, error counts and freshness at a glance. */

import { Type } from "@sinclair/typebox";
import type { Benchmarks } from "#analytics/benchmarks.ts";
import type { Insights } from "#analytics/insights.ts";
import { readArchiveProgress, readArchiveStatus } from "#core/archive/store/archive-status.ts";
import { countConflicts } from "#core/events/store/number-conflicts.ts";
import { route } from "#core/platform/http/access.ts";
import { readDone, readLags } from "#core/platform/log/streams.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { ARCHIVER_STATUS_KEY, NUMBER_CONFLICT_KEYS } from "#core/platform/redis/keys.ts";
import { readMasters } from "#core/platform/redis/replicas.ts";
import { type Missing, orMissing } from "#core/platform/redis/unavailable-shard.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import {
  type Ledger,
  readBalance,
  readLedger,
  readQueueDepths,
} from "#core/webhooks/store/deliveries/ledger.ts";
import { longestOverdueMs } from "#core/webhooks/store/deliveries/overdue.ts";
import { readFailing } from "#core/webhooks/store/endpoints.ts";
import { createFeed } from "#panel/server/http/feed.ts";
import { mayStill, panelRoutes } from "#panel/server/panel-routes.ts";
import { alarmsOf, rememberAlarms } from "./alarms.ts";
import { Overview } from "./overview-view.ts";
import { keepSamples } from "./samples.ts";
import { watchSilence } from "./silent-couriers.ts";

interface Sample {
  readonly atMs: number;
  readonly ledger: Ledger;
  /** Entries done, by log and group. */
  readonly done: ReadonlyMap<string, number>;
  /** Of a whole reading: none. */
  readonly missing: Missing;
}

/** An event of the stream: OpenAPI 3.1 has no words for the whole of it. */
const StreamedOverview = Type.Object({
  event: Type.Literal("overview"),
  data: Type.String({ contentMediaType: "application/json" }),
});

const STREAM_ACCESS = { can: "overview:read", of: "installation" } as const;
const SAMPLES = { everyMs: 5_000, kept: 12 } as const;

export function overviewRoute(runtime: Runtime, benchmarks: Benchmarks, insights?: Insights) {
  const { redis } = runtime;
  const silentCouriers = watchSilence(insights, runtime.live.now);
  const alarmsSince = rememberAlarms();

  const sampling = keepSamples(() => takeSample(redis), SAMPLES);

  async function overview(): Promise<Overview> {
    const now = await takeSample(redis);
    // A count can only be compared with one of the same partitions.
    const from = sampling.samples.find(({ missing }) => Bun.deepEquals(missing, now.missing));
    const read = await readOverview(runtime, benchmarks, from ?? now, now);
    const reading = { ...read, silentCouriers: [...silentCouriers()] };
    return { ...reading, alarms: alarmsSince(alarmsOf(reading), runtime.live.now()) };
  }

  const ending = runtime.listeners.get("panel")?.draining;
  const feed = createFeed(overview, { log: runtime.log, ...(ending && { ending }) });
  return panelRoutes(runtime, "overview")
    .onStart(sampling.start)
    .onStop(() => {
      sampling.stop();
      feed.close();
    })
    .get(
      "/panel/api/overview",
      overview,
      route({
        access: { can: "overview:read", of: "installation" },
        response: Overview,
        summary: "Rates, lag, queue depths, error counts, freshness of each store",
      }),
    )
    .get(
      "/panel/api/overview/stream",
      ({ request, server }) => feed.join(() => mayStill(runtime, STREAM_ACCESS, request, server)),
      route({
        access: STREAM_ACCESS,
        summary: "The overview as server-sent events `overview`, every 2 seconds",
        errors: ["TOO_MANY_VIEWERS"],
        answers: {
          200: {
            description: "events; the data of each is an overview",
            content: { mediaType: "text/event-stream", schema: StreamedOverview },
          },
        },
      }),
    );
}

async function takeSample(redis: Redis): Promise<Sample> {
  const missing: Missing = new Set();
  const [ledger, done] = await Promise.all([readLedger(redis, missing), readDone(redis, missing)]);
  return { atMs: Date.now(), ledger, done, missing };
}

/** As it is at the moment, without rates. */
export async function readNow(runtime: Pick<Runtime, "redis" | "live">, benchmarks: Benchmarks) {
  const now = await takeSample(runtime.redis);
  return readOverview(runtime, benchmarks, now, now);
}

async function readOverview(
  { redis, live }: Pick<Runtime, "redis" | "live">,
  benchmarks: Benchmarks,
  from: Sample,
  now: Sample,
): Promise<Omit<Overview, "alarms" | "silentCouriers">> {
  const missing: Missing = new Set(now.missing);
  const or = <T>(key: string, otherwise: T) => orMissing(redis, missing, key, otherwise);
  const [ledger, lags, queues, conflicts, clickhouse, overdueMs, failing, archive, progress] =
    await Promise.all([
      readBalance(redis, live.configuration(), missing),
      readLags(redis, missing),
      readQueueDepths(redis, missing),
      countConflicts(redis).catch(or(NUMBER_CONFLICT_KEYS.byTime, null)),
      benchmarks.ready(),
      longestOverdueMs(redis, live.now(), missing),
      readFailing(redis, Number.MAX_SAFE_INTEGER, missing),
      readArchiveStatus(redis).catch(or(ARCHIVER_STATUS_KEY, null)),
      readArchiveProgress(redis).catch(or(ARCHIVER_STATUS_KEY, { backlog: 0 })),
    ]);
  const masters = await readMasters(redis);
  const behindSeconds = lags.find(({ group }) => group === "analytics")?.seconds ?? 0;
  const overSeconds = (now.atMs - from.atMs) / 1000;
  const perSecond = (count: (sample: Sample) => number) =>
    overSeconds === 0 ? 0 : Math.max(0, count(now) - count(from)) / overSeconds;
  const doneOf = ({ log, group }: { readonly log: string; readonly group: string }) =>
    perSecond(({ done }) => done.get(`${log} ${group}`) ?? 0);
  return {
    at: new Date(live.now()).toISOString(),
    rates: {
      acceptedPerSecond: perSecond((one) => one.ledger.accepted),
      appliedPerSecond: perSecond((one) => one.ledger.applied),
      overSeconds,
    },
    ledger: {
      ...ledger,
      notSent: { ...ledger.notSent },
      couriers: [...ledger.couriers],
      difference: missing.size === 0 ? ledger.difference : null,
    },
    lag: lags.map((lag) => ({ ...lag, perSecond: doneOf(lag) })),
    queues,
    webhooks: {
      succeededPerMinute: 60 * perSecond((one) => one.ledger.delivered),
      failedPerMinute: 60 * perSecond((one) => one.ledger.failed),
      oldestWaitingSeconds: overdueMs / 1000,
      failingEndpoints: failing.length,
    },
    numberConflicts: conflicts,
    missing: [...missing].toSorted(),
    stores: {
      redis: { ready: redis.isReady && masters.away.length === 0, ...masters },
      clickhouse: { ready: clickhouse, behindSeconds },
      archive: archive && {
        shipments: archive.archived,
        quiet: archive.quiet,
        behindSeconds: Math.max(0, Date.now() - archive.endedAtMs) / 1_000,
        backlog: progress.backlog,
      },
    },
  };
}
