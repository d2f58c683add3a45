/** Companies, channels, jobs and the examination of the stores, as the panel shows them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { REDIS_CODES_OF_CLUSTERS } from "#core/doctor/redis-doctor.ts";
import { type ClickhouseFacts, examineStores } from "#core/doctor/store-doctor.ts";
import {
  acceptJob,
  finishChunk,
  finishJob,
  type ImportJob,
  LATEST_JOBS_PER_PARTITION,
  readJob,
} from "#core/merchants/store/jobs/import-jobs.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { it as italian } from "#panel/web/i18n/it.ts";
import { makeAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { startRedisServer } from "#test/support/servers/redis-server.ts";

let runtime: TestRuntime;
let panel: TestPanel;
let beta: string;

beforeAll(async () => {
  const setup = testSetup();
  const [channel] = setup.companies?.[0]?.channels ?? [];
  if (channel) {
    const template = { event: "default", language: "it", subject: "Ciao", body: "…" } as const;
    channel.emails = { managed: true, from: "shop@acme.test", templates: [template] };
    channel.webhookV1 = { url: "http://merchant.example/v1", acknowledgement: "OK" };
  }
  runtime = await openTestRuntime(setup);
  panel = await openTestPanel(runtime);
  beta = (await makeAccount(runtime, "company", "member", { companyCode: "beta" })).cookie;
});
afterAll(async () => {
  await panel.end();
  await runtime.end();
});

const get = async (path: string) => (await panel.call("GET", `/panel/api${path}`)).body;

async function getAsBeta(path: string) {
  const request = new Request(`http://localhost/panel/api${path}`, { headers: { cookie: beta } });
  return (await (await panel.handle(request)).json()) as { items: Record<string, string>[] };
}

describe("companies and channels", () => {
  test("are listed by code in pages, to members their own", async () => {
    const first = await get("/companies?limit=1");
    expect(first.items).toMatchObject([
      {
        code: "acme",
        name: "Acme S.p.A.",
        language: "it",
        seatPostcode: "20121",
        boxes: [{ code: "S", length: 30, width: 20, height: 10 }],
        channels: [{ code: "acme-it", name: "Acme Italia", active: true }, { code: "acme-outlet" }],
      },
    ]);
    const second = await get(`/companies?limit=1&cursor=${first.nextCursor}`);
    expect(second).toMatchObject({ items: [{ code: "beta" }], nextCursor: null });
    expect((await getAsBeta("/companies")).items.map(({ code }) => code)).toEqual(["beta"]);
    expect(await get("/companies/acme")).toEqual(first.items[0]);
  });

  test("a channel has everything that is configured, and no secret", async () => {
    const channel = await get("/channels/acme-it");
    expect(channel).toMatchObject({
      code: "acme-it",
      companyCode: "acme",
      active: true,
      addressChecks: 0,
      rateLimit: { bucketSize: 100_000, refillRate: 100_000 },
      couriers: [
        { code: "GLS_ITA", transcodings: ["GLS", "corriere gls"], senderAccounts: ["ACC-1"] },
        { code: "BRT_ITA" },
      ],
      emails: { managed: true, templates: [{ event: "default", subject: "Ciao" }] },
      webhookV1: { url: "http://merchant.example/v1" },
      apiKeys: [{ code: "main", active: true, companyWideRead: true }],
    });
    expect(JSON.stringify(channel)).not.toMatch(/hash|key_acme/i);
    expect((await get("/channels/acme-outlet")).emails.templates).toEqual([]);
  });
});

describe("jobs", () => {
  const FAULT = { index: 0, trackingNumber: null, errors: [] };

  /** Later than every job before it. */
  async function acceptFor(code: string): Promise<ImportJob> {
    const beforeMs = runtime.live.now();
    await eventually(() => runtime.live.now() > beforeMs, "a later moment");
    const channel = runtime.live.configuration().channelByCode.get(code);
    if (!channel) throw new Error("no such channel");
    const { companyId, id: channelId } = channel;
    const chunks = [{ from: 0, text: "[{}]" }];
    const job = { companyId, channelId, webhookUrl: null, chunks, total: 1 };
    const jobId = (await acceptJob(runtime.redis, job, runtime.live.now())) ?? "";
    const partition = companyPartition(companyId);
    const accepted = await readJob(runtime.redis, partition, jobId, runtime.live.now());
    if (!accepted) throw new Error("not accepted");
    return accepted;
  }

  test("are the imports under way and those that have ended, the newest first, to members their own", async () => {
    const { redis, live } = runtime;
    const first = await acceptFor("acme-it");
    const partition = companyPartition(first.companyId);
    await finishChunk(redis, partition, first.jobId, 0, { successes: [], errors: [FAULT] });
    await finishJob(redis, partition, first, null, live.now());
    await acceptFor("beta-it");
    const { items } = await get("/jobs");
    expect(items).toMatchObject([
      { channelCode: "beta-it", state: "processing", processedItems: 0, completedAt: null },
      { channelCode: "acme-it", state: "completed", processedItems: 1, failedItems: 1 },
    ]);
    expect(Date.parse(items[1].completedAt)).toBeGreaterThanOrEqual(first.createdAtMs);
    expect((await getAsBeta("/jobs")).items.map((one) => one["channelCode"])).toEqual(["beta-it"]);
  });

  test(`of a partition the latest ${LATEST_JOBS_PER_PARTITION} are listed, and the page goes on from a job`, async () => {
    const { redis } = runtime;
    const { companyId, channelId, jobId } = await acceptFor("acme-it");
    const keys = companyKeys(companyPartition(companyId));
    const held = await redis.zCard(keys.latestJobs);
    const older = Array.from({ length: LATEST_JOBS_PER_PARTITION - held }, (_, at) => ({
      score: 1 + at,
      value: `${channelId}:older-${at}`,
    }));
    await redis.zAdd(keys.latestJobs, older);
    const hasOldest = () => redis.zScore(keys.latestJobs, `${channelId}:older-0`);
    expect(await hasOldest()).toBe(1);
    const last = await acceptFor("acme-it");
    expect([await hasOldest(), await redis.zCard(keys.latestJobs)]).toEqual([
      null,
      LATEST_JOBS_PER_PARTITION,
    ]);
    const page = await get("/jobs?limit=1");
    expect(page.items).toMatchObject([{ jobId: last.jobId }]);
    const next = await get(`/jobs?limit=1&cursor=${page.nextCursor}`);
    expect(next.items).toMatchObject([{ jobId }]);
  });
});

