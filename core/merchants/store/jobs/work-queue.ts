/**
 * Queues of work in the company's partition, handed out under leases: what a killed process had in hand is handed out again.
 * A piece of work is only an id here; what it means, and what makes doing it twice harmless, is its own noun's.
 */
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { companyTag, PARTITIONS, type WorkName, workKeys } from "#core/platform/redis/keys.ts";
import settleSource from "./settle-work.lua" with { type: "text" };
import takeSource from "./take-work.lua" with { type: "text" };

const settleScript = script(settleSource);
const takeScript = script(takeSource);

export interface Taken {
  readonly partition: number;
  readonly id: string;
  readonly lease: string;
}

const partitions = Array.from({ length: PARTITIONS }, (_, n) => n);
let turn = 0;

/** At most `wanted` pieces, from the partitions in turn. */
export async function takeWork(
  redis: Redis,
  name: WorkName,
  wanted: number,
  leaseMs: number,
  nowMs: number,
): Promise<Taken[]> {
  const filled = await Promise.all(
    partitions.map((n) => {
      const { waiting, leases } = workKeys(companyTag(n), name);
      return redis.exists([waiting, leases]);
    }),
  );
  turn += 1;
  const inTurn = partitions.map((n) => (n + turn) % PARTITIONS).filter((n) => filled[n]);
  const taken: Taken[] = [];
  for (const partition of inTurn) {
    if (taken.length >= wanted) break;
    const { waiting, leases, holders, counter, owners, turns } = workKeys(
      companyTag(partition),
      name,
    );
    const args = [nowMs, leaseMs, wanted - taken.length].map(String);
    const keys = [waiting, leases, holders, counter, owners, turns];
    const reply = await run<string[]>(redis, takeScript, keys, args);
    for (let at = 0; at < reply.length; at += 2) {
      taken.push({ partition, id: reply[at] ?? "", lease: reply[at + 1] ?? "" });
    }
  }
  return taken;
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
