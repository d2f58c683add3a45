/**
 * Test mode: sends the events of parcels that a channel's shadow has created, as their courier would, into the event log. All that
 * comes after it is what comes after a courier's event.
 *
 * | what happens               | what follows                                                                        |
 * |----------------------------|-------------------------------------------------------------------------------------|
 * | this process dies          | the work is handed out again; events that were sent are known by their ids          |
 * | the event log is full      | the work waits as a courier would                                                   |
 * | nobody ran for a while     | all events that are due are sent at once, in the order of the life                  |
 */

import {
  type Claim,
  claimEvents,
  encodeLoggedEvent,
  lookUpEvents,
} from "#core/events/store/event-log.ts";
import { seenBucket, seenLayout } from "#core/events/store/seen.ts";
import { decodeLife, findTestParcels } from "#core/merchants/store/test-parcels.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";
import { Unavailable } from "#core/platform/redis/store-unavailable.ts";
import { unlessShardUnavailable } from "#core/platform/redis/unavailable-shard.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Running, Runtime } from "#core/runtime/runtime.ts";
import {
  type DueEvent,
  eventsUntil,
  type Life,
  lifeAfterRelease,
  lifeOf,
  nextEventAtMs,
} from "#core/shipments/rules/test-parcel.ts";
import { readShipments } from "#core/shipments/store/shipments.ts";
import { startWorker, type WorkVerdict } from "./worker.ts";

type Deps = Pick<Runtime, "redis" | "live" | "log" | "config">;

/** A new parcel's life begins within this time. Without a shadow nothing is read. */
const FIND_EVERY_MS = 500;
const LIVES_AT_ONCE = limit(20, "lives of test parcels in hand of a process", "the next round");

export function startTestParcels(deps: Deps): Pick<Running, "stop"> {
  const { redis, live, log } = deps;
  const finder = startTickingThroughOutages(log, "test parcels", FIND_EVERY_MS, async () => {
    const shadows = [...live.configuration().channels.values()].filter((one) => one.testOf);
    for (const shadow of shadows) {
      await findTestParcels(redis, shadow, live.now()).catch(unlessShardUnavailable(redis));
    }
  });
  const worker = startWorker({
    redis,
    log,
    live,
    queue: "test-parcels",
    atOnce: LIVES_AT_ONCE,
    work: ({ id }) => goOn(deps, id),
  });
  return {
    async stop() {
      await Promise.all([finder.stop(), worker.stop()]);
    },
  };
}

/** Sends what is due. @returns when the next event is */
async function goOn(deps: Deps, work: string): Promise<WorkVerdict> {
  const { shipmentId, name, action, beganMs } = decodeLife(work);
  const [shipment] = await readShipments(deps.redis, [shipmentId]);
  if (!shipment) return null;
  const { id, courier, trackingNumber, createdAtMs } = shipment.record;
  const life: Life =
    name === "own" ? lifeOf(trackingNumber) : lifeAfterRelease(trackingNumber, action);
  const nowMs = deps.live.now();
  const fromMs = beganMs || createdAtMs;
  const due = eventsUntil(life, { id, trackingNumber }, name, fromMs, nowMs);
  if (due.length > 0) await send(deps, { id, courier }, due, nowMs);
  return nextEventAtMs(life, fromMs, nowMs);
}

/** @throws {Unavailable} while the log is full */
async function send(
  { redis, config }: Deps,
  shipment: { readonly id: number; readonly courier: string },
  due: readonly DueEvent[],
  nowMs: number,
): Promise<void> {
  const { id: shipmentId, courier } = shipment;
  const layout = await seenLayout(redis, nowMs, config.eventsPerDay);
  const claims = due.map(({ index, event }): Claim => {
    const seen = seenBucket(courier, event.eventId);
    const { factKey } = seen;
    const times = { receivedAtMs: nowMs, messageIndex: index };
    return { seen, entry: encodeLoggedEvent({ shipmentId, courier, factKey, ...times, event }) };
  });
  // Asked first, since an event that is known is counted as a duplicate.
  const known = await lookUpEvents(
    redis,
    layout,
    claims.map(({ seen }) => seen),
  );
  const news = claims.filter((_, at) => known[at] === "not_known");
  if (news.length === 0) return;
  const terms = { layout, highWater: config.logHighWater, courier, nowMs };
  const outcomes = await claimEvents(redis, terms, news);
  if (outcomes.includes("log_full")) throw new Unavailable("the event log is full");
}
