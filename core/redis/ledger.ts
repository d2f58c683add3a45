/** The books (invariant 10), kept by the scripts in the same step as the effect, read as sums over all partitions. */
import type { Redis } from "./client.ts";
import { deadLetterKey } from "./consumer.ts";
import { CHANGE_LOGS, companyKeys, EVENT_LOGS, eventKeys, PARTITIONS } from "./keys.ts";

export interface Ledger {
  /** Events answered ACCEPTED. */
  readonly accepted: number;
  /** Events answered DUPLICATE. */
  readonly duplicate: number;
  /** Facts applied to shipments, set-aside ones included. */
  readonly applied: number;
}

const partitions = Array.from({ length: PARTITIONS }, (_, n) => n);

export async function readLedger(redis: Redis): Promise<Ledger> {
  const [events, companies] = await Promise.all([
    Promise.all(partitions.map((n) => redis.hGetAll(eventKeys(n).ledger))),
    Promise.all(partitions.map((n) => redis.hGetAll(companyKeys(n).ledger))),
  ]);
  const sum = (hashes: ReadonlyArray<Record<string, string>>, field: string) =>
    hashes.reduce((total, hash) => total + Number(hash[field] ?? 0), 0);
  return {
    accepted: sum(events, "accepted"),
    duplicate: sum(events, "duplicate"),
    applied: sum(companies, "applied"),
  };
}

export interface QueueDepths {
  readonly eventLog: number;
  readonly changeLog: number;
  readonly deadLetters: number;
}

export async function readQueueDepths(redis: Redis): Promise<QueueDepths> {
  const lengths = async (keys: readonly string[]) =>
    (await Promise.all(keys.map((key) => redis.xLen(key)))).reduce((sum, n) => sum + n, 0);
  const [eventLog, changeLog, deadLetters] = await Promise.all([
    lengths(EVENT_LOGS),
    lengths(CHANGE_LOGS),
    lengths([...EVENT_LOGS, ...CHANGE_LOGS].map(deadLetterKey)),
  ]);
  return { eventLog, changeLog, deadLetters };
}
