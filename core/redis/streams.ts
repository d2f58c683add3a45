/** Logs and their consumer groups: all groups are known here, so that no log is trimmed before one of them has begun. */
import type { Redis } from "./client.ts";
import { CHANGE_LOGS, EVENT_LOGS } from "./keys.ts";

export const LOGS = {
  event: { keys: EVENT_LOGS, groups: ["track"] },
  change: { keys: CHANGE_LOGS, groups: ["references", "webhooks", "analytics"] },
} as const;
export type LogName = keyof typeof LOGS;
export type GroupName = (typeof LOGS)[LogName]["groups"][number];

/** Creates every log with its groups; repeating it changes nothing. */
export async function ensureGroups(redis: Redis): Promise<void> {
  await Promise.all(
    Object.values(LOGS).flatMap(({ keys, groups }) =>
      keys.flatMap((key) => groups.map((group) => ensureGroup(redis, key, group))),
    ),
  );
}

async function ensureGroup(redis: Redis, key: string, group: GroupName): Promise<void> {
  try {
    await redis.xGroupCreate(key, group, "0", { MKSTREAM: true });
  } catch (error) {
    if (!isReplyError(error, "BUSYGROUP")) throw error;
  }
}

export function isReplyError(error: unknown, prefix: string): boolean {
  return error instanceof Error && error.message.startsWith(prefix);
}

export interface Lag {
  readonly log: LogName;
  readonly group: GroupName;
  /** Entries not yet acknowledged, over all partitions. */
  readonly entries: number;
}

/** How far every group is behind its log. */
export async function readLags(redis: Redis): Promise<Lag[]> {
  const names = Object.keys(LOGS) as LogName[];
  const perLog = await Promise.all(
    names.map(async (log) => {
      const { keys, groups } = LOGS[log];
      const infos = await Promise.all(keys.map((key) => redis.xInfoGroups(key)));
      return groups.map((group): Lag => {
        const own = infos.flat().filter(({ name }) => String(name) === group);
        const entries = own.reduce((sum, info) => sum + info.pending + Number(info.lag ?? 0), 0);
        return { log, group, entries };
      });
    }),
  );
  return perLog.flat();
}

/**
 * Deletes the entries that every group has acknowledged, and no other: up to the oldest entry that is pending in a group
 * or not yet delivered to it.
 */
export async function trimLog(redis: Redis, key: string): Promise<void> {
  const groups = await redis.xInfoGroups(key);
  const firstNeeded = await Promise.all(
    groups.map(async ({ name, pending, "last-delivered-id": last }) => {
      if (pending === 0) return following(String(last));
      const { firstId } = await redis.xPending(key, String(name));
      return firstId === null ? following(String(last)) : String(firstId);
    }),
  );
  const oldest = firstNeeded.sort(compareIds)[0];
  if (oldest !== undefined) await redis.xTrim(key, "MINID", oldest as never);
}

function following(id: string): string {
  const [time = "0", sequence = "0"] = id.split("-");
  return `${time}-${BigInt(sequence) + 1n}`;
}

function compareIds(one: string, other: string): number {
  const [time = "0", sequence = "0"] = one.split("-");
  const [otherTime = "0", otherSequence = "0"] = other.split("-");
  return Number(time) - Number(otherTime) || Number(BigInt(sequence) - BigInt(otherSequence));
}
