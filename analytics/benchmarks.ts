/**
 * Courier benchmarks of document 1, "Couriers", over every company's deliveries. One query reads the cells of a lane;
 * the rules about them are pure.
 */

import type { ClickHouseClient } from "@clickhouse/client";
import {
  clickhouseErrorType,
  keepClickhouse,
  openClickhouse,
} from "#analytics/clickhouse/clickhouse.ts";
import { readClickhouseFacts } from "#analytics/clickhouse/clickhouse-facts.ts";
import {
  type CellsQuery,
  finestCell,
  type LaneCell,
  type PromiseCell,
  readCells,
  readPromiseCells,
} from "#analytics/queries/lane-cells.ts";
import {
  NO_PROMISES,
  type OnTime,
  type OnTimeQuery,
  readOnTime,
} from "#analytics/queries/on-time.ts";
import {
  type DayCounts,
  type DayInterval,
  meanDays,
  medianInterval,
  percentileDays,
  sampleSize,
} from "#core/benchmarks/rules/day-counts.ts";
import { type Efficiency, efficiency, networkOf } from "#core/benchmarks/rules/efficiency-index.ts";
import {
  datesFrom,
  type Expectation,
  quantilesOf,
  shareBy,
} from "#core/benchmarks/rules/expected-delivery.ts";
import {
  GRAINS,
  type Grain,
  MIN_SAMPLE,
  type WeightBand,
  weightBand,
} from "#core/benchmarks/rules/lane.ts";
import type { ClickhouseFacts } from "#core/doctor/store-doctor.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { benchmarkFailures } from "#core/platform/process/metrics.ts";
import { limit } from "#core/platform/schema/limit.ts";

export type { OnTimeQuery };

/** Questions throw `Problem` 503 BENCHMARKS_UNAVAILABLE while ClickHouse is unavailable. */
export interface Benchmarks {
  /** Rows with data first, fastest first. */
  deliveryTimes(query: DeliveryTimesQuery): Promise<CourierTimes[]>;
  /** Ranked rows first, best first. */
  efficiencyIndex(query: DeliveryTimesQuery): Promise<CourierEfficiency[]>;
  /** Over the whole network. */
  onTime(query: OnTimeQuery): Promise<OnTime>;
  /** Of couriers with a sample of 20, best first. */
  promise(query: PromiseQuery): Promise<CourierPromise[]>;
  ready(): Promise<boolean>;
  /** What ClickHouse tells of itself; null while it does not answer. */
  facts(): Promise<ClickhouseFacts | null>;
  close(): Promise<void>;
}

export interface DeliveryTimesQuery {
  readonly destCap: string;
  /** Null or not Italian: the grains with an origin are not asked. */
  readonly originCap: string | null;
  /** Null: the grains with a weight are not asked. */
  readonly weightKg: number | null;
  readonly couriers: readonly string[];
  readonly nowMs: number;
}

/** Calendar days; means with one decimal. */
export interface CourierTimes {
  readonly courierCode: string;
  readonly status: "ok" | "insufficient_data";
  /** The finest grain with a sample of 20; null where none has. */
  readonly level: Grain | null;
  /** Of a grain with a weight. */
  readonly weightBand: WeightBand | null;
  /** Deliveries at the chosen grain. Like every figure null below 20, so as not to reveal how few they are. */
  readonly sampleSize: number | null;
  /** Deliveries with a departure; a separate sample, null with all of its figures below 20. */
  readonly transitSampleSize: number | null;
  readonly leadMedian: number | null;
  readonly leadMean: number | null;
  readonly leadP90: number | null;
  readonly transitMedian: number | null;
  readonly transitMean: number | null;
  readonly transitP90: number | null;
  /** 95 % confidence. */
  readonly leadMedianInterval: DayInterval | null;
  readonly transitMedianInterval: DayInterval | null;
}

export interface CourierEfficiency {
  readonly courierCode: string;
  readonly status: "ok" | "insufficient_data";
  /** 1-based; null without data. */
  readonly rank: number | null;
  readonly scores: Efficiency | null;
  /** Of the days that speed is about, 95 % confidence. */
  readonly medianInterval: DayInterval | null;
  readonly level: Grain | null;
  readonly weightBand: WeightBand | null;
  /** Deliveries of the grain taken. */
  readonly sampleSize: number | null;
}

