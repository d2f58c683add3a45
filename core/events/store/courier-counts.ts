/**
 * What became of couriers' events, by hour: received, duplicate, unknown, invalid and by which rule. Facts are counted from
 * the change log; these are the rest of the courier quality figures. Counts only grow within their hour, so whoever takes
 * them over writes the sums and may write them as often as it likes: the largest one counts.
 *
 * Moved in the same step as the ledger: `claim.lua` counts what it accepts or knows, `countRefused` the others.
 */
import { CourierEvent } from "#core/events/rules/event.ts";
import { perPartition, type Redis, run, script } from "#core/platform/redis/client.ts";
import { eventKeys } from "#core/platform/redis/keys.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { hourOf } from "#core/platform/time/hour-of.ts";
import forgetSource from "./forget-counts.lua" with { type: "text" };

const forgetScript = script(forgetSource);

/** An hour is forgotten when it has been over for this long: no clock of a sender of counts is that far behind. */
const GRACE_HOURS = 2;

/** Hours read at once. */
const HOURS_READ = 200;
/** An event without an id to claim belongs to no partition: all of them are counted in this one. */
const REFUSED_PARTITION = 0;

/** What is counted of one event. */
export interface ClassifiedEvent {
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

/** Events that take no id, answered UNKNOWN_TRACKING or INVALID: one step, and none where there are none. */
export async function countRefused(
  redis: Redis,
  courier: string,
  refused: readonly ClassifiedEvent[],
  nowMs: number,
): Promise<void> {
  if (refused.length === 0) return;
  const { ledger, counts, countedHours } = eventKeys(REFUSED_PARTITION);
  const hour = hourOf(nowMs);
  const step = redis.multi().sAdd(countedHours, String(hour));
  for (const [field, events] of fieldsOf(courier, refused)) {
    step.hIncrBy(counts(hour), field, events);
  }
  step.hIncrBy(ledger, `received:${courier}`, refused.length);
  const invalid = refused.filter(({ outcome }) => outcome === "INVALID").length;
  if (invalid > 0) step.hIncrBy(ledger, `invalid:${courier}`, invalid);
  if (invalid < refused.length)
    step.hIncrBy(ledger, `unknown:${courier}`, refused.length - invalid);
  await step.exec();
}

function fieldsOf(courier: string, classified: readonly ClassifiedEvent[]): Map<string, number> {
  const fields = new Map<string, number>();
  for (const { outcome, errors } of classified) {
    const rules = new Set((errors ?? []).map(ruleOf));
    for (const own of [[outcome, ""], ...[...rules].map((rule) => ["RULE", rule])]) {
      const field = JSON.stringify([courier, ...own]);
      fields.set(field, (fields.get(field) ?? 0) + 1);
    }
  }
  return fields;
}

/** Bounded in number and free of what the sender wrote: the code and the known member it is about. */
export function ruleOf({ path, code }: Fault): string {
  const member = /^[A-Za-z]+/.exec(path)?.[0] ?? "";
  return `${code} ${Object.hasOwn(CourierEvent.properties, member) ? member : "other"}`;
}

/** Counts as they stood when they were read. */
export interface ReadCounts {
  /** Over all partitions. */
  readonly counts: readonly CourierCount[];
  readonly hashes: readonly ReadHash[];
}

interface ReadHash {
  readonly partition: number;
  readonly hour: number;
  /** Field -> events. */
  readonly fields: Readonly<Record<string, string>>;
}

/** Counts that have not been forgotten: the oldest hours first, the next ones follow when these are forgotten. */
export async function readCourierCounts(redis: Redis): Promise<ReadCounts> {
  const known = await Promise.all(
    partitionsOf("e").map((partition) => redis.sMembers(eventKeys(partition).countedHours)),
  );
  const hours = new Set(known.flat().map(Number));
  const oldest = new Set([...hours].sort((one, other) => one - other).slice(0, HOURS_READ));
  const named = known.flatMap((own, partition) =>
    own.map((hour) => ({ partition, hour: Number(hour) })),
  );
  const hashes = await Promise.all(
    named
      .filter(({ hour }) => oldest.has(hour))
      .map(async ({ partition, hour }) => {
        const fields = await redis.hGetAll(eventKeys(partition).counts(hour));
        return { partition, hour, fields };
      }),
  );
  return { counts: sumsOf(hashes), hashes };
}

function sumsOf(hashes: readonly ReadHash[]): CourierCount[] {
  const sums = new Map<string, CourierCount>();
  for (const { hour, fields } of hashes) {
    for (const [field, events] of Object.entries(fields)) {
      const key = `${hour} ${field}`;
      const [courier, outcome, rule] = JSON.parse(field);
      const before = sums.get(key)?.events ?? 0;
      sums.set(key, { hour, courier, outcome, rule, events: before + Number(events) });
    }
  }
  return [...sums.values()];
}

/** Forgets the hours that are over and whose counts, as read, have been written. */
export async function forgetCourierCounts(
  redis: Redis,
  { hashes }: ReadCounts,
  nowMs: number,
): Promise<void> {
  const current = hourOf(nowMs);
  const over = hashes.filter(({ hour }) => hour < current - GRACE_HOURS);
  await perPartition(
    Map.groupBy(over, ({ partition }) => partition),
    (partition, group) => {
      const { counts, countedHours } = eventKeys(partition);
      const keys = group.map(({ hour }) => counts(hour));
      const args = group.flatMap(({ hour, fields }) => {
        const sum = Object.values(fields).reduce((total, events) => total + Number(events), 0);
        return [String(hour), String(sum)];
      });
      return run(redis, forgetScript, [countedHours, ...keys], args);
    },
  );
}
