/**
 * Bytes of Redis memory per shipment with 8 events, 1 parcel and 2 order lines (row 10), all in: state, history, indices,
 * references, tracking numbers: `bun bench/shipment-memory.ts [--shipments 20000] [--quick] [--json]`. Beside it the JSON text
 * of the same detail as the API answers it. `--kinds` tells what each kind of key holds.
 */
import { parseArgs } from "node:util";
import { detailPart } from "#api/shipments/shipment-detail.ts";
import { addShipments, SHIPMENTS_AT_ONCE, STEPS } from "#bench/ordinary-shipments.ts";
import { type Figure, machine, median, print, redisVersion } from "#bench/table.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { readHistory, readShipments } from "#core/shipments/store/shipments.ts";
import { summaryOf } from "#core/shipments/store/summary.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const GOAL = { oursMost: 2_560, most: 1 };
/** A small channel has more of what every channel has. */
const ALARM = { oursMost: 3_500, most: 1.5 };
/** Details that the JSON text is measured of. */
const DETAILS = 100;
async function usedBytes(redis: Redis): Promise<number> {
  const info = await redis.info("memory");
  return Number(/used_memory:(\d+)/.exec(info)?.[1] ?? 0);
}

/** Mean bytes of the keys of each kind, over all shipments. */
async function byKind(redis: Redis, shipments: number): Promise<[string, number][]> {
  const sums = new Map<string, number>();
  for await (const keys of redis.scanIterator({ COUNT: 1_000 })) {
    const pipeline = redis.multi();
    for (const key of keys) pipeline.addCommand(["MEMORY", "USAGE", key, "SAMPLES", "0"]);
    const sizes = (await pipeline.execAsPipeline()) as unknown as number[];
    keys.forEach((key, at) => {
      const kind = /^\{[a-z]\d+\}:([a-z]+)/.exec(key)?.[1] ?? "other";
      sums.set(kind, (sums.get(kind) ?? 0) + (sizes[at] ?? 0));
    });
  }
  return [...sums]
    .map(([kind, bytes]): [string, number] => [kind, bytes / shipments])
    .filter(([, bytes]) => bytes >= 1)
    .sort((one, other) => other[1] - one[1]);
}

/** Of the detail as `GET /v2/shipments/{id}` answers it. */
async function jsonBytes({ redis, live }: TestRuntime, ids: readonly number[]): Promise<number> {
  const configuration = live.configuration();
  const sizes: number[] = [];
  for (const shipment of await readShipments(redis, ids)) {
    const history = await readHistory(redis, shipment.record.id);
    const detail = {
      ...summaryOf(shipment, configuration),
      ...detailPart(shipment, history, [], configuration.statusDetails),
    };
    sizes.push(Buffer.byteLength(JSON.stringify(detail)));
  }
  return median(sizes);
}

const { values } = parseArgs({
  options: {
    shipments: { type: "string", default: "20000" },
    quick: { type: "boolean", default: false },
    kinds: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const count = values.quick ? 2_000 : Number(values.shipments);
const runtime = await openTestRuntime(testSetup());
try {
  await addShipments(runtime, 1_000_000, SHIPMENTS_AT_ONCE);
  const before = await usedBytes(runtime.redis);
  const ids: number[] = [];
  for (let from = 0; from < count; from += SHIPMENTS_AT_ONCE) {
    ids.push(...(await addShipments(runtime, from, SHIPMENTS_AT_ONCE)));
  }
  const ours = ((await usedBytes(runtime.redis)) - before) / ids.length;
  const peer = await jsonBytes(runtime, ids.slice(0, DETAILS));
  const kinds = values.kinds ? await byKind(runtime.redis, ids.length + SHIPMENTS_AT_ONCE) : [];
  for (const [kind, size] of kinds) {
    process.stderr.write(`${kind.padEnd(8)} ${Math.round(size)}\n`);
  }
  const figure: Figure = {
    row: 10,
    work: `a shipment of ${STEPS.length} events, 1 parcel, 2 lines`,
    ours,
    peer,
    beside: "JSON text of its detail",
    unit: "bytes",
    goal: GOAL,
    alarm: ALARM,
  };
  const version = await redisVersion(runtime.redis);
  const about = `${machine(version)}, ${ids.length.toLocaleString("en")} shipments`;
  print([figure], about, values.json);
} finally {
  await runtime.end();
}
