/**
 * Shipments that are over (rows 20 to 23): what one in the archive takes of Redis and of ClickHouse's disk, how many a core
 * archives in a second, and how soon a detail of one is read. `bun bench/archive.ts [--shipments 20000] [--quick] [--json]`
 */
import { parseArgs } from "node:util";
import { applySchema } from "#analytics/apply-schema.ts";
import { openArchive } from "#analytics/archive.ts";
import { archiveAll } from "#analytics/archiver.ts";
import { openClickhouse } from "#analytics/clickhouse.ts";
import { addShipments, SHIPMENTS_AT_ONCE, STEPS } from "#bench/ordinary-shipments.ts";
import { type Figure, machine, print, redisVersion } from "#bench/table.ts";
import { advanceClock } from "#core/redis/config/live.ts";
import { beginGeneration } from "#core/redis/intake/compact-references.ts";
import { readMomentAnywhere } from "#core/redis/webhooks/shipment-moment.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";

/**
 * Buckets of references are sized for a year: with so few events a day these shipments fill them as a year fills those of an
 * installation.
 */
const SHIPMENTS_PER_DAILY_EVENT = 46;
/** Shipments a second. */
const RATE_GOAL = 5_000;
const DETAILS = 300;
const ALONE = { beside: null, peer: null };
const DAY_SECONDS = 86_400;

const { values } = parseArgs({
  options: {
    shipments: { type: "string", default: "20000" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const count = values.quick ? 2_000 : Number(values.shipments);

async function diskBytes(client: Awaited<ReturnType<typeof openClickhouse>>): Promise<number> {
  await client.command({ query: "OPTIMIZE TABLE archived_shipments FINAL" });
  const answer = await client.query({
    query: `SELECT sum(bytes_on_disk) AS bytes FROM system.parts
            WHERE database = currentDatabase() AND table = 'archived_shipments' AND active`,
    format: "JSONEachRow",
  });
  const [row] = await answer.json<{ bytes: string }>();
  return Number(row?.bytes ?? 0);
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

/** Milliseconds of reading details one after the other, p99. */
async function detailMs(runtime: TestRuntime, ids: readonly number[], channelId: number) {
  const archive = openArchive(runtime.config, runtime.secrets.vault);
  const times: number[] = [];
  for (let n = 0; n < DETAILS; n += 1) {
    const id = ids[(n * 7_919) % ids.length] ?? 0;
    const startedMs = performance.now();
    const moment = await readMomentAnywhere(runtime.redis, archive, id, [channelId]);
    if (!moment) throw new Error(`${id} is not in the archive`);
    moment.facts();
    times.push(performance.now() - startedMs);
  }
  await archive.close();
  return times.sort((one, other) => one - other)[Math.floor(DETAILS * 0.99)] ?? 0;
}

const runtime = await openTestRuntime(testSetup());
const clickhouse = await openClickhouse(runtime.config, "write");
try {
  const { redis, live, secrets } = runtime;
  await applySchema(clickhouse, runtime.config);
  await addShipments(runtime, 1_000_000, SHIPMENTS_AT_ONCE);
  await beginGeneration(redis, live.now(), count / SHIPMENTS_PER_DAILY_EVENT);
  const ids: number[] = [];
  for (let from = 0; from < count; from += SHIPMENTS_AT_ONCE) {
    ids.push(...(await addShipments(runtime, from, SHIPMENTS_AT_ONCE)));
  }
  await advanceClock(redis, 60 * DAY_SECONDS);
  await live.refresh();
  const startedMs = performance.now();
  const cpu = process.cpuUsage();
  const moved = await archiveAll(
    {
      ...{ redis, live, vault: secrets.vault, clickhouse: async () => clickhouse },
      ...{ afterDays: 30, isStopping: () => false, pace: async () => {} },
    },
    async () => {},
  );
  const seconds = (performance.now() - startedMs) / 1_000;
  const spent = process.cpuUsage(cpu);
  const cpuSeconds = (spent.user + spent.system) / 1e6;
  const redisBytes = (await bytesOf(redis, "{t*}:c:*")) / moved;
  const channel = live.configuration().channelByCode.get("acme-it");
  const figures: Figure[] = [
    {
      ...{
        row: 20,
        work: `an archived shipment of ${STEPS.length} events, 2 references, in Redis`,
      },
      ...{
        ours: redisBytes,
        unit: "bytes",
        ...ALONE,
        goal: { oursMost: 48 },
        alarm: { oursMost: 60 },
      },
    },
    {
      ...{
        row: 21,
        work: "the same in ClickHouse, on disk",
        ours: (await diskBytes(clickhouse)) / moved,
      },
      ...{ unit: "bytes", ...ALONE, goal: { oursMost: 450 }, alarm: { oursMost: 700 } },
    },
    {
      ...{ row: 22, work: "archiving", ours: moved / seconds, unit: "shipments/s" },
      ...{ beside: "goal", peer: RATE_GOAL, goal: { least: 1 }, alarm: { least: 0.1 } },
    },
    {
      ...{ row: 23, work: "detail of an archived shipment, p99", unit: "ms" },
      ...{ ours: await detailMs(runtime, ids, channel?.id ?? 0) },
      ...{ ...ALONE, goal: { oursMost: 25 }, alarm: { oursMost: 60 } },
    },
  ];
  const version = await redisVersion(redis);
  process.stderr.write(`${cpuSeconds.toFixed(1)} s of CPU for ${moved} shipments\n`);
  print(figures, `${machine(version)}, ${moved.toLocaleString("en")} shipments`, values.json);
} finally {
  await clickhouse.close();
  await runtime.end();
}
