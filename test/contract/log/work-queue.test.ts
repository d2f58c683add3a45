/** Work that waits for a worker: whose comes next. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  acceptJob,
  importChunks,
  LATEST_JOBS_PER_PARTITION,
} from "#core/merchants/store/jobs/import-jobs.ts";
import {
  renewWork,
  settleWork,
  type Taken,
  takeWork,
} from "#core/merchants/store/jobs/work-queue.ts";
import { companyKeys, companyPartition, companyTag, workKeys } from "#core/platform/redis/keys.ts";
import { Unavailable } from "#core/platform/redis/store-unavailable.ts";
import { importWork } from "#processors/jobs/import-work.ts";
import { startWorker, WAITING_MOST } from "#processors/jobs/worker.ts";
import { shipmentItem } from "#test/support/clients/merchant.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const LEASE_MS = 60_000;
/** `take-work.lua`. */
const LOOKED_AT = 200;

let runtime: TestRuntime;
let now = 0;

beforeEach(async () => {
  runtime = await openTestRuntime(testSetup());
  now = runtime.live.now();
});

afterEach(() => runtime.end());

/** Jobs by their ids, and the channel that each is of. */
const channels = new Map<string, string>();

async function accept(channelCode: string, items = 1): Promise<string> {
  const { redis, live } = runtime;
  const channel = live.configuration().channelByCode.get(channelCode);
  if (!channel) throw new Error("no channel");
  const { id: channelId, companyId } = channel;
  const chunks = importChunks();
  for (let n = 0; n < items; n += 1) chunks.add(shipmentItem(`FAIR-${crypto.randomUUID()}`));
  const all = { chunks: chunks.chunks(), total: items };
  const job = { companyId, channelId, ...all, webhookUrl: null };
  const jobId = (await acceptJob(redis, job, now)) ?? "";
  channels.set(jobId, channelCode);
  now += 1;
  return jobId;
}

async function take(wanted: number, leaseMs = LEASE_MS): Promise<readonly Taken[]> {
  return (await takeWork(runtime.redis, "imports", { wanted, leaseMs, nowMs: now })).taken;
}
const codeOf = ({ id }: Taken) => channels.get(id);
const settle = (taken: Taken, againMs: number | null) =>
  settleWork(runtime.redis, "imports", taken, againMs);
const keysOf = (code: string) => {
  const { companyId = 0 } = runtime.live.configuration().channelByCode.get(code) ?? {};
  return workKeys(companyTag(companyPartition(companyId)), "imports");
};

describe("channels take turns", () => {
  test("however many jobs each of them has accepted before the others", async () => {
    for (let n = 0; n < 5; n += 1) await accept("acme-it");
    for (let n = 0; n < 2; n += 1) await accept("acme-outlet");
    const order: unknown[] = [];
    for (let n = 0; n < 7; n += 1) order.push(...(await take(1)).map(codeOf));
    const [it, outlet] = ["acme-it", "acme-outlet"];
    expect(order).toEqual([it, outlet, it, outlet, it, it, it]);
  });

  test("in one taking of many as well", async () => {
    for (let n = 0; n < 3; n += 1) await accept("acme-it");
    await accept("acme-outlet");
    expect((await take(2)).map(codeOf).sort()).toEqual(["acme-it", "acme-outlet"]);
  });

  test("and a channel's jobs come in the order in which they wait", async () => {
    const ids = [await accept("acme-it"), await accept("acme-it"), await accept("acme-it")];
    const [first] = await take(1);
    expect(first?.id).toBe(ids[0] ?? "");
    if (first) await settle(first, now);
    expect((await take(3)).map(({ id }) => id)).toEqual([ids[1], ids[2], ids[0]].map(String));
  });

  test("work whose owner is not known is done all the same, in the order in which it waits", async () => {
    const ids = [await accept("acme-it"), await accept("acme-it")];
    await runtime.redis.del(keysOf("acme-it").owners);
    expect((await take(5)).map(({ id }) => id)).toEqual(ids);
  });

  test.each([
    [LOOKED_AT, "acme-outlet"],
    [LOOKED_AT + 1, "acme-it"],
  ])(
    "as far as they stand among the first 200 pieces of work: %d, then %s",
    async (place, next) => {
      const first = await accept("acme-it");
      const other = await accept("acme-outlet");
      const { waiting, owners } = keysOf("acme-it");
      const owner = (await runtime.redis.hGet(owners, first)) ?? "";
      // Between the two.
      const between = Array.from({ length: place - 1 }, (_, at) => `before-${at}`);
      await runtime.redis.zAdd(
        waiting,
        between.map((value) => ({ score: now - 1.5, value })),
      );
      await runtime.redis.hSet(owners, Object.fromEntries(between.map((id) => [id, owner])));
      for (const id of between) channels.set(id, "acme-it");
      expect((await take(1)).map(codeOf)).toEqual(["acme-it"]);
      expect(await runtime.redis.zRank(waiting, other)).toBe(place - 1);
      expect((await take(1)).map(codeOf)).toEqual([next]);
    },
  );

  test("and a turn counts where nobody else was waiting", async () => {
    await accept("acme-it");
    expect((await take(1)).map(codeOf)).toEqual(["acme-it"]);
    expect(await take(1)).toEqual([]);
    await accept("acme-it");
    await accept("acme-outlet");
    expect((await take(1)).map(codeOf)).toEqual(["acme-outlet"]);
    const { turns } = keysOf("acme-it");
    expect(await runtime.redis.ttl(turns)).toBeWithin(3_590, 3_601);
  });

  test("and nothing is left of work that is done", async () => {
    await accept("acme-it");
    const [taken] = await take(1);
    if (taken) await settle(taken, null);
    const { waiting, leases, holders, owners } = keysOf("acme-it");
    expect(await runtime.redis.exists([waiting, leases, holders, owners])).toBe(0);
  });
});

