/** The archiver as it runs: what it does by itself, and what operators ask of it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readRows } from "#analytics/archive/archive-table.ts";
import { BATCHES_BROUGHT_BACK, bringChannelBack } from "#analytics/archive/bring-channel-back.ts";
import { startArchiving } from "#analytics/archive/start-archiving.ts";
import { hasArchived } from "#core/archive/store/archive.ts";
import { noteRound, readArchiveStatus } from "#core/archive/store/archive-status.ts";
import { noteDamaged, readDamaged } from "#core/archive/store/damaged-rows.ts";
import { holdChannel, letChannelGo, readHeldChannels } from "#core/archive/store/held-channels.ts";
import { archiveDamaged } from "#core/platform/process/metrics.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { searchBoth } from "#core/search/store/archive-search.ts";
import { readShipments } from "#core/shipments/store/shipments.ts";
import { startPanel } from "#panel/main.ts";
import { queryOf } from "#test/support/data/searched-shipments.ts";
import { channelOf, testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { deliver, held, openTestArchive, type TestArchive } from "#test/support/product/archive.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";
import { passTime } from "#test/support/product/webhooks.ts";

let counter = 0;

const runtime = forAll(() => openTestRuntime(testSetup(), { ARCHIVE_ROUND_SECONDS: "1" }));

/** Shipments that are delivered by now. */
function deliverSome(count: number): Promise<number[]> {
  const numbers = Array.from({ length: count }, () => {
    counter += 1;
    return `ROUND${counter}`;
  });
  return deliver(runtime, numbers);
}

test("with the default of 30 days nothing needs ClickHouse until the first shipment is over", async () => {
  const { redis } = runtime;
  expect(runtime.config.archiveAfterDays).toBe(30);
  await deliverSome(1);
  let asked = 0;
  const clickhouse = async () => {
    asked += 1;
    throw new Error("ClickHouse is away");
  };
  const archiving = startArchiving({ runtime, clickhouse });
  await eventually(async () => (await readArchiveStatus(redis)) !== null, "a round is complete");
  const { endedAtMs = 0 } = (await readArchiveStatus(redis)) ?? {};
  const isNext = async () => ((await readArchiveStatus(redis))?.endedAtMs ?? 0) > endedAtMs;
  await eventually(isNext, "the next round is complete too");
  await archiving.stop();
  expect(asked).toBe(0);
  expect(await hasArchived(redis)).toBe(false);
});

test.each([0, 30])(
  "with ARCHIVE_AFTER_DAYS=%i a channel that has nothing in the archive is back at once",
  async (archiveAfterDays) => {
    const { redis, live } = runtime;
    const { id } = channelOf(runtime);
    await holdChannel(redis, id, live.now());
    const config = { ...runtime.config, archiveAfterDays };
    const clickhouse = () => Promise.reject(new Error("ClickHouse is away"));
    const terms = { runtime: { ...runtime, config }, clickhouse };
    const archiving = startArchiving(terms);
    const isBack = async () => (await readHeldChannels(redis))[0]?.isDone === true;
    await eventually(isBack, "the channel is back");
    await archiving.stop();
    await letChannelGo(redis, id);
  },
);

