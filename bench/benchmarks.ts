/**
 * Answer time of the courier benchmarks: `bun bench/benchmarks.ts [--rows 10m] [--questions 2000]`. More than 10 million
 * rows are set beside 10 million. The deliveries are generated inside ClickHouse in the order of time: 20 couriers, 4,600
 * destination CAPs of which the largest has 0.4 %, 13 months, every twentieth a correction. Quarters that are over are
 * merged, as the table does by itself within an hour. The questions follow the same distribution.
 *
 * 100m takes some 10 minutes and 10 GB of disk, most of them given back.
 */
import { mkdtemp, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { ClickHouseClient } from "@clickhouse/client";
import { applySchema } from "#analytics/apply-schema.ts";
import { type DeliveryTimesQuery, openBenchmarks } from "#analytics/benchmarks.ts";
import { openClickhouse } from "#analytics/clickhouse.ts";
import { openInsights } from "#analytics/insights.ts";
import { type Config, readConfig } from "#core/config.ts";

const MILLION = 1_000_000;
const REFERENCE_ROWS = 10 * MILLION;
const ROWS_PER_INSERT = 2 * MILLION;
const CAPS = 4_600;
const COURIERS = 20;
const COURIERS_ASKED = 4;
const WARM_UP = 50;
/** Density of the destinations: place = CAPS * random ^ SKEW. */
const SKEW = 1.5;
const DAYS = 396;
/** Of disk for a row while parts are merged, measured 35 at rest. */
const BYTES_PER_ROW = 100;
const GENERATE_LIMIT_MS = 30 * 60_000;
const FIGURES = ["delivery times, 4 couriers", "efficiency index, 4 of 20"] as const;

const say = (text: string) => process.stdout.write(`${text}\n`);

function capOf(place: number): string {
  return String(10_010 + place * 19).padStart(5, "0");
}

/** @throws when it takes too long */
async function generate(clickhouse: ClickHouseClient, rows: number): Promise<void> {
  const deadline = performance.now() + GENERATE_LIMIT_MS;
  for (let from = 0; from < rows; from += ROWS_PER_INSERT) {
    if (performance.now() > deadline)
      throw new Error(`not generated within ${GENERATE_LIMIT_MS} ms`);
    await clickhouse.command({
      query: insertRandom(from, Math.min(ROWS_PER_INSERT, rows - from), rows),
    });
  }
  const answer = await clickhouse.query({
    query: `SELECT DISTINCT partition_id AS id FROM system.parts
            WHERE table = 'deliveries' AND active ORDER BY id`,
    format: "JSONEachRow",
  });
  const partitions = await answer.json<{ id: string }>();
  for (const { id } of partitions.slice(0, -1)) {
    await clickhouse.command({ query: `OPTIMIZE TABLE deliveries PARTITION ID '${id}' FINAL` });
  }
}

function insertRandom(from: number, count: number, rows: number): string {
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

/** @returns milliseconds, ascending */
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

const at = (times: readonly number[], share: number) =>
  times[Math.ceil(share * times.length) - 1] ?? 0;

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

/** Questions of the panel that read the whole table: what a roll-up would be for. */
async function wholeTable(config: Config): Promise<string> {
  const insights = openInsights(config);
  const timed = async (work: Promise<unknown>) => {
    const start = performance.now();
    return work.then(
      () => `${(performance.now() - start).toFixed(0)} ms`,
      () => "over the limits",
    );
  };
  const provinces = await timed(insights.provinces("", Date.now()));
  const trend = await timed(insights.trend("", Date.now()));
  await insights.close();
  return `whole table: provinces ${provinces}, trend ${trend}`;
}

/** @returns sorted times of each figure */
async function measure(rows: number, questions: number): Promise<readonly number[][]> {
  const dataDir = await mkdtemp(join(tmpdir(), "waybill-bench-"));
  const { bavail, bsize } = await statfs(dataDir);
  if (bavail * bsize < rows * BYTES_PER_ROW) {
    throw new Error(`${dataDir} has no ${(rows * BYTES_PER_ROW) / 1e9} GB free`);
  }
  const config = readConfig({ DATA_DIR: dataDir });
  const writer = await openClickhouse(config, "write");
  try {
    await applySchema(writer, config.eventRetentionMonths);
    const start = performance.now();
    await generate(writer, rows);
    say(`\n${rows / MILLION} m generated in ${((performance.now() - start) / 1000).toFixed(0)} s`);
    say(await storage(writer));
    const benchmarks = await openBenchmarks(config);
    const figures: number[][] = [];
    for (const ask of [benchmarks.deliveryTimes, benchmarks.efficiencyIndex]) {
      await askQuestions(ask, WARM_UP);
      figures.push(await askQuestions(ask, questions));
    }
    figures.forEach((times, figure) => {
      const [p50, p99, slowest] = [0.5, 0.99, 1].map((share) => at(times, share).toFixed(1));
      say(`${FIGURES[figure]}: p50 ${p50} ms, p99 ${p99} ms, slowest ${slowest} ms`);
    });
    say(await wholeTable(config));
    await benchmarks.close();
    return figures;
  } finally {
    await writer.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "10m" },
    questions: { type: "string", default: "2000" },
  },
});
const rows = Number(values.rows.replace(/m$/, "")) * (values.rows.endsWith("m") ? MILLION : 1);
const questions = Number(values.questions);
const reference = rows > REFERENCE_ROWS ? await measure(REFERENCE_ROWS, questions) : null;
const figures = await measure(rows, questions);
reference?.forEach((before, figure) => {
  const ratio = (share: number) =>
    (at(figures[figure] ?? [], share) / at(before, share)).toFixed(2);
  const beside = `${values.rows} beside ${REFERENCE_ROWS / MILLION}m`;
  say(`${FIGURES[figure]}, ${beside}: p50 x ${ratio(0.5)}, p99 x ${ratio(0.99)}`);
});
