/**
 * What operators and the data team ask: lanes in full, provinces, trends, courier quality. Over raw rows; cells too small
 * for merchants are shown, since these answers do not leave the house.
 */
import type { ClickHouseClient } from "@clickhouse/client";
import {
  clickhouseErrorType,
  keepClickhouse,
  openClickhouse,
} from "#analytics/clickhouse/clickhouse.ts";
import {
  type CellsQuery,
  type DayMap,
  dayCounts,
  finestCell,
  type LaneCell,
  readCells,
} from "#analytics/queries/lane-cells.ts";
import type { AuditEntry, AuditQuery } from "#core/accounts/store/audit-log.ts";
import { capPrefixOf } from "#core/benchmarks/rules/cap-prefix.ts";
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
  type Grain,
  MIN_SAMPLE,
  WEIGHT_BANDS,
  type WeightBand,
  windowStart,
} from "#core/benchmarks/rules/lane.ts";
import { isSilent } from "#core/events/rules/silence.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { romeDate } from "#core/platform/time/rome-time.ts";
import { readKeptAudit } from "./audit-trail.ts";
import { type Pictures, pictures } from "./pictures.ts";
import aheadEventsSql from "./queries/ahead-events.sql" with { type: "text" };
import brokenRulesSql from "./queries/broken-rules.sql" with { type: "text" };
import courierQualitySql from "./queries/courier-quality.sql" with { type: "text" };
import findEventsSql from "./queries/find-events.sql" with { type: "text" };
import provinceCouriersSql from "./queries/province-couriers.sql" with { type: "text" };
import provincesSql from "./queries/provinces.sql" with { type: "text" };
import silenceSql from "./queries/silence.sql" with { type: "text" };
import trendSql from "./queries/trend.sql" with { type: "text" };
import weightsSql from "./queries/weights.sql" with { type: "text" };
import { openSqlAccess, type SqlAccess } from "./sql-access.ts";

export type { CompanyCourier } from "./pictures.ts";

/** Hours that are judged together, and weeks that they are compared with. */
const SILENCE_HOURS = 3;
const SILENCE_WEEKS = 8;
const HOUR_SECONDS = 3_600;
/** Of `YYYY-MM`. */
const MONTH_LENGTH = 7;
/** Answers over the whole table are kept for a minute, at most so many. */
const KEPT_MS = 60_000;
const KEPT_LIMIT = 200;
/** Questions waiting for their answer; one more is refused at once. */
const WAITING_LIMIT = 50;

/** A courier on a lane; days are calendar days. */
export interface LaneInsight {
  readonly courier: string;
  readonly grain: Grain;
  readonly leads: DayCounts;
  readonly deliveries: number;
  /** Shown to merchants. */
  readonly isPublic: boolean;
  readonly leadMedian: number | null;
  readonly leadMedianInterval: DayInterval | null;
  readonly leadMean: number | null;
  readonly leadP90: number | null;
  readonly transitMedian: number | null;
  /** Deliveries with a departure: a sample of its own. */
  readonly transitDeliveries: number;
  readonly troubleShare: number;
  /** Against all couriers in the cell of the same grain; null under a sample of 20. */
  readonly efficiency: Efficiency | null;
}

export interface ProvinceInsight {
  /** First two digits of the destination CAP. */
  readonly prefix: string;
  readonly provinces: string;
  readonly deliveries: number;
  readonly leadMedian: number;
  readonly leadMedianInterval: DayInterval | null;
  readonly leadMean: number;
  readonly troubleShare: number;
}

export interface ProvinceCourier {
  readonly prefix: string;
  readonly courier: string;
  readonly deliveries: number;
}

export interface TrendInsight {
  readonly courier: string;
  /** First day of the month. */
  readonly month: string;
  /** Not the running month, and not one of which the 12 months hold a part. */
  readonly isComplete: boolean;
  readonly deliveries: number;
  readonly leadMedian: number;
  readonly leadMedianInterval: DayInterval | null;
  readonly leadMean: number;
}

export interface WeightInsight extends Omit<TrendInsight, "month" | "isComplete"> {
  readonly weightBand: WeightBand;
}

