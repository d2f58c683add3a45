/** Shipments of the caller's channels, whosever these are: by part of a text, by filters, in an order, in pages. */
import type { Insights } from "#analytics/insights.ts";
import { readShipmentsAnywhere } from "#core/archive/store/archive.ts";
import type { Channel, Configuration } from "#core/configuration/store/configuration.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { searchForm } from "#core/search/rules/search-text.ts";
import { NO_ARCHIVE, searchBoth } from "#core/search/store/archive-search.ts";
import { compareHits, type SortOrder } from "#core/search/store/index-ranges.ts";
import { findByPart } from "#core/search/store/search-lines.ts";
import type { ShipmentQuery } from "#core/search/store/shipment-query.ts";
import { readShipments, type StoredShipment } from "#core/shipments/store/shipments.ts";
import type { Status } from "#core/statuses/rules/status.ts";
import type { PanelDeps } from "#panel/server/caller.ts";
import { findShipments, type Match } from "./find-shipments.ts";

/** A shorter text is looked for as a whole value only: too many numbers contain it. */
export const PART_LENGTH = limit(
  3,
  "characters from which on the panel's search box finds parts",
  "found as a whole value only",
);
/** Names are in no index: they would have to be erased there too. */
const NAMES_LOOKED_AT = limit(
  5_000,
  "latest shipments whose recipients' names are searched",
  "older ones are found by number or reference",
);
const READ_TOGETHER = 250;
/** A person's name has no digits. */
const IS_NAME = /^[^\p{Nd}]+$/u;
const DAY_MS = 86_400_000;

export interface ListAsk {
  /** Of the search box; empty = any. */
  readonly text: string;
  readonly channels: readonly Channel[];
  readonly configuration: Configuration;
  /** Null = any. */
  readonly statuses: readonly Status[] | null;
  /** Courier code; empty = any. */
  readonly courier: string;
  /** Days without a change of the status; null = any. */
  readonly quietDays: number | null;
  /** Ship dates, days since 1970. */
  readonly shipFrom: number | null;
  readonly shipTo: number | null;
  readonly order: SortOrder;
  readonly offset: number;
  readonly limit: number;
}

export interface Listed {
  readonly total: number;
  readonly shipments: readonly StoredShipment[];
  readonly matched: Match | null;
  readonly isComplete: boolean;
}

export async function listShipments(
  deps: PanelDeps,
  insights: Insights | undefined,
  ask: ListAsk,
): Promise<Listed> {
  const { redis, archive = NO_ARCHIVE } = deps;
  const { channels, order, offset } = ask;
  const named = await namedShipments(deps, insights, ask);
  const companies = [...Map.groupBy(channels, ({ companyId }) => companyId)];
  const end = offset + ask.limit;
  const isAlone = companies.length === 1;
  const pages = await Promise.all(
    companies.map(async ([companyId, own]) => {
      const query = await queryOf(deps, ask, companyId, own, named.ids);
      // Of several companies the page may be anywhere among the first ones of each.
      const page = isAlone ? { offset, limit: ask.limit } : { offset: 0, limit: end };
      return searchBoth(redis, archive, { ...query, ...page });
    }),
  );
  const hits = pages.flatMap((page) => page.hits).sort(compareHits(order));
  const ids = (isAlone ? hits : hits.slice(offset, end)).map(({ id }) => id);
  const channelIds = channels.map(({ id }) => id);
  return {
    total: pages.reduce((sum, { total }) => sum + total, 0),
    shipments: await readShipmentsAnywhere(redis, archive, ids, channelIds),
    matched: named.matched,
    isComplete: named.isComplete,
  };
}

async function queryOf(
  deps: PanelDeps,
  ask: ListAsk,
  companyId: number,
  channels: readonly Channel[],
  ids: Ids | null,
): Promise<Omit<ShipmentQuery, "offset" | "limit">> {
  const { shipFrom, shipTo, order, statuses, quietDays } = ask;
  const channelIds = channels.map(({ id }) => id);
  const untilMs = quietDays === null ? null : deps.live.now() - quietDays * DAY_MS;
  return {
    companyId,
    channelIds,
    trackingNumber: null,
    exact: {},
    shipFrom,
    shipTo,
    statuses,
    updatedFrom: null,
    order,
    ...(ids && { ids }),
    ...(untilMs !== null && {
      updatedTo: Math.max(0, Math.floor(untilMs / 1_000)),
      // A shipment without any event is as old as its creation.
      idTo: await lastCreatedBy(deps.redis, companyId, channelIds, untilMs),
    }),
  };
}

type Ids = ReadonlyMap<number, readonly number[]>;

interface Named {
  /** By channel, in ascending order; null = nothing is asked for by which single shipments are known. */
  readonly ids: Ids | null;
  readonly matched: Match | null;
  readonly isComplete: boolean;
}

