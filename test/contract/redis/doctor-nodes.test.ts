/** The settings doctor examines every node of a cluster (docs/operations/accounts.md). */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createClient } from "redis";
import { REDIS_CODES_OF_CLUSTERS } from "#core/doctor/redis-doctor.ts";
import { examineStores } from "#core/doctor/store-doctor.ts";
import { releaseFailover } from "#core/placement/store/move-slots.ts";
import { parseSlotStats, slotsOfTags } from "#core/placement/store/partition-load.ts";
import { createLog } from "#core/platform/process/log.ts";
import { connectCluster, type Redis } from "#core/platform/redis/client.ts";
import { SLOTS_LOCK_KEY } from "#core/platform/redis/keys.ts";
import { takeLock } from "#core/platform/redis/lock.ts";
import { linkNodes, readNodes } from "#core/platform/redis/nodes/cluster-nodes.ts";
import {
  newPartitioning,
  PARTITIONS_MOST,
  usePartitioning,
} from "#core/platform/redis/partitions.ts";
import { warnAboutDurability } from "#core/runtime/durability.ts";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { startTestCluster, type TestCluster } from "#test/support/servers/redis-cluster.ts";

const log = createLog("silent");
const TERMS = { wanted: 1, isStrict: false };

let cluster: TestCluster;
let redis: Redis;

beforeAll(async () => {
  cluster = await startTestCluster();
  await cluster.everywhere("CONFIG", "SET", "cluster-require-full-coverage", "no");
  redis = await connectCluster(cluster.urls.split(","), log, TERMS);
  usePartitioning(newPartitioning(16));
}, 120_000);
afterAll(async () => {
  usePartitioning(newPartitioning(1));
  await redis.close();
  await cluster.stop();
});

async function wrong(of: Redis = redis) {
  const all = await examineStores(of, null);
  return all.filter(({ ok }) => !ok).map(({ code, found }) => [code, found]);
}

async function tell(port: number, ...command: string[]): Promise<unknown> {
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  await client.connect();
  try {
    return await client.sendCommand(command);
  } finally {
    client.destroy();
  }
}

const nodesOf = async (isMaster: boolean) =>
  (await readNodes(redis)).filter((node) => node.isMaster === isMaster);

