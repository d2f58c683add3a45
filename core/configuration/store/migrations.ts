/**
 * Every change of the store's layout since it was first released, in order. CONTRIBUTING.md says how to add one. A
 * migration stays as it is: what it needs of a feature is written down here.
 */
import type { Redis } from "#core/platform/redis/client.ts";
import { companyKeys } from "#core/platform/redis/keys.ts";
import { readFields } from "#core/platform/redis/read-fields.ts";
import { keepFirstPartitioning } from "./partitioning.ts";

export interface Migration {
  /** The layout that it makes of the one before. */
  readonly version: number;
  /** The oldest layout whose processes may keep running: `version - 1` for a change that they can read and write. */
  readonly oldest: number;
  /**
   * One step of bounded size. It may be repeated, since a process may be killed before its progress is stored, and it may
   * run beside processes of the layout before.
   * @param cursor what the step before returned; "" = the first step
   * @returns null = this was the last step
   */
  readonly step: (redis: Redis, cursor: string) => Promise<string | null>;
}

/** Of stores before layout 3: of each family, and in the ids. */
const FIRST_PARTITIONS = 16;

/** Labels that a step reads. */
const LABELS_PER_STEP = 500;
const LABELS_KEPT_MS = 400 * 86_400_000;

/** Layout 2: every channel has a list of its labels. Processes of layout 1 make labels that are not in it. */
const LISTS_OF_LABELS: Migration = {
  version: 2,
  oldest: 1,
  async step(redis, cursor) {
    const [partition = 0, from = 1] = cursor === "" ? [] : cursor.split(":").map(Number);
    const next = await listLabelsOf(redis, partition, from);
    if (next !== null) return `${partition}:${next}`;
    return partition + 1 < FIRST_PARTITIONS ? `${partition + 1}:1` : null;
  },
};

async function listLabelsOf(redis: Redis, partition: number, from: number): Promise<number | null> {
  const keys = companyKeys(partition);
  const last = Number((await redis.get(keys.labelIds)) ?? 0);
  if (from > last) return null;
  const count = Math.min(LABELS_PER_STEP, last - from + 1);
  const ids = Array.from({ length: count }, (_, at) => (from + at) * FIRST_PARTITIONS + partition);
  const names = ids.map((id) => keys.label(id));
  const rows = await readFields<(string | null)[]>(redis, names, ["d"]);
  const lists = new Map<string, { score: number; value: string }[]>();
  for (const [at, [text]] of rows.entries()) {
    if (!text) continue;
    const { channelId, createdAtMs } = JSON.parse(text) as Record<string, number>;
    const key = keys.channelLabels(Number(channelId));
    const entry = { score: Number(createdAtMs), value: String(ids[at]) };
    lists.set(key, [...(lists.get(key) ?? []), entry]);
  }
  for (const [key, entries] of lists) {
    await redis.zAdd(key, entries);
    await redis.pExpire(key, LABELS_KEPT_MS);
  }
  return from + count;
}

/** Layout 3: the store says how many partitions it has. One of an earlier version keeps its own, so processes of it may stay. */
const PARTITIONS: Migration = { version: 3, oldest: 2, step: keepFirstPartitioning };

export const MIGRATIONS: readonly Migration[] = [LISTS_OF_LABELS, PARTITIONS];