describe("once shipments are archived", () => {
  const SHIPMENTS = 250;
  /** With the one that was there before. */
  const BATCHES_OF_SHIPMENTS = 3;
  let opened: TestArchive;
  let clickhouse: TestArchive["clickhouse"];
  let archive: TestArchive["archive"];
  let panel: Running;
  let ids: number[];

  beforeAll(async () => {
    opened = await openTestArchive(runtime);
    ({ clickhouse, archive } = opened);
    panel = await startPanel(runtime);
    ids = await deliverSome(SHIPMENTS);
    await passTime(runtime, 31 * 86_400);
    expect(await opened.archiveNow()).toBe(SHIPMENTS + 1);
    await noteRound(runtime.redis, runtime.live.configuration(), runtime.live.now(), 30);
  }, 300_000);

  afterAll(async () => {
    await panel.stop();
    await opened.end();
  });

  async function command(...args: string[]) {
    const env = { PUBLIC_URL: panel.url ?? "", PANEL_TOKEN: runtime.secrets.panelToken };
    return outcomeOf(startCommand(["bun", "cli/main.ts", "archive", ...args], env));
  }

  async function total(): Promise<number> {
    const { companyId, id } = channelOf(runtime);
    const query = queryOf({ companyId, channelIds: [id] }, { limit: 500 });
    const page = await searchBoth(runtime.redis, archive, query);
    expect(new Set(page.hits.map((hit) => hit.id)).size).toBe(page.total);
    return page.total;
  }

  const hot = async () => (await readShipments(runtime.redis, ids)).length;

  test("`waybill archive --status` tells what is archived, how far it is, and what moved last", async () => {
    const { status, output } = await command("--status");
    expect(status).toBe(0);
    expect(output).toContain("Archived after 30 days.");
    expect(output).toMatch(/In the archive: 251 shipments, [1-9]\d* bytes/);
    expect(output).toContain("  acme: 251");
    expect(output).toContain("Backlog: 0 shipments");
    expect(output).toMatch(/Latest complete round: ended \d+ s ago/);
    expect(output).toMatch(/Latest batch: 251 shipments, 20/);
    const json = JSON.parse((await command("--status", "--json")).output);
    expect(json).toMatchObject({
      afterDays: 30,
      companies: [{ companyCode: "acme", archived: 251 }],
    });
  }, 300_000);

  test("a round of the archiver looks at damaged rows again; `--status` and a metric tell of those that are left", async () => {
    const { redis, live } = runtime;
    const [bad = 0, good = 0] = ids;
    const { companyId } = channelOf(runtime);
    const [row] = await readRows(clickhouse, [bad], [channelOf(runtime).id]);
    const seal = (bytes: string) =>
      clickhouse.command({
        query: `ALTER TABLE archived_shipments UPDATE sealed = base64Decode('${bytes}') WHERE id = ${bad}`,
        clickhouse_settings: { mutations_sync: "1" },
      });
    await seal(btoa("spoilt"));
    const [one] = await archive.read([good], [channelOf(runtime).id]);
    const batch = row?.batch ?? 0;
    await noteDamaged(redis, [
      { companyId, shipmentId: bad, batch },
      { companyId, shipmentId: good, batch: one?.batch ?? 0 },
    ]);
    const left = async () => (await readDamaged(redis)).map(({ shipmentId }) => shipmentId);
    const metric = async () => (await archiveDamaged.get()).values[0]?.value;
    const archiving = startArchiving({ runtime, clickhouse: async () => clickhouse });
    await eventually(async () => Bun.deepEquals(await left(), [bad]), "the sound one leaves");
    await eventually(async () => (await metric()) === 1, "the metric counts the other one");
    expect((await command("--status")).output).toContain(`Damaged row: acme, shipment ${bad}, `);
    await seal(row?.sealed ?? "");
    await eventually(async () => (await left()).length === 0, "the mended one leaves too");
    await eventually(async () => (await metric()) === 0, "the metric counts none");
    await archiving.stop();
    await noteRound(redis, live.configuration(), live.now(), 30);
  }, 300_000);

  test("whoever dies while a channel comes back loses and doubles nothing, and the next goes on", async () => {
    const { companyId, id: channelId } = channelOf(runtime);
    await holdChannel(runtime.redis, channelId, runtime.live.now());
    for (let dies = 1; (await hot()) < SHIPMENTS; dies += 1) {
      let steps = 0;
      const next = async () => {
        steps += 1;
        if (steps >= dies) throw new Error("it dies");
      };
      const [own] = await readHeldChannels(runtime.redis);
      if (!own) throw new Error("the channel is not held");
      const failing = opened.deps({ pace: next });
      await bringChannelBack(failing, companyId, own, next).catch(() => {});
      expect(await total()).toBe(SHIPMENTS + 1);
      expect(dies).toBeLessThan(20);
    }
    const { absentRows } = companyKeys(companyPartition(companyId));
    expect(await runtime.redis.zCard(absentRows(companyId))).toBe(0);
    expect(await opened.archiveNow()).toBe(0);
    await letChannelGo(runtime.redis, channelId);
    expect(await opened.archiveNow()).toBe(SHIPMENTS + 1);
    expect(await total()).toBe(SHIPMENTS + 1);
  }, 300_000);

  test("`--bring-back` brings a channel back and keeps it in Redis until it is let go", async () => {
    const config = { ...runtime.config, archiveAfterDays: 0 };
    const terms = { runtime: { ...runtime, config }, clickhouse: async () => clickhouse };
    const archiving = startArchiving(terms);
    const { status, output } = await command("--bring-back", "acme-it");
    await archiving.stop();
    expect([status, await hot(), await total()]).toEqual([0, SHIPMENTS, SHIPMENTS + 1]);
    expect(output).toContain("251 shipments will take about 1 MB of Redis.");
    expect(output).toContain("acme/acme-it, 251 shipments back, all");
    expect(await opened.archiveNow()).toBe(0);
    expect((await command("--status")).output).toContain("Held in Redis: acme/acme-it");
    expect((await command("--let-go", "acme-it")).output).toContain("may be archived again");
    expect(await opened.archiveNow()).toBe(SHIPMENTS + 1);
    const unknown = await command("--bring-back", "nobody");
    expect([unknown.status, unknown.errors]).toEqual([
      1,
      expect.stringContaining("no such channel"),
    ]);
  }, 300_000);

  test(`${BATCHES_BROUGHT_BACK} batches come back together, and those that there was no time for with the next round`, async () => {
    const { redis, live } = runtime;
    const { companyId, id: channelId } = channelOf(runtime);
    const others = await deliverSome(BATCHES_BROUGHT_BACK + 1 - BATCHES_OF_SHIPMENTS);
    for (const id of others) {
      expect(await opened.move([id])).toBe(1);
    }
    await holdChannel(redis, channelId, live.now());
    const all = [...ids, ...others];
    const back: number[] = [];
    const pace = async () => void back.push((await readShipments(redis, all)).length);
    for (let round = 1; round <= 3; round += 1) {
      const [own] = await readHeldChannels(redis);
      if (!own) throw new Error("the channel is not held");
      const terms = opened.deps({ pace, isTimeUp: () => back.length === round });
      await bringChannelBack(terms, companyId, own, held);
      expect(back).toHaveLength(round);
    }
    expect(back).toEqual([all.length - 1, all.length, all.length]);
    await letChannelGo(redis, channelId);
  }, 300_000);
});
