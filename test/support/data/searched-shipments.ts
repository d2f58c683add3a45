/** Many shipments of company acme to be searched for, random questions, and the answers of a plain filter and sort. */
import fc from "fast-check";
import { advanceClock } from "#core/configuration/store/live.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import type { ExactField, IndexOrder } from "#core/platform/redis/keys.ts";
import type { ShipmentQuery } from "#core/search/store/shipment-query.ts";
import { createShipments } from "#core/shipments/store/create-shipments.ts";
import { registerShipments } from "#core/shipments/store/register-shipments.ts";
import { readShipments, type StoredShipment } from "#core/shipments/store/shipments.ts";
import type { Status } from "#core/statuses/rules/status.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import { applyEvents } from "./facts.ts";

const BATCH = 500;
const DAY_MS = 86_400_000;
const CODES = ["TRN", "OUT", "DLV", "HLD"] as const;
const EXACT_FIELDS: readonly ExactField[] = ["orderReference", "custom1", "custom2", "custom3"];
/** Days since 1970. */
export const FIRST_DAY = Date.parse("2026-01-01") / DAY_MS;
export const ORDERS: readonly IndexOrder[] = ["id", "ship", "upd"];
export const STATUSES: Status[] = [
  "PENDING",
  "IN_TRANSIT",
  "OUT_FOR_DELIVERY",
  "DELIVERED",
  "EXCEPTION",
];

export interface Row {
  readonly id: number;
  readonly channelId: number;
  readonly trackingNumber: string;
  /** "" = none. */
  readonly exact: Readonly<Record<ExactField, string>>;
  readonly shipDay: number;
  readonly status: Status;
  /** Seconds since 1970; 0 = never. */
  readonly updated: number;
}

export interface Searched {
  readonly companyId: number;
  readonly channelIds: readonly number[];
}

export function searchedCompany({ live }: TestRuntime): Searched {
  const found = [...live.configuration().companies.values()].find(({ code }) => code === "acme");
  return { companyId: found?.id ?? 0, channelIds: [...(found?.channelIds ?? [])] };
}

/** How the shipments of a test differ from each other. */
export interface Variety {
  /** One of so many is in the second channel. */
  readonly inSecond: number;
  readonly perShipDay: number;
  readonly orderReference?: (number: number) => string;
  readonly customAttributes: (number: number) => Readonly<Record<string, string>>;
  readonly consignee?: (number: number) => { readonly name: string; readonly email: string };
}

/** Creates shipments `first` and the following ones; three of four have moved on, in an order of their own. */
export async function createSearched(
  runtime: TestRuntime,
  { companyId, channelIds }: Searched,
  variety: Variety,
  first: number,
  count: number,
): Promise<Row[]> {
  const ids: number[] = [];
  const newShipment = (number: number) => {
    const orderReference = variety.orderReference?.(number) ?? null;
    const shipDay = FIRST_DAY + Math.floor(number / variety.perShipDay);
    const common = {
      companyId,
      channelId: channelIds[number % variety.inSecond === 0 ? 1 : 0] ?? 0,
      courier: "GLS_ITA",
      trackingNumber: `N${number}`,
      shipDate: new Date(shipDay * DAY_MS).toISOString().slice(0, 10),
    };
    const planning = { deliveryDate: null, latestShipDate: null, latestDeliveryDate: null };
    const record = {
      ...common,
      language: "it" as const,
      planning,
      createdAtMs: 0,
      customAttributes: variety.customAttributes(number),
      ...(orderReference !== null && { orderReference }),
      ...(variety.consignee && { consignee: variety.consignee(number) }),
    };
    const places = { destCap: null, originCap: null, weightKg: null };
    return { record, meta: { ...common, ...places, isPlaceholder: false, orderReference } };
  };
  const numbers = Array.from({ length: count }, (_, at) => first + at);
  for (const part of chunks(numbers, BATCH)) {
    const created = await createShipments(runtime.redis, companyId, part.map(newShipment));
    const fresh = created.map(({ id }) => id);
    await registerShipments(runtime.redis, runtime.live.configuration(), fresh);
    ids.push(...fresh);
  }
  await moveOn(runtime, ids);
  return (await readShipments(runtime.redis, ids)).map(rowOf);
}

async function moveOn(runtime: TestRuntime, ids: readonly number[]): Promise<void> {
  const shuffled = new Set(ids.map((_, at) => ids[(at * 7_919) % ids.length] ?? 0));
  const moved = [...shuffled].slice(0, (ids.length * 3) / 4);
  for (const [at, part] of chunks(moved, BATCH).entries()) {
    const code = CODES[at % CODES.length] ?? "TRN";
    await applyEvents(
      runtime,
      part.map((shipmentId) => ({ shipmentId, code })),
    );
    await advanceClock(runtime.redis, 60);
    await runtime.live.refresh();
  }
}

