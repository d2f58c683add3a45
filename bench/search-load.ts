/**
 * One channel that is searched, and the questions of its merchant: a year of ship dates, created in their order give or take a week, most
 * shipments delivered two to five days after they were shipped, the latest still under way. Everything goes through the store's own
 * create and commit, in the order of time.
 */
import type { Redis } from "#core/platform/redis/client.ts";
import type { ShipmentQuery } from "#core/search/store/shipment-query.ts";
import { initialState, type ShipmentState } from "#core/shipments/rules/fold.ts";
import { createShipments } from "#core/shipments/store/create-shipments.ts";
import {
  type Commit,
  commitShipments,
  type HotShipment,
  readHotShipments,
} from "#core/shipments/store/shipments.ts";
import type { Status } from "#core/statuses/rules/status.ts";
import { random } from "./harness.ts";
import { COURIER, emptyLogs, itemOf, withoutFile } from "./shipments.ts";

export const COMPANY = 1;
export const CHANNEL = 1;
const DAY_SECONDS = 86_400;
const BATCH = 1_000;
/** Up to now that the ship dates are spread over. */
const DAYS = 365;
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

type Plan = Readonly<{ from: HotShipment; status: Status; second: number }>;

export function loadChannel(redis: Redis, count: number): Promise<Loaded> {
  return withoutFile(redis, () => createAndCommit(redis, count));
}

async function createAndCommit(redis: Redis, count: number): Promise<Loaded> {
  const now = Math.floor(Date.now() / 1_000);
  const lastDay = Math.floor(now / DAY_SECONDS);
  const firstDay = lastDay - DAYS + 1;
  const plans: Plan[] = [];
  for (let from = 0; from < count; from += BATCH) {
    const items = Array.from({ length: Math.min(BATCH, count - from) }, (_, at) => {
      const position = firstDay + ((from + at) / count) * DAYS + (Math.random() - 0.5) * 7;
      const day = Math.min(lastDay, Math.max(firstDay, Math.floor(position)));
      return { day, ...newShipment(from + at, day) };
    });
    const ids = (await createShipments(redis, COMPANY, items)).map(({ id }) => id);
    items.forEach(({ day, meta }, at) => {
      const state = initialState("WAITING_TO_COMPUTE");
      const head = { version: 1, rank: from + at, unpacked: 0, updated: 0 };
      const created = { id: ids[at] ?? 0, ...head, state, meta, base: null };
      plans.push({ from: created, ...fateOf(day, lastDay, now) });
    });
    await emptyLogs(redis);
  }
  const ids = plans.map(({ from }) => from.id);
  plans.sort((one, other) => one.second - other.second);
  for (let from = 0; from < plans.length; from += BATCH) {
    const part = plans.slice(from, from + BATCH);
    await commitShipments(redis, part.map(commitOf), (part[0]?.second ?? 0) * 1_000);
  }
  return { ids, firstDay, lastDay, now };
}

/** Most are delivered two to five days after they were shipped. */
function fateOf(day: number, lastDay: number, now: number): { status: Status; second: number } {
  const [ageDays, draw] = [lastDay - day, Math.random()];
  let status: Status = draw < 0.02 ? "RETURNED" : draw < 0.03 ? "EXCEPTION" : "DELIVERED";
  if (ageDays < 6 && draw < 0.3) status = "IN_TRANSIT";
  if (ageDays < 2) status = draw < 0.5 ? "IN_TRANSIT" : "OUT_FOR_DELIVERY";
  const last = day + (status === "DELIVERED" ? 2 + Math.random() * 3 : Math.random() * 2);
  return { status, second: Math.min(now, Math.floor(last * DAY_SECONDS)) };
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
  await emptyLogs(redis);
}

function newShipment(at: number, day: number) {
  const ids = {
    companyId: COMPANY,
    channelId: CHANNEL,
    courier: COURIER,
    shipDate: new Date(day * DAY_SECONDS * 1_000).toISOString().slice(0, 10),
    trackingNumber: `BENCH${at}`,
    orderReference: `order-${Math.floor(at / 2)}`,
  };
  const { consignee } = itemOf(at, ids.trackingNumber);
  const record = {
    ...ids,
    customAttributes: { custom1: `group-${at % 500}`, custom2: `half-${at % 2}` },
    planning: { deliveryDate: null, latestShipDate: null, latestDeliveryDate: null },
    ...(consignee && { consignee }),
    language: "it" as const,
    createdAtMs: 0,
  };
  const lane = { destCap: "00118", originCap: null, weightKg: null };
  return { record, meta: { ...ids, ...lane, isPlaceholder: false } };
}

