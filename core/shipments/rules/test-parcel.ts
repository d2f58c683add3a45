/**
 * Parcels of test mode: the channel's shadow ships with couriers that do not exist, and a tracking number says what becomes of
 * its parcel.
 */
import type { CourierEvent } from "#core/events/rules/event.ts";
import { matchingNumber } from "#core/events/rules/reference.ts";
import { romeIso } from "#core/platform/time/rome-time.ts";
import type { CatalogueEntry } from "#core/statuses/rules/map-status.ts";

/** Releases stock at once. Every courier of the live channel stands for it. */
export const TEST_COURIER = "WAYBILL_TEST";
/** Reports what becomes of a stock release later. */
export const DEFERRED_TEST_COURIER = "WAYBILL_TEST_DEFERRED";
export const TEST_COURIERS: readonly string[] = [TEST_COURIER, DEFERRED_TEST_COURIER];

export function isTestCourier(code: string): boolean {
  return TEST_COURIERS.includes(code);
}

/** What a courier of the tests reports, by its code. `HELD` is mapped to a detail that means held in depot. */
const WORDS = {
  ANNOUNCED: ["INFO_RECEIVED", "Shipment data received"],
  ACCEPTED: ["PROCESSING", "Parcel accepted"],
  DEPARTED: ["DEPARTED", "Departed from the sender's depot"],
  TRANSIT: ["IN_TRANSIT", "In transit"],
  DELAYED: ["DELAY", "Delayed"],
  OUT: ["OUT_FOR_DELIVERY", "Out for delivery"],
  ABSENT: ["FAILED_ATTEMPT", "Recipient absent"],
  REFUSED: ["EXCEPTION", "Refused by the recipient"],
  HELD: ["EXCEPTION", "Held in depot"],
  LOST: ["EXCEPTION", "Lost"],
  POINT: ["PICKUP_POINT", "Ready at the pickup point"],
  DELIVERED: ["DELIVERED", "Delivered"],
  RETURNING: ["IN_TRANSIT", "On its way back"],
  RETURNED: ["RETURNED", "Returned to the sender"],
} as const;
type Word = keyof typeof WORDS;

const TERMINAL: ReadonlySet<string> = new Set<Word>(["LOST", "DELIVERED", "RETURNED"]);

/** @param heldDetail a status detail that means held in depot; 0 = there is none */
export function testCatalogue(heldDetail: number): CatalogueEntry[] {
  return Object.entries(WORDS).map(([code, [status, description]]) => ({
    code,
    description,
    status,
    terminal: TERMINAL.has(code),
    ...(code === "HELD" && { statusDetail: heldDetail }),
  }));
}

/** A report of the life; sent in this order, one a step. */
interface Report {
  readonly word: Word;
  /**
   * When it happened, in steps; absent = when it is sent. Never after that: an event ahead of its time is ordered by when it was
   * received.
   */
  readonly happened?: number;
  readonly renumbers?: true;
}

const START = reports("ANNOUNCED", "DEPARTED", "TRANSIT");

const LIVES = {
  DELIVERED: [...START, ...reports("OUT", "DELIVERED")],
  FAILED_THEN_DELIVERED: [...START, ...reports("OUT", "ABSENT", "OUT", "DELIVERED")],
  HELD: [...START, ...reports("OUT", "ABSENT", "HELD")],
  RETURNED: [...START, ...reports("OUT", "ABSENT", "RETURNING", "RETURNED")],
  REFUSED: [...START, ...reports("OUT", "REFUSED", "RETURNING", "RETURNED")],
  PICKUP_POINT: [...START, ...reports("POINT", "DELIVERED")],
  DELAYED: [...START, ...reports("DELAYED", "OUT", "DELIVERED")],
  LOST: [...START, ...reports("LOST")],
  OUT_OF_ORDER: [
    { word: "TRANSIT", happened: -1 },
    { word: "DELIVERED", happened: 1 },
    { word: "ANNOUNCED", happened: -3 },
    { word: "OUT", happened: 0 },
    { word: "DEPARTED", happened: -2 },
  ],
  RENUMBERED: [
    ...reports("ANNOUNCED", "DEPARTED"),
    { word: "TRANSIT", renumbers: true },
    ...reports("OUT", "DELIVERED"),
  ],
  SILENT: [],
} as const satisfies Readonly<Record<string, readonly Report[]>>;
type LifeName = keyof typeof LIVES;

