/**
 * Shipments that are over (rows 20 to 22): what one in the archive takes of Redis and of ClickHouse's disk, and how many a core
 * archives in a second. `bun bench/archive.ts [--shipments 40000] [--quick] [--json]`
 */
import { parseArgs } from "node:util";
import { readBytes } from "#analytics/archive/archive-table.ts";
import { archiveAll } from "#analytics/archive/archiver.ts";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { addShipments, SHIPMENTS_AT_ONCE, STEPS } from "#bench/ordinary-shipments.ts";
import { type Figure, machine, print, redisVersion } from "#bench/table.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import { beginGeneration } from "#core/events/store/compact-references.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

/**
 * Buckets of references are sized for a year: with so few events a day these shipments fill them as a year fills those of an
 * installation.
 */
const SHIPMENTS_PER_DAILY_EVENT = 46;
/** Shipments in a second of CPU time of the archiver's process, all of its threads. */
const RATE_GOAL = 5_000;
const ALONE = { beside: null, peer: null };
const DAY_SECONDS = 86_400;

const { values } = parseArgs({
  options: {
    shipments: { type: "string", default: "40000" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const count = values.quick ? 2_000 : Number(values.shipments);

async function diskBytes(client: Awaited<ReturnType<typeof openClickhouse>>): Promise<number> {
  for (const table of ["archived_shipments", "archived_index"]) {
    await client.command({ query: `OPTIMIZE TABLE ${table} FINAL` });
  }
  return readBytes(client);
}

/** Of all keys of a kind. */
async function bytesOf(redis: TestRuntime["redis"], pattern: string): Promise<number> {
  let bytes = 0;
  for await (const keys of redis.scanIterator({ MATCH: pattern, COUNT: 1_000 })) {
    for (const key of keys) {
      bytes += Number(await redis.sendCommand(["MEMORY", "USAGE", key, "SAMPLES", "0"]));
    }
  }
  return bytes;
}

/** CPU time of Redis. */
async function redisSeconds(redis: TestRuntime["redis"]): Promise<number> {
  const times = [...(await redis.info("cpu")).matchAll(/used_cpu_(?:user|sys):([\d.]+)/g)];
  return times.reduce((sum, [, seconds]) => sum + Number(seconds), 0);
}

const runtime = await openTestRuntime(testSetup());
const clickhouse = await openClickhouse(runtime.config, "write");
try {
  const { redis, live, secrets } = runtime;
  await applySchema(clickhouse, runtime.config);
  await addShipments(runtime, 1_000_000, SHIPMENTS_AT_ONCE);
  await beginGeneration(redis, live.now(), count / SHIPMENTS_PER_DAILY_EVENT);
  for (let from = 0; from < count; from += SHIPMENTS_AT_ONCE) {
    await addShipments(runtime, from, SHIPMENTS_AT_ONCE);
  }
  await advanceClock(redis, 60 * DAY_SECONDS);
  await live.refresh();
  const redisBefore = await redisSeconds(redis);
  const startedMs = performance.now();
  const cpu = process.cpuUsage();
  const moved = await archiveAll(
    {
      redis,
      live,
      vault: secrets.vault,
      clickhouse: async () => clickhouse,
      log: runtime.log,
      afterDays: 30,
      isStopping: () => false,
      isTimeUp: () => false,
      prepare: async () => {},
      pace: async () => {},
    },
    async () => {},
  );
  const seconds = (performance.now() - startedMs) / 1_000;
  const spent = process.cpuUsage(cpu);
  const cpuSeconds = (spent.user + spent.system) / 1e6;
  const redisSpent = (await redisSeconds(redis)) - redisBefore;
  const redisBytes = (await bytesOf(redis, "{t*}:c:*")) / moved;
  const figures: Figure[] = [
    {
      row: 20,
      work: `an archived shipment of ${STEPS.length} events, 2 references, in Redis`,
      ours: redisBytes,
      unit: "bytes",
      ...ALONE,
      goal: { oursMost: 48 },
      alarm: { oursMost: 60 },
    },
    {
      row: 21,
      work: "the same in ClickHouse, on disk",
      ours: (await diskBytes(clickhouse)) / moved,
      unit: "bytes",
      ...ALONE,
      goal: { oursMost: 450 },
      alarm: { oursMost: 500 },
    },
    {
      row: 22,
      work: "archiving, in a second of one core, the embedded ClickHouse's in it",
      ours: moved / cpuSeconds,
      unit: "shipments",
      ...ALONE,
      goal: { oursLeast: RATE_GOAL },
      alarm: { oursLeast: RATE_GOAL / 10 },
    },
  ];
  const version = await redisVersion(redis);
  const each = (total: number) => ((total / moved) * 1e6).toFixed(0);
  process.stderr.write(
    `${moved} shipments archived in ${seconds.toFixed(1)} s; CPU of each: ${each(cpuSeconds)} us, ` +
      `of Redis ${each(redisSpent)} us\n`,
  );
  print(figures, `${machine(version)}, ${moved.toLocaleString("en")} shipments`, values.json);
} finally {
  await clickhouse.close();
  await runtime.end();
}