const PAGE_SHIPMENTS = 20;

type Filters = Partial<Omit<ShipmentQuery, "companyId" | "channelIds">>;
export type Question = readonly [name: string, filters: (loaded: Loaded) => Filters];

type Asked = Question[1];
const all = (...parts: readonly Asked[]) => {
  return (loaded: Loaded): Filters => Object.assign({}, ...parts.map((part) => part(loaded)));
};
const status =
  (...statuses: Status[]) =>
  () => ({ statuses });
const exactly = (of: (l: Loaded) => ShipmentQuery["exact"]) => (l: Loaded) => ({ exact: of(l) });
const order = ({ ids }: Loaded) => `order-${random(ids.length / 2)}`;
const group = exactly(() => ({ custom1: `group-${random(500)}` }));
const orderAndGroup = exactly((l) => ({ orderReference: order(l), custom1: "group-1" }));
const shipped =
  (days: number) =>
  ({ firstDay, lastDay }: Loaded) => {
    const shipFrom = firstDay + random(lastDay - days + 2 - firstDay);
    return { shipFrom, shipTo: shipFrom + days - 1 };
  };
const recent =
  (days: number) =>
  ({ lastDay }: Loaded) => {
    return { shipFrom: lastDay - days, shipTo: lastDay };
  };
const after =
  (days: number) =>
  ({ now }: Loaded) => {
    return { updatedFrom: now - Math.floor(days * DAY_SECONDS * (0.5 + Math.random())) };
  };

/** Every documented filter and combination, with random values. */
export const FILTERS: readonly Question[] = [
  ["no filter", all()],
  ["trackingNumber", ({ ids }) => ({ trackingNumber: `BENCH${random(ids.length)}` })],
  ["orderReference", exactly((l) => ({ orderReference: order(l) }))],
  ["orderReference and custom1", orderAndGroup],
  ["custom1 of 2,000", group],
  ["custom2 of half the channel", exactly(() => ({ custom2: "half-1" }))],
  ["shipDate, 1 day", shipped(1)],
  ["shipDate, 30 days", shipped(30)],
  ["shipDate, 180 days", shipped(180)],
  ["status, the most frequent", status("DELIVERED")],
  ["status, 3 of them", status("IN_TRANSIT", "EXCEPTION", "DELIVERED")],
  ["updatedAfter, 1 hour", after(1 / 24)],
  ["updatedAfter, 7 days", after(7)],
  ["updatedAfter, 90 days", after(90)],
  ["shipDate 30 days and status", all(shipped(30), status("DELIVERED"))],
  ["updatedAfter 30 days and status", all(after(30), status("RETURNED"))],
  ["shipDate 30 days and updatedAfter 7", all(recent(30), after(7))],
  ["shipDate and updatedAfter, 180 days", all(shipped(180), after(180))],
  [
    "shipDate, updatedAfter and status",
    all(shipped(90), after(60), status("DELIVERED", "EXCEPTION")),
  ],
  ["custom1 and shipDate 30 days", all(group, shipped(30))],
  ["custom1, updatedAfter and status", all(group, after(60), status("DELIVERED"))],
];

type Page = Pick<ShipmentQuery, "order" | "offset">;

/** Every sort, the first page and a deep one. */
export const PAGES: readonly Page[] = (["id", "ship", "upd"] as const).flatMap((by) =>
  [true, false].flatMap((descending) =>
    [0, 999 * PAGE_SHIPMENTS].map((offset) => ({ order: { by, descending }, offset })),
  ),
);

export function queryOf(page: Page, filters: Filters): ShipmentQuery {
  return {
    companyId: COMPANY,
    channelIds: [CHANNEL],
    trackingNumber: null,
    exact: {},
    shipFrom: null,
    shipTo: null,
    statuses: null,
    updatedFrom: null,
    limit: PAGE_SHIPMENTS,
    ...page,
    ...filters,
  };
}