test("nothing is wrong with a cluster whose six nodes are as they should be, and each check of a cluster was made", async () => {
  const all = await examineStores(redis, null);
  expect(all.filter(({ ok }) => !ok)).toEqual([]);
  const codes = all.map(({ code }) => code);
  expect(REDIS_CODES_OF_CLUSTERS.filter((code) => !codes.includes(code))).toEqual([]);
  expect(all.find(({ code }) => code === "redis-nodes")?.found).toBe("6 nodes");
  const placement = all.find(({ code }) => code === "redis-placement")?.found ?? "";
  const tags = [...placement.matchAll(/:\d+ (\d+) \(/g)].map(([, count]) => Number(count));
  expect(tags).toHaveLength(3);
  expect(tags.reduce((sum, count) => sum + count, 0)).toBe(48);
});

test("no two partitions share a slot, so each can be placed alone", async () => {
  usePartitioning(newPartitioning(PARTITIONS_MOST));
  const slots = await slotsOfTags(redis);
  expect(new Set(slots.values()).size).toBe(3 * PARTITIONS_MOST);
  usePartitioning(newPartitioning(16));
});

test("a setting that differs on one node, master or replica, is found and the node named", async () => {
  const nodes = [...(await nodesOf(true)), ...(await nodesOf(false))];
  expect(nodes).toHaveLength(6);
  const settings = [
    ["maxmemory-policy", "allkeys-lru", "noeviction"],
    ["appendfsync", "everysec", "always"],
    ["cluster-require-full-coverage", "yes", "no"],
    ["min-replicas-to-write", "1", "0"],
    ["cluster-replica-no-failover", "yes", "no"],
    ["set-max-intset-entries", "128", "512"],
  ] as const;
  for (const [at, [name, odd, right]] of settings.entries()) {
    const { port, place } = nodes[at] ?? { port: 0, place: "" };
    await tell(port, "CONFIG", "SET", name, odd);
    expect(await wrong()).toEqual([[name, `${name} ${odd} (${place})`]]);
    await tell(port, "CONFIG", "SET", name, right);
  }
  expect(await wrong()).toEqual([]);
}, 60_000);

test("a start warns of each node that promises less than events answered ACCEPTED need, master or replica", async () => {
  const warned: unknown[] = [];
  const told = { warn: (about: unknown) => void warned.push(about) };
  await warnAboutDurability(redis, told);
  expect(warned).toEqual([]);
  const lax = [...(await nodesOf(true)).slice(2), ...(await nodesOf(false)).slice(0, 1)];
  for (const { port } of lax) await tell(port, "CONFIG", "SET", "appendfsync", "everysec");
  await warnAboutDurability(redis, told);
  const found = expect.objectContaining({ appendfsync: "everysec" });
  const expected = lax.map(({ place: node }) => expect.objectContaining({ node, found }));
  expect(warned).toHaveLength(lax.length);
  expect(warned).toEqual(expect.arrayContaining(expected));
  for (const { port } of lax) await tell(port, "CONFIG", "SET", "appendfsync", "always");
});

test("what an interrupted move has held back is released on every node, also where a replica has become a master", async () => {
  const nodes = [...(await nodesOf(true)), ...(await nodesOf(false))];
  for (const { port } of nodes)
    await tell(port, "CONFIG", "SET", "cluster-replica-no-failover", "yes");
  expect(await wrong()).toHaveLength(1);
  const links = await linkNodes(redis, 30_000);
  await releaseFailover(links).finally(links.close);
  expect(await wrong()).toEqual([]);
});

test("the lock of moves is taken, kept and given back while its own slot is open, so that the next run can finish it", async () => {
  const terms = { leaseMs: 30_000, waitLimitMs: 0, hasQueue: false } as const;
  const take = () => takeLock(redis, SLOTS_LOCK_KEY, terms);
  for (const isTaken of [false, true]) {
    const before = isTaken ? await take() : null;
    await cluster.whileMoving(SLOTS_LOCK_KEY, isTaken ? [SLOTS_LOCK_KEY] : [], async () => {
      const lock = before ?? (await take());
      expect(await take()).toBeNull();
      await lock?.releaseAfter(terms.leaseMs);
      expect(await redis.pTTL(SLOTS_LOCK_KEY)).toBeGreaterThan(0);
      await redis.del(SLOTS_LOCK_KEY);
    });
  }
});

test("a slot that is between two masters is found", async () => {
  const [source, target] = await nodesOf(true);
  if (!source || !target) throw new Error("no masters");
  const slot = String(source.slots[0]?.[0]);
  await tell(source.port, "CLUSTER", "SETSLOT", slot, "MIGRATING", target.id);
  expect(await wrong()).toEqual([["redis-moves", slot]]);
  await tell(source.port, "CLUSTER", "SETSLOT", slot, "STABLE");
  expect(await wrong()).toEqual([]);
});

test("REDIS_WAIT_REPLICAS is compared with the replicas that each master has", async () => {
  const urls = cluster.urls.split(",");
  for (const [wanted, found] of [
    [0, "REDIS_WAIT_REPLICAS 0, replicas of each master 1 or more"],
    [2, "REDIS_WAIT_REPLICAS 2, replicas of each master 1:"],
  ] as const) {
    const other = await connectCluster(urls, log, { wanted, isStrict: false });
    const [first, ...more] = await wrong(other).finally(() => other.close());
    expect(more).toEqual([]);
    expect(first).toEqual(["redis-wait-replicas", expect.stringContaining(found)]);
  }
});

test("min-replicas-to-write may be set where writes are meant to be refused without replicas", async () => {
  const [{ port } = { port: 0 }] = await nodesOf(true);
  const strict = await connectCluster(cluster.urls.split(","), log, { wanted: 1, isStrict: true });
  await tell(port, "CONFIG", "SET", "min-replicas-to-write", "1");
  expect(await wrong(strict).finally(() => strict.close())).toEqual([]);
  await tell(port, "CONFIG", "SET", "min-replicas-to-write", "0");
});

test("`waybill doctor` examines all nodes, and its status tells that one deviates", async () => {
  const [{ port, place } = { port: 0, place: "" }] = await nodesOf(false);
  const env = { REDIS_CLUSTER_URLS: cluster.urls, REDIS_WAIT_REPLICAS: "1" };
  const run = () => outcomeOf(startCommand(["bun", "cli/main.ts", "doctor", "store"], env));
  await tell(port, "CONFIG", "SET", "appendonly", "no");
  const { status, output } = await run();
  await tell(port, "CONFIG", "SET", "appendonly", "yes");
  expect([status, output]).toEqual([
    1,
    expect.stringContaining(`BAD  Redis writes an append-only file: appendonly no (${place})`),
  ]);
}, 60_000);

test("slots without a master are found, and reported as ranges", async () => {
  const slots = ["16000", "16001", "16002", "16010"];
  await cluster.everywhere("CLUSTER", "DELSLOTS", ...slots);
  const found = [["redis-slots", "16380, without 16000-16002, 16010"]];
  await eventually(
    async () => Bun.deepEquals(await wrong(), found),
    "they are found, and nothing else",
  );
  const owner = (await nodesOf(true)).find((one) => one.slots.some(([, to]) => to === 16_383));
  await tell(owner?.port ?? 0, "CLUSTER", "ADDSLOTS", ...slots);
  await eventually(async () => (await wrong()).length === 0, "they have a master again");
}, 60_000);

test("a replica that is away is found: the node, its master without a replica, and writes that wait for it", async () => {
  const [replica] = await nodesOf(false);
  const master = (await nodesOf(true)).find(({ id }) => id === replica?.masterId);
  await cluster.loseNode(replica?.port ?? 0);
  await eventually(async () => (await wrong()).length >= 3, "it is found");
  expect(await wrong()).toEqual([
    ["redis-nodes", `not ${replica?.place}`],
    ["redis-replicas", `none: ${master?.place}`],
    ["redis-wait-replicas", `REDIS_WAIT_REPLICAS 1, replicas of each master 0: ${master?.place}`],
  ]);
}, 60_000);

test("the CPU time of slots is read from the answer of servers that have CLUSTER SLOT-STATS, in both protocols", () => {
  const lists = [
    [0, ["key-count", 1, "cpu-usec", 183, "network-bytes-in", 25]],
    [1, ["key-count", 0]],
  ];
  expect([...parseSlotStats(lists)]).toEqual([[0, 183]]);
  expect([...parseSlotStats([[7, { "key-count": 1, "cpu-usec": 9 }]])]).toEqual([[7, 9]]);
  expect([...parseSlotStats(null)]).toEqual([]);
});