/** Shares are null where there is nothing to have a share of; delays in seconds. */
export interface CourierQuality {
  readonly courier: string;
  readonly facts: number;
  readonly delayP50: number | null;
  readonly delayP95: number | null;
  readonly outOfOrderShare: number | null;
  readonly unmappedShare: number | null;
  /** Of the accepted ones, dated after we received them. */
  readonly aheadShare: number | null;
  /** Refused, dated more than 24 hours after. */
  readonly inFuture: number;
  /** The latest received of those that are ahead, at most five. */
  readonly aheadEvents: readonly AheadEvent[];
  readonly received: number;
  readonly duplicateShare: number | null;
  readonly invalidShare: number | null;
  readonly unknownTrackingShare: number | null;
  readonly brokenRules: readonly { readonly rule: string; readonly events: number }[];
}

export interface AheadEvent {
  /** Empty where the event was parked. */
  readonly messageId: string;
  readonly messageIndex: number;
  /** The courier's own. */
  readonly code: string;
  readonly occurredAtMs: number;
  readonly receivedAtMs: number;
}

export interface Silence {
  readonly courier: string;
  /** Events in the last full hours. */
  readonly seen: number;
  /** What the same hours of the week brought on average; 0 in a courier's first week. */
  readonly expected: number;
  /** Weeks the average is made of. */
  readonly weeks: number;
  readonly silent: boolean;
  /** UTC milliseconds: the begin of the last hour with events. */
  readonly lastHourMs: number;
}

/** An accepted event as its shipments have it. */
export interface AcceptedEvent {
  readonly factKey: string;
  /** Empty where the event was parked, or applied before it was kept. */
  readonly messageId: string;
  readonly messageIndex: number;
  readonly receivedAtMs: number;
  readonly shipmentIds: readonly number[];
}

export interface AcceptedQuery {
  readonly courier: string;
  /** Empty = of any event, of any message. */
  readonly factKey: string;
  readonly messageId: string;
  readonly since: number;
  /** A page begins behind this. */
  readonly afterMs: number;
  readonly afterMessageIndex: number;
  readonly afterMessage: string;
  readonly limit: number;
}

/** Questions throw `Problem` 503 ANALYTICS_UNAVAILABLE while ClickHouse is unavailable. */
export interface Insights extends Pictures {
  lane(query: Omit<CellsQuery, "couriers">): Promise<LaneInsight[]>;
  /** @param courier empty = all */
  provinces(courier: string, nowMs: number): Promise<ProvinceInsight[]>;
  /** Sample sizes only: whether a figure may be shown depends on all of them. */
  provinceCouriers(nowMs: number): Promise<ProvinceCourier[]>;
  /** @param destCap empty = all of Italy */
  trend(destCap: string, nowMs: number): Promise<TrendInsight[]>;
  /** By courier and weight band, the lightest first. @param destCap empty = all of Italy */
  weights(destCap: string, nowMs: number): Promise<WeightInsight[]>;
  quality(sinceMs: number, untilMs: number): Promise<CourierQuality[]>;
  silence(nowMs: number): Promise<Silence[]>;
  /** In the order received. */
  accepted(query: AcceptedQuery): Promise<AcceptedEvent[]>;
  /** Of the audit log, the newest first. @param fromId the oldest one that is wanted; null = all */
  audit(query: AuditQuery, fromId: string | null): Promise<AuditEntry[]>;
  readonly sql: SqlAccess;
  close(): Promise<void>;
}

