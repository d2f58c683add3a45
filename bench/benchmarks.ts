/**
 * Answer time of the courier benchmarks (row 12): `bun bench/benchmarks.ts [--rows 100m] [--questions 2000] [--quick] [--json]`.
 * Up to 10 million rows stand beside the same question, the same SQL, to the same rows in the order of shipments, which
 * know no lane; more than that stand beside 10 million. The deliveries are generated inside ClickHouse in the order of time:
 * 20 couriers, 4,600 destination CAPs of which the largest has 0.4 %, 13 months, every twentieth a correction. Quarters that
 * are over are merged, as the table does by itself within an hour. The questions follow the same distribution.
 *
 * 100m takes some 10 minutes and 10 GB of disk, most of them given back; 30 minutes at most.
 */
import { mkdtemp, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { ClickHouseClient } from "@clickhouse/client";
import { type DeliveryTimesQuery, openBenchmarks } from "#analytics/benchmarks.ts";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openBare, openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { readCells } from "#analytics/queries/lane-cells.ts";
import { type Figure, machine, percentile, print } from "#bench/table.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";

const MILLION = 1_000_000;
const REFERENCE_ROWS = 10 * MILLION;
const ROWS_PER_INSERT = 2 * MILLION;
const CAPS = 4_600;
const COURIERS = 20;
const COURIERS_ASKED = 4;
const WARM_UP = 50;
/** Density of the destinations: rank = CAPS * random ^ SKEW. */
const SKEW = 1.5;
const DAYS = 396;
/** Of disk for a row while parts are merged, measured 35 at rest. */
const BYTES_PER_ROW = 100;
const GENERATE_LIMIT_MS = 30 * 60_000;
const LIMIT_MS = 50;
/** For CI: its machines are small and shared. */
const ALARM_MS = 500;

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "100m" },
    questions: { type: "string", default: "2000" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const QUESTIONS = values.quick ? 100 : Number(values.questions);
/** Of the peer, which reads all rows for each. */
const RAW_QUESTIONS = values.quick ? 10 : 20;

/** Progress: the figures alone go to standard output. */
const tell = (text: string) => process.stderr.write(`${text}\n`);

function capOf(rank: number): string {
  return String(10_010 + rank * 19).padStart(5, "0");
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

/** @returns milliseconds of each */
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
  return times;
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

/** 99th percentiles, milliseconds. */
interface Times {
  readonly deliveryTimes: number;
  readonly efficiencyIndex: number;
}

interface Measured {
  readonly clickhouse: string;
  readonly ours: Times;
  /** Null where it was not asked. */
  readonly raw: Times | null;
}

async function askOurs(config: Config): Promise<Times> {
  const benchmarks = await openBenchmarks(config);
  const p99 = async (ask: Ask) => {
    await askQuestions(ask, WARM_UP);
    const times = await askQuestions(ask, QUESTIONS);
    tell(
      `p50 ${percentile(times, 0.5).toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(1)} ms`,
    );
    return percentile(times, 0.99);
  };
  const deliveryTimes = await p99(benchmarks.deliveryTimes);
  const efficiencyIndex = await p99(benchmarks.efficiencyIndex);
  await benchmarks.close();
  return { deliveryTimes, efficiencyIndex };
}

/** The same rows in the order of shipments: what the facts alone allow. */
async function askRaw(writer: ClickHouseClient, config: Config): Promise<Times> {
  await writer.command({
    query: `CREATE TABLE raw_deliveries AS deliveries
            ENGINE = ReplacingMergeTree(version, removed) ORDER BY shipment_id`,
  });
  await writer.command({ query: "INSERT INTO raw_deliveries SELECT * FROM deliveries" });
  const client = await openBare(config, { output_format_json_quote_64bit_integers: 0 });
  // The same statement for another table.
  const reader: Pick<ClickHouseClient, "query"> = {
    query: (asked) =>
      client.query({ ...asked, query: asked.query.replaceAll(/\bdeliveries\b(?= FINAL)/g, RAW) }),
  };
  const ask = (query: DeliveryTimesQuery) => readCells(reader as ClickHouseClient, query);
  const p99 = async (asked: Ask) => percentile(await askQuestions(asked, RAW_QUESTIONS), 0.99);
  const deliveryTimes = await p99(ask);
  const efficiencyIndex = await p99((query) => ask({ ...query, couriers: [] }));
  await client.close();
  return { deliveryTimes, efficiencyIndex };
}

const RAW = "raw_deliveries";

async function measure(rows: number): Promise<Measured> {
  const dataDir = await mkdtemp(join(tmpdir(), "waybill-bench-"));
  const { bavail, bsize } = await statfs(dataDir);
  if (bavail * bsize < rows * BYTES_PER_ROW) {
    throw new Error(`${dataDir} has no ${(rows * BYTES_PER_ROW) / 1e9} GB free`);
  }
  const config = readConfig({ DATA_DIR: dataDir });
  const writer = await openClickhouse(config, "write");
  try {
    await applySchema(writer, config);
    const start = performance.now();
    await generate(writer, rows);
    const seconds = ((performance.now() - start) / 1_000).toFixed(0);
    tell(`${rows / MILLION} m generated in ${seconds} s: ${await storage(writer)}`);
    const ours = await askOurs(config);
    const clickhouse = await versionOf(writer);
    return { clickhouse, ours, raw: rows > REFERENCE_ROWS ? null : await askRaw(writer, config) };
  } finally {
    await writer.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

const QUESTION_NAMES = {
  deliveryTimes: "delivery times, 4 couriers",
  efficiencyIndex: "efficiency index, 4 of 20",
} as const;
const KINDS = ["deliveryTimes", "efficiencyIndex"] as const;

function figuresOf(rows: number, ours: Times, beside: string, peer: Times, most: number): Figure[] {
  return KINDS.map((kind) => ({
    row: 12,
    work: `${QUESTION_NAMES[kind]}, ${rows / MILLION} M deliveries, p99`,
    ours: ours[kind],
    beside,
    peer: peer[kind],
    unit: "ms",
    goal: { oursMost: LIMIT_MS, most },
    alarm: { oursMost: ALARM_MS, most: 2 * most },
  }));
}

async function versionOf(clickhouse: ClickHouseClient): Promise<string> {
  const answer = await clickhouse.query({ query: "SELECT version() AS v", format: "JSONEachRow" });
  const [row] = await answer.json<{ v: string }>();
  return row?.v ?? "?";
}

async function measureAll(): Promise<[figures: Figure[], clickhouse: string]> {
  const rows = values.quick ? MILLION : numberOf(values.rows);
  const few = await measure(Math.min(rows, REFERENCE_ROWS));
  const raw = few.raw ?? few.ours;
  const figures = figuresOf(Math.min(rows, REFERENCE_ROWS), few.ours, "raw rows", raw, 1);
  if (rows <= REFERENCE_ROWS) return [figures, few.clickhouse];
  const many = await measure(rows);
  const beside = `${REFERENCE_ROWS / MILLION} M`;
  return [[...figures, ...figuresOf(rows, many.ours, beside, few.ours, 2)], few.clickhouse];
}

function numberOf(text: string): number {
  return Number(text.replace(/m$/, "")) * (text.endsWith("m") ? MILLION : 1);
}

const [figures, clickhouse] = await measureAll();
print(figures, `${machine("none")}, ClickHouse ${clickhouse}`, values.json);
