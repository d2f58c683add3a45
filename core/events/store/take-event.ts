/** A message of one event that is taken in by one script call, where nothing has to be judged outside of the store. */
import type { CourierEvent } from "#core/events/rules/event.ts";
import { isCluster, type Redis, run } from "#core/platform/redis/client.ts";
import {
  courierRateKey,
  eventKeys,
  logCountsKey,
  type Reference,
  retriesKey,
  SYSTEM_KEY,
  withAsGiven,
} from "#core/platform/redis/keys.ts";
import { shareOf } from "#core/platform/redis/partitions.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import { announce } from "#core/platform/redis/wake.ts";
import { hourOf } from "#core/platform/time/hour-of.ts";
import claimSource from "./claim.lua" with { type: "text" };
import rateSource from "./courier-rate.lua" with { type: "text" };
import type { RateAsk, RateVerdict } from "./courier-rate.ts";
import { type ClaimOutcome, encodeLoggedEvent, type LoggedEvent } from "./event-log.ts";
import type { OwnReferences } from "./references.ts";
import { bucketKeys, SEEN_TTL_SECONDS, type SeenBucket, type SeenLayout } from "./seen.ts";
import takeSource from "./take-event.lua" with { type: "text" };

const takeScript = scriptOfParts(takeSource, {
  claim: claimSource,
  "courier-rate": rateSource,
});

export interface EventTerms {
  /** Of the configuration by which the courier was found and the event judged. */
  readonly version: number;
  readonly rate: RateAsk;
  readonly layout: SeenLayout;
  readonly nowMs: number;
}

export interface EventToTake extends Omit<LoggedEvent, "shipmentId"> {
  readonly seen: SeenBucket;
  readonly reference: Reference;
}

export interface TakenEvent {
  readonly rate: RateVerdict;
  /** Null where the rate refused it. */
  readonly outcome: ClaimOutcome | null;
}

/**
 * Whether one candidate decides alone, whichever it is: the event names nothing that could exclude it, and brings nothing that other
 * events of its message would be matched by.
 * @returns its reference; null = its candidates have to be judged
 */
export function soleReference(
  { externalId, trackingNumberChange }: CourierEvent,
  { byNumber, byExternal }: OwnReferences,
): Reference | null {
  const isPlain = externalId === undefined && trackingNumberChange === undefined;
  return isPlain && byExternal === null ? byNumber : null;
}

/** On a cluster reference, eventId and rate stand in different slots. */
export function canTakeEvents(redis: Redis): boolean {
  return !isCluster(redis);
}

/**
 * @param highWater events that may wait in the whole log
 * @returns null where nothing was done: the configuration is a newer one, or the reference does not find exactly one shipment
 */
export async function takeEvent(
  redis: Redis,
  { version, rate, layout, nowMs }: EventTerms,
  { seen, reference, ...logged }: EventToTake,
  highWater: number,
): Promise<TakenEvent | null> {
  const { log, ledger, counts, countedHours } = eventKeys(seen.partition);
  const hour = hourOf(nowMs);
  const { perSecond, burst } = rate.limit;
  const keys = [
    ...[log, ledger, counts(hour), countedHours, logCountsKey(log), retriesKey(log, "track")],
    ...bucketKeys(layout, seen),
    ...[SYSTEM_KEY, courierRateKey(rate.subject), ...withAsGiven([reference]).map(keyOf)],
  ];
  const mark = shareOf("e", highWater);
  const numbers = [version, nowMs, perSecond, burst, 1, mark, SEEN_TTL_SECONDS].map(String);
  const line = encodeLoggedEvent({ ...logged, shipmentId: 0 }).slice(NO_SHIPMENT.length);
  const about = [logged.courier, String(hour), String(layout.generations.length)];
  const args = [...numbers, ...about, seen.member, `${line}\n`];
  const reply = await run<[verdict: string, left?: number, nextMs?: number]>(
    redis,
    takeScript,
    keys,
    args,
  );
  const [verdict, left, nextMs] = reply;
  if (left === undefined || nextMs === undefined) return null;
  const allowed = verdict !== "refused";
  const outcome = allowed ? outcomeOf(verdict) : null;
  if (outcome === "claimed") announce(redis, "event");
  return { outcome, rate: { allowed, limit: burst, remaining: left, retryAfterMs: nextMs } };
}

const keyOf = ({ key }: Reference) => key;
const NO_SHIPMENT = "[0";

function outcomeOf(digit: string): ClaimOutcome {
  if (digit === "") return "log_full";
  return digit === "1" ? "claimed" : "known";
}
