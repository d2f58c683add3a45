/** The courier events and messages that the measurements send: lives of eight events, of shipments that `shipments.ts` has put there. */
import type { CourierEvent } from "#core/events/rules/event.ts";
import { sign } from "#core/webhooks/rules/signature.ts";
import { COURIER, spreadOver, trackingNumberOf } from "./shipments.ts";

export interface Population {
  /** Shipments that are there. */
  readonly shipments: number;
  /** Those that have events, spread evenly over them. */
  readonly active: number;
  /** Those of them that are underway at the same time. */
  readonly underway: number;
}

export const STEPS = ["INF", "DEP", "TRN", "TRN", "HLD", "TRN", "OUT", "DLV"] as const;
const HUBS = ["Hub Milano Sesto San Giovanni", "Hub Bologna Interporto", "Filiale Roma Est"];
const FIRST_EVENT_MS = Date.parse("2026-11-02T08:00:00Z");
const HOUR_MS = 3_600_000;
/** Steps through those underway in an order of its own. */
const STRIDE = 7_919;
const [TOKEN, SECRET] = ["tok_gls_1", "sig_gls_1"];

/** JSON of about 570 bytes, put together as text: the sender's work is not ours. */
function eventText(shipment: number, step: number, eventId: string, hours = step * 5): string {
  const number = trackingNumberOf(shipment);
  const code = STEPS[step % STEPS.length];
  const at = new Date(FIRST_EVENT_MS + (hours + (shipment % 5)) * HOUR_MS).toISOString();
  return `{"eventId":"${eventId}","trackingNumber":"${number}","occurredAt":"${at.slice(0, 19)}Z","status":{"code":"${code}","description":"${code} In transito verso la filiale di destinazione"},"location":{"name":"${HUBS[step % HUBS.length]}","countryCode":"IT","postalCode":"20099"},"parcel":{"trackingNumber":"${number}-01","index":1,"total":1},"reason":{"code":"R00","description":"Nessuna anomalia"},"delivery":{"estimatedDeliveryDate":"2026-11-12","attemptNumber":1},"attributes":{"depot":"MI2","van":"17","route":"Sesto-Monza","scanner":"SC-000123"}}`;
}

/** The `at`-th event of all: everyone underway has one before anyone has the next. */
export function lifeEventText({ shipments, active, underway }: Population, at: number): string {
  const ofBlock = STEPS.length * underway;
  const inBlock = at % ofBlock;
  const turn = ((inBlock % underway) * STRIDE) % underway;
  const turnIndex = Math.floor(at / ofBlock) * underway + turn;
  const step = Math.floor(inBlock / underway) + STEPS.length * Math.floor(turnIndex / active);
  const shipment = spreadOver(shipments, turnIndex % active, active);
  const id = `GLS-${trackingNumberOf(shipment)}-${step}-${STEPS[step % STEPS.length]}`;
  return eventText(shipment, step, id);
}

/** The next event of a shipment. @param hours after its first one, default five for each step */
export function courierEvent(shipment: number, step: number, eventId: string, hours?: number) {
  return JSON.parse(eventText(shipment, step, eventId, hours)) as CourierEvent;
}

export type Message = ReturnType<typeof messageOf>;

/** Signed. @param events as JSON */
export function messageOf(id: string | number, events: readonly string[]) {
  const body = Buffer.from(
    `{"schemaVersion":"1.0","messageId":"m-${id}","sentAt":"${new Date().toISOString()}","courier":"${COURIER}","events":[${events.join(",")}]}`,
  );
  const headers = {
    authorization: `Bearer ${TOKEN}`,
    "content-type": "application/json",
    "x-service-signature": sign([SECRET], body, Date.now()),
  };
  return { body, headers, events: events.length };
}

/** @returns whether the message was taken; not at 503 @throws where it was not taken whole */
export async function post(url: string, message: Message, path = "/v1/events"): Promise<boolean> {
  const { body, headers, events } = message;
  const response = await fetch(`${url}${path}`, { method: "POST", body, headers });
  const text = await response.text();
  // A log at its mark, or a rate: what has been claimed of the message then is a duplicate and was not counted.
  if (response.status === 503) return false;
  if (!text.includes(`"accepted":${events}`)) throw new Error(text.slice(0, 300));
  return true;
}
