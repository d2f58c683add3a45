/** Other features where they meet the archive: test mode, old shipments, numbers in use again, creations at the same moment. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { SILENT_DAYS } from "#analytics/archive/archiver.ts";
import { readShipmentsAnywhere } from "#core/archive/store/archive.ts";
import { NUMBER_TAKEN_MS } from "#core/archive/store/remove-shipments.ts";
import { resolveReferences } from "#core/events/store/references.ts";
import { planRepetitions } from "#core/merchants/store/erasures.ts";
import { findTestParcels } from "#core/merchants/store/test-parcels.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { idsAfter } from "#core/platform/redis/ids-after.ts";
import {
  companyKeys,
  companyPartition,
  companyTag,
  externalReference,
  trackingReference,
  workKeys,
} from "#core/platform/redis/keys.ts";
import { idDigits, idStride } from "#core/platform/redis/partitions.ts";
import { searchBoth } from "#core/search/store/archive-search.ts";
import { correctShipment } from "#core/shipments/store/correct-shipment.ts";
import { createItems } from "#core/shipments/store/create-items.ts";
import { registerAgain } from "#core/shipments/store/register-shipments.ts";
import { readShipments, takeNumbers } from "#core/shipments/store/shipments.ts";
import type { CatalogueEntry } from "#core/statuses/rules/map-status.ts";
import {
  announceRemap,
  type Remap,
  type RemapEntry,
  readRemap,
} from "#core/statuses/store/remaps.ts";
import { startErasures } from "#processors/jobs/erasures.ts";
import { startRemaps } from "#processors/track/remap.ts";
import { daysAgo } from "#test/support/data/days.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { queryOf } from "#test/support/data/searched-shipments.ts";
import { channelOf, testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { held, openTestArchive, type TestArchive } from "#test/support/product/archive.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { passTime } from "#test/support/product/webhooks.ts";

const DAY_SECONDS = 86_400;
const TEST_COURIER = "WAYBILL_TEST";

let runtime: TestRuntime;
let opened: TestArchive;
let archive: TestArchive["archive"];

beforeAll(async () => {
  const setup = testSetup();
  const [channel] = setup.companies?.[0]?.channels ?? [];
  channel?.apiKeys?.push({ code: "rehearsal", mode: "test", key: "key_test_of_acme" });
  runtime = await openTestRuntime(setup);
  opened = await openTestArchive(runtime);
  ({ archive } = opened);
}, 300_000);

afterAll(async () => {
  await opened.end();
  await runtime.end();
});

let counter = 0;
let number = "";
beforeEach(() => {
  counter += 1;
  number = `MEET${counter}`;
});

const archiveNow = () => opened.archiveNow();

function shadow() {
  const live = channelOf(runtime);
  const channel = [...runtime.live.configuration().channels.values()].find(
    ({ testOf }) => testOf === live.id,
  );
  if (!channel) throw new Error("test mode is off");
  return channel;
}

interface Wanted {
  readonly courier?: string;
  readonly shipDate?: string;
  readonly channel?: ReturnType<typeof channelOf>;
  readonly redis?: Redis;
}

async function begin(trackingNumber: string, wanted: Wanted = {}) {
  const {
    courier = "GLS_ITA",
    shipDate = daysAgo(10, runtime.live.now()),
    channel = channelOf(runtime),
  } = wanted;
  const { log, live } = runtime;
  const configuration = live.configuration();
  const items = [{ trackingNumber, courier, shipDate }];
  const terms = { redis: wanted.redis ?? runtime.redis, log, configuration };
  const [outcome] = await createItems(terms, channel, items, live.now());
  if (!outcome) throw new Error("no outcome");
  return outcome;
}

async function create(trackingNumber: string, wanted: Wanted = {}): Promise<number> {
  const outcome = await begin(trackingNumber, wanted);
  if (outcome.kind !== "created") throw new Error(JSON.stringify(outcome));
  return outcome.id;
}

const duplicateOf = (id: number) => ({
  kind: "rejected",
  errors: [expect.objectContaining({ code: "DUPLICATE_SHIPMENT", existingId: id })],
});

/** In the archive, delivered. */
async function archived(trackingNumber: string, wanted: Wanted = {}): Promise<number> {
  const id = await create(trackingNumber, wanted);
  const code = wanted.courier === "BRT_ITA" ? "704" : "DLV";
  await applyEvents(runtime, [{ shipmentId: id, code }]);
  await passTime(runtime, 31 * DAY_SECONDS);
  await archiveNow();
  expect(await readShipments(runtime.redis, [id])).toEqual([]);
  return id;
}

