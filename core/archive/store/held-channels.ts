/** Channels that an operator holds in Redis: what they have in the archive comes back, and nothing of them moves until they are let go. */
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition, HELD_CHANNELS_KEY } from "#core/platform/redis/keys.ts";
import markBatchSource from "./mark-batch.lua" with { type: "text" };

const markBatchScript = script(markBatchSource);

export interface HeldChannel {
  readonly channelId: number;
  /** When an operator asked for it, service clock, UTC milliseconds. */
  readonly sinceMs: number;
  /** Shipments that have come back so far. */
  readonly restored: number;
  /** All that it had in the archive has come back. */
  readonly isDone: boolean;
}

const SINCE = "since";
const RESTORED = "restored";
const DONE = "done";

/** In the order of their ids. */
export async function readHeldChannels(redis: Redis): Promise<HeldChannel[]> {
  const fields = Object.entries(await redis.hGetAll(HELD_CHANNELS_KEY));
  const byChannel = Map.groupBy(fields, ([name]) => Number.parseInt(name, 10));
  const held = [...byChannel].flatMap(([channelId, own]): HeldChannel[] => {
    const values = new Map(own.map(([name, value]) => [name.split(":")[1], Number(value)]));
    const [sinceMs, restored = 0] = [values.get(SINCE), values.get(RESTORED)];
    // Whoever brought it back may have noted something after it was let go.
    if (sinceMs === undefined) return [];
    return [{ channelId, sinceMs, restored, isDone: values.get(DONE) === 1 }];
  });
  return held.sort((one, other) => one.channelId - other.channelId);
}

/** Repeating it changes nothing. */
export async function holdChannel(redis: Redis, channelId: number, nowMs: number): Promise<void> {
  if (await isHeld(redis, channelId)) return;
  await letChannelGo(redis, channelId);
  await redis.hSetNX(HELD_CHANNELS_KEY, `${channelId}:${SINCE}`, String(nowMs));
}

export async function isHeld(redis: Redis, channelId: number): Promise<boolean> {
  return (await redis.hExists(HELD_CHANNELS_KEY, `${channelId}:${SINCE}`)) === 1;
}

/** Its shipments move to the archive again when they are over. */
export async function letChannelGo(redis: Redis, channelId: number): Promise<void> {
  const names = [SINCE, RESTORED, DONE].map((name) => `${channelId}:${name}`);
  await redis.hDel(HELD_CHANNELS_KEY, names);
}

export async function noteRestored(redis: Redis, channelId: number, count: number): Promise<void> {
  await redis.hIncrBy(HELD_CHANNELS_KEY, `${channelId}:${RESTORED}`, count);
}

export async function noteAllRestored(redis: Redis, channelId: number): Promise<void> {
  await redis.hSet(HELD_CHANNELS_KEY, `${channelId}:${DONE}`, "1");
}

/**
 * A batch of the archive none of whose rows counts any more: one mark instead of one for each row, which every search reads.
 * @param ids of its rows, at most `REMOVED_PER_CALL`
 */
export async function markBatch(
  redis: Redis,
  companyId: number,
  batch: number,
  ids: readonly number[],
): Promise<void> {
  const { absentRows, absentBatches } = companyKeys(companyPartition(companyId));
  const keys = [absentRows(companyId), absentBatches(companyId)];
  const args = [String(batch), ...ids.map((id) => `${id} ${batch}`)];
  await run<number>(redis, markBatchScript, keys, args);
}
