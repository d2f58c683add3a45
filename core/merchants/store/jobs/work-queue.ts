/**
 * Queues of work in the company's partition, handed out under leases: what a killed process had in hand is handed out again.
 * A piece of work is only an id here; what it means, and what makes doing it twice harmless, is its own noun's.
 */
import { chunks } from "#core/platform/process/chunks.ts";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { companyTag, type WorkName, workKeys } from "#core/platform/redis/keys.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import settleSource from "./settle-work.lua" with { type: "text" };
import takeSource from "./take-work.lua" with { type: "text" };

const settleScript = script(settleSource);
const takeScript = script(takeSource);

export interface Taken {
  readonly partition: number;
  readonly id: string;
  readonly lease: string;
}

let turn = 0;

export interface TakeTerms {
  readonly wanted: number;
  readonly leaseMs: number;
  readonly nowMs: number;
  /** Partitions to take from; all if absent. */
  readonly partitions?: readonly number[];
}

export interface Handout {
  readonly taken: readonly Taken[];
  /** Partitions that could not be reached, and why; they keep nothing from the others. */
  readonly failures: ReadonlyMap<number, unknown>;
}

/** At most `wanted` pieces, from the partitions in turn. If the answer of one is lost, its pieces come back when their leases end. */
export async function takeWork(
  redis: Redis,
  name: WorkName,
  { wanted, leaseMs, nowMs, partitions = partitionsOf("k") }: TakeTerms,
): Promise<Handout> {
  const failures = new Map<number, unknown>();
  const filled = new Set<number>();
  await Promise.all(
    partitions.map(async (n) => {
      const { waiting, leases } = workKeys(companyTag(n), name);
      try {
        if (await redis.exists([waiting, leases])) filled.add(n);
      } catch (error) {
        failures.set(n, error);
      }
    }),
  );
  turn += 1;
  const taken: Taken[] = [];
  for (const partition of partitionsOf("k").map((n, _, all) => (n + turn) % all.length)) {
    if (taken.length >= wanted) break;
    if (!filled.has(partition)) continue;
    try {
      const args = [nowMs, leaseMs, wanted - taken.length].map(String);
      taken.push(...(await takeFrom(redis, name, partition, args)));
    } catch (error) {
      failures.set(partition, error);
    }
  }
  return { taken, failures };
}

async function takeFrom(
  redis: Redis,
  name: WorkName,
  partition: number,
  args: string[],
): Promise<Taken[]> {
  const keys = workKeys(companyTag(partition), name);
  const { waiting, leases, holders, counter, owners, turns } = keys;
  const all = [waiting, leases, holders, counter, owners, turns];
  const reply = await run<string[]>(redis, takeScript, all, args);
  return chunks(reply, 2).map(([id = "", lease = ""]) => ({ partition, id, lease }));
}

/** @returns false when the lease has ended and the work is another's */
export function renewWork(
  redis: Redis,
  name: WorkName,
  taken: Taken,
  leaseMs: number,
): Promise<boolean> {
  return settle(redis, name, taken, "renew", leaseMs);
}

/** @param againMs when it is due again, service clock; null = it is done */
export function settleWork(
  redis: Redis,
  name: WorkName,
  taken: Taken,
  againMs: number | null,
): Promise<boolean> {
  return againMs === null
    ? settle(redis, name, taken, "done", 0)
    : settle(redis, name, taken, "again", againMs);
}

async function settle(
  redis: Redis,
  name: WorkName,
  { partition, id, lease }: Taken,
  verb: "renew" | "again" | "done",
  number: number,
): Promise<boolean> {
  const { waiting, leases, holders, owners } = workKeys(companyTag(partition), name);
  const args = [id, lease, verb, String(number)];
  return (await run<number>(redis, settleScript, [waiting, leases, holders, owners], args)) === 1;
}
