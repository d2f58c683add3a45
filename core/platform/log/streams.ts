/** Logs and their consumer groups: all groups are known here, so that no log is trimmed before one of them has begun. */

import { splitEvents } from "#core/events/store/event-log.ts";
import { type Redis, script } from "#core/platform/redis/client.ts";
import {
  AUDIT_LOG,
  attemptLogs,
  changeLogs,
  eventLogs,
  logCountsKey,
  retryAgesKey,
} from "#core/platform/redis/keys.ts";
import { runTogether } from "#core/platform/redis/run-together.ts";
import { type Missing, orMissing } from "#core/platform/redis/unavailable-shard.ts";
import { splitChanges } from "#core/shipments/store/change-log.ts";
import type { Fields } from "./log-entry.ts";
import readLagSource from "./read-lag.lua" with { type: "text" };
import trimSource from "./trim-log.lua" with { type: "text" };

const readLagScript = script(readLagSource);
const trimScript = script(trimSource);

/** Of Redis, for a group that is looked at. */
const LOOK_US = 20;

const AUDIT_LOGS = [AUDIT_LOG];

/** `split` tells apart what stands together in an entry; attempts are read together, and the audit log is one for all tenants. */
export const LOGS = {
  event: { keys: eventLogs, groups: ["track"], split: splitEvents },
  change: {
    keys: changeLogs,
    groups: ["references", "webhooks", "notify", "analytics"],
    split: splitChanges,
  },
  attempt: { keys: attemptLogs, groups: ["attempts"], split: (fields: Fields) => [fields] },
  audit: { keys: () => AUDIT_LOGS, groups: ["audit"], split: (fields: Fields) => [fields] },
} as const;
export type LogName = keyof typeof LOGS;
export type GroupName = (typeof LOGS)[LogName]["groups"][number];

/** Creates every log with its groups; repeating it changes nothing. */
export async function ensureGroups(redis: Redis): Promise<void> {
  await Promise.all(
    Object.values(LOGS).flatMap(({ keys, groups }) =>
      keys().flatMap((key) => groups.map((group) => ensureGroup(redis, key, group))),
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
  /** Events, changes or bundles of attempts that are not done, over all partitions. */
  readonly entries: number;
  /** Age of the oldest of them in seconds; 0 when there is none. */
  readonly seconds: number;
}

/** How far every group is behind its log. @param missing unavailable partitions are noted there and left out */
export async function readLags(redis: Redis, missing?: Missing): Promise<Lag[]> {
  const lags: Lag[] = [];
  for (const log of Object.keys(LOGS) as LogName[]) {
    const { keys, groups } = LOGS[log];
    const positions = await Promise.all(
      keys().map((key) => readPositions(redis, key, groups, missing)),
    );
    groups.forEach((group, at) => {
      const behind = positions.flatMap((one) => one[at] ?? []);
      const oldestMs = Math.min(...behind.map((one) => one.oldestMs ?? Number.POSITIVE_INFINITY));
      lags.push({
        log,
        group,
        entries: behind.reduce((sum, { open }) => sum + open, 0),
        seconds: Math.max(0, (Date.now() - oldestMs) / 1000),
      });
    });
  }
  return lags;
}

/** When the oldest entry was appended that a group has not done, over all partitions (clock of Redis); null = none is open. */
export async function readOldestOpen(
  redis: Redis,
  log: LogName,
  group: GroupName,
): Promise<number | null> {
  const positions = await Promise.all(
    LOGS[log].keys().map((key) => readPositions(redis, key, [group])),
  );
  const oldest = positions.flatMap(([one]) => one?.oldestMs ?? []);
  return oldest.length === 0 ? null : Math.min(...oldest);
}

/** Entries that each group has done since the installation began, over all partitions: `log group` -> how many. */
export async function readDone(redis: Redis, missing?: Missing): Promise<Map<string, number>> {
  const done = new Map<string, number>();
  for (const [log, { keys, groups }] of Object.entries(LOGS)) {
    const counts = await Promise.all(
      keys().map((key) =>
        redis.hmGet(logCountsKey(key), [...groups]).catch(orMissing(redis, missing, key, [])),
      ),
    );
    groups.forEach((group, at) => {
      done.set(
        `${log} ${group}`,
        counts.reduce((sum, one) => sum + Number(one[at] ?? 0), 0),
      );
    });
  }
  return done;
}

/** What waits in a log for the group that is furthest behind, over all partitions. */
export async function readWaiting(redis: Redis, log: LogName, missing?: Missing): Promise<number> {
  const { keys, groups } = LOGS[log];
  const positions = await Promise.all(
    keys().map((key) => readPositions(redis, key, groups, missing)),
  );
  const most = positions.map((ofGroups) => Math.max(...ofGroups.map(({ open }) => open)));
  return most.reduce((sum, open) => sum + open, 0);
}

interface Position {
  /** Events or changes, those that wait for their next try included. */
  readonly open: number;
  /** Null where nothing is open. */
  readonly oldestMs: number | null;
}

/** In the order of the groups. */
async function readPositions(
  redis: Redis,
  key: string,
  groups: readonly GroupName[],
  missing?: Missing,
): Promise<Position[]> {
  const ages = groups.map((group) => retryAgesKey(key, group));
  const keys = [key, logCountsKey(key), ...ages];
  const args = [...groups];
  const costUs = groups.length * LOOK_US;
  const asked = runTogether<Array<number | string>>(redis, readLagScript, keys, args, costUs);
  const reply = await asked.catch(orMissing(redis, missing, key, []));
  return groups.map((_, at) => {
    const oldest = reply[2 * at + 1] ?? "";
    return { open: Number(reply[2 * at] ?? 0), oldestMs: oldest === "" ? null : Number(oldest) };
  });
}

/**
 * Deletes the entries that every group has acknowledged, and no other; none while a group is missing.
 * @returns how many are left
 */
export function trimLog(redis: Redis, log: LogName, key: string): Promise<number> {
  const groups = [...LOGS[log].groups];
  const costUs = groups.length * LOOK_US;
  return runTogether<number>(redis, trimScript, [key, logCountsKey(key)], groups, costUs);
}
