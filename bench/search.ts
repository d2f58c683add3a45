/**
 * Answer time of the shipment search (row 11): `bun bench/search.ts [--shipments 1m] [--questions 40] [--quick] [--json]`.
 * Every documented filter and combination is asked with random values, in every sort, for the first page and a deep one;
 * ours is the search and the reading of the page's shipments, the peer is `HGETALL` of the same shipments, turn by turn. Then
 * once more while shipments change between the questions.
 */
import type { Redis } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { searchShipments } from "#core/search/store/search.ts";
import { readShipments } from "#core/shipments/store/shipments.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";
import { readOptions, runPart, timedMs } from "./harness.ts";
import { figureOf } from "./rows.ts";
import * as channel from "./search-load.ts";
import { percentile } from "./table.ts";

/** Questions of each filter in each sort, for the first page and for a deep one. */
const { shipments, questions } = readOptions({
  shipments: [1_000_000, 30_000],
  questions: [40, 3],
});
const WARM_UP = 3;
/** At 50 questions a second this is 1,000 changes a second. */
const CHANGES = 20;

async function readHashes(redis: Redis, ids: readonly number[]): Promise<void> {
  const keys = companyKeys(companyPartition(channel.COMPANY));
  const pipeline = redis.multi();
  for (const id of ids) pipeline.hGetAll(keys.shipment(id));
  await pipeline.execAsPipeline();
}

/** @returns p99 of ours and of the peer, ms, over every sort, the first page and a deep one */
async function ask(
  redis: Redis,
  loaded: channel.Loaded,
  [question, filters]: channel.Question,
  changes: number,
) {
  const times = { ours: [] as number[], peer: [] as number[] };
  for (const page of channel.PAGES) {
    for (let n = -WARM_UP; n < questions; n += 1) {
      if (changes > 0) await channel.changeSome(redis, loaded, changes);
      let ids: number[] = [];
      const ours = await timedMs(async () => {
        const { hits } = await searchShipments(redis, channel.queryOf(page, filters(loaded)));
        ids = hits.map(({ id }) => id);
        await readShipments(redis, ids);
      });
      const peer = await timedMs(() => readHashes(redis, ids));
      if (n < 0) continue;
      times.ours.push(ours);
      times.peer.push(peer);
    }
  }
  return { question, ours: percentile(times.ours, 0.99), peer: percentile(times.peer, 0.99) };
}

type Asked = Awaited<ReturnType<typeof ask>>;

function slowestOf(name: string, all: readonly Asked[]) {
  const [slowest] = all.toSorted((one, other) => other.ours - one.ours);
  if (!slowest) throw new Error("no question");
  return figureOf(name, slowest, { question: slowest.question, changes: CHANGES });
}

/** Milliseconds. */
async function longestCommand(redis: Redis): Promise<number> {
  const entries = await redis.sendCommand(["SLOWLOG", "GET", "-1"]);
  return Math.max(0, ...(entries as unknown as number[][]).map(([, , us = 0]) => us)) / 1_000;
}

await runPart(async (defer) => {
  const { redis, stop } = await openTestRedis();
  defer(stop);
  const loaded = await channel.loadChannel(redis, shipments);
  await redis.configSet({ "slowlog-log-slower-than": "500", "slowlog-max-len": "100000" });
  await redis.sendCommand(["SLOWLOG", "RESET"]);
  const [plain, changing]: [Asked[], Asked[]] = [[], []];
  for (const question of channel.FILTERS) {
    plain.push(await ask(redis, loaded, question, 0));
    changing.push(await ask(redis, loaded, question, CHANGES));
  }
  const figures = [
    slowestOf("search slowest", plain),
    slowestOf("search changing", changing),
    figureOf("search command", { ours: await longestCommand(redis) }),
  ];
  const about = `${loaded.ids.length.toLocaleString("en")} shipments in the channel`;
  return { figures, redis, about };
});