async function found(trackingNumber: string): Promise<number[]> {
  const { companyId, id } = channelOf(runtime);
  const query = queryOf(
    { companyId, channelIds: [id] },
    { trackingNumber, order: { by: "id", descending: false } },
  );
  const page = await searchBoth(runtime.redis, archive, query);
  expect(page.total).toBe(page.hits.length);
  return page.hits.map((hit) => hit.id);
}

const numbersKey = (trackingNumber: string) => {
  const { companyId, id } = channelOf(runtime);
  return companyKeys(companyPartition(companyId)).numbers(id, trackingNumber);
};

/** Redis' own clock, which no test can put forward, reaches the expiry. */
async function expireNow(key: string): Promise<void> {
  if ((await runtime.redis.pTTL(key)) > 0) await runtime.redis.pExpire(key, 0);
}

describe("test mode", () => {
  async function lives(): Promise<number[]> {
    const { waiting } = workKeys(companyTag(companyPartition(shadow().companyId)), "test-parcels");
    return (await runtime.redis.zRange(waiting, 0, -1)).map((work) => Number.parseInt(work, 10));
  }

  test("goes on after the first shipments of a channel's shadow have been archived", async () => {
    const channel = shadow();
    const silent = { courier: TEST_COURIER, channel };
    const old = [await create("TEST_SILENT-1", silent), await create("TEST_SILENT-2", silent)];
    expect(await findTestParcels(runtime.redis, channel, runtime.live.now())).toBe(2);
    await passTime(runtime, (SILENT_DAYS + 1) * DAY_SECONDS);
    await archiveNow();
    expect(await readShipments(runtime.redis, old)).toEqual([]);
    const young = [await create(`${number}-A`, silent), await create(`${number}-B`, silent)];
    expect(await findTestParcels(runtime.redis, channel, runtime.live.now())).toBe(2);
    expect(await lives()).toEqual(expect.arrayContaining(young));
    expect(await findTestParcels(runtime.redis, channel, runtime.live.now())).toBe(0);
    const later = await create(`${number}-C`, silent);
    expect(await findTestParcels(runtime.redis, channel, runtime.live.now())).toBe(1);
    expect(await lives()).toContain(later);
  }, 300_000);
});

describe("shipments of an index, read in the order of their ids", () => {
  const KEY = `${companyTag(0)}:read-in-order`;
  const name = (id: number) => String(id).padStart(idDigits(), "0");

  async function readAll(count: number, meanwhile: (page: number) => Promise<unknown> = held) {
    const read: number[] = [];
    let position = { shipmentId: 0, place: 0 };
    for (let page = 1; ; page += 1) {
      const { ids, place } = await idsAfter(runtime.redis, KEY, position, count);
      read.push(...ids);
      if (ids.length < count) return read;
      position = { shipmentId: ids.at(-1) ?? 0, place };
      await meanwhile(page);
    }
  }

  /** Even ids, whose scores are ranks as `number-rows.lua` leaves them. */
  beforeEach(async () => {
    await runtime.redis.del(KEY);
    const members = Array.from({ length: 20 }, (_, at) => ({ score: at, value: name(2 * at + 2) }));
    await runtime.redis.zAdd(KEY, members);
  });

  const all = Array.from({ length: 20 }, (_, at) => 2 * at + 2);

  test("are read once each, whatever the size of a page", async () => {
    for (const count of [1, 3, 19, 20, 21]) expect(await readAll(count)).toEqual(all);
    const late = await idsAfter(runtime.redis, KEY, { shipmentId: 11, place: 0 }, 4);
    expect(late.ids).toEqual([12, 14, 16, 18]);
    const beyond = await idsAfter(runtime.redis, KEY, { shipmentId: 99, place: 999 }, 4);
    expect(beyond.ids).toEqual([]);
  });

  test("none is left out where others leave or come back meanwhile", async () => {
    const leaving = await readAll(3, async (page) => {
      if (page === 2) await runtime.redis.zRem(KEY, all.slice(0, 5).map(name));
    });
    expect(leaving).toEqual(all);
    const returning = await readAll(3, async (page) => {
      const back = all.slice(0, 5).map((id, at) => ({ score: at, value: name(id) }));
      if (page === 1) await runtime.redis.zAdd(KEY, back);
    });
    expect(returning).toEqual(all.slice(5));
  });
});