/** Does not fail while ClickHouse is unavailable. */
export function openInsights(config: Config): Insights {
  const store = keepClickhouse(() => openClickhouse(config, "survey"));
  const sql = openSqlAccess(config);
  let waiting = 0;

  async function ask<T>(work: (client: ClickHouseClient) => Promise<T[]>): Promise<T[]> {
    if (waiting >= WAITING_LIMIT) throw unavailable();
    waiting += 1;
    try {
      return await work(await store.client());
    } catch (error) {
      if (clickhouseErrorType(error) === "UNKNOWN_TABLE") return [];
      throw unavailable();
    } finally {
      waiting -= 1;
    }
  }

  function rows<T>(query: string, params: Record<string, unknown>): Promise<T[]> {
    return ask(async (client) => {
      const answer = await client.query({ query, query_params: params, format: "JSONEachRow" });
      return answer.json<T>();
    });
  }

  const keptRows = kept(rows);

  return {
    ...pictures(keptRows),
    audit: (query, fromId) => readKeptAudit(rows, query, fromId),
    async lane(query) {
      const cells = await ask((client) => readCells(client, { ...query, couriers: [] }));
      const byGrain = Map.groupBy(cells, ({ grain }) => grain);
      return [...Map.groupBy(cells, ({ courier }) => courier).values()]
        .flatMap((own) => laneInsight(own, byGrain) ?? [])
        .sort(fastestFirst);
    },
    async provinces(courier, nowMs) {
      const params = { courier, since: windowStart(nowMs) };
      return (await keptRows<ProvinceRow>(provincesSql, params)).map(provinceInsight);
    },
    provinceCouriers: (nowMs) => keptRows(provinceCouriersSql, { since: windowStart(nowMs) }),
    async trend(destCap, nowMs) {
      const since = windowStart(nowMs);
      const running = romeDate(nowMs).slice(0, MONTH_LENGTH);
      const found = await keptRows<TrendRow>(trendSql, { destCap, since });
      return found.map(({ courier, month, leads }) => ({
        courier,
        month,
        isComplete: month >= since && !month.startsWith(running),
        ...summary(leads),
      }));
    },
    async weights(destCap, nowMs) {
      const found = await keptRows<WeightRow>(weightsSql, { destCap, since: windowStart(nowMs) });
      return found
        .map(({ courier, weightBand, leads }) => ({ courier, weightBand, ...summary(leads) }))
        .sort(lightestFirst);
    },
    async quality(sinceMs, untilMs) {
      const params = { since: Math.floor(sinceMs / 1000), until: Math.ceil(untilMs / 1000) };
      return readQuality(rows, params);
    },
    async silence(nowMs) {
      const until = Math.floor(nowMs / 1000 / HOUR_SECONDS) * HOUR_SECONDS;
      const params = { until, hours: SILENCE_HOURS, weeks: SILENCE_WEEKS };
      return (await rows<SilenceRow>(silenceSql, params)).map(
        ({ lastHour, compared_hours: _, ...row }) => ({
          ...row,
          silent: isSilent(row.expected, row.seen),
          lastHourMs: lastHour * 1000,
        }),
      );
    },
    accepted: (query) => rows<AcceptedEvent>(findEventsSql, { ...query }),
    sql,
    async close() {
      await Promise.all([store.close(), sql.close()]);
    },
  };
}

/** Answers of the last minute. */
function kept(rows: AskRows): AskRows {
  const known = new Map<string, { readonly untilMs: number; readonly rows: readonly unknown[] }>();
  return async <T>(query: string, params: Record<string, unknown>): Promise<T[]> => {
    const name = JSON.stringify([query, params]);
    const answer = known.get(name);
    if (answer && answer.untilMs > performance.now()) return answer.rows as T[];
    const found = await rows<T>(query, params);
    if (known.size >= KEPT_LIMIT) known.clear();
    known.set(name, { untilMs: performance.now() + KEPT_MS, rows: found });
    return found;
  };
}

function unavailable(): Problem {
  return new Problem(503, "ANALYTICS_UNAVAILABLE", "ClickHouse is unavailable.", {
    headers: { "retry-after": "5" },
  });
}

/** The finest grain with a sample of 20, else the coarsest there is. */
function laneInsight(
  cells: readonly LaneCell[],
  byGrain: ReadonlyMap<Grain, readonly LaneCell[]>,
): LaneInsight | null {
  const cell = finestCell(cells) ?? cells.find(({ grain }) => grain === "cap");
  if (!cell) return null;
  const { courier, grain, leads, transits, troubles } = cell;
  const deliveries = sampleSize(leads);
  const isPublic = deliveries >= MIN_SAMPLE;
  return {
    courier,
    grain,
    leads,
    deliveries,
    isPublic,
    efficiency: isPublic ? efficiency(cell, networkOf(byGrain.get(grain) ?? [])) : null,
    leadMedian: percentileDays(leads, 50),
    leadMedianInterval: medianInterval(leads),
    leadMean: meanDays(leads),
    leadP90: percentileDays(leads, 90),
    transitMedian: percentileDays(transits, 50),
    transitDeliveries: sampleSize(transits),
    troubleShare: troubles / deliveries,
  };
}

