/**
 * Messages of days that are over: ingest in this process reads them by a clock that stands where they were sent. So what
 * happened last Tuesday has been received last Tuesday, a quarter of an hour later.
 */
import type { CourierEvent } from "#core/events/rules/event.ts";
import { courierRateKey } from "#core/platform/redis/keys.ts";
import { instantOf } from "#core/platform/time/rome-time.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { createIngestApp } from "#ingest/app.ts";
import { createCourierClient } from "./courier-client.ts";
import { DEMO_COURIERS, type DemoCourier } from "./couriers.ts";
import type { SentEvent } from "./road.ts";

/** Events of so long a time go into one message. */
const MESSAGE_MS = 30 * 60_000;
/** From the end of that time until the message is sent. */
const LATEST_MS = 10 * 60_000;

export interface PastCourier {
  /** Sends what happened before now, in the order of its days. */
  readonly push: (events: readonly SentEvent[]) => Promise<void>;
}

export function createPastCourier(runtime: Runtime, signal: AbortSignal): PastCourier {
  const pushers = new Map(
    DEMO_COURIERS.map((courier) => [courier, createPusher(runtime, courier, signal)]),
  );
  return {
    async push(events) {
      // Couriers do not wait for each other: each has a clock of its own.
      const own = Map.groupBy(events, ({ courier }) => courier);
      await Promise.all([...own].map(([courier, sent]) => pushers.get(courier)?.(sent)));
    },
  };
}

function createPusher(runtime: Runtime, courier: DemoCourier, signal: AbortSignal) {
  let nowMs = 0;
  const now = () => nowMs;
  const app = createIngestApp({ ...runtime, live: { ...runtime.live, now } });
  /** A request made today moves the courier's rate limit to today's time, and past days would never refill it: it is reset. */
  const send = async (url: string, init: RequestInit) => {
    const answer = await app.handle(new Request(url, init));
    if (answer.status !== 429) return answer;
    await runtime.redis.del(courierRateKey(courier.code));
    return app.handle(new Request(url, init));
  };
  const client = createCourierClient("http://localhost", signal, now, send);

  return async (sent: readonly SentEvent[]): Promise<void> => {
    const events = sent.map(({ event }) => event);
    const messages = [...Map.groupBy(events, messageOf)].sort(([one], [other]) => one - other);
    for (const [, message] of messages) {
      signal.throwIfAborted();
      const latest = Math.max(...message.map(timeOf)) + LATEST_MS * Math.random();
      nowMs = Math.min(Math.floor(latest), runtime.live.now());
      await client.push(courier, message);
    }
  };
}

function messageOf(event: CourierEvent): number {
  return Math.floor(timeOf(event) / MESSAGE_MS);
}

function timeOf({ occurredAt }: CourierEvent): number {
  return instantOf(occurredAt) ?? 0;
}