describe("a lease", () => {
  const takeFor = (leaseMs: number, wanted = 1) => take(wanted, leaseMs);
  const ended = () => Bun.sleep(20);

  test("that has not ended keeps its work, and so does one that was renewed", async () => {
    await accept("acme-it");
    const fromMs = Date.now();
    const [taken] = await takeFor(LEASE_MS);
    const { leases } = keysOf("acme-it");
    const end = () => runtime.redis.zScore(leases, taken?.id ?? "");
    expect(await end()).toBeWithin(fromMs + LEASE_MS, Date.now() + LEASE_MS + 1);
    if (taken) expect(await renewWork(runtime.redis, "imports", taken, 2 * LEASE_MS)).toBe(true);
    expect(await end()).toBeWithin(fromMs + 2 * LEASE_MS, Date.now() + 2 * LEASE_MS + 1);
    expect(await take(1)).toEqual([]);
  });

  test("that has ended gives its work to the next one, and its holder settles nothing", async () => {
    const id = await accept("acme-it");
    const [first] = await takeFor(1);
    await ended();
    const [second] = await takeFor(LEASE_MS);
    expect([first?.id, second?.id]).toEqual([id, id]);
    if (first) expect(await settle(first, null)).toBe(false);
    if (second) expect(await settle(second, now)).toBe(true);
    expect((await take(1)).map((one) => one.id)).toEqual([id]);
  });

  test("that has ended leaves nothing of itself where its work waits on", async () => {
    const ids = [await accept("acme-it"), await accept("acme-it")];
    await takeFor(1, 2);
    await ended();
    const [again] = await takeFor(LEASE_MS);
    const { waiting, leases, holders } = keysOf("acme-it");
    const [other = ""] = ids.filter((id) => id !== again?.id);
    const { redis } = runtime;
    const left = [await redis.zScore(leases, other), await redis.hGet(holders, other)];
    expect([await redis.zRange(waiting, 0, -1), left]).toEqual([[other], [null, null]]);
    if (again) expect(await settle(again, null)).toBe(true);
  });
});

