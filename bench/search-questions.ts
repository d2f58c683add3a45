/** Questions of a merchant who searches shipments, as the measurements ask them of `search-load.ts`. */
import type { SortOrder } from "#core/search/store/index-ranges.ts";
import type { ShipmentQuery } from "#core/search/store/shipment-query.ts";
import type { Loaded } from "./search-load.ts";

const DAY_SECONDS = 86_400;
export const PAGE = 20;

type Filters = Partial<Omit<ShipmentQuery, "companyId" | "channelIds">>;
export type Question = readonly [name: string, filters: (loaded: Loaded) => Filters];

const random = (from: number, to: number) => Math.floor(from + Math.random() * (to - from));
const anyGroup = () => ({ custom1: `group-${random(0, 500)}` });
const anyOrder = ({ ids }: Loaded) => `order-${random(0, ids.length / 2)}`;

function shipped({ firstDay, lastDay }: Loaded, days: number): Filters {
  const shipFrom = random(firstDay, lastDay - days + 2);
  return { shipFrom, shipTo: shipFrom + days - 1 };
}

const recent = ({ lastDay }: Loaded, days: number): Filters => ({
  shipFrom: lastDay - days,
  shipTo: lastDay,
});
const after = ({ now }: Loaded, days: number): Filters => ({
  updatedFrom: now - Math.floor(days * DAY_SECONDS * (0.5 + Math.random())),
});

/** Every documented filter and combination, with random values. */
export const FILTERS: readonly Question[] = [
  ["no filter", () => ({})],
  ["trackingNumber", ({ ids }) => ({ trackingNumber: `BENCH${random(0, ids.length)}` })],
  ["orderReference", (l) => ({ exact: { orderReference: anyOrder(l) } })],
  [
    "orderReference and custom1",
    (l) => ({ exact: { orderReference: anyOrder(l), custom1: "group-1" } }),
  ],
  ["custom1 of 2,000", () => ({ exact: anyGroup() })],
  ["custom2 of half the channel", () => ({ exact: { custom2: "half-1" } })],
  ["shipDate, 1 day", (l) => shipped(l, 1)],
  ["shipDate, 30 days", (l) => shipped(l, 30)],
  ["shipDate, 180 days", (l) => shipped(l, 180)],
  ["status, the most frequent", () => ({ statuses: ["DELIVERED"] })],
  ["status, 3 of them", () => ({ statuses: ["IN_TRANSIT", "EXCEPTION", "DELIVERED"] })],
  ["updatedAfter, 1 hour", (l) => after(l, 1 / 24)],
  ["updatedAfter, 7 days", (l) => after(l, 7)],
  ["updatedAfter, 90 days", (l) => after(l, 90)],
  ["shipDate 30 days and status", (l) => ({ ...shipped(l, 30), statuses: ["DELIVERED"] })],
  ["updatedAfter 30 days and status", (l) => ({ ...after(l, 30), statuses: ["RETURNED"] })],
  ["shipDate 30 days and updatedAfter 7", (l) => ({ ...recent(l, 30), ...after(l, 7) })],
  ["shipDate and updatedAfter, 180 days", (l) => ({ ...shipped(l, 180), ...after(l, 180) })],
  [
    "shipDate, updatedAfter and status",
    (l) => ({ ...shipped(l, 90), ...after(l, 60), statuses: ["DELIVERED", "EXCEPTION"] }),
  ],
  ["custom1 and shipDate 30 days", (l) => ({ exact: anyGroup(), ...shipped(l, 30) })],
  [
    "custom1, updatedAfter and status",
    (l) => ({ exact: anyGroup(), ...after(l, 60), statuses: ["DELIVERED"] }),
  ],
];

export const SORTS: readonly (readonly [string, SortOrder])[] = (
  ["id", "ship", "upd"] as const
).flatMap((by) => [
  [`${by}_desc`, { by, descending: true }] as const,
  [`${by}_asc`, { by, descending: false }] as const,
]);
/** The first page and a deep one. */
export const OFFSETS = [0, 999 * PAGE];
