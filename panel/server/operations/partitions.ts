/** `GET /panel/api/partitions`: what each partition of the store takes, and which master has it. */

import { Type } from "@sinclair/typebox";
import {
  type Calls,
  type KnownLoad,
  readCalls,
  readKnownLoads,
} from "#core/placement/store/partition-load.ts";
import { route } from "#core/platform/http/access.ts";
import { unlessShardUnavailable } from "#core/platform/redis/unavailable-shard.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { keepSamples } from "./samples.ts";

const Partitions = Type.Array(
  Type.Object({
    partition: Type.String({ description: "its hash tag", examples: ["{k3}"] }),
    master: Type.Union([Type.String(), Type.Null()], {
      description: "host and port; null = there is one server, or none has the slot",
    }),
    bytes: Type.Union([Type.Integer(), Type.Null()], {
      description: "about: estimated from random keys; null = its master does not answer",
    }),
    callsPerSecond: Type.Union([Type.Number(), Type.Null()], {
      description:
        "scripts that all processes ran on it, over the last minute; null = the shard that counts them does not answer",
    }),
  }),
);

/** Processes add up their calls every 10 s. */
const SAMPLES = { everyMs: 10_000, kept: 7 } as const;
/** How long an estimate of the bytes is shown: each reads thousands of keys. */
export const BYTES_KEPT_MS = limit(
  60_000,
  "how long the panel shows an estimate of a master's partitions",
  "read again",
);

interface Sample {
  readonly atMs: number;
  readonly calls: Calls;
}

export function partitionsRoute(runtime: Runtime) {
  const { redis } = runtime;
  let estimate: { readonly atMs: number; readonly loads: Promise<KnownLoad[]> } | null = null;

  async function takeSample(): Promise<Sample> {
    return { calls: await readCalls(redis), atMs: performance.now() };
  }

  const sampling = keepSamples(takeSample, SAMPLES);

  function loads(): Promise<KnownLoad[]> {
    const nowMs = performance.now();
    if (estimate && nowMs - estimate.atMs < BYTES_KEPT_MS) return estimate.loads;
    const reading = readKnownLoads(redis);
    const own = { atMs: nowMs, loads: reading };
    estimate = own;
    const forget = () => {
      if (estimate === own) estimate = null;
    };
    reading.then((all) => all.some(({ bytes }) => bytes === null) && forget(), forget);
    return reading;
  }

  return panelRoutes(runtime, "partitions")
    .onStart(sampling.start)
    .onStop(sampling.stop)
    .get(
      "/panel/api/partitions",
      async () => {
        const [all, now] = await Promise.all([
          loads(),
          takeSample().catch(unlessShardUnavailable(redis)),
        ]);
        const from = sampling.samples[0] ?? now;
        return all.map(({ tag, master, bytes }) => ({
          partition: tag,
          master,
          bytes,
          callsPerSecond: from && now ? rateOf(tag, from, now) : null,
        }));
      },
      route({
        access: { can: "overview:read", of: "installation" },
        response: Partitions,
        summary: "What each partition of the store takes",
      }),
    );
}

/** Counts of a day only grow, and those of a day that has just begun start at 0. */
function rateOf(tag: string, from: Sample, now: Sample): number {
  const seconds = (now.atMs - from.atMs) / 1_000;
  if (seconds <= 0) return 0;
  const added = [...now.calls].reduce(
    (sum, [day, counts]) => sum + (counts.get(tag) ?? 0) - (from.calls.get(day)?.get(tag) ?? 0),
    0,
  );
  return Math.max(0, added) / seconds;
}