describe("an import that is accepted", () => {
  const DAYS_30 = 30 * 86_400;
  const companyOf = (code: string) => {
    const channel = runtime.live.configuration().channelByCode.get(code);
    return {
      channelId: channel?.id ?? 0,
      keys: companyKeys(companyPartition(channel?.companyId ?? 0)),
    };
  };

  test("is kept for 30 days, with its items, and stands among the latest ones", async () => {
    const acceptedAtMs = now;
    const id = await accept("acme-it");
    const { channelId, keys } = companyOf("acme-it");
    const { redis } = runtime;
    for (const key of [
      keys.job(id),
      keys.jobItems(id),
      keysOf("acme-it").owners,
      keys.latestJobs,
    ]) {
      expect([key, DAYS_30 - (await redis.ttl(key)) < 10]).toEqual([key, true]);
    }
    expect(await redis.sMembers(keys.openJobs(channelId))).toEqual([id]);
    expect(await redis.zRangeWithScores(keys.latestJobs, 0, -1)).toEqual([
      { value: `${channelId}:${id}`, score: acceptedAtMs },
    ]);
  });

  test(`takes the place of the oldest where ${LATEST_JOBS_PER_PARTITION} are listed`, async () => {
    const { keys } = companyOf("acme-it");
    const listed = Array.from({ length: LATEST_JOBS_PER_PARTITION - 1 }, (_, at) => ({
      value: `1:before-${at}`,
      score: at,
    }));
    await runtime.redis.zAdd(keys.latestJobs, listed);
    await accept("acme-it");
    const count = () => runtime.redis.zCard(keys.latestJobs);
    expect(await count()).toBe(LATEST_JOBS_PER_PARTITION);
    await accept("acme-it");
    expect(await count()).toBe(LATEST_JOBS_PER_PARTITION);
    expect(await runtime.redis.zScore(keys.latestJobs, "1:before-0")).toBeNull();
    expect(await runtime.redis.zScore(keys.latestJobs, "1:before-1")).toBe(1);
  });

  test("is one of 20 unfinished ones of its channel; a further one is refused, and nothing of it is left", async () => {
    const { redis } = runtime;
    for (let n = 0; n < 20; n += 1) expect(await accept("acme-it")).not.toBe("");
    const before = await redis.dbSize();
    expect(await accept("acme-it")).toBe("");
    expect(await redis.dbSize()).toBe(before);
    expect(await accept("acme-outlet")).not.toBe("");
  });
});

test("a merchant's import ends before the twenty that another one has started", async () => {
  const { redis, log, live } = runtime;
  const many: string[] = [];
  for (let n = 0; n < 20; n += 1) many.push(await accept("acme-it", 500));
  const one = await accept("acme-outlet", 10);
  const ended: string[] = [];
  const work = importWork({ redis, log, live });
  const worker = startWorker({
    redis,
    log,
    live,
    queue: "imports",
    atOnce: 2,
    async work(taken, holding) {
      const verdict = await work(taken, holding);
      if (verdict === null) ended.push(taken.id);
      return verdict;
    },
  });
  await eventually(() => ended.length === many.length + 1, "all have ended", 60_000);
  await worker.stop();
  expect(ended.indexOf(one)).toBeLessThan(3);
}, 300_000);

test(`work that waits for a store holds up no other until ${WAITING_MOST} pieces wait, and goes on where it was`, async () => {
  const { redis, log, live } = runtime;
  const begun: string[] = [];
  const done: string[] = [];
  let isAvailable = false;
  const add = (names: readonly string[]) =>
    redis.zAdd(
      keysOf("acme-it").waiting,
      names.map((value) => ({ score: now, value })),
    );
  const worker = startWorker({
    redis,
    log,
    live,
    queue: "imports",
    atOnce: 2,
    async work({ id }, holding) {
      begun.push(id);
      await holding.untilAvailable(async () => {
        if (id !== "other" && !isAvailable) throw new Unavailable("it is down");
      });
      done.push(id);
      return null;
    },
  });
  const names = Array.from({ length: WAITING_MOST + 1 }, (_, n) => `waits-${n}`);
  await add(names.slice(0, WAITING_MOST - 1));
  await eventually(() => begun.length === WAITING_MOST - 1, "one fewer than may wait");
  await add(["other"]);
  await eventually(() => done.includes("other"), "other work is done");
  await add(names.slice(WAITING_MOST - 1, WAITING_MOST));
  await eventually(() => begun.length === WAITING_MOST + 1, "as many wait as may");
  await add([...names.slice(WAITING_MOST), "last"]);
  const { waiting } = keysOf("acme-it");
  await eventually(async () => (await redis.zCard(waiting)) === 2, "nothing more is taken");
  isAvailable = true;
  await eventually(() => done.length === WAITING_MOST + 3, "all are done", 30_000);
  await worker.stop();
  expect(begun.toSorted()).toEqual([...names, "other", "last"].toSorted());
}, 60_000);