describe("a shipment without news", () => {
  test("that was shipped long before it was created is archived by its creation, and not before", async () => {
    const old = { shipDate: daysAgo(2 * SILENT_DAYS, runtime.live.now()) };
    const id = await create(number, old);
    await archiveNow();
    expect(await readShipments(runtime.redis, [id])).toHaveLength(1);
    await passTime(runtime, (SILENT_DAYS - 1) * DAY_SECONDS);
    await archiveNow();
    expect(await readShipments(runtime.redis, [id])).toHaveLength(1);
    await passTime(runtime, DAY_SECONDS);
    await archiveNow();
    expect(await readShipments(runtime.redis, [id])).toEqual([]);
  }, 300_000);

  test("counts from its latest event, whether a code maps it or not", async () => {
    const [noisy, silent] = [await create(`${number}-A`), await create(`${number}-B`)];
    await passTime(runtime, (SILENT_DAYS - 1) * DAY_SECONDS);
    await applyEvents(runtime, [{ shipmentId: noisy, code: "XYZ" }]);
    await passTime(runtime, DAY_SECONDS);
    await archiveNow();
    expect(await readShipments(runtime.redis, [noisy])).toHaveLength(1);
    expect(await readShipments(runtime.redis, [silent])).toEqual([]);
  }, 300_000);
});

describe("a tracking number whose shipment was archived a moment ago", () => {
  test("stays taken for good by a shipment of another courier that is created then", async () => {
    const old = await archived(number);
    expect(await runtime.redis.pTTL(numbersKey(number))).toBeWithin(1, NUMBER_TAKEN_MS + 1);
    const young = await create(number, { courier: "BRT_ITA" });
    await expireNow(numbersKey(number));
    expect(await found(number)).toEqual([old, young]);
    expect(await begin(number, { courier: "BRT_ITA" })).toMatchObject(duplicateOf(young));
    expect(await begin(number)).toMatchObject(duplicateOf(old));
  }, 300_000);

  test("stays taken for good by a shipment that a courier announces it for then", async () => {
    const young = await create(`${number}-OWN`, { courier: "BRT_ITA" });
    const old = await archived(number);
    const { id: channelId } = channelOf(runtime);
    await applyEvents(runtime, [{ shipmentId: young, code: "700", newTrackingNumber: number }]);
    const taken = { shipmentId: young, channelId, courier: "BRT_ITA", trackingNumber: number };
    await takeNumbers(runtime.redis, [taken]);
    await expireNow(numbersKey(number));
    expect(await found(number)).toEqual([young, old]);
    await takeNumbers(runtime.redis, [{ ...taken, shipmentId: young + idStride() }]);
    expect(await found(number)).toEqual([young, old]);
  }, 300_000);
});

describe("an archived reference that becomes another channel's too while it is looked up", () => {
  /** The store, in which something happens between the first look at references and the second one. */
  function between(happens: () => Promise<unknown>): Redis {
    const { redis } = runtime;
    return new Proxy(redis, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        if (name !== "mGet") return value.bind(target);
        return async (keys: string[]) => {
          const reply = await target.mGet(keys);
          await happens();
          return reply;
        };
      },
    });
  }

  const registerFor = (code: string) => create(number, { channel: channelOf(runtime, code) });

  test("finds both shipments", async () => {
    const old = await archived(number);
    const reference = trackingReference("GLS_ITA", number);
    let other = 0;
    const redis = between(async () => {
      other = await registerFor("acme-outlet");
    });
    const candidates = (await resolveReferences(redis, [reference])).get(reference.key) ?? [];
    expect(candidates.map(({ shipmentId }) => shipmentId)).toEqual([old, other]);
    expect(candidates[0]?.archived?.ownsNumber).toBe(true);
    // And a reference that nobody has is not made up.
    const nobody = trackingReference("GLS_ITA", `${number}-NOBODY`);
    expect((await resolveReferences(between(held), [nobody])).get(nobody.key)).toEqual([]);
  }, 300_000);

  test("is a duplicate on its own channel: the number is not created twice", async () => {
    const old = await archived(number);
    await expireNow(numbersKey(number));
    const redis = between(() => registerFor("beta-it"));
    expect(await begin(number, { redis })).toMatchObject(duplicateOf(old));
    expect(await found(number)).toEqual([old]);
  }, 300_000);
});

