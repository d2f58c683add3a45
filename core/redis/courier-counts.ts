/**
 * What became of couriers' events, by hour: received, duplicate, unknown, invalid and by which rule. Facts are told by
 * the change log; these are the rest of the carrier quality figures. Counts only grow within their hour, so whoever takes
 * them over writes the sums and may write them as often as it likes: the largest one counts.
 *
 * Added after the message was judged, outside its scripts: a process that dies between the two leaves its message
 * uncounted. The books that must balance are the ledger's.
 */
import { CourierEvent } from "#core/domain/event.ts";
import type { Fault } from "#core/domain/fault.ts";
import { type Redis, run, script } from "./client.ts";
import { courierCountKeys } from "./keys.ts";
import forgetSource from "./scripts/forget-counts.lua" with { type: "text" };

const forgetScript = script(forgetSource);

const HOUR_MS = 3_600_000;
/** An hour is forgotten when it has been over for this long: no clock of a sender of counts is that far behind. */
const GRACE_HOURS = 2;

/** Hours read at once, oldest first; the next ones follow when these are forgotten. */
const HOURS_READ = 200;

/** What is counted of one event. */
export interface JudgedEvent {
  readonly outcome: string;
  /** Of an invalid event. */
  readonly errors?: readonly Fault[];
}

export interface CourierCount {
  /** Since 1970, UTC. */
  readonly hour: number;
  readonly courier: string;
  /** ACCEPTED, DUPLICATE, UNKNOWN_TRACKING, INVALID; or RULE, one for each rule that an invalid event broke. */
  readonly outcome: string;
  /** Such as `BAD_FORMAT occurredAt`; empty unless the outcome is RULE. */
  readonly rule: string;
  readonly events: number;
}

/** Adds one message: one round trip, whatever its size. */
export async function countCourierEvents(
  redis: Redis,
  courier: string,
  judged: readonly JudgedEvent[],
  nowMs: number,
): Promise<void> {
  const hour = Math.floor(nowMs / HOUR_MS);
  const counts = new Map<string, number>();
  const add = (outcome: string, rule: string) => {
    const field = JSON.stringify([courier, outcome, rule]);
    counts.set(field, (counts.get(field) ?? 0) + 1);
  };
  for (const { outcome, errors } of judged) {
    add(outcome, "");
    for (const rule of new Set((errors ?? []).map(ruleOf))) add("RULE", rule);
  }
  const step = redis.multi().sAdd(courierCountKeys.hours, String(hour));
  for (const [field, events] of counts) step.hIncrBy(courierCountKeys.hour(hour), field, events);
  await step.exec();
}

/** Bounded in number and free of what the sender wrote: the code and the known member it is about. */
function ruleOf({ path, code }: Fault): string {
  const member = /^[A-Za-z]+/.exec(path)?.[0] ?? "";
  return `${code} ${Object.hasOwn(CourierEvent.properties, member) ? member : "other"}`;
}

/** Counts that have not been forgotten. */
export async function readCourierCounts(redis: Redis): Promise<CourierCount[]> {
  const known = (await redis.sMembers(courierCountKeys.hours)).map(Number);
  const hours = known.sort((one, other) => one - other).slice(0, HOURS_READ);
  if (hours.length === 0) return [];
  const step = redis.multi();
  for (const hour of hours) step.hGetAll(courierCountKeys.hour(hour));
  const hashes = (await step.execAsPipeline()) as unknown as Record<string, string>[];
  return hours.flatMap((hour, at) =>
    Object.entries(hashes[at] ?? {}).map(([field, events]) => {
      const [courier, outcome, rule] = JSON.parse(field);
      return { hour, courier, outcome, rule, events: Number(events) };
    }),
  );
}

/** Forgets the hours that are over and whose counts, as read, have been written. */
export async function forgetCourierCounts(
  redis: Redis,
  written: readonly CourierCount[],
  nowMs: number,
): Promise<void> {
  const current = Math.floor(nowMs / HOUR_MS);
  const over = [...Map.groupBy(written, ({ hour }) => hour)].filter(
    ([hour]) => hour < current - GRACE_HOURS,
  );
  if (over.length === 0) return;
  const keys = over.map(([hour]) => courierCountKeys.hour(hour));
  const args = over.flatMap(([hour, counts]) => [
    String(hour),
    String(counts.reduce((sum, { events }) => sum + events, 0)),
  ]);
  await run(redis, forgetScript, [courierCountKeys.hours, ...keys], args);
}
