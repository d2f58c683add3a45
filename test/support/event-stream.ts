/** A courier that sends without pause and retries for ever, and the account of what it was answered. */
import { expect } from "bun:test";
import type { CourierEvent } from "#core/domain/event.ts";
import { event, push } from "./courier.ts";
import { eventually } from "./eventually.ts";
import { request, shipmentItem, signIn } from "./merchant.ts";
import { PANEL_TOKEN, type Product } from "./product.ts";

const EVENTS_PER_MESSAGE = 25;
const SENDERS = 4;
const RETRY_WAIT_MS = 50;
const CODES = ["TRN", "OUT", "HLD"] as const;

export interface EventStream {
  /** eventIds that were answered ACCEPTED, or DUPLICATE after an answer that never arrived. */
  readonly accepted: ReadonlySet<string>;
  /** Ends after the messages under way have been answered. */
  readonly stop: () => Promise<void>;
}

/** @returns ids of shipments `<prefix>-0`, `<prefix>-1`, … */
export async function createShipments(
  { api }: Product,
  prefix: string,
  count: number,
): Promise<number[]> {
  const merchant = await signIn(api, "key_acme_main");
  const shipments = Array.from({ length: count }, (_, n) => shipmentItem(`${prefix}-${n}`));
  const { status, body } = await merchant.call("POST", "/v2/shipments", { shipments });
  expect(status).toBe(201);
  return body.items.map(({ id }: { id: number }) => id);
}

/** Several senders of document 2 that push events of the shipments `<prefix>-n`. */
export function startEventStream(product: Product, prefix: string, shipments: number): EventStream {
  const accepted = new Set<string>();
  let over = false;

  async function sendUntilOver(sender: number): Promise<void> {
    for (let message = 0; !over; message += 1) {
      const events = Array.from({ length: EVENTS_PER_MESSAGE }, (_, n) => {
        const target = (message * EVENTS_PER_MESSAGE + n * 3 + sender) % shipments;
        return numbered(`${prefix}-${target}`, message * 7 + n, message + sender);
      });
      for (const { eventId, outcome } of await sendUntilAnswered(product, events)) {
        expect(["ACCEPTED", "DUPLICATE"]).toContain(outcome);
        accepted.add(eventId);
      }
    }
  }

  const senders = Array.from({ length: SENDERS }, (_, sender) => sendUntilOver(sender));
  return {
    accepted,
    async stop() {
      over = true;
      await Promise.all(senders);
    },
  };
}

/** The text of the status carries the eventId, so that the merchant's history tells which events arrived. */
function numbered(trackingNumber: string, minute: number, hour: number): CourierEvent {
  const two = (value: number) => String(value).padStart(2, "0");
  const occurredAt = `2026-11-10T${two(hour % 24)}:${two(minute % 60)}:00+01:00`;
  const one = event({ trackingNumber, occurredAt });
  return { ...one, status: { code: CODES[minute % 3] ?? "TRN", description: one.eventId } };
}

async function sendUntilAnswered(
  { ingest }: Product,
  events: readonly CourierEvent[],
): Promise<Array<{ eventId: string; outcome: string }>> {
  for (;;) {
    const answer = await push(ingest, events).catch(() => null);
    if (answer?.status === 200) return answer.body.results;
    await Bun.sleep(RETRY_WAIT_MS);
  }
}

/** Waits until the books balance, then compares the histories with what was accepted: nothing lost, nothing double. */
export async function expectExactlyOnce(
  product: Product,
  ids: readonly number[],
  accepted: ReadonlySet<string>,
): Promise<void> {
  await everythingIsApplied(product);
  const merchant = await signIn(product.api, "key_acme_main");
  const details = await Promise.all(ids.map((id) => merchant.call("GET", `/v2/shipments/${id}`)));
  const found: string[] = details.flatMap(({ body }) =>
    body.history.map(({ courierStatus }: { courierStatus: string }) => courierStatus),
  );
  const applied = new Set(found);
  expect(found.length).toBe(applied.size);
  const missing = [...accepted].filter((id) => !applied.has(id));
  expect(missing).toEqual([]);
  expect(found.length).toBe(accepted.size);
}

async function everythingIsApplied({ panel }: Product): Promise<void> {
  const headers = { authorization: `Bearer ${PANEL_TOKEN}` };
  let last: unknown;
  await eventually(
    async () => {
      const { body } = await request("GET", `${panel}/panel/api/overview`, undefined, headers);
      last = body;
      const track = body.lag.find(({ group }: { group: string }) => group === "track");
      return track.entries === 0 && body.ledger.accepted === body.ledger.applied;
    },
    () => `every accepted event is applied; the overview says ${JSON.stringify(last)}`,
    60_000,
  );
}