/** What a ClickHouse with the right settings tells of itself. */
const RIGHT: ClickhouseFacts = {
  version: "25.8.1",
  aheadMs: 2_000,
  deduplicates: "1",
  repeatingTables: [],
  reader: { isSet: true, fault: null },
  replicas: [{ table: "events", total: 3, active: 2, readonly: false }],
  paths: [{ table: "events", paths: ["/clickhouse/tables/waybill/events"], replicas: 3 }],
};

describe("the examination of the stores", () => {
  test("names what is wrong with ClickHouse: its version, its clock, inserts that would count twice", async () => {
    const wrongWith = async (facts: Partial<ClickhouseFacts>) => {
      const all = await examineStores(runtime.redis, async () => ({ ...RIGHT, ...facts }));
      return all.filter(({ ok }) => !ok).map(({ code, found }) => [code, found]);
    };
    expect(await wrongWith({})).toEqual([]);
    expect(await wrongWith({ version: "25.7.9", aheadMs: -2_001 })).toEqual([
      ["clickhouse-version", "25.7.9"],
      ["clickhouse-clock", "-2001 ms"],
    ]);
    expect(await wrongWith({ deduplicates: "0", repeatingTables: ["archived_index"] })).toEqual([
      ["clickhouse-deduplication", "insert_deduplicate 0, no window: archived_index"],
    ]);
  });

  test("names a user of SQL access who may do more than read, and none is right too, since it is closed then", async () => {
    const readerFinding = async (reader: ClickhouseFacts["reader"]) => {
      const all = await examineStores(runtime.redis, async () => ({ ...RIGHT, reader }));
      return all.find(({ code }) => code === "clickhouse-reader");
    };
    expect(await readerFinding({ isSet: true, fault: null })).toMatchObject({ ok: true });
    expect(await readerFinding({ isSet: false, fault: null })).toMatchObject({
      ok: true,
      found: "CLICKHOUSE_READ_URL is not set: statements are refused",
    });
    expect(await readerFinding({ isSet: true, fault: "may use url()" })).toMatchObject({
      ok: false,
      found: "the user may use url()",
      advice: expect.stringContaining("analytics/sql/read-only-user.sql"),
    });
    expect(await readerFinding(null)).toBeUndefined();
  });

  test("names the tables of a cluster that have no replicas, and those whose inserts cannot be acknowledged by most", async () => {
    const wrongWith = async (replicas: ClickhouseFacts["replicas"]) => {
      const all = await examineStores(runtime.redis, async () => ({ ...RIGHT, replicas }));
      return all.filter(({ ok }) => !ok).map(({ code, found }) => [code, found]);
    };
    const events = { table: "events", total: 4, active: 3, readonly: false };
    expect(await wrongWith([events])).toEqual([]);
    expect(await wrongWith([{ ...events, active: 2 }])).toEqual([
      ["clickhouse-quorum", "events: 2 of 4"],
    ]);
    expect(await wrongWith([{ ...events, readonly: true }])).toEqual([
      ["clickhouse-quorum", "events: 3 of 4, read-only"],
    ]);
    expect(await wrongWith([{ ...events, total: 0, active: 0 }])).toEqual([
      ["clickhouse-replication", "none: events"],
    ]);
    expect(await wrongWith("hidden")).toEqual([
      ["clickhouse-replication", "not readable"],
      ["clickhouse-quorum", "not readable"],
    ]);
    expect(await wrongWith(null)).toEqual([]);
  });

  test("names a table whose replicas have paths of their own in Keeper", async () => {
    const findingOf = async (paths: ClickhouseFacts["paths"]) => {
      const all = await examineStores(runtime.redis, async () => ({ ...RIGHT, paths }));
      return all.find(({ code }) => code === "clickhouse-paths");
    };
    const [one, other] = ["/clickhouse/tables/waybill/events", "/clickhouse/tables/0a1b"];
    const events = { table: "events", paths: [one], replicas: 3 };
    expect(await findingOf([events])).toMatchObject({ ok: true, found: "yes" });
    expect(await findingOf([{ ...events, paths: [other, one] }])).toMatchObject({
      ok: false,
      found: `events: ${other}, ${one}`,
      advice: expect.stringContaining("fetches their rows"),
    });
    expect(await findingOf("hidden")).toMatchObject({
      ok: false,
      found: "not readable",
      advice: expect.stringContaining("REMOTE"),
    });
    expect(await findingOf(null)).toBeUndefined();
  });

  test("has Italian words for every check", async () => {
    const alone = (await examineStores(runtime.redis, async () => RIGHT)).map(({ code }) => code);
    const all = [...alone, ...REDIS_CODES_OF_CLUSTERS];
    expect(Object.keys(italian.doctor.words).sort()).toEqual(all.sort());
  });

  test("finds nothing wrong with what the start gives Redis, and says that ClickHouse is away", async () => {
    const wrong = (await get("/doctor")).filter(({ ok }: { ok: boolean }) => !ok);
    expect(wrong).toMatchObject([{ check: "ClickHouse answers", found: "no" }]);
    expect(wrong[0].advice).not.toBe("");
  });

  test("is printed by `waybill doctor`, whose status tells whether anything is to be changed", async () => {
    const server = await startRedisServer({ appendfsync: "everysec" });
    const run = () =>
      outcomeOf(startCommand(["bun", "cli/main.ts", "doctor", "store"], { REDIS_URL: server.url }));
    try {
      const { status, output } = await run();
      expect(status).toBe(1);
      expect(output).toContain("appendfsync everysec, wanted always\n     Set appendfsync always");
      expect(output).toEndWith("1 setting to change.\n");
      await server.send("CONFIG", "SET", "appendfsync", "always");
      expect(await run()).toMatchObject({
        status: 0,
        output: expect.stringContaining("Nothing to change."),
      });
    } finally {
      await server.stop();
    }
  });

  test("names a setting that would lose events, with what to do", async () => {
    const { redis } = runtime;
    await redis.configSet("maxmemory-policy", "allkeys-lru");
    try {
      const wrong = (await examineStores(redis, async () => RIGHT)).filter(({ ok }) => !ok);
      expect(wrong).toMatchObject([
        { found: "maxmemory-policy allkeys-lru", wanted: "noeviction" },
      ]);
    } finally {
      await redis.configSet("maxmemory-policy", "noeviction");
    }
  });
});
