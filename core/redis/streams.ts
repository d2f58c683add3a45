/** Logs and their consumer groups: all groups are known here, so that no log is trimmed before one of them has begun. */
import type { Redis } from "./client.ts";
import { ATTEMPT_LOGS, CHANGE_LOGS, EVENT_LOGS } from "./keys.ts";

export const LOGS = {
  event: { keys: EVENT_LOGS, groups: ["track"] },
  change: { keys: CHANGE_LOGS, groups: ["references", "webhooks", "notify", "analytics"] },
  attempt: { keys: ATTEMPT_LOGS, groups: ["attempts"] },
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
  /** Age of the oldest of them in seconds; 0 when there is none. */
  readonly seconds: number;
}

interface Position {
  readonly group: string;
  readonly entries: number;
  /** The oldest entry that the group still needs; the next one to come when it is up to date. */
  readonly firstNeeded: string;
}

/** How far every group is behind its log. */
export async function readLags(redis: Redis): Promise<Lag[]> {
  const lags: Lag[] = [];
  for (const log of Object.keys(LOGS) as LogName[]) {
    const { keys, groups } = LOGS[log];
    const positions = (await Promise.all(keys.map((key) => readPositions(redis, key)))).flat();
    for (const group of groups) {
      const behind = positions.filter((one) => one.group === group && one.entries > 0);
      const oldestMs = Math.min(
        ...behind.map(({ firstNeeded }) => Number.parseInt(firstNeeded, 10)),
      );
      lags.push({
        log,
        group,
        entries: behind.reduce((sum, { entries }) => sum + entries, 0),
        seconds: behind.length === 0 ? 0 : Math.max(0, (Date.now() - oldestMs) / 1000),
      });
    }
  }
  return lags;
}

/**
 * What Redis calls a group's lag is not exact after a restart from the append-only file, so it is used only where the
 * group has not seen the newest entry, and never above the length of the log.
 */
async function readPositions(redis: Redis, key: string): Promise<Position[]> {
  const [groups, stream] = await Promise.all([redis.xInfoGroups(key), redis.xInfoStream(key)]);
  const { length, "last-generated-id": newest, "first-entry": first } = stream;
  return Promise.all(
    groups.map(async ({ name, pending, lag, "last-delivered-id": last }) => {
      const group = String(name);
      const isUpToDate = compareIds(String(last), String(newest)) >= 0;
      const unread = isUpToDate ? 0 : Math.min(Number(length), Number(lag ?? length));
      const firstPending = pending === 0 ? null : (await redis.xPending(key, group)).firstId;
      const unseen = later(following(String(last)), String(first?.id ?? "0-0"));
      const firstNeeded = String(firstPending ?? unseen);
      return { group, entries: pending + unread, firstNeeded };
    }),
  );
}

/**
 * Deletes the entries that every group has acknowledged, and no other: up to the oldest entry that is pending in a group
 * or not yet delivered to it.
 */
export async function trimLog(redis: Redis, key: string): Promise<void> {
  const positions = await readPositions(redis, key);
  const oldest = positions.map(({ firstNeeded }) => firstNeeded).sort(compareIds)[0];
  if (oldest !== undefined) await redis.xTrim(key, "MINID", oldest as never);
}

function following(id: string): string {
  const [time = "0", sequence = "0"] = id.split("-");
  return `${time}-${BigInt(sequence) + 1n}`;
}

/** A group that has read nothing yet needs the oldest entry there is. */
function later(one: string, other: string): string {
  return compareIds(one, other) >= 0 ? one : other;
}

/** Order of two entry ids of one stream. */
export function compareIds(one: string, other: string): number {
  const [time = "0", sequence = "0"] = one.split("-");
  const [otherTime = "0", otherSequence = "0"] = other.split("-");
  return Number(time) - Number(otherTime) || Number(BigInt(sequence) - BigInt(otherSequence));
}