function fastestFirst(one: LaneInsight, other: LaneInsight): number {
  return (
    Number(other.isPublic) - Number(one.isPublic) ||
    (one.leadMedian ?? 0) - (other.leadMedian ?? 0) ||
    (one.leadMean ?? 0) - (other.leadMean ?? 0) ||
    (one.courier < other.courier ? -1 : 1)
  );
}

interface ProvinceRow {
  readonly prefix: string;
  readonly troubles: number;
  readonly leads: DayMap;
}

interface TrendRow {
  readonly courier: string;
  readonly month: string;
  readonly leads: DayMap;
}

interface WeightRow {
  readonly courier: string;
  readonly weightBand: WeightBand;
  readonly leads: DayMap;
}

function lightestFirst(one: WeightInsight, other: WeightInsight): number {
  const heaviness = ({ weightBand }: WeightInsight) => WEIGHT_BANDS.indexOf(weightBand);
  const byCourier = one.courier < other.courier ? -1 : 1;
  return one.courier === other.courier ? heaviness(one) - heaviness(other) : byCourier;
}

function provinceInsight({ prefix, troubles, leads }: ProvinceRow): ProvinceInsight {
  const provinces = capPrefixOf(`${prefix}999`)?.provinces ?? "not in use";
  const figures = summary(leads);
  return { prefix, provinces, ...figures, troubleShare: troubles / figures.deliveries };
}

function summary(leads: DayMap) {
  const counts = dayCounts(leads);
  return {
    deliveries: sampleSize(counts),
    leadMedian: percentileDays(counts, 50) ?? 0,
    leadMedianInterval: medianInterval(counts),
    leadMean: meanDays(counts) ?? 0,
  };
}

interface QualityRow {
  readonly courier: string;
  readonly facts: number;
  readonly delayP50: number;
  readonly delayP95: number;
  readonly outOfOrder: number;
  readonly unmapped: number;
  readonly ahead: number;
  readonly inFuture: number;
  readonly received: number;
  readonly duplicate: number;
  readonly invalid: number;
  readonly unknownTracking: number;
}

interface BrokenRule {
  readonly courier: string;
  readonly rule: string;
  readonly events: number;
}

interface AheadRow extends AheadEvent {
  readonly courier: string;
}

interface SilenceRow extends Omit<Silence, "silent" | "lastHourMs"> {
  readonly lastHour: number;
  readonly compared_hours: number;
}

type AskRows = <T>(query: string, params: Record<string, unknown>) => Promise<T[]>;

async function readQuality(
  rows: AskRows,
  params: Record<string, unknown>,
): Promise<CourierQuality[]> {
  const found = await rows<QualityRow>(courierQualitySql, params);
  const broken = await rows<BrokenRule>(brokenRulesSql, params);
  const isAnyAhead = found.some(({ ahead }) => ahead > 0);
  const ahead = isAnyAhead ? await rows<AheadRow>(aheadEventsSql, params) : [];
  const byCourier = Map.groupBy(broken, ({ courier }) => courier);
  const aheadBy = Map.groupBy(ahead, ({ courier }) => courier);
  return found.map((row) => {
    const { courier } = row;
    return quality(row, byCourier.get(courier) ?? [], aheadBy.get(courier) ?? []);
  });
}

function quality(
  row: QualityRow,
  broken: readonly BrokenRule[],
  ahead: readonly AheadRow[],
): CourierQuality {
  const { courier, facts, received } = row;
  const share = (part: number, whole: number) => (whole === 0 ? null : part / whole);
  return {
    courier,
    facts,
    delayP50: facts === 0 ? null : row.delayP50,
    delayP95: facts === 0 ? null : row.delayP95,
    outOfOrderShare: share(row.outOfOrder, facts),
    unmappedShare: share(row.unmapped, facts),
    aheadShare: share(row.ahead, facts),
    inFuture: row.inFuture,
    aheadEvents: ahead.map(({ courier: _, ...one }) => one),
    received,
    duplicateShare: share(row.duplicate, received),
    invalidShare: share(row.invalid, received),
    unknownTrackingShare: share(row.unknownTracking, received),
    brokenRules: broken.map(({ rule, events }) => ({ rule, events })),
  };
}