export interface PromiseQuery extends DeliveryTimesQuery {
  /** `YYYY-MM-DD` */
  readonly shipDate: string;
  /** `YYYY-MM-DD`; null = none */
  readonly deadline: string | null;
}

export interface CourierPromise extends Expectation {
  readonly courierCode: string;
  /** Share of the sample that would meet the deadline, 0 to 1, 4 decimals; null without one. */
  readonly onTimeProbability: number | null;
}

/** Reasons without an error of ClickHouse. */
const QUEUE_FULL = "queue full";
const AWAY = "away";
const WAITING_LIMIT = limit(200, "benchmark questions that wait", "503");

/** Does not fail while ClickHouse is unavailable: questions are answered 503 until it is there. */
export async function openBenchmarks(config: Config): Promise<Benchmarks> {
  for (const reason of [QUEUE_FULL, AWAY]) benchmarkFailures.inc({ reason }, 0);
  const store = keepClickhouse(() => openClickhouse(config, "read"));
  await store.client().catch(() => {});
  let waiting = 0;

  /** @param nothing the answer before there is a table */
  async function read<T>(question: (client: ClickHouseClient) => Promise<T>, nothing: T) {
    if (waiting >= WAITING_LIMIT) throw unavailable(QUEUE_FULL);
    waiting += 1;
    try {
      return await question(await store.client());
    } catch (error) {
      const type = clickhouseErrorType(error);
      if (type === "UNKNOWN_TABLE") return nothing;
      throw unavailable(type ?? AWAY);
    } finally {
      waiting -= 1;
    }
  }
  const cells = (query: CellsQuery) => read((client) => readCells(client, query), []);

  return {
    async deliveryTimes(query) {
      if (query.couriers.length === 0) return [];
      return deliveryTimes(query, await cells(query));
    },
    async efficiencyIndex(query) {
      return efficiencyIndex(query, await cells({ ...query, couriers: [] }));
    },
    async promise(query) {
      if (query.couriers.length === 0) return [];
      const question = (client: ClickHouseClient) => readPromiseCells(client, query);
      return promises(query, await read(question, []));
    },
    onTime: (query) => read((client) => readOnTime(client, query), NO_PROMISES),
    async ready() {
      const ping = await store.client().then(
        (client) => client.ping({ select: true }),
        () => null,
      );
      return ping?.success ?? false;
    },
    facts: () =>
      store
        .client()
        .then((client) => readClickhouseFacts(client, config))
        .catch(() => null),
    close: store.close,
  };
}

/** A problem document that is document 1's error body too: whoever reads `status`, `code`, `message` need not know it. */
function unavailable(reason: string): Problem {
  benchmarkFailures.inc({ reason });
  const message = "Benchmarks cannot be computed just now.";
  return new Problem(503, "BENCHMARKS_UNAVAILABLE", message, {
    members: { message },
    headers: { "retry-after": "5", "x-error-message": message },
    asDocument: true,
  });
}

function deliveryTimes(query: DeliveryTimesQuery, cells: readonly LaneCell[]): CourierTimes[] {
  const byCourier = Map.groupBy(cells, ({ courier }) => courier);
  return [...new Set(query.couriers)]
    .map((code) => courierTimes(code, byCourier.get(code) ?? [], query.weightKg))
    .sort(fastestFirst);
}

function courierTimes(
  courierCode: string,
  cells: readonly LaneCell[],
  weightKg: number | null,
): CourierTimes {
  const cell = finestCell(cells);
  if (!cell) return insufficient(courierCode);
  const { grain, leads } = cell;
  const transits = publicSample(cell.transits);
  return {
    courierCode,
    status: "ok",
    level: grain,
    weightBand: bandOf(grain, weightKg),
    sampleSize: sampleSize(leads),
    transitSampleSize: sampleSize(transits) || null,
    leadMedian: percentileDays(leads, 50),
    leadMean: meanDays(leads),
    leadP90: percentileDays(leads, 90),
    transitMedian: percentileDays(transits, 50),
    transitMean: meanDays(transits),
    transitP90: percentileDays(transits, 90),
    leadMedianInterval: medianInterval(leads),
    transitMedianInterval: medianInterval(transits),
  };
}

function bandOf(grain: Grain, weightKg: number | null): WeightBand | null {
  return grain.endsWith("_weight") && weightKg !== null ? weightBand(weightKg) : null;
}

/** Document 1, "Limits": a sample below 20 is suppressed, with every figure based on it. */
function publicSample(counts: DayCounts): DayCounts {
  return sampleSize(counts) >= MIN_SAMPLE ? counts : [];
}

