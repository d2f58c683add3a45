/** The courier events that the measurements send: lives of eight events, of shipments that `load-shipments.ts` has put there. */
import { COMPANIES, trackingNumberOf } from "./load-shipments.ts";

export interface Population {
  /** Shipments that are there. */
  readonly shipments: number;
  /** Those that have events, spread evenly over them. */
  readonly active: number;
  /** Those of them that are underway at the same time. */
  readonly underway: number;
}

const STEPS = ["INF", "DEP", "TRN", "TRN", "HLD", "TRN", "OUT", "DLV"] as const;
const HUBS = ["Hub Milano Sesto San Giovanni", "Hub Bologna Interporto", "Filiale Roma Est"];
const FIRST_EVENT_MS = Date.parse("2026-11-02T08:00:00Z");
const HOUR_MS = 3_600_000;
/** Steps through those underway in an order of its own. */
const STRIDE = 7_919;

interface Step {
  /** Which of the shipments. */
  readonly shipment: number;
  /** Events it has had before. */
  readonly step: number;
}

/** Of the `at`-th event of all: everyone underway has one before anyone has the next. */
export function stepAt({ shipments, active, underway }: Population, at: number): Step {
  const ofBlock = STEPS.length * underway;
  const inBlock = at % ofBlock;
  const turn = ((inBlock % underway) * STRIDE) % underway;
  const turnIndex = Math.floor(at / ofBlock) * underway + turn;
  const step = Math.floor(inBlock / underway) + STEPS.length * Math.floor(turnIndex / active);
  const one = turnIndex % active;
  const serial = Math.floor((Math.floor(one / COMPANIES) * shipments) / active);
  return { shipment: serial * COMPANIES + (one % COMPANIES), step };
}

/** JSON of some 570 bytes, as issue 9 asks, put together as text: the sender's work is not ours. */
export function eventText({ shipment, step }: Step): string {
  const number = trackingNumberOf(shipment);
  const code = STEPS[step % STEPS.length];
  const at = new Date(FIRST_EVENT_MS + (step * 5 + (shipment % 5)) * HOUR_MS).toISOString();
  return `{"eventId":"GLS-${number}-${step}-${code}","trackingNumber":"${number}","occurredAt":"${at.slice(0, 19)}Z","status":{"code":"${code}","description":"${code} In transito verso la filiale di destinazione"},"location":{"name":"${HUBS[step % HUBS.length]}","countryCode":"IT","postalCode":"20099"},"parcel":{"trackingNumber":"${number}-01","index":1,"total":1},"reason":{"code":"R00","description":"Nessuna anomalia"},"delivery":{"estimatedDeliveryDate":"2026-11-12","attemptNumber":1},"attributes":{"depot":"MI2","van":"17","route":"Sesto-Monza","scanner":"SC-000123"}}`;
}