/** Shipments that the text names by a whole value or a part of one, and those of a courier. */
async function namedShipments(
  deps: PanelDeps,
  insights: Insights | undefined,
  ask: ListAsk,
): Promise<Named> {
  const { text, courier } = ask;
  if (text === "") {
    if (courier === "") return { ids: null, matched: null, isComplete: true };
    return { ...(await partsOf(deps, ask)), matched: null };
  }
  const whole = await findShipments(deps, insights, ask, "values");
  const parts =
    searchForm(text).length < PART_LENGTH
      ? { ids: new Map<number, number[]>(), isComplete: true }
      : await partsOf(deps, ask);
  if (whole.matched !== null || [...parts.ids.values()].some((own) => own.length > 0)) {
    const ids = withShipments(parts.ids, whole.shipments, courier);
    return { ids, matched: whole.matched ?? "part", isComplete: parts.isComplete };
  }
  const reported = await findShipments(deps, insights, ask, "reports");
  const ids = withShipments(parts.ids, reported.shipments, courier);
  return { ids, matched: reported.matched, isComplete: parts.isComplete };
}

async function partsOf(
  { redis }: PanelDeps,
  { text, courier, channels }: ListAsk,
): Promise<{ readonly ids: Map<number, number[]>; readonly isComplete: boolean }> {
  const ids = new Map<number, number[]>();
  let isComplete = true;
  const companies = [...Map.groupBy(channels, ({ companyId }) => companyId)];
  const isName = IS_NAME.test(text);
  for (const [companyId, own] of companies) {
    const channelIds = own.map(({ id }) => id);
    const found = await findByPart(redis, companyId, channelIds, { text, courier });
    const names = isName ? Math.ceil(NAMES_LOOKED_AT / channels.length) : 0;
    for (const [channelId, numbers] of found.ids) {
      const people =
        text === "" || names === 0
          ? []
          : await findByName(redis, { companyId, channelId, names }, { text, courier });
      ids.set(channelId, ascending([...numbers, ...people]));
    }
    isComplete &&= found.isComplete;
  }
  return { ids, isComplete };
}

function ascending(ids: readonly number[]): number[] {
  return [...new Set(ids)].sort((one, other) => one - other);
}

function withShipments(
  ids: Ids,
  shipments: readonly StoredShipment[],
  courier: string,
): Map<number, number[]> {
  const own = shipments.filter(({ record }) => courier === "" || record.courier === courier);
  const byChannel = Map.groupBy(own, ({ record }) => record.channelId);
  const channels = new Set([...ids.keys(), ...byChannel.keys()]);
  return new Map(
    [...channels].map((channelId) => [
      channelId,
      ascending([
        ...(ids.get(channelId) ?? []),
        ...(byChannel.get(channelId) ?? []).map(({ record }) => record.id),
      ]),
    ]),
  );
}

/** Among the latest shipments of a channel: those whose recipient's name contains the text. Archived ones are not read. */
async function findByName(
  redis: Redis,
  where: { readonly companyId: number; readonly channelId: number; readonly names: number },
  { text, courier }: { readonly text: string; readonly courier: string },
): Promise<number[]> {
  const { companyId, channelId, names } = where;
  const key = companyKeys(companyPartition(companyId)).index(channelId, "id");
  const wanted = searchForm(text);
  const found: number[] = [];
  const turn = turns();
  for (let from = 0; from < names; from += READ_TOGETHER) {
    const to = Math.min(from + READ_TOGETHER, names) - 1;
    const members = await redis.zRange(key, from, to, { REV: true });
    for (const { record } of await readShipments(redis, members.map(Number))) {
      const isOf = courier === "" || record.courier === courier;
      if (isOf && searchForm(record.consignee?.name ?? "").includes(wanted)) found.push(record.id);
    }
    if (members.length < READ_TOGETHER) break;
    if (turn.due()) await turn.take();
  }
  return found;
}

/** The highest id that had been given by then: ids and times of creation grow together. 0 = none. */
async function lastCreatedBy(
  redis: Redis,
  companyId: number,
  channelIds: readonly number[],
  untilMs: number,
): Promise<number> {
  const keys = companyKeys(companyPartition(companyId));
  const lasts = await Promise.all(
    channelIds.map((channelId) => lastOf(redis, keys.index(channelId, "id"), untilMs)),
  );
  return Math.max(0, ...lasts);
}

async function lastOf(redis: Redis, key: string, untilMs: number): Promise<number> {
  let [from, to, last] = [0, await redis.zCard(key), 0];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    const id = Number((await redis.zRange(key, middle, middle))[0] ?? 0);
    const [shipment] = await readShipments(redis, [id]);
    // One that has just moved to the archive is old.
    if (!shipment || shipment.record.createdAtMs <= untilMs) {
      from = middle + 1;
      last = Math.max(last, id);
    } else to = middle;
  }
  return last;
}
