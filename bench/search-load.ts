/**
 * One channel for `bench/search.ts` and `bench/archive-reads.ts`: a year of ship dates or another span, created in their order give or take a week, most shipments
 * delivered two to five days after they were shipped, the latest still under way. Everything goes through the store's own
 * create and commit, in the order of time. While it lasts Redis keeps no append-only file; it is written whole at the end
 * and kept from then on.
 */

import type { Redis } from "#core/platform/redis/client.ts";
import { CHANGE_LOGS } from "#core/platform/redis/keys.ts";
import { initialState, type ShipmentState } from "#core/shipments/rules/fold.ts";
import { createShipments } from "#core/shipments/store/create-shipments.ts";
import {
  type Commit,
  commitShipments,
  type HotShipment,
  readHotShipments,
} from "#core/shipments/store/shipments.ts";
import type { Status } from "#core/statuses/rules/status.ts";
import { eventually } from "#test/support/eventually.ts";

export const COMPANY = 1;
export const CHANNEL = 1;
const DAY_SECONDS = 86_400;
const DAY_MS = 86_400_000;
const BATCH = 1_000;
const REWRITE_LIMIT_MS = 300_000;
/** Shipments of the last days are those that change. */
const MOVING = 10_000;

export interface Loaded {
  readonly ids: readonly number[];
  /** Days since 1970. */
  readonly firstDay: number;
  readonly lastDay: number;
  /** Seconds since 1970. */
  readonly now: number;
}

interface Plan {
  readonly from: HotShipment;
  readonly status: Status;
  readonly second: number;
}

const dateOf = (day: number) => new Date(day * DAY_MS).toISOString().slice(0, 10);

export interface Span {
  /** Days up to now that the ship dates are spread over. */
  readonly days: number;
  /** Shipments that the channel has had before. */
  readonly firstRank: number;
}

const YEAR: Span = { days: 365, firstRank: 0 };

export async function loadShipments(redis: Redis, count: number, span = YEAR): Promise<Loaded> {
  await redis.configSet("appendonly", "no");
  const loaded = await createAndCommit(redis, count, span);
  await redis.configSet("appendonly", "yes");
  const isWritten = async () => !BUSY.test(await redis.info("persistence"));
  await eventually(isWritten, "the append-only file is written", REWRITE_LIMIT_MS);
  return loaded;
}

const BUSY = /aof_rewrite_(in_progress|scheduled):1/;

async function createAndCommit(redis: Redis, count: number, span: Span): Promise<Loaded> {
  const now = Math.floor(Date.now() / 1_000);
  const lastDay = Math.floor(now / DAY_SECONDS);
  const firstDay = lastDay - span.days + 1;
  const plans: Plan[] = [];
  for (let from = 0; from < count; from += BATCH) {
    const items = Array.from({ length: Math.min(BATCH, count - from) }, (_, at) => {
      const position = firstDay + ((from + at) / count) * span.days + (Math.random() - 0.5) * 7;
      const day = Math.min(lastDay, Math.max(firstDay, Math.floor(position)));
      return { day, ...itemOf(from + at, dateOf(day)) };
    });
    const ids = (await createShipments(redis, COMPANY, items)).map(({ id }) => id);
    items.forEach(({ day, meta }, at) => {
      const state = initialState("WAITING_TO_COMPUTE");
      const head = { version: 1, rank: span.firstRank + from + at, unpacked: 0, updated: 0 };
      const created = { id: ids[at] ?? 0, ...head, state, meta, base: null };
      plans.push({ from: created, ...fateOf(day, lastDay, now) });
    });
    await forgetChanges(redis);
  }
  const ids = plans.map(({ from }) => from.id);
  plans.sort((one, other) => one.second - other.second);
  for (let from = 0; from < plans.length; from += BATCH) {
    const part = plans.slice(from, from + BATCH);
    await commitShipments(redis, part.map(commitOf), (part[0]?.second ?? 0) * 1_000);
  }
  return { ids, firstDay, lastDay, now };
}

function fateOf(day: number, lastDay: number, now: number): { status: Status; second: number } {
  const status = statusOf(lastDay - day);
  const last = day + (status === "DELIVERED" ? 2 + Math.random() * 3 : Math.random() * 2);
  return { status, second: Math.min(now, Math.floor(last * DAY_SECONDS)) };
}

function statusOf(ageDays: number): Status {
  const draw = Math.random();
  if (ageDays < 2) return draw < 0.5 ? "IN_TRANSIT" : "OUT_FOR_DELIVERY";
  if (ageDays < 6 && draw < 0.3) return "IN_TRANSIT";
  if (draw < 0.02) return "RETURNED";
  return draw < 0.03 ? "EXCEPTION" : "DELIVERED";
}

function commitOf({ from, status }: Pick<Plan, "from" | "status">): Commit {
  const state: ShipmentState = { ...from.state, pair: { status, detail: 0 } };
  return { from, state, facts: [], changes: [], stamp: true };
}

/** Changes shipments as courier events do, half of them of the last days, half of any age. */
export async function changeSome(redis: Redis, { ids }: Loaded, count: number): Promise<void> {
  const chosen = Array.from({ length: count }, (_, at) => {
    const reach = at % 2 === 0 ? Math.min(MOVING, ids.length) : ids.length;
    return ids[ids.length - 1 - Math.floor(Math.random() * reach)] ?? 0;
  });
  const hot = await readHotShipments(redis, [...new Set(chosen)]);
  const commits = [...hot.values()].map((from) => {
    const isUnderWay = from.state.pair.status === "IN_TRANSIT";
    return commitOf({ from, status: isUnderWay ? "OUT_FOR_DELIVERY" : "IN_TRANSIT" });
  });
  await commitShipments(redis, commits, Date.now());
  await forgetChanges(redis);
}

/** The change log is on its way to others; nobody reads it here. */
async function forgetChanges(redis: Redis): Promise<void> {
  for (const log of CHANGE_LOGS) await redis.xTrim(log, "MAXLEN", 0);
}

function itemOf(at: number, shipDate: string) {
  const ids = {
    companyId: COMPANY,
    channelId: CHANNEL,
    courier: "GLS_ITA",
    shipDate,
    trackingNumber: `BENCH${at}`,
  };
  const orderReference = `order-${Math.floor(at / 2)}`;
  const customAttributes = { custom1: `group-${at % 500}`, custom2: `half-${at % 2}` };
  const planning = { deliveryDate: null, latestShipDate: null, latestDeliveryDate: null };
  const consignee = {
    name: "Mario Rossi",
    street: `Via Garibaldi ${at % 240}`,
    city: "Roma",
    postcode: "00118",
    state: "RM",
    country: "IT",
    email: `cliente${at}@example.com`,
  };
  const record = {
    ...ids,
    orderReference,
    customAttributes,
    planning,
    consignee,
    language: "it" as const,
    createdAtMs: 0,
  };
  const lane = { destCap: "00118", originCap: null, weightKg: null };
  return { record, meta: { ...ids, ...lane, isPlaceholder: false, orderReference } };
}