export const TEST_LIVES = Object.keys(LIVES) as readonly LifeName[];

/** What follows a stock release, by its action. */
const RELEASED: Readonly<Record<string, readonly Report[]>> = {
  redeliver: reports("TRANSIT", "OUT", "DELIVERED"),
  redeliver_new_address: reports("TRANSIT", "OUT", "DELIVERED"),
  return_to_sender: reports("RETURNING", "RETURNED"),
};

/** From one report to the next. */
export const TEST_STEP_MS = 1_000;
/** The same of a number that begins with `TEST_REALTIME_`. */
export const REAL_STEP_MS = 4 * 3_600_000;

const TEST_NUMBER = "TEST_";
const REAL_TIME = "REALTIME_";

export interface Life {
  readonly reports: readonly Report[];
  readonly stepMs: number;
}

/**
 * A number begins with the name of its life, and may go on as it likes. Any other number lives like `TEST_DELIVERED`, so that a
 * rehearsal needs no numbers of its own.
 */
export function lifeOf(trackingNumber: string): Life {
  const number = matchingNumber(trackingNumber);
  const named = number.startsWith(TEST_NUMBER);
  const rest = named ? number.slice(TEST_NUMBER.length) : "";
  const isRealTime = rest.startsWith(REAL_TIME);
  const name = isRealTime ? rest.slice(REAL_TIME.length) : rest;
  const known = TEST_LIVES.find((life) => name.startsWith(life)) ?? "DELIVERED";
  return { reports: LIVES[known], stepMs: isRealTime ? REAL_STEP_MS : TEST_STEP_MS };
}

export function lifeAfterRelease(trackingNumber: string, action: string): Life {
  return { reports: RELEASED[action] ?? [], stepMs: lifeOf(trackingNumber).stepMs };
}

export interface DueEvent {
  readonly index: number;
  readonly event: CourierEvent;
}

/**
 * The events that a parcel's courier has sent by now.
 * @param name of the life: its events have ids of their own
 * @param beganMs when the life began
 */
export function eventsUntil(
  { reports: all, stepMs }: Life,
  shipment: { readonly id: number; readonly trackingNumber: string },
  name: string,
  beganMs: number,
  nowMs: number,
): DueEvent[] {
  return all.flatMap(({ word, happened, renumbers }, index) => {
    if (beganMs + (index + 1) * stepMs > nowMs) return [];
    const occurredAtMs = beganMs + ((happened ?? index) + 1) * stepMs;
    const event: CourierEvent = {
      eventId: `test-${shipment.id}-${name}-${index}`,
      trackingNumber: shipment.trackingNumber,
      occurredAt: romeIso(occurredAtMs),
      status: { code: word, description: WORDS[word][1] },
      location: { name: "Test depot" },
      ...(renumbers && {
        trackingNumberChange: { newTrackingNumber: `${shipment.trackingNumber}-NEW` },
      }),
    };
    return [{ index, event }];
  });
}

/** When the next event is due; null when all have been sent. */
export function nextEventAtMs(
  { reports: all, stepMs }: Life,
  beganMs: number,
  nowMs: number,
): number | null {
  const sent = Math.max(0, Math.floor((nowMs - beganMs) / stepMs));
  return sent >= all.length ? null : beganMs + (sent + 1) * stepMs;
}

function reports(...words: readonly Word[]): readonly Report[] {
  return words.map((word) => ({ word }));
}
