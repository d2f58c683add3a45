/** `GET /panel/api/overview`: rates, lag, queue depths, error counts and freshness at a glance. */
import { type Static, Type } from "@sinclair/typebox";
import type { Benchmarks } from "#analytics/benchmarks.ts";
import { countConflicts } from "#core/redis/intake/number-conflicts.ts";
import { readLags } from "#core/redis/log/streams.ts";
import {
  type Ledger,
  readBalance,
  readLedger,
  readQueueDepths,
} from "#core/redis/webhooks/ledger.ts";
import type { Runtime } from "#core/runtime.ts";
import { panelRoutes } from "#panel/panel-routes.ts";

const Lag = Type.Object({
  log: Type.String(),
  group: Type.String(),
  entries: Type.Integer({ description: "entries not yet acknowledged" }),
  seconds: Type.Number({ description: "age of the oldest of them" }),
});

const outcomes = {
  received: Type.Integer(),
  accepted: Type.Integer(),
  duplicate: Type.Integer(),
  unknown: Type.Integer({ description: "answered UNKNOWN_TRACKING" }),
  invalid: Type.Integer(),
};

export const Overview = Type.Object({
  at: Type.String({ description: "service clock, ISO 8601" }),
  rates: Type.Object(
    {
      acceptedPerSecond: Type.Number(),
      appliedPerSecond: Type.Number(),
      overSeconds: Type.Number(),
    },
    { description: "means over the last minute" },
  ),
  ledger: Type.Object(
    {
      ...outcomes,
      routed: Type.Integer({
        description: "accepted events, once for each shipment that they go to",
      }),
      applied: Type.Integer({ description: "routed events that are part of their shipment" }),
      waiting: Type.Integer({ description: "routed events on their way, dead letters included" }),
      released: Type.Integer({
        description: "set-aside events that are part of their shipment, once for each shipment",
      }),
      sent: Type.Integer({ description: "webhook decisions to send" }),
      notSent: Type.Record(Type.String(), Type.Integer(), { description: "by reason" }),
      delivered: Type.Integer(),
      failed: Type.Integer(),
      pending: Type.Integer({ description: "deliveries on their way" }),
      difference: Type.Object(
        { received: Type.Integer(), applied: Type.Integer(), webhooks: Type.Integer() },
        { description: "what does not add up: 0 at rest" },
      ),
      couriers: Type.Array(Type.Object({ courier: Type.String(), ...outcomes })),
    },
    {
      description:
        "received = accepted + duplicate + unknown + invalid; routed = applied + waiting; " +
        "sent = delivered + failed + pending",
    },
  ),
  lag: Type.Array(Lag),
  queues: Type.Object({
    eventLog: Type.Integer(),
    changeLog: Type.Integer(),
    deadLetters: Type.Integer(),
  }),
  numberConflicts: Type.Integer({ description: "listed by GET /panel/api/number-conflicts" }),
  stores: Type.Object({
    redis: Type.Object({ ready: Type.Boolean() }),
    clickhouse: Type.Object({
      ready: Type.Boolean(),
      behindSeconds: Type.Number({ description: "age of the oldest change not yet written" }),
    }),
  }),
});
type Overview = Static<typeof Overview>;

interface Sample {
  readonly atMs: number;
  readonly ledger: Ledger;
}

const SAMPLE_EVERY_MS = 5_000;
const SAMPLES_KEPT = 12;

export function overviewRoute(runtime: Runtime, benchmarks: Benchmarks) {
  const { redis, live } = runtime;
  const samples: Sample[] = [];
  let timer: ReturnType<typeof setInterval> | undefined;

  async function takeSample(): Promise<Sample> {
    const sample = { atMs: Date.now(), ledger: await readLedger(redis) };
    samples.push(sample);
    if (samples.length > SAMPLES_KEPT) samples.shift();
    return sample;
  }

  async function overview(): Promise<Overview> {
    const first = samples[0];
    const [now, ledger, lag, queues, conflicts, clickhouse] = await Promise.all([
      takeSample(),
      readBalance(redis, live.configuration()),
      readLags(redis),
      readQueueDepths(redis),
      countConflicts(redis),
      benchmarks.ready(),
    ]);
    const behindSeconds = lag.find(({ group }) => group === "analytics")?.seconds ?? 0;
    return {
      at: new Date(live.now()).toISOString(),
      rates: ratesBetween(first ?? now, now),
      ledger: { ...ledger, notSent: { ...ledger.notSent }, couriers: [...ledger.couriers] },
      lag,
      queues,
      numberConflicts: conflicts,
      stores: { redis: { ready: redis.isReady }, clickhouse: { ready: clickhouse, behindSeconds } },
    };
  }

  return panelRoutes(runtime, "overview")
    .onStart(() => {
      timer = setInterval(() => void takeSample().catch(() => {}), SAMPLE_EVERY_MS);
    })
    .onStop(() => clearInterval(timer))
    .get("/panel/api/overview", overview, {
      needs: { can: "overview:read", of: "installation" },
      response: Overview,
      detail: { summary: "Rates, lag, queue depths, error counts, freshness of each store" },
    });
}

function ratesBetween(from: Sample, to: Sample): Overview["rates"] {
  const overSeconds = (to.atMs - from.atMs) / 1000;
  const perSecond = (count: (ledger: Ledger) => number) =>
    overSeconds === 0 ? 0 : (count(to.ledger) - count(from.ledger)) / overSeconds;
  return {
    acceptedPerSecond: perSecond(({ accepted }) => accepted),
    appliedPerSecond: perSecond(({ applied }) => applied),
    overSeconds,
  };
}