export function rowOf({ record, state, statusUpdatedAtMs }: StoredShipment): Row {
  return {
    id: record.id,
    channelId: record.channelId,
    trackingNumber: record.trackingNumber,
    exact: {
      orderReference: record.orderReference ?? "",
      custom1: record.customAttributes?.custom1 ?? "",
      custom2: record.customAttributes?.custom2 ?? "",
      custom3: record.customAttributes?.custom3 ?? "",
    },
    shipDay: Date.parse(record.shipDate) / DAY_MS,
    status: state.pair.status,
    updated: (statusUpdatedAtMs ?? 0) / 1000,
  };
}

export type Asked = Partial<Omit<ShipmentQuery, "companyId">>;

/** Everything, newest first, unless more is asked. */
export function queryOf(searched: Searched, asked: Asked = {}): ShipmentQuery {
  return {
    ...searched,
    trackingNumber: null,
    exact: {},
    shipFrom: null,
    shipTo: null,
    statuses: null,
    updatedFrom: null,
    order: { by: "id", descending: true },
    offset: 0,
    limit: 20,
    ...asked,
  };
}

/** The answer, found the slow way. */
export function pageOf(
  rows: readonly Row[],
  query: ShipmentQuery,
): { readonly total: number; readonly ids: number[] } {
  const { shipFrom, shipTo, statuses, updatedFrom, exact, trackingNumber } = query;
  const { ids, idTo = Number.POSITIVE_INFINITY, updatedTo = Number.POSITIVE_INFINITY } = query;
  const value = (row: Row) => ({ id: row.id, ship: row.shipDay, upd: row.updated })[query.order.by];
  const sign = query.order.descending ? -1 : 1;
  const matching = rows
    .filter((row) => query.channelIds.includes(row.channelId))
    .filter((row) => trackingNumber === null || row.trackingNumber === trackingNumber)
    .filter((row) =>
      EXACT_FIELDS.every((field) => (exact[field] ?? row.exact[field]) === row.exact[field]),
    )
    .filter((row) => shipFrom === null || row.shipDay >= shipFrom)
    .filter((row) => shipTo === null || row.shipDay <= shipTo)
    .filter((row) => statuses === null || statuses.includes(row.status))
    .filter(({ id, channelId }) => ids === undefined || ids.get(channelId)?.includes(id))
    .filter(({ id, updated }) => id <= idTo && updated <= updatedTo)
    .filter((row) => updatedFrom === null || (row.updated > 0 && row.updated >= updatedFrom))
    .sort((one, other) => sign * (value(one) - value(other) || one.id - other.id));
  const page = matching.slice(query.offset, query.offset + query.limit);
  return { total: matching.length, ids: page.map(({ id }) => id) };
}

/** Any combination of filters, sorts and positions. @param exact the exact values that are asked for */
export function questions(
  { channelIds }: Searched,
  rows: readonly Row[],
  exact: fc.Arbitrary<ShipmentQuery["exact"]>,
) {
  const day = fc.integer({ min: FIRST_DAY - 2, max: (rows.at(-1)?.shipDay ?? FIRST_DAY) + 3 });
  const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
  const stamps = rows.map(({ updated }) => updated).filter((second) => second > 0);
  const numbers = rows.slice(0, 50).map(({ trackingNumber }) => trackingNumber);
  const few = fc.subarray(rows.slice(0, 2_000), { maxLength: 400 });
  const asked = fc.record({
    channelIds: fc.constantFrom(channelIds, channelIds.slice(0, 1), channelIds.slice(1)),
    statuses: maybe(fc.uniqueArray(fc.constantFrom(...STATUSES), { minLength: 1 })),
    shipFrom: maybe(day),
    shipTo: maybe(day),
    updatedFrom: maybe(fc.constantFrom(0, ...stamps.slice(0, 2_000))),
    trackingNumber: fc.oneof(
      { weight: 9, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.constantFrom(...numbers) },
    ),
    exact,
    order: fc.record({ by: fc.constantFrom(...ORDERS), descending: fc.boolean() }),
    offset: fc.oneof(fc.nat(200), fc.nat(rows.length + 100)),
    limit: fc.integer({ min: 1, max: 100 }),
  });
  const further = fc.record(
    {
      idTo: fc.constantFrom(...rows.slice(0, 2_000).map(({ id }) => id)),
      updatedTo: fc.constantFrom(...stamps.slice(0, 2_000)),
    },
    { requiredKeys: [] },
  );
  return fc.oneof(
    { weight: 3, arbitrary: asked },
    { weight: 1, arbitrary: fc.tuple(asked, further).map(([one, more]) => ({ ...one, ...more })) },
    // Whoever names shipments names no values.
    {
      weight: 1,
      arbitrary: fc.tuple(asked, few).map(([one, named]): Asked => {
        return { ...one, exact: {}, trackingNumber: null, ids: idsOf(named) };
      }),
    },
  );
}

function idsOf(rows: readonly Row[]): Map<number, number[]> {
  const groups = Map.groupBy(rows, ({ channelId }) => channelId);
  return new Map([...groups].map(([channelId, own]) => [channelId, own.map(({ id }) => id)]));
}
