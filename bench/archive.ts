/**
 * Shipments that are over (rows 20 to 22): what one in the archive takes of Redis and of ClickHouse's disk, and how many a core
 * archives in a second. `bun bench/archive.ts [--shipments 40k] [--quick] [--json]`
 */
import { readBytes } from "#analytics/archive/archive-table.ts";
import { archiveAll } from "#analytics/archive/archiver.ts";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import { beginGeneration } from "#core/events/store/compact-references.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { testSetup } from "#test/support/data/setup.ts";
import * as harness from "./harness.ts";
import { figureOf } from "./rows.ts";
import { addShipments, SHIPMENTS_AT_ONCE } from "./tracking.ts";

const { shipments } = harness.readOptions({ shipments: [40_000, 2_000] });
/**
 * Buckets of references are sized for a year: with so few events a day these shipments fill them as a year fills those of an
 * installation.
 */
const SHIPMENTS_PER_DAILY_EVENT = 46;
const TWO_MONTHS_SECONDS = 60 * 86_400;
const nothing = async () => {};

/** Of all keys of a kind. */
async function bytesOf(redis: Redis, pattern: string): Promise<number> {
  let bytes = 0;
  for await (const keys of redis.scanIterator({ MATCH: pattern, COUNT: 1_000 })) {
    for (const key of keys) {
      bytes += Number(await redis.sendCommand(["MEMORY", "USAGE", key, "SAMPLES", "0"]));
    }
  }
  return bytes;
}

await harness.runPart(async (defer) => {
  const { runtime } = await harness.openStore(defer, testSetup(), { TEST_CLOCK: "1" });
  const { redis, live, log, config, secrets } = runtime;
  const clickhouse = await openClickhouse(config, "write");
  defer(() => clickhouse.close());
  await applySchema(clickhouse, config);
  await addShipments(runtime, 1_000_000, SHIPMENTS_AT_ONCE);
  await beginGeneration(redis, live.now(), shipments / SHIPMENTS_PER_DAILY_EVENT);
  await addShipments(runtime, 0, shipments);
  await advanceClock(redis, TWO_MONTHS_SECONDS);
  await live.refresh();
  const costing = await harness.startCosting(redis, [{ name: "archiver", pid: process.pid }]);
  const moved = await archiveAll(
    {
      redis,
      live,
      log,
      vault: secrets.vault,
      clickhouse: async () => clickhouse,
      afterDays: 30,
      isStopping: () => false,
      isTimeUp: () => false,
      prepare: nothing,
      pace: nothing,
    },
    nothing,
  );
  const costs = await costing(moved);
  harness.tell(`CPU us of a shipment: ${JSON.stringify(costs)}`);
  for (const table of ["archived_shipments", "archived_index"]) {
    await clickhouse.command({ query: `OPTIMIZE TABLE ${table} FINAL` });
  }
  const figures = [
    figureOf("archive redis", { ours: (await bytesOf(redis, "{t*}:c:*")) / moved }),
    figureOf("archive disk", { ours: (await readBytes(clickhouse)) / moved }),
    figureOf("archive rate", { ours: 1e6 / (costs["archiver"] ?? 0) }),
  ];
  return { figures, redis, about: `${moved.toLocaleString("en")} shipments` };
});