describe("an archived shipment with an event that no code maps", () => {
  const entry = (code: string, members: Partial<CatalogueEntry>): CatalogueEntry => ({
    code,
    description: code,
    terminal: false,
    ...members,
  });

  async function remap(entries: readonly RemapEntry[]): Promise<Remap> {
    const { redis, live } = runtime;
    const order = { courier: "GLS_ITA", by: "operator", entries, reverts: null };
    const id = await announceRemap(redis, order, live.now());
    const remaps = startRemaps({ ...runtime, archive });
    const done = await eventually(async () => {
      const one = await readRemap(redis, id);
      return one?.state === "done" && one;
    }, "the remap is done");
    await remaps.stop();
    await live.refresh();
    return done;
  }

  async function unmappedInArchive(code: string, trackingNumber = number): Promise<number> {
    const id = await create(trackingNumber);
    await applyEvents(runtime, [{ shipmentId: id, code }]);
    await passTime(runtime, SILENT_DAYS * DAY_SECONDS);
    await archiveNow();
    expect(await readShipments(runtime.redis, [id])).toEqual([]);
    return id;
  }

  const statusOf = async (id: number) => {
    const channelIds = [channelOf(runtime).id];
    const [one] = await readShipmentsAnywhere(runtime.redis, archive, [id], channelIds);
    return one?.state.pair.status;
  };

  const held4 = { status: "EXCEPTION", statusDetail: 4 } as const;
  const changes: readonly [string, (code: string) => RemapEntry][] = [
    ["nothing else", (code) => ({ code: `${code}-OTHER`, before: null, after: null })],
    [
      "a code that gets another status",
      (code) => ({ code, before: entry(code, held4), after: entry(code, { status: "DELAY" }) }),
    ],
    [
      "a code that gets another status detail",
      (code) => ({
        code,
        before: entry(code, held4),
        after: entry(code, { status: "EXCEPTION", statusDetail: 5 }),
      }),
    ],
    [
      "a code whose mapping is removed",
      (code) => ({ code, before: entry(code, held4), after: null }),
    ],
  ];

  test.each(changes)(
    "is corrected when its code is mapped together with %s",
    async (_, changeOf) => {
      const code = `NEW${counter}`;
      const id = await unmappedInArchive(code);
      const hot = await create(`${number}-HOT`);
      await applyEvents(runtime, [{ shipmentId: hot, code }]);
      const mapped = { code, before: null, after: entry(code, { status: "RETURNED" }) };
      const { progress } = await remap([mapped, changeOf(`OLD${counter}`)]);
      expect([await statusOf(id), await statusOf(hot)]).toEqual(["RETURNED", "RETURNED"]);
      expect(progress).toMatchObject({ shipments: 2, statesChanged: 2, events: 2 });
      expect(progress.examined).toBeGreaterThanOrEqual(2);
    },
    300_000,
  );

  test("whose row cannot be opened is passed over by the remap and by a repeated erasure, and those before and behind it are done", async () => {
    const code = `NEW${counter}`;
    const before = await unmappedInArchive(code, `${number}-BEFORE`);
    const bad = await unmappedInArchive(code);
    const after = await unmappedInArchive(code, `${number}-AFTER`);
    await opened.clickhouse.command({
      query: `ALTER TABLE archived_shipments UPDATE sealed = 'spoilt' WHERE id = ${bad}`,
      clickhouse_settings: { mutations_sync: "1" },
    });
    const mapped = { code, before: null, after: entry(code, { status: "RETURNED" }) };
    expect((await remap([mapped])).progress).toMatchObject({ shipments: 2, statesChanged: 2 });
    expect([await statusOf(before), await statusOf(after)]).toEqual(["RETURNED", "RETURNED"]);
    const behind = await create(`${number}-BEHIND`);
    const { redis, live } = runtime;
    await planRepetitions(redis, bad, live.now());
    await passTime(runtime, DAY_SECONDS / 2);
    await planRepetitions(redis, behind, live.now());
    await passTime(runtime, 2 * DAY_SECONDS);
    const erasures = startErasures({ ...runtime, archive });
    const { erasures: due } = companyKeys(companyPartition(channelOf(runtime).companyId));
    await eventually(async () => (await redis.zCard(due)) === 0, "all repetitions are done");
    await erasures.stop();
  }, 300_000);

  test("is corrected when its code was mapped for other events alone, and is mapped for all", async () => {
    const code = `NEW${counter}`;
    const id = await unmappedInArchive(code);
    const rules = [{ reasonCode: "R1", status: "DELAY" }] as const;
    const [before, after] = [entry(code, { rules }), entry(code, { rules, status: "RETURNED" })];
    await remap([{ code, before, after }]);
    expect(await statusOf(id)).toBe("RETURNED");
  }, 300_000);
});

test("a corrected shipment that is archived is still found by every order reference it has had", async () => {
  const { redis } = runtime;
  const id = await create(number);
  const by = { atMs: runtime.live.now(), apiKey: "main" };
  for (const orderReference of [`${number}-old`, `${number}-new`]) {
    expect(await correctShipment(redis, id, { orderReference }, by)).toBe("corrected");
  }
  await registerAgain(redis, runtime.live.configuration(), [id]);
  await applyEvents(runtime, [{ shipmentId: id, code: "DLV" }]);
  await passTime(runtime, 31 * DAY_SECONDS);
  await archiveNow();
  expect(await correctShipment(redis, id, { note: "late" }, by)).toBe("missing");
  const references = ["old", "new"].map((end) =>
    externalReference("GLS_ITA", "ACC-1", `${number}-${end}`),
  );
  const found = await resolveReferences(redis, references);
  for (const { key } of references) {
    expect(found.get(key)).toMatchObject([{ shipmentId: id, orderReference: null }]);
  }
});
