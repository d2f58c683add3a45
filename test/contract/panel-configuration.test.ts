/** Companies, channels, jobs and the examination of the stores, as the panel shows them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acceptJob } from "#core/redis/merchant/import-jobs.ts";
import { type ClickhouseFacts, examineStores } from "#core/store-doctor.ts";
import { makeAccount } from "#test/support/accounts.ts";
import { outcomeOf, startCommand } from "#test/support/command.ts";
import { openTestPanel, type TestPanel } from "#test/support/panel.ts";
import { startRedisServer } from "#test/support/redis-server.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";

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
        ...{ code: "acme", name: "Acme S.p.A.", language: "it", seatPostcode: "20121" },
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
      ...{ code: "acme-it", companyCode: "acme", active: true, addressChecks: 0 },
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
  test("are the imports under way, to members their own", async () => {
    const { channelByCode } = runtime.live.configuration();
    for (const code of ["acme-it", "beta-it"]) {
      const channel = channelByCode.get(code);
      if (!channel) throw new Error("no such channel");
      const owner = { companyId: channel.companyId, channelId: channel.id };
      const job = { ...owner, webhookUrl: null, chunks: [{ from: 0, text: "[{}]" }], total: 1 };
      expect(await acceptJob(runtime.redis, job, runtime.live.now())).not.toBeNull();
    }
    const all = (await get("/jobs")).items;
    expect(all.map((one: { channelCode: string }) => one.channelCode).sort()).toEqual([
      ...["acme-it", "beta-it"],
    ]);
    expect(all[0]).toMatchObject({ totalItems: 1, processedItems: 0, failedItems: 0 });
    expect((await getAsBeta("/jobs")).items.map((one) => one["channelCode"])).toEqual(["beta-it"]);
  });
});

/** What a ClickHouse with the right settings tells of itself. */
const RIGHT: ClickhouseFacts = {
  ...{ version: "25.8.1", aheadMs: 2_000, deduplicates: "1", repeatingTables: [] },
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
    expect(await wrongWith({ deduplicates: "0", repeatingTables: ["events"] })).toEqual([
      ["clickhouse-deduplication", "insert_deduplicate 0, no window: events"],
    ]);
  });

  test("finds nothing wrong with what the start gives Redis, and says that ClickHouse is away", async () => {
    const wrong = (await get("/doctor")).filter(({ ok }: { ok: boolean }) => !ok);
    expect(wrong).toMatchObject([{ check: "ClickHouse answers", found: "no" }]);
    expect(wrong[0].advice).not.toBe("");
  });

  test("is printed by `bun run doctor store`, whose status tells whether anything is to be changed", async () => {
    const server = await startRedisServer({ appendfsync: "everysec" });
    const run = () =>
      outcomeOf(startCommand(["bun", "start/doctor/main.ts", "store"], { REDIS_URL: server.url }));
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
