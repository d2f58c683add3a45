/**
 * A courier as a process of its own: keeps as many signed 500-event messages in flight as it may, and tells how many events
 * were accepted. Options come as JSON in its argument; what it may, and "stop", come as messages.
 */
import { sign } from "#core/webhooks/rules/signature.ts";
import { eventText, type Population, stepAt } from "./event-life.ts";
import { COURIER } from "./load-shipments.ts";

export interface SenderOptions {
  readonly url: string;
  readonly population: Population;
  /** Index of the first event in the lives of the population. */
  readonly from: number;
  /** Events to send at most. */
  readonly limit: number;
  /** Events of a message, default 500. */
  readonly perMessage?: number;
}

/** How many messages may be in flight, none at first; no further ones. */
export type SenderCommand = number | "stop";

/** Told after every answer, and once more at the end. */
export interface SenderReport {
  readonly accepted: number;
  readonly over: boolean;
}

export const EVENTS_PER_MESSAGE = 500;
export const IN_FLIGHT = 4;
const RETRY_WAIT_MS = 50;
const [TOKEN, SECRET] = ["tok_gls_1", "sig_gls_1"];

async function send({
  url,
  population,
  from,
  limit,
  perMessage = EVENTS_PER_MESSAGE,
}: SenderOptions): Promise<void> {
  let woken = Promise.withResolvers<void>();
  let inFlight = 0;
  let over = false;
  let taken = 0;
  let accepted = 0;
  process.on("message", (command: SenderCommand) => {
    if (command === "stop") over = true;
    else inFlight = command;
    woken.resolve();
    woken = Promise.withResolvers();
  });

  async function post(at: number): Promise<void> {
    const events: string[] = [];
    for (let n = 0; n < perMessage; n += 1) {
      events.push(eventText(stepAt(population, at + n)));
    }
    const body = Buffer.from(
      `{"schemaVersion":"1.0","messageId":"m-${at}","sentAt":"${new Date().toISOString()}","courier":"${COURIER}","events":[${events.join(",")}]}`,
    );
    while (!over) {
      const headers = {
        authorization: `Bearer ${TOKEN}`,
        "content-type": "application/json",
        "x-service-signature": sign([SECRET], body, Date.now()),
      };
      const response = await fetch(`${url}/v1/events`, { method: "POST", body, headers });
      const text = await response.text();
      if (response.ok) return count(text);
      // A log at its mark, or a rate: what has been claimed of the message then is a duplicate and was not counted.
      if (response.status !== 503) throw new Error(text.slice(0, 300));
      await Bun.sleep(RETRY_WAIT_MS);
    }
  }

  function count(text: string): void {
    const added = Number(/"accepted":(\d+)/.exec(text)?.[1]);
    if (added !== perMessage) throw new Error(text.slice(0, 300));
    accepted += added;
    process.send?.({ accepted, over: false } satisfies SenderReport);
  }

  async function worker(index: number): Promise<void> {
    while (!over && taken < limit) {
      if (index >= inFlight) {
        await woken.promise;
        continue;
      }
      const at = from + taken;
      taken += perMessage;
      await post(at);
    }
  }

  await Promise.all(Array.from({ length: IN_FLIGHT }, (_, index) => worker(index)));
  process.send?.({ accepted, over: true } satisfies SenderReport);
}

if (import.meta.main) {
  await send(JSON.parse(process.argv[2] ?? "{}"));
  process.disconnect?.();
}
