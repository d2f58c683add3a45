/**
 * Redis memory of a remembered eventId (row 9): `bun bench/seen.ts [--ids 5000000] [--peer-ids 1000000] [--quick] [--json]`.
 * Ours goes through the store's own code, sized for that many ids a generation; the peer is one `SET NX EX` an id.
 */
import { parseArgs } from "node:util";
import { type Figure, machine, print, redisVersion } from "#bench/table.ts";
import { rememberEvents } from "#core/events/store/event-log.ts";
import {
  GENERATION_DAYS,
  SEEN_TTL_SECONDS,
  seenBucket,
  seenLayout,
} from "#core/events/store/seen.ts";
import { createLog } from "#core/platform/process/log.ts";
import { connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { startTestRedis } from "#test/support/servers/servers.ts";

const IDS_PER_CALL = 5_000;
/** Document 2 and issue 9: at most 10 bytes an id, and 11 times less than the plain form. */
const GOAL = { oursMost: 10, most: 1 / 11 };
const QUICK_IDS = 1_000_000;
const QUICK_PEER_IDS = 100_000;

const { values } = parseArgs({
  options: {
    ids: { type: "string", default: "5000000" },
    "peer-ids": { type: "string", default: "1000000" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

const idOf = (at: number) => `GLS-2026-${at.toString(36)}-DELIVERED`;

/** Whole batches only. */
async function inBatches(count: number, work: (ids: string[]) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < count; from += IDS_PER_CALL) {
    const size = Math.min(IDS_PER_CALL, count - from);
    await work(Array.from({ length: size }, (_, at) => idOf(from + at)));
  }
}

/** All of it: the keys' own dictionary is most of what a small key costs. */
async function usedBytes(redis: Redis): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
}

/** @returns bytes an id */
async function measure(redis: Redis, count: number, fill: () => Promise<void>): Promise<number> {
  await redis.flushAll("SYNC");
  const before = await usedBytes(redis);
  await fill();
  return ((await usedBytes(redis)) - before) / count;
}

async function fillOurs(redis: Redis, count: number): Promise<void> {
  const eventsPerDay = Math.ceil(count / GENERATION_DAYS);
  const layout = await seenLayout(redis, Date.now(), eventsPerDay);
  await inBatches(count, (ids) => {
    const buckets = ids.map((id) => seenBucket("GLS_ITA", id));
    return rememberEvents(redis, layout, buckets);
  });
}

async function fillPeer(redis: Redis, count: number): Promise<void> {
  await inBatches(count, (ids) => {
    const batch = redis.multi();
    for (const id of ids) {
      batch.set(`seen:GLS_ITA:${id}`, "1", { NX: true, EX: SEEN_TTL_SECONDS });
    }
    return batch.execAsPipeline();
  });
}

const server = await startTestRedis();
const redis = await connectRedis(server.address, createLog("warn"));
try {
  const ids = values.quick ? QUICK_IDS : Number(values.ids);
  const peerIds = values.quick ? QUICK_PEER_IDS : Number(values["peer-ids"]);
  const ours = await measure(redis, ids, () => fillOurs(redis, ids));
  const peer = await measure(redis, peerIds, () => fillPeer(redis, peerIds));
  const figure: Figure = {
    row: 9,
    work: `a remembered eventId, ${ids.toLocaleString("en")} ids`,
    ours,
    peer,
    beside: `SET NX EX, ${peerIds.toLocaleString("en")} ids`,
    unit: "bytes",
    goal: GOAL,
    alarm: GOAL,
  };
  const version = await redisVersion(redis);
  print([figure], machine(version), values.json);
} finally {
  await redis.close();
  await server.stop();
}
