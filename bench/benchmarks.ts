/**
 * Answer time of the courier benchmarks: `bun bench/benchmarks.ts [millions of deliveries, 10] [questions, 2000]`.
 * The deliveries are generated inside ClickHouse: 20 couriers, 4,600 destination CAPs of which the largest has 0.4 %,
 * 13 months, every twentieth a correction. The questions follow the same distribution.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClickHouseClient } from "@clickhouse/client";
import { applySchema } from "#analytics/apply-schema.ts";
import { type DeliveryTimesQuery, openBenchmarks } from "#analytics/benchmarks.ts";
import { openClickhouse } from "#analytics/clickhouse.ts";
import { readConfig } from "#core/config.ts";

const ROWS_PER_INSERT = 1_000_000;
const CAPS = 4_600;
const COURIERS = 20;
const COURIERS_ASKED = 4;
const WARM_UP = 50;
/** Density of the destinations: place = CAPS * random ^ SKEW. */
const SKEW = 1.5;

const say = (text: string) => process.stdout.write(`${text}\n`);

function capOf(place: number): string {
  return String(10_010 + place * 19).padStart(5, "0");
}

async function generate(clickhouse: ClickHouseClient, rows: number): Promise<void> {
  for (let from = 0; from < rows; from += ROWS_PER_INSERT) {
    const count = Math.min(ROWS_PER_INSERT, rows - from);
    await clickhouse.command({ query: insertRandom(from, count) });
  }
}

function insertRandom(from: number, count: number): string {
  return `
    INSERT INTO deliveries
    SELECT
      if(number % 20 = 0 AND number > 1000, number - 1000, number) + 1 AS shipment_id,
      lower(hex(cityHash64(number % 300))) AS company,
      lower(hex(cityHash64(number % 900))) AS channel,
      'COURIER_' || leftPad(toString(1 + cityHash64(shipment_id, 'c') % ${COURIERS}), 2, '0'),
      toString(10010 + 19 * toUInt32(${CAPS} * pow(cityHash64(shipment_id, 'd') % 1000000 / 1000000, ${SKEW}))),
      toString(10010 + 19 * (cityHash64(number % 300) % ${CAPS})) AS origin,
      multiIf(origin < '50', 'NORD', origin < '64', 'CENTRO', 'SUD'),
      pow(rand(1) / 4294967296, 3) * 60 AS kg,
      multiIf(kg <= 1, '0-1', kg <= 3, '1-3', kg <= 5, '3-5', kg <= 10, '5-10', kg <= 20, '10-20',
              kg <= 30, '20-30', kg <= 50, '30-50', '50+'),
      delivered_on - lead_days,
      today() - rand(2) % 396 AS delivered_on,
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

async function askQuestions(ask: Ask, questions: number): Promise<number[]> {
  const times: number[] = [];
  for (let question = 0; question < questions; question += 1) {
    const first = Math.floor(Math.random() * COURIERS);
    const couriers = Array.from({ length: COURIERS_ASKED }, (_, at) => {
      return `COURIER_${String(1 + ((first + at) % COURIERS)).padStart(2, "0")}`;
    });
    const destCap = capOf(Math.floor(CAPS * Math.random() ** SKEW));
    const originCap = capOf(Math.floor(CAPS * Math.random()));
    const lane = { destCap, originCap, couriers, weightKg: Math.random() * 30 };
    const start = performance.now();
    await ask({ ...lane, nowMs: Date.now() });
    times.push(performance.now() - start);
  }
  return times.sort((one, other) => one - other);
}

function summary(name: string, times: readonly number[]): string {
  const at = (share: number) => (times[Math.ceil(share * times.length) - 1] ?? 0).toFixed(1);
  return `${name}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, slowest ${at(1)} ms`;
}

async function storage(clickhouse: ClickHouseClient): Promise<string> {
  const answer = await clickhouse.query({
    query: `SELECT toString(count()) AS parts, formatReadableQuantity(sum(rows)) AS deliveries,
              round(sum(bytes_on_disk) / sum(rows), 1) AS bytes
            FROM system.parts WHERE table = 'deliveries' AND active`,
    format: "JSONEachRow",
  });
  const [row] = await answer.json<{ parts: string; deliveries: string; bytes: number }>();
  return `${row?.deliveries} rows in ${row?.parts} parts, ${row?.bytes} bytes a delivery on disk`;
}

const [millions = 10, questions = 2_000] = process.argv.slice(2).map(Number);
const dataDir = await mkdtemp(join(tmpdir(), "waybill-bench-"));
const config = readConfig({ DATA_DIR: dataDir });
const writer = await openClickhouse(config, "write");
try {
  await applySchema(writer);
  const start = performance.now();
  await generate(writer, millions * 1_000_000);
  say(`generated in ${((performance.now() - start) / 1000).toFixed(0)} s`);
  say(await storage(writer));
  const benchmarks = await openBenchmarks(config);
  const { deliveryTimes, efficiencyIndex } = benchmarks;
  await askQuestions(deliveryTimes, WARM_UP);
  say(summary("delivery times, 4 couriers", await askQuestions(deliveryTimes, questions)));
  say(summary("efficiency index, 4 of 20", await askQuestions(efficiencyIndex, questions)));
  await benchmarks.close();
} finally {
  await writer.close();
  await rm(dataDir, { recursive: true, force: true });
}
