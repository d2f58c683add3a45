/** A courier that sends without pause and retries for ever, and the account of what it was answered. */
import { expect } from "bun:test";
import type { CourierEvent } from "#core/domain/event.ts";
import { event, push } from "./courier.ts";
import { eventually } from "./eventually.ts";
import { request, shipmentItem, signIn } from "./merchant.ts";
import { PANEL_TOKEN } from "./product.ts";

const EVENTS_PER_MESSAGE = 10;
const SENDERS = 4;
/** Some 600 events a second in all: the shipments keep histories of a likely length. */
const PACE_MS = 60;
const SHIPMENTS_PER_CALL = 100;
const RETRY_WAIT_MS = 50;
/** Codes of the test setup and what its catalogue makes of them. */
const STATUS_OF: Readonly<Record<string, string>> = {
  TRN: "IN_TRANSIT",
  OUT: "OUT_FOR_DELIVERY",
  HLD: "EXCEPTION",
  DEP: "DEPARTED",
};
const CODES = Object.keys(STATUS_OF);
/** Steps through a million seconds in an order of its own, so that no two events have one `occurredAt`. */
const STEP = 7_919;
const SECONDS = 1_000_000;
const FIRST_MS = Date.parse("2026-11-01T00:00:00Z");

/** Where the product is reached, whatever it runs as. */
interface Doors {
  readonly ingest: string;
  readonly api: string;
  readonly panel: string;
}

export interface EventStream {
  /** Events that were answered ACCEPTED, or DUPLICATE after an answer that never arrived, by eventId. */
  readonly accepted: ReadonlyMap<string, CourierEvent>;
  /** Ends after the messages under way have been answered. */
  readonly stop: () => Promise<void>;
}

/** @returns ids of shipments `<prefix>-0`, `<prefix>-1`, … */
export async function createShipments(
  { api }: Doors,
  prefix: string,
  count: number,
): Promise<number[]> {
  const merchant = await signIn(api, "key_acme_main");
  const all = Array.from({ length: count }, (_, n) => shipmentItem(`${prefix}-${n}`));
  const ids: number[] = [];
  for (let from = 0; from < count; from += SHIPMENTS_PER_CALL) {
    const shipments = all.slice(from, from + SHIPMENTS_PER_CALL);
    const { status, body } = await merchant.call("POST", "/v2/shipments", { shipments });
    expect(status).toBe(201);
    ids.push(...body.items.map(({ id }: { id: number }) => id));
  }
  return ids;
}

/** Several senders of document 2 that push events of the shipments `<prefix>-n`. */
export function startEventStream(product: Doors, prefix: string, shipments: number): EventStream {
  const accepted = new Map<string, CourierEvent>();
  let over = false;
  let sent = 0;

  async function sendUntilOver(sender: number): Promise<void> {
    for (let message = 0; !over; message += 1) {
      const events = Array.from({ length: EVENTS_PER_MESSAGE }, (_, n) => {
        sent += 1;
        return numbered(
          `${prefix}-${(message * EVENTS_PER_MESSAGE + n * 3 + sender) % shipments}`,
          sent,
        );
      });
      const results = await sendUntilAnswered(product, events);
      results.forEach(({ outcome }, at) => {
        expect(["ACCEPTED", "DUPLICATE"]).toContain(outcome);
        const one = events[at];
        if (one) accepted.set(one.eventId, one);
      });
      await Bun.sleep(PACE_MS);
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
function numbered(trackingNumber: string, sent: number): CourierEvent {
  const second = (sent * STEP) % SECONDS;
  const occurredAt = new Date(FIRST_MS + second * 1_000).toISOString();
  const one = event({ trackingNumber, occurredAt, location: { name: `Hub ${second % 97}` } });
  return {
    ...one,
    status: { code: CODES[second % CODES.length] ?? "TRN", description: one.eventId },
  };
}

async function sendUntilAnswered(
  { ingest }: Doors,
  events: readonly CourierEvent[],
): Promise<Array<{ eventId: string; outcome: string }>> {
  for (;;) {
    const answer = await push(ingest, events).catch(() => null);
    if (answer?.status === 200) return answer.body.results;
    await Bun.sleep(RETRY_WAIT_MS);
  }
}

/**
 * Waits until the books balance, then recomputes every shipment from what was accepted and compares all of it: history,
 * state, and the counts of the search.
 */
export async function expectExactlyOnce(
  product: Doors,
  prefix: string,
  ids: readonly number[],
  accepted: ReadonlyMap<string, CourierEvent>,
): Promise<void> {
  await everythingIsApplied(product);
  const merchant = await signIn(product.api, "key_acme_main");
  const expected = ids.map((_, at) => recompute(`${prefix}-${at}`, accepted));
  for (const [at, id] of ids.entries()) {
    const { body } = await merchant.call("GET", `/v2/shipments/${id}`);
    const { status, statusDate, statusPlace } = body;
    const texts = body.history.map(({ courierStatus }: { courierStatus: string }) => courierStatus);
    const found: unknown = { status, statusDate, statusPlace, history: texts };
    expect(found).toEqual(expected[at]);
  }
  const byStatus = Map.groupBy(expected, ({ status }) => status);
  for (const [status, shipments] of byStatus) {
    const { body } = await merchant.call("GET", `/v2/shipments?status=${status}&limit=1`);
    expect([status, body.total]).toEqual([status, shipments.length]);
  }
}

/** An oracle of its own: sorts the accepted events of a shipment and reads the answer off the latest. */
function recompute(trackingNumber: string, accepted: ReadonlyMap<string, CourierEvent>) {
  const own = [...accepted.values()].filter((one) => one.trackingNumber === trackingNumber);
  own.sort((one, other) => Date.parse(other.occurredAt) - Date.parse(one.occurredAt));
  const [latest] = own;
  return {
    status: latest ? (STATUS_OF[latest.status.code] ?? "") : "PENDING",
    // November: Rome is one hour ahead of UTC.
    statusDate: latest
      ? new Date(Date.parse(latest.occurredAt) + 3_600_000)
          .toISOString()
          .slice(0, 19)
          .replace("T", " ")
      : null,
    statusPlace: latest?.location?.name ?? null,
    history: own.map(({ eventId }) => eventId),
  };
}

async function everythingIsApplied({ panel }: Doors): Promise<void> {
  const headers = { authorization: `Bearer ${PANEL_TOKEN}` };
  let last: unknown;
  await eventually(
    async () => {
      const { body } = await request("GET", `${panel}/panel/api/overview`, undefined, headers);
      last = body;
      const track = body.lag.find(({ group }: { group: string }) => group === "track");
      const differences: number[] = Object.values(body.ledger.difference);
      const balanced = differences.every((difference) => difference === 0);
      return balanced && track.entries === 0 && body.ledger.accepted === body.ledger.applied;
    },
    () => `every accepted event is applied; the overview says ${JSON.stringify(last)}`,
    60_000,
  );
}
