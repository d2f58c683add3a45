/**
 * Answer time of the courier benchmarks (row 12): `bun bench/benchmarks.ts [--rows 100m] [--questions 2000] [--quick] [--json]`.
 * The deliveries are generated inside ClickHouse in the order of time: 20 couriers, 4,600 destination CAPs of which the largest
 * has 0.4 %, 13 months, every twentieth a correction. Quarters that are over are merged, as the table does by itself within an
 * hour. The questions follow the same distribution. 100m takes about 10 minutes and 10 GB of disk, most of them given back.
 */
import type { ClickHouseClient } from "@clickhouse/client";
import { type DeliveryTimesQuery, openBenchmarks } from "#analytics/benchmarks.ts";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { readConfig } from "#core/platform/environment/config.ts";
import { romeDate } from "#core/platform/time/rome-time.ts";
import * as harness from "./harness.ts";
import { figureOf } from "./rows.ts";
import { percentile } from "./table.ts";

const MILLION = 1_000_000;
const { rows, questions } = harness.readOptions({
  rows: [100 * MILLION, MILLION],
  questions: [2_000, 100],
});
const ROWS_PER_INSERT = 2 * MILLION;
const CAPS = 4_600;
const COURIERS = 20;
const COURIERS_ASKED = 4;
const WARM_UP = 50;
/** Density of the destinations: rank = CAPS * random ^ SKEW. */
const SKEW = 1.5;
const DAYS = 396;

const capOf = (rank: number) => String(10_010 + rank * 19).padStart(5, "0");

async function generate(clickhouse: ClickHouseClient): Promise<void> {
  for (let from = 0; from < rows; from += ROWS_PER_INSERT) {
    const count = Math.min(ROWS_PER_INSERT, rows - from);
    await clickhouse.command({ query: insertRandom(from, count) });
  }
  const query = `SELECT DISTINCT partition_id AS id FROM system.parts
                 WHERE table = 'deliveries' AND active ORDER BY id`;
  const answer = await clickhouse.query({ query, format: "JSONEachRow" });
  const partitions = await answer.json<{ id: string }>();
  for (const { id } of partitions.slice(0, -1)) {
    await clickhouse.command({ query: `OPTIMIZE TABLE deliveries PARTITION ID '${id}' FINAL` });
  }
}

function insertRandom(from: number, count: number): string {
  return `
    INSERT INTO deliveries (* EXCEPT planned_on)
    SELECT
      if(number % 20 = 0 AND number > 1000, number - 1000, number) + 1 AS shipment_id,
      lower(hex(cityHash64(number % 300))) AS company,
      lower(hex(cityHash64(number % 900))) AS channel,
      'COURIER_' || leftPad(toString(1 + cityHash64(shipment_id, 'c') % ${COURIERS}), 2, '0'),
      toString(10010 + 19 * toUInt32(${CAPS} * pow(cityHash64(shipment_id, 'd') % 1000000 / 1000000, ${SKEW}))),
      toString(10010 + 19 * (cityHash64(number % 300) % ${CAPS})) AS origin,
      multiIf(origin < '50', 'NORD', origin < '64', 'CENTRO', 'SUD'),
      toFloat32(round(pow(rand(1) / 4294967296, 3) * 60, 1)) AS kg,
      multiIf(kg <= 1, '0-1', kg <= 3, '1-3', kg <= 5, '3-5', kg <= 10, '5-10', kg <= 20, '10-20',
              kg <= 30, '20-30', kg <= 50, '30-50', '50+'),
      today() - ${DAYS} + intDiv(shipment_id * ${DAYS}, ${rows}) AS ship_date,
      ship_date + lead_days,
      1 + toUInt32(12 * pow(rand(3) / 4294967296, 4)) AS lead_days,
      if(rand(4) % 10 = 0, NULL, toUInt32(greatest(1, lead_days - 1))),
      1 + (rand(5) % 15 = 0),
      rand(6) % 20 = 0,
      rand(7) % 30 = 0,
      number + 1,
      0
    FROM numbers(${from}, ${count})`;
}

type Ask = (query: DeliveryTimesQuery) => Promise<unknown>;

/** @returns the 99th percentile, milliseconds */
async function p99Of(ask: Ask, count: number): Promise<number> {
  const times: number[] = [];
  for (let question = 0; question < count; question += 1) {
    const first = harness.random(COURIERS);
    const couriers = Array.from({ length: COURIERS_ASKED }, (_, at) => {
      return `COURIER_${String(1 + ((first + at) % COURIERS)).padStart(2, "0")}`;
    });
    const destCap = capOf(Math.floor(CAPS * Math.random() ** SKEW));
    const lane = { destCap, originCap: capOf(harness.random(CAPS)), weightKg: Math.random() * 30 };
    times.push(await harness.timedMs(() => ask({ ...lane, couriers, nowMs: Date.now() })));
  }
  return percentile(times, 0.99);
}

await harness.runPart(async (defer) => {
  const dataDir = await harness.tempFolder(defer);
  const config = readConfig({ DATA_DIR: dataDir });
  const writer = await openClickhouse(config, "write");
  defer(() => writer.close());
  await applySchema(writer, config);
  await generate(writer);
  const benchmarks = await openBenchmarks(config);
  defer(() => benchmarks.close());
  const names = { rows: rows / MILLION };
  const figures = [];
  const shipDate = romeDate(Date.now());
  const asks = {
    times: benchmarks.deliveryTimes,
    index: benchmarks.efficiencyIndex,
    promise: (query: DeliveryTimesQuery) =>
      benchmarks.promise({ ...query, shipDate, deadline: shipDate }),
  };
  for (const [name, ask] of Object.entries(asks)) {
    await p99Of(ask, WARM_UP);
    const ours = await p99Of(ask, questions);
    figures.push(figureOf(`benchmarks ${name}`, { ours }, names));
  }
  return { figures };
});
