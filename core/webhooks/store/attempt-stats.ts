/** Attempts of an endpoint by hour: how many, how many of them succeeded, how long they took. They live 30 days. */
import { bucketOf, quantileOf } from "#core/benchmarks/rules/latency-buckets.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { webhookKeys } from "#core/platform/redis/keys.ts";

/** Statuses that are counted one by one; others by their hundreds, since receivers may answer with any. */
const COUNTED = new Set([
  ...[200, 201, 202, 204, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 410],
  ...[411, 412, 413, 415, 418, 421, 422, 423, 425, 426, 429, 500, 501, 502, 503, 504, 520, 522],
  ...[524],
]);
/** No answer came. */
const UNANSWERED = "none";

/** Field of an attempt in the hash of its hour: its status, and the bucket of its time. */
export function fieldOf(httpStatus: number | null, durationMs: number): string {
  return `${codeOf(httpStatus)} ${bucketOf(durationMs)}`;
}

function codeOf(httpStatus: number | null): string {
  if (httpStatus === null) return UNANSWERED;
  return COUNTED.has(httpStatus) ? String(httpStatus) : `${Math.floor(httpStatus / 100)}xx`;
}

export interface AttemptCode {
  /** A status such as `503`, the others of a hundred such as `4xx`, or `none`. */
  readonly code: string;
  readonly attempts: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

export interface AttemptHour {
  /** Hours since 1970. */
  readonly hour: number;
  readonly attempts: number;
  readonly succeeded: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

export interface AttemptStats {
  readonly total: Omit<AttemptHour, "hour">;
  /** The most frequent first. Attempts that earlier versions have counted are in the total alone. */
  readonly codes: readonly AttemptCode[];
  /** Hours without an attempt are left out. */
  readonly hours: readonly AttemptHour[];
}

/** Both hours included. */
export async function readAttemptStats(
  redis: Redis,
  partition: number,
  endpointId: string,
  fromHour: number,
  toHour: number,
): Promise<AttemptStats> {
  const hours = Array.from({ length: toHour - fromHour + 1 }, (_, n) => fromHour + n);
  const rows = await Promise.all(
    hours.map((hour) => redis.hGetAll(webhookKeys(partition).attempts(endpointId, hour))),
  );
  const counts = rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([field, count]) => [field, Number(count)])),
  );
  const sums: Record<string, number> = {};
  for (const hour of counts) {
    for (const [field, count] of Object.entries(hour)) sums[field] = (sums[field] ?? 0) + count;
  }
  return {
    total: summaryOf(sums),
    codes: codesOf(sums),
    hours: counts.flatMap((own, at) => {
      const summary = summaryOf(own);
      return summary.attempts === 0 ? [] : [{ hour: hours[at] ?? 0, ...summary }];
    }),
  };
}

type Counts = Readonly<Record<string, number>>;

function codesOf(sums: Counts): AttemptCode[] {
  const fields = Object.keys(sums).filter((field) => field.includes(" "));
  const groups = Map.groupBy(fields, (field) => field.split(" ")[0] ?? "");
  const codes = [...groups].map(([code, own]) => {
    const counts = Object.fromEntries(
      own.map((field) => [field.split(" ")[1] ?? "", sums[field] ?? 0]),
    );
    const attempts = Object.values(counts).reduce((sum, count) => sum + count, 0);
    return { code, attempts, p50Ms: quantileOf(counts, 0.5), p95Ms: quantileOf(counts, 0.95) };
  });
  return codes.sort((one, other) => other.attempts - one.attempts);
}

/** By bucket, whatever the status. */
function bucketsOf(counts: Counts): Counts {
  const buckets: Record<string, number> = {};
  for (const [field, count] of Object.entries(counts)) {
    const bucket = field.split(" ").at(-1) ?? "";
    buckets[bucket] = (buckets[bucket] ?? 0) + count;
  }
  return buckets;
}

function summaryOf(counts: Counts): Omit<AttemptHour, "hour"> {
  const buckets = bucketsOf(counts);
  const succeeded = counts["success"] ?? 0;
  return {
    attempts: succeeded + (counts["failure"] ?? 0),
    succeeded,
    p50Ms: quantileOf(buckets, 0.5),
    p95Ms: quantileOf(buckets, 0.95),
  };
}

export interface QueueDepths {
  /** First attempts that wait. */
  readonly queued: number;
  /** Retries that wait. */
  readonly waiting: number;
  readonly inFlight: number;
}

/** What an endpoint's queues hold now. */
export async function readQueueDepths(
  redis: Redis,
  partition: number,
  endpointId: string,
): Promise<QueueDepths> {
  const keys = webhookKeys(partition);
  const [queued, waiting, inFlight] = await Promise.all([
    redis.lLen(keys.queue(endpointId)),
    redis.zCard(keys.retries(endpointId)),
    redis.hmGet(keys.inFlight, [endpointId, `w ${endpointId}`]),
  ]);
  return { queued, waiting, inFlight: inFlight.reduce((sum, one) => sum + Number(one ?? 0), 0) };
}
