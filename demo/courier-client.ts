/** A courier's side of `POST /v1/events` (document 2): envelope, signature, gzip, outcomes counted. */
import { type CourierEvent, EVENTS_PER_MESSAGE } from "#core/events/rules/event.ts";
import { romeIso } from "#core/platform/time/rome-time.ts";
import { sign } from "#core/webhooks/rules/signature.ts";
import type { DemoCourier } from "./couriers.ts";
import { createPersistentFetch, type PersistentFetch } from "./persistent-fetch.ts";

/** Outcomes of the events sent so far. */
export interface Outcomes {
  accepted: number;
  duplicate: number;
  unknownTracking: number;
  invalid: number;
}

export interface CourierClient {
  /** @throws when the message is refused as a whole */
  push(courier: DemoCourier, events: readonly CourierEvent[]): Promise<void>;
  readonly outcomes: Readonly<Outcomes>;
}

export function createCourierClient(
  ingestUrl: string,
  signal: AbortSignal,
  now: () => number,
  send: PersistentFetch = createPersistentFetch(signal),
): CourierClient {
  const outcomes: Outcomes = { accepted: 0, duplicate: 0, unknownTracking: 0, invalid: 0 };

  async function pushMessage(courier: DemoCourier, events: readonly CourierEvent[]): Promise<void> {
    const sentAtMs = now();
    const envelope = {
      schemaVersion: "1.0",
      messageId: `${courier.code}-${crypto.randomUUID()}`,
      sentAt: romeIso(sentAtMs),
      courier: courier.code,
      events,
    };
    const text = Buffer.from(JSON.stringify(envelope));
    const body = courier.zips ? Bun.gzipSync(text) : text;
    const headers = new Headers({
      "content-type": "application/json",
      authorization: `Bearer ${courier.token}`,
    });
    if (courier.zips) headers.set("content-encoding", "gzip");
    if (courier.signs) {
      headers.set("x-service-signature", sign([courier.signingSecret], body, sentAtMs));
    }
    const answer = await send(`${ingestUrl}/v1/events`, { method: "POST", headers, body });
    if (!answer.ok) throw new Error(`POST /v1/events answered ${answer.status}`);
    const counted = (await answer.json()) as Outcomes;
    outcomes.accepted += counted.accepted;
    outcomes.duplicate += counted.duplicate;
    outcomes.unknownTracking += counted.unknownTracking;
    outcomes.invalid += counted.invalid;
  }

  return {
    async push(courier, events) {
      for (let at = 0; at < events.length; at += EVENTS_PER_MESSAGE) {
        await pushMessage(courier, events.slice(at, at + EVENTS_PER_MESSAGE));
      }
    },
    outcomes,
  };
}