function insufficient(courierCode: string): CourierTimes {
  return {
    courierCode,
    status: "insufficient_data",
    level: null,
    weightBand: null,
    sampleSize: null,
    transitSampleSize: null,
    leadMedian: null,
    leadMean: null,
    leadP90: null,
    transitMedian: null,
    transitMean: null,
    transitP90: null,
    leadMedianInterval: null,
    transitMedianInterval: null,
  };
}

/** Document 1: median lead, then mean, then p90, as they are shown; the code settles what is left. */
function fastestFirst(one: CourierTimes, other: CourierTimes): number {
  return (
    Number(one.status !== "ok") - Number(other.status !== "ok") ||
    (one.leadMedian ?? 0) - (other.leadMedian ?? 0) ||
    (one.leadMean ?? 0) - (other.leadMean ?? 0) ||
    (one.leadP90 ?? 0) - (other.leadP90 ?? 0) ||
    (one.courierCode < other.courierCode ? -1 : 1)
  );
}

/** Each courier is compared with the network in the cell of its own grain. */
function efficiencyIndex(
  { couriers, weightKg }: DeliveryTimesQuery,
  cells: readonly LaneCell[],
): CourierEfficiency[] {
  const byCourier = Map.groupBy(cells, ({ courier }) => courier);
  const byGrain = Map.groupBy(cells, ({ grain }) => grain);
  const rows = [...new Set(couriers)].map((courierCode): CourierEfficiency => {
    const cell = finestCell(byCourier.get(courierCode) ?? []);
    if (!cell) return unranked(courierCode);
    const scores = efficiency(cell, networkOf(byGrain.get(cell.grain) ?? []));
    return {
      courierCode,
      status: "ok",
      rank: null,
      scores,
      medianInterval: medianInterval(scores.basis === "transit" ? cell.transits : cell.leads),
      level: cell.grain,
      weightBand: bandOf(cell.grain, weightKg),
      sampleSize: sampleSize(cell.leads),
    };
  });
  return rows
    .sort(bestFirst)
    .map((row, at) => (row.status === "ok" ? { ...row, rank: at + 1 } : row));
}

function unranked(courierCode: string): CourierEfficiency {
  return {
    courierCode,
    status: "insufficient_data",
    rank: null,
    scores: null,
    medianInterval: null,
    level: null,
    weightBand: null,
    sampleSize: null,
  };
}

/** By index, then speed, reliability, consistency, as they are shown; the code settles what is left. */
function bestFirst(one: CourierEfficiency, other: CourierEfficiency): number {
  const { scores: left } = one;
  const { scores: right } = other;
  const byData = Number(left === null) - Number(right === null);
  const byCode = one.courierCode < other.courierCode ? -1 : 1;
  if (!left || !right) return byData || byCode;
  return (
    right.index - left.index ||
    right.speed - left.speed ||
    right.reliability - left.reliability ||
    right.consistency - left.consistency ||
    byCode
  );
}

function promises(
  { shipDate, deadline }: PromiseQuery,
  cells: readonly PromiseCell[],
): CourierPromise[] {
  const byCourier = Map.groupBy(cells, ({ courier }) => courier);
  return [...byCourier]
    .flatMap(([courierCode, own]): CourierPromise[] => {
      const cell = GRAINS.map((name) => own.find(({ grain }) => grain === name)).find(
        (one) => one !== undefined && sampleSize(one.counts) >= MIN_SAMPLE,
      );
      if (!cell) return [];
      const dates = datesFrom(shipDate, quantilesOf(cell.counts));
      const share = deadline === null ? null : shareBy(cell, shipDate, deadline);
      return [
        {
          courierCode,
          ...dates,
          onTimeProbability: share === null ? null : Math.round(share * 10_000) / 10_000,
          grain: cell.grain,
          sampleSize: sampleSize(cell.counts),
        },
      ];
    })
    .sort(likeliestFirst);
}

/** By the probability, then p50, p90, p10; the code settles what is left. */
function likeliestFirst(one: CourierPromise, other: CourierPromise): number {
  const dates = ({ p50, p90, p10, courierCode }: CourierPromise) => [p50, p90, p10, courierCode];
  return (
    (other.onTimeProbability ?? 0) - (one.onTimeProbability ?? 0) ||
    (dates(one).join() < dates(other).join() ? -1 : 1)
  );
}
