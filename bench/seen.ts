/**
 * Redis memory of a remembered eventId (row 9): `bun bench/seen.ts [--ids 5m] [--peer-ids 1m] [--quick] [--json]`.
 * Ours goes through the store's own code, sized for that many ids a generation; the peer is one `SET NX EX` an id.
 */
import { rememberEvents } from "#core/events/store/event-log.ts";
import * as seen from "#core/events/store/seen.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";
import { readOptions, runPart, usedBytes } from "./harness.ts";
import { figureOf } from "./rows.ts";
import { COURIER } from "./shipments.ts";

const { ids, "peer-ids": peerIds } = readOptions({
  ids: [5_000_000, 1_000_000],
  "peer-ids": [1_000_000, 100_000],
});
const IDS_PER_CALL = 5_000;
const idOf = (at: number) => `GLS-2026-${at.toString(36)}-DELIVERED`;

/** @returns bytes an id, all in: the keys' own dictionary is most of what a small key costs */
async function measure(
  redis: Redis,
  count: number,
  remember: (ids: readonly string[]) => Promise<unknown>,
): Promise<number> {
  const before = await usedBytes(redis);
  for (let from = 0; from < count; from += IDS_PER_CALL) {
    await remember(Array.from({ length: IDS_PER_CALL }, (_, at) => idOf(from + at)));
  }
  const bytes = ((await usedBytes(redis)) - before) / count;
  await redis.flushAll("SYNC");
  return bytes;
}

await runPart(async (defer) => {
  const { redis, stop } = await openTestRedis();
  defer(stop);
  const eventsPerDay = Math.ceil(ids / seen.GENERATION_DAYS);
  const layout = await seen.seenLayout(redis, Date.now(), eventsPerDay);
  const ours = await measure(redis, ids, (part) => {
    return rememberEvents(
      redis,
      layout,
      part.map((id) => seen.seenBucket(COURIER, id)),
    );
  });
  const peer = await measure(redis, peerIds, (part) => {
    const batch = redis.multi();
    for (const id of part) {
      batch.set(`seen:${COURIER}:${id}`, "1", { NX: true, EX: seen.SEEN_TTL_SECONDS });
    }
    return batch.execAsPipeline();
  });
  return { figures: [figureOf("seen bytes", { ours, peer }, { ids, peer: peerIds })], redis };
});
