/**
 * The year before the demo: delivered parcels as the analytics keep them, so that months, regions and lanes have something
 * to show. A company of this size sends more before Christmas and less in August; then, and to the islands and the far
 * south, parcels take longer.
 */
import { DELIVERIES, deliveredShipmentRow, type Row } from "#analytics/write/rows.ts";
import { DEMO_FIRST_ID } from "#core/configuration/store/demo-identity.ts";
import { romeDate } from "#core/platform/time/rome-time.ts";
import { pick } from "./consignment.ts";
import { DEMO_COURIERS, type DemoCourier } from "./couriers.ts";
import { DEMO_CHANNELS } from "./demo-setup.ts";
import type { Random } from "./journey.ts";
import { PLACES, type Place } from "./places.ts";

const DAY_MS = 86_400_000;
const YEAR_DAYS = 365;
/** The days after it are the fleet's. */
const LAST_DAY_AGO = 20;
/** On a working day out of season. */
const PARCELS_A_DAY = 150;

/** January to December: how many parcels, against an ordinary month. */
const SEASON = [0.9, 0.85, 0.95, 1, 1, 0.95, 0.85, 0.45, 1, 1.1, 1.6, 1.9] as const;
/** The same for the share of parcels that take a day or two longer. */
const LATE_SHARE = [0.14, 0.08, 0.07, 0.08, 0.07, 0.08, 0.1, 0.16, 0.08, 0.09, 0.2, 0.34] as const;
const TROUBLE_SHARE = 0.12;

const ISLANDS_AND_FAR_SOUTH = new Set(["PA", "CT", "ME", "CA", "SS", "RC", "CS", "LE", "TA"]);
/** The slow lane: this courier hands parcels to the islands over to a partner. */
const SLOW_COURIER = "POSTE_ITA";
const SLOW_DAYS = 3;

export interface YearOwner {
  /** Keyed hashes, as in every row. */
  readonly company: string;
  readonly channel: string;
}

/** @param owners of the demo's channels, in their order */
export function planYear(owners: readonly YearOwner[], random: Random, nowMs: number): Row[] {
  const rows: Row[] = [];
  for (let ago = YEAR_DAYS; ago > LAST_DAY_AGO; ago -= 1) {
    const shippedMs = nowMs - ago * DAY_MS;
    const parcels = Math.round(parcelsOf(shippedMs) * (0.85 + 0.3 * random()));
    for (let at = 0; at < parcels; at += 1) {
      rows.push(planDelivery(owners, DEMO_FIRST_ID + rows.length, random, shippedMs));
    }
  }
  return rows;
}

export const YEAR_TABLE = DELIVERIES;
/** Whether the year is there already: its ids are no shipment's. */
export const YEAR_QUERY = `SELECT count() AS rows FROM ${DELIVERIES.name} WHERE shipment_id >= ${DEMO_FIRST_ID}`;

function parcelsOf(atMs: number): number {
  const date = new Date(atMs);
  const isWorkday = date.getUTCDay() !== 0 && date.getUTCDay() !== 6;
  return isWorkday ? PARCELS_A_DAY * (SEASON[date.getUTCMonth()] ?? 1) : 0;
}

function planDelivery(
  owners: readonly YearOwner[],
  shipmentId: number,
  random: Random,
  shippedMs: number,
): Row {
  const at = Math.floor(random() * owners.length);
  const channel = DEMO_CHANNELS[at] ?? DEMO_CHANNELS[0];
  const courier = pick(DEMO_COURIERS, random);
  const destination = pick(PLACES, random);
  const hasTrouble = random() < TROUBLE_SHARE;
  const transitDays = daysOf(courier, destination, hasTrouble, random, shippedMs);
  const leadDays = transitDays + (random() < 0.3 ? 1 : 0);
  return deliveredShipmentRow(
    { shipmentId, ...(owners[at] ?? { company: "", channel: "" }) },
    {
      courier: courier.code,
      destCap: destination.cap,
      originCap: channel.seat.cap,
      weightKg: Math.round((0.2 + random() ** 3 * 34) * 100) / 100,
      shipDate: romeDate(shippedMs),
      deliveredOn: romeDate(shippedMs + leadDays * DAY_MS),
      leadDays,
      transitDays,
      attempts: hasTrouble && random() < 0.7 ? 2 : 1,
      exceptions: hasTrouble && random() < 0.4 ? 1 : 0,
      isReturn: false,
      version: 1,
      removed: false,
    },
  );
}

/** Calendar days from the departure: nobody delivers on a weekend. */
function daysOf(
  courier: DemoCourier,
  { province }: Place,
  hasTrouble: boolean,
  random: Random,
  shippedMs: number,
): number {
  const month = new Date(shippedMs).getUTCMonth();
  const isFar = ISLANDS_AND_FAR_SOUTH.has(province);
  const isLate = random() < (LATE_SHARE[month] ?? 0);
  const workdays =
    pick(courier.daysUnderway, random) +
    (isFar ? 1 : 0) +
    (isFar && courier.code === SLOW_COURIER ? SLOW_DAYS : 0) +
    (hasTrouble ? 1 : 0) +
    (isLate ? 1 + Math.floor(random() * 2) : 0);
  let atMs = shippedMs;
  for (let left = workdays; left > 0; ) {
    atMs += DAY_MS;
    const day = new Date(atMs).getUTCDay();
    if (day !== 0 && day !== 6) left -= 1;
  }
  return Math.round((atMs - shippedMs) / DAY_MS);
}
