/** `GET /panel/api/partitions`: what each partition of the store takes, and which master has it. */

import { Type } from "@sinclair/typebox";
import {
  type PartitionLoad,
  readCalls,
  readPartitionLoads,
} from "#core/placement/store/partition-load.ts";
import { described } from "#core/platform/openapi/operation.ts";
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
    bytes: Type.Integer({ description: "about: estimated from random keys" }),
    callsPerSecond: Type.Number({
      description: "scripts that all processes ran on it, over the last minute",
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
  /** By day and partition. */
  readonly calls: ReadonlyMap<number, ReadonlyMap<string, number>>;
}

export function partitionsRoute(runtime: Runtime) {
  const { redis } = runtime;
  let estimate: { readonly atMs: number; readonly loads: Promise<PartitionLoad[]> } | null = null;

  async function takeSample(): Promise<Sample> {
    return { calls: await readCalls(redis), atMs: performance.now() };
  }

  const sampling = keepSamples(takeSample, SAMPLES);

  function loads(): Promise<PartitionLoad[]> {
    const nowMs = performance.now();
    if (estimate && nowMs - estimate.atMs < BYTES_KEPT_MS) return estimate.loads;
    const reading = readPartitionLoads(redis);
    estimate = { atMs: nowMs, loads: reading };
    reading.catch(() => {
      estimate = null;
    });
    return reading;
  }

  return panelRoutes(runtime, "partitions")
    .onStart(sampling.start)
    .onStop(sampling.stop)
    .get(
      "/panel/api/partitions",
      async () => {
        const [all, now] = await Promise.all([loads(), takeSample()]);
        const from = sampling.samples[0] ?? now;
        return all.map(({ tag, master, bytes }) => ({
          partition: tag,
          master,
          bytes,
          callsPerSecond: rateOf(tag, from, now),
        }));
      },
      {
        needs: { can: "overview:read", of: "installation" },
        response: Partitions,
        ...described({ summary: "What each partition of the store takes" }),
      },
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
